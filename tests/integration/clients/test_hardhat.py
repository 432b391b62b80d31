"""What was only ever run on anvil, on a client that others wrote: stuck transactions, a whole deployment, enrolment.

Hardhat is no dependency of anybody who takes part: `make clients` installs it, and `make test-long` does so first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.outbox import Outbox, Result
from assay_ledger.chain.sent import Payload
from assay_ledger.deployment.code import check_code
from assay_ledger.deployment.deploy import deploy_run, deploy_seed, deploy_token
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS, places_of
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.run import Run
from tests.harness.contracts.arena import arena_charter
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.games import config
from tests.harness.hardhat import DEV_KEY, INSTALLED, HardhatNode
from tests.harness.programs import counting

GWEI = 10**9
ETHER = 10**18
SOMEBODY = "0x" + "22" * 20

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (INSTALLED / "hardhat").is_dir(), reason="`make clients` installs it"),
]


@pytest.fixture
def node() -> Iterator[HardhatNode]:
    with HardhatNode() as running:
        yield running


class Sending:
    """A call on its way in a thread, and what became of it."""

    def __init__(self, send: Callable[[], list[Result]]) -> None:
        self.results: list[Result] = []
        self._thread = threading.Thread(target=lambda: self.results.extend(send()), daemon=True)
        self._thread.start()

    def wait(self) -> Result:
        """The one result."""
        self._thread.join(60)
        (result,) = self.results
        return result


def until(condition: Callable[[], object]) -> None:
    """Waits for what another thread does."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_a_pool_holds_for_too_low_a_fee_is_replaced_and_mined_once(node: HardhatNode, tmp_path: Path) -> None:
    node.base = GWEI
    node.mine()
    account, record = Account.from_key(DEV_KEY), tmp_path / "outbox.jsonl"
    sending = Sending(lambda: Outbox(Chain(node.url), account, record).send([Payload(SOMEBODY, b"", 1)]))
    until(lambda: node.pool)
    (held,) = node.pool
    node.base = 5 * GWEI
    node.mine()
    # The pool of this client keeps what it cannot mine, as a public one does and anvil's does not.
    assert int(held["maxFeePerGas"], 16) < node.base and held["hash"] in [h["hash"] for h in node.pool]
    node.keep_mining()
    result = sending.wait()
    assert not isinstance(result, AssayError) and result["status"] == 1
    assert result["transactionHash"].to_0x_hex() != held["hash"] and not node.pool
    assert int(node.chain.w3.eth.get_balance(SOMEBODY)) == 1
    assert node.chain.w3.eth.get_transaction_count(account.address) == 1


def test_a_process_that_begins_anew_outbids_what_its_former_self_left(node: HardhatNode, tmp_path: Path) -> None:
    node.base = GWEI
    node.mine()
    account, record = Account.from_key(DEV_KEY), tmp_path / "outbox.jsonl"
    first = Outbox(Chain(node.url), account, record, receipt_for_s=0.5)
    (pending,) = first.send([Payload(SOMEBODY, b"", 1)])
    assert isinstance(pending, AssayError) and pending.code == "TransactionPending"
    node.base = 8 * GWEI
    node.keep_mining()
    (result,) = Outbox(Chain(node.url), account, record).send([Payload(SOMEBODY, b"", 1)])
    assert not isinstance(result, AssayError) and result["status"] == 1
    assert int(node.chain.w3.eth.get_balance(SOMEBODY)) == 1


NAMES = [
    *("RunDeployer", "RunCharter", "TestToken", "PrevrandaoSeed", "DrandSeed", "Arbiter"),
    *ROUND_CONTRACTS.values(),
    *GOVERNOR.values(),
    *LEAVES.values(),
]


def test_a_run_is_deployed_and_joined_as_on_anvil(node: HardhatNode, tmp_path: Path) -> None:
    node.keep_mining()
    chain, sponsor = Chain(node.url), Account.from_key(DEV_KEY)
    with fresh_artifacts(tmp_path, NAMES):
        counted = counting().program
        token = deploy_token(chain, sponsor)
        me, seed = address_of(sponsor), deploy_seed(chain, sponsor)
        charter = replace(
            arena_charter(counted, counted, config(), 64), token=token, beacon=seed, sponsor=me, revenue_tokens=(token,)
        )
        run = deploy_run(chain, sponsor, charter)
        assert run.address == places_of(charter).charter
        check_code(run)
        check_joins(chain, run, me)


def check_joins(chain: Chain, run: Run, me: Address) -> None:
    """Stake, a ticket and a seat; a refusal with its name; and the index of it all."""
    sponsor = Account.from_key(DEV_KEY)
    e = run.charter.economics
    stake = Wei(e.ticket_bond + e.seat_lock + e.seat_fee)
    with pytest.raises(RejectedError) as refused:
        chain.send(sponsor, run.tenures.join())
    assert refused.value.code != "Reverted"
    most = Wei(chain.ask(run.token.max_mint()))
    for _ in range(-(-stake // most)):
        chain.send(sponsor, run.token.mint(me, most))
    chain.send(sponsor, run.token.approve(run.vault.address, stake))
    chain.send(sponsor, run.vault.deposit(stake))
    chain.send(sponsor, run.tickets.register(Digest(b"\x5e" * 32)))
    chain.send(sponsor, run.tenures.join())
    state = RunIndex(run).sync()
    assert chain.ask(run.vault.free(me)) == 0
    assert state.head.number <= chain.head().number
