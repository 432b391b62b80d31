"""A run that draws from drand's evmnet: an actor brings a recorded round, at its time, from relays at real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from assay.cli import checks
from assay.cli.run_documents import describe
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.run.beacon import EVMNET
from assay.protocol.types import BeaconRound
from assay.settings import resolve
from assay_ledger.agents.keeping import STAGGER_S
from assay_ledger.agents.round_actions import SubmitBeacon
from assay_ledger.deployment.deploy import deploy_beacon
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain, actors_artifacts
from tests.harness.beacons import VECTORS, data
from tests.harness.clocks import MovedClock
from tests.harness.relays import RECORDED, Relay, body, running_relay

RECORD = next(r for r in VECTORS["rounds"] if "randomness" in r)
NUMBER, DRAWN = BeaconRound(RECORD["round"]), data(RECORD["randomness"])
DUE = EVMNET.time_of(NUMBER)
STRANGER_S = STAGGER_S
"""How long somebody without a seat or a ticket waits where nobody has one."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedChain]:
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain(DUE - 3600)
        deploy_beacon(stage.chain, stage.sponsor, EVMNET)
        yield stage
        stage.close()


@pytest.fixture
def relay() -> Iterator[Relay]:
    with running_relay() as relay:
        yield relay


@pytest.fixture
def liar() -> Iterator[Relay]:
    with running_relay() as relay:
        relay.answer = 200, body(NUMBER, max(RECORDED.items())[1])
        yield relay


def auditor(made: WholeRun, name: str, relays: list[str], clock: MovedClock) -> AuditorAgent:
    """Somebody without a ticket, who does what anybody may."""
    return made.auditor(name, tickets=0, relays=relays, clock=clock)


def balance(made: WholeRun, agent: AuditorAgent) -> int:
    """Wei of coin that an actor has."""
    return int(made.chain.w3.eth.get_balance(to_checksum_address(agent.me)))


def examined(made: WholeRun, *relays: Relay) -> checks.Finding:
    """What the doctor finds of the run's beacon."""
    flags = {"rpc_url": made.chain.url, "run": "0x" + made.run.address.hex()}
    flags["drand_relays"] = ",".join(relay.url for relay in relays)
    return checks._finding("beacon", lambda: checks._beacon(resolve(flags, {})))


def test_a_recorded_round_comes_late_by_whoever_is_left_and_seeds_the_epoch(
    stage: SharedChain, relay: Relay, liar: Relay, tmp_path: Path
) -> None:
    # The epoch begins in the last second for which the recorded round is the first after the delay.
    stage.chain.rpc("evm_mine", hex(DUE - 61))
    made = new_whole_run(stage, tmp_path, network=EVMNET)
    assert made.run.charter.timing.audits_from + made.run.charter.timing.seed_delay == DUE - 1
    assert describe(made.run)["beacon"] == "evmnet"
    clock, relays = MovedClock(), [liar.url, relay.url]
    first = auditor(made, "first", relays, clock)
    second = auditor(made, "second", relays, clock)
    alone = auditor(made, "without relays", [], clock)
    for agent in (first, second, alone):
        assert not agent.step() and agent.deadline == DUE + STRANGER_S
    missing = examined(made, relay)
    assert missing.state is checks.CheckState.BROKEN and "answers with status 425" in missing.found
    stage.chain.rpc("evm_mine", hex(DUE))
    found = examined(made, liar, relay)
    assert found.state is checks.CheckState.OK
    assert found.found == f"drand's evmnet: round {NUMBER} from {relay.url}, its signature checked"
    relay.asked.clear(), liar.asked.clear()
    stage.chain.rpc("evm_mine", hex(DUE + STRANGER_S - 1))
    assert not first.step() and relay.asked == []
    # Nobody has it: no word is lost over it at every head, nor is anybody asked again at once.
    relay.answer = 425, b"Requested future beacon"
    stage.chain.rpc("evm_mine", hex(DUE + STRANGER_S))
    assert not alone.step()
    assert first.step() and (len(relay.asked), len(liar.asked)) == (1, 1)
    stage.chain.rpc("evm_mine")
    assert not first.step() and len(relay.asked) == 1 and made.view.books.randomness.known == {}
    with pytest.raises(UnavailableError):
        second.perform(SubmitBeacon(NUMBER), second.see())
    # The network is back.
    relay.answer, clock.now = None, clock.now + 2.0
    seen = second.see()
    assert first.step() and len(relay.asked) == 3
    assert made.view.books.randomness.known == {NUMBER: DRAWN}
    # Whoever looked before it landed is refused before it pays.
    coin = balance(made, second)
    with pytest.raises(RejectedError) as refused:
        second.perform(SubmitBeacon(NUMBER), seen)
    assert refused.value.code == "BeaconAlreadySubmitted" and balance(made, second) == coin
    # All turns have come since it was due, so they count from when it came.
    since = made.view.books.randomness.since[NUMBER]
    for agent in (first, second, alone):
        assert not agent.step() and agent.deadline == since + STRANGER_S
    stage.chain.rpc("evm_mine", hex(since + STRANGER_S))
    assert alone.step() and not first.step()
    view = made.view
    assert view.epochs[0].seed == DRAWN
    assert view.epochs[0].deadline >= since + STRANGER_S + made.run.charter.timing.epoch
