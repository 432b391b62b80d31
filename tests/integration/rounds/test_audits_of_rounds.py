"""Tickets and duties over the real contracts of rounds: an accusation freezes a real tenure until it is over."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from pyrevm import BlockEnv

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms, chain_of
from assay.protocol.types import Address, Wei
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract, Reverted
from tests.harness.rounds.samples import ETHER, START, fields, mark, work_of
from tests.harness.rounds.samples import TERMS as ROUND_TERMS
from tests.harness.rounds.stage import person, text
from tests.harness.rounds.staged import charter_arguments, modules_at

NAMES = (
    *("RoundsBench", "StageCharter", "Vault", "Tickets", "Duties", "Attestations"),
    *("Tenures", "Commitments", "Generations"),
)
PEOPLE = [text(person(k)) for k in range(3)]


class WholeRound:
    """Two solvers and two tickets on contracts that are all real but beacon, gate and game."""

    def __init__(self) -> None:
        self.evm = Evm(timestamp=START)
        token = self.evm.deploy("TestToken")
        deployer = Address(bytes.fromhex(self.evm.caller.removeprefix("0x")))
        nonce = self.evm.evm.basic(self.evm.caller).nonce
        at = {name: text(create_address(deployer, nonce + k)) for k, name in enumerate(NAMES)}
        named = {name.lower(): place for name, place in at.items()}
        modules = modules_at(at["RoundsBench"], charter=at["StageCharter"], **named)
        lockers = [at[name] for name in ("Tenures", "Generations", "Tickets")]
        tickets = TicketTerms(Wei(100 * ETHER), 7200, 1)
        arguments = {name: [at["StageCharter"]] for name in NAMES} | {
            "RoundsBench": [astuple(modules)],
            "StageCharter": charter_arguments(token.address, modules, lockers, tickets=tickets, exit_delay=60),
        }
        self.on: dict[str, EvmContract] = {name: self.evm.deploy(name, *arguments[name]) for name in NAMES}
        assert {name: made.address.lower() for name, made in self.on.items()} == at
        for who in PEOPLE:
            token.call("mint", who, 1000 * ETHER, caller=who)
            token.call("approve", at["Vault"], 1000 * ETHER, caller=who)
            self.on["Vault"].call("deposit", 1000 * ETHER, caller=who)
        self.chains = {ticket: chain_of(mark(("chain", ticket)), 9) for ticket in (1, 2)}

    def at(self, time: int) -> None:
        """It is this second of chain time."""
        self.evm.evm.set_block_env(BlockEnv(number=1, timestamp=time, gas_limit=30_000_000, prevrandao=bytes(32)))

    def do(self, contract: str, function: str, *args: Any, who: int = 0) -> Any:
        return self.on[contract].call(function, *args, caller=PEOPLE[who])

    def accusations(self, tenure: int) -> int:
        """Accusations that freeze a tenure."""
        return int(self.do("Tenures", "tenureOf", tenure)[8])

    def seed(self, time: int) -> bytes:
        """The newest epoch's seed, of which its beacon's round is submitted."""
        self.at(time)
        number, start = self.do("Duties", "newest")
        beacon_round = self.do("RoundsBench", "roundAfter", start + 60)
        self.do("RoundsBench", "submit", beacon_round, mark(("beacon", number)))
        self.do("Duties", "seedEpoch")
        return mark(("beacon", number))


@pytest.fixture
def whole() -> WholeRound:
    """Tickets 1 and 2 of the first two people count, then round 0 opens and the first two commit."""
    made = WholeRound()
    for who in (0, 1):
        made.do("Tickets", "register", made.chains[who + 1][0], who=who)
        made.do("Tenures", "join", who=who)
    made.at(START + 7200)
    made.do("RoundsBench", "begin")
    base = state_digest([ROUND_TERMS.parameters, ROUND_TERMS.momentum])
    for who in (0, 1):
        made.do("Commitments", "commit", 0, who, who + 1, base, fields(work_of(who)), who=who)
    return made


def result(seed: bytes, secret: bytes, ticket: int, seat: int, digest: bytes, lie: bool) -> tuple[int, Any]:
    """Rank and row of a result on a commitment of round 0."""
    drawn = draws.draw(secret, seed, digest, TicketId(ticket), DutyKind.WORK)  # type: ignore[arg-type]
    work = work_of(seat)
    duty = (int(DutyKind.WORK), 0, seat, ZERO, (0, 0, 0, 0))
    update = mark("another") if lie else work.update
    row = (duty, fields(work), list(work.ends), update, [mark("acc")], ([ZERO] * 3, ZERO, [], []))
    return draws.rank_of(drawn, draws.threshold(4_000_000, 2)), row


def test_an_accusation_holds_a_real_tenure_until_it_lapses(whole: WholeRound) -> None:
    digests = [whole.do("Commitments", "workOf", 0, seat)[0] for seat in (0, 1)]
    last = whole.do("Commitments", "commitUntil", 0)
    # Epoch 0 began before the round's last commitment, so the round belongs to the next one.
    seed = whole.seed(START + 7320)
    secret = whole.chains[1][1]
    _, row = result(seed, secret, 1, 0, digests[0], lie=False)
    with pytest.raises(Reverted, match="NotADuty"):
        whole.do("Duties", "open", 1, seed, secret, [row])
    for ticket in (1, 2):
        whole.do("Duties", "open", ticket, seed, whole.chains[ticket][1], [], who=ticket - 1)
    whole.at(last + 1)
    whole.do("Duties", "closeEpoch")
    seed = whole.seed(last + 200)
    for ticket in (1, 2):
        secret = whole.chains[ticket][2]
        lies = [seat == 0 and ticket == 2 for seat in (0, 1)]
        rows = sorted(result(seed, secret, ticket, seat, digests[seat], lies[seat]) for seat in (0, 1))
        whole.do("Duties", "open", ticket, seed, secret, [row for _, row in rows], who=ticket - 1)
    assert [whole.accusations(tenure) for tenure in (1, 2)] == [1, 0]
    by = draws.attestation_id(1, TicketId(2), DutyKind.WORK, digests[0])
    name = draws.accusation_id(by, digests[0])
    assert whole.do("Attestations", "mayTry", name, digests[0], PEOPLE[1])
    assert not whole.do("Attestations", "mayTry", name, digests[0], PEOPLE[0])
    assert not whole.do("Attestations", "mayTry", name, digests[1], PEOPLE[1])
    whole.at(last + 200 + 3601)
    whole.do("Duties", "closeEpoch")
    seed = whole.seed(last + 4000)
    for ticket in (1, 2):
        whole.do("Duties", "open", ticket, seed, whole.chains[ticket][3], [], who=ticket - 1)
    whole.at(last + 8000)
    whole.do("Duties", "closeEpoch")
    lock = whole.do("Tickets", "lockOf", 2)
    whole.do("Attestations", "lapse", name, who=2)
    assert whole.accusations(1) == 0
    assert whole.do("Vault", "lockOf", lock)[1] == 97 * ETHER


def test_a_miss_on_the_real_genesis_is_fined(whole: WholeRound) -> None:
    last = whole.do("Commitments", "commitUntil", 0)
    seed = whole.seed(START + 7320)
    for ticket in (1, 2):
        whole.do("Duties", "open", ticket, seed, whole.chains[ticket][1], [], who=ticket - 1)
    whole.at(last + 1)
    whole.do("Duties", "closeEpoch")
    seed = whole.seed(last + 200)
    for ticket in (1, 2):
        whole.do("Duties", "open", ticket, seed, whole.chains[ticket][2], [], who=ticket - 1)
    whole.at(last + 200 + 3601)
    whole.do("Duties", "closeEpoch")
    lock = whole.do("Tickets", "lockOf", 1)
    whole.do("Duties", "miss", 1, 1, 1, (int(DutyKind.WORK), 0, 1, ZERO, (0, 0, 0, 0)), who=2)
    assert whole.do("Vault", "lockOf", lock)[1] == 97 * ETHER
