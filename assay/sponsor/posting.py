"""What a sponsor does: publish programs, data and genesis, and deploy the contracts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.amounts import TEST_MONEY, Currency
from assay.protocol.economics.run_bounds import check_run
from assay.protocol.errors import UserError
from assay.protocol.run.beacon import DrandNetwork
from assay.protocol.run.layouts import check_round_layouts
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address
from assay.sponsor.charters import (
    USUAL_COMMITTEE,
    USUAL_RATES,
    AuditRates,
    Committee,
    Pace,
    chain_terms,
    make_run_charter,
)
from assay.sponsor.preparing import PreparedRounds
from assay.sponsor.publishing import Talk, publish, publish_card
from assay_ledger.deployment.deploy import deploy_beacon, deploy_run, deploy_seed, deploy_token
from assay_ledger.rounds.currencies import read_currency
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import ArtifactStore

if TYPE_CHECKING:
    from assay_ledger.chain.client import Chain
    from assay_ledger.chain.transaction_signer import TransactionSigner


def post_run(
    chain: Chain,
    sponsor: TransactionSigner,
    store: ArtifactStore,
    prepared: PreparedRounds,
    *,
    name: str,
    rounds: int,
    seats: int,
    pace: Pace,
    rates: AuditRates = USUAL_RATES,
    kind: str = "local",
    network: DrandNetwork | None = None,
    pays: bool = True,
    committee: Committee = USUAL_COMMITTEE,
    token: Address | None = None,
    money: Currency | None = None,
    sponsored_by: Address | None = None,
    governs: Callable[[RunCharter], RunCharter] = lambda charter: charter,
    talk: Talk = lambda _: None,
    confirm: Callable[[RunCharter], None] = lambda _: None,
) -> Run:
    """Publishes and deploys a run of as many seats as its merge program was prepared for. A test token is made unless
    one is given.

    money: how amounts of `token` are written; what it says now unless given.

    sponsored_by: who opens and cancels the run, where it is not the key that deploys it.

    governs: adds terms of governance to the charter, which has none.

    kind: of chain, by its name in CHAINS. network: the drand network that it draws from, None for the chain's own
    randomness. confirm: is shown the terms, with addresses that stand for what is not deployed yet, before anything is
    sent or published; what it raises ends the posting.

    talk: is told each step as it begins, and the run's address as soon as its contracts are there.

    Raises UserError (OtherRoundLength, TokenUnreadable, TokenTooCoarse), WrongLayout, RejectedError where the
    contracts would refuse the terms.
    """
    from assay_ledger.chain.client import address_of

    if pace.units * pace.steps != prepared.inner_steps:
        # The rate would rise in the wrong places, of which no contract knows.
        raise UserError(
            f"The programs count {prepared.inner_steps} steps a round, {pace.units} units of {pace.steps} are "
            f"{pace.units * pace.steps}.",
            code="OtherRoundLength",
            remedy="Cut the steps that a round has into units.",
        )
    me, unit = address_of(sponsor), TEST_MONEY if token is None else money or read_currency(chain, token)
    named = me if sponsored_by is None else sponsored_by

    def terms(token: Address, beacon: Address) -> RunCharter:
        made = make_run_charter(
            prepared.genesis,
            name=name,
            sponsor=named,
            token=token,
            beacon=beacon,
            chain=chain_terms(kind, unit),
            now=chain.head().timestamp,
            rounds=rounds,
            seats=seats,
            pace=pace,
            rates=rates,
            pays=pays,
            committee=committee,
            money=unit,
        )
        charter = governs(made)
        check_run(charter, chain.head().timestamp)
        return charter

    draft = terms(me if token is None else token, me)
    step, update, merge, _, *partial = prepared.programs
    check_round_layouts(step, update, merge, draft.training, *partial)
    confirm(draft)
    first_block = chain.head().number
    talk("publishing programs, data and genesis")
    publish(store, prepared)
    talk("deploying the contracts")
    charter = terms(
        deploy_token(chain, sponsor) if token is None else token,
        deploy_seed(chain, sponsor) if network is None else deploy_beacon(chain, sponsor, network),
    )
    run = deploy_run(chain, sponsor, charter)
    for line in _said_of(run, sponsored_by, is_test_token=token is None):
        talk(line)
    talk("publishing the run's card")
    publish_card(store, prepared, run.address, first_block)
    return run


def _said_of(run: Run, sponsored_by: Address | None, *, is_test_token: bool) -> list[str]:
    """Where a run is that was just paid for, and what to do with it should the rest of its posting break off."""
    at = "0x" + run.address.hex()
    named = f"--run {at}" if sponsored_by is None else f"--run {at} --multisig 0x{sponsored_by.hex()}"
    test_tokens = " (after `assay ledger faucet ADDRESS --tokens AMOUNT`)" if is_test_token else ""
    return [
        f"the run is at {at}, and stays there whatever fails from here on",
        f"should this command break off: `assay run fund AMOUNT {named}`{test_tokens} fills the escrow; where the "
        f"store failed, nobody finds the model by its names: `assay run cancel {named}`, and post it anew",
    ]
