"""Real actors show over HTTP what the chain says of them, and what the node, the store and the contracts answered."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.observing import names
from assay.protocol.errors import ExitCode
from assay.protocol.types import Address, Round
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import stake_of
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.scraping import SOON_S, Samples, free_place, judged, one, scrape, wait_until
from tests.harness.actors.shells import ActorShells
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import ETHER

TICKETS = 5


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture
def shells(desk: Desk, tmp_path: Path) -> Iterator[ActorShells]:
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=12, rates=AuditRates(audit_ppm=900_000))
    found = ActorShells(desk, made)
    try:
        yield found
    finally:
        found.end()


def wait_for(place: str, path: str, status: int) -> None:
    """Until a page answers so, whatever it says."""
    end = time.monotonic() + SOON_S
    while (found := judged(place, path))[0] != status:
        assert time.monotonic() < end, {n: v for n, v in found.items() if "rpc" not in n and "_store" not in n}
        time.sleep(0.2)


def locked(made: WholeRun, who: Address) -> int:
    """Wei; metrics are binary64, so that figures are compared as such."""
    return sum(amount for owner, amount in made.locks().values() if owner == who)


def outcomes(samples: Samples) -> set[str]:
    return {has["outcome"] for has, _ in samples["assay_actions_total"]}


def check_log(made: WholeRun, who: Address, lines: list[dict[str, Any]]) -> None:
    """Every line says of whom it is; a commitment's transaction is found by the round, and is the chain's."""
    assert all(line["role"] == "solver" for line in lines)
    assert {line.get("address") for line in lines[1:]} == {"0x" + who.hex()}
    mined = {line["transaction"]: line for line in lines if "transaction" in line}
    for work in made.view.works(Round(0)):
        line = mined["0x" + bytes(work.tx_hash).hex()]
        assert (line["action"], line["round"], line["logger"]) == ("CommitWork", 0, "assay.chain")
    assert any(line["event"].startswith("stopped") for line in lines)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_actors_at_work_show_what_they_did_have_and_wait_for(desk: Desk, shells: ActorShells) -> None:
    made, charter = shells.made, shells.made.run.charter
    stakes = {"sol": stake_of(charter, seats=1), "vera": stake_of(charter, tickets=TICKETS)}
    places = {name: free_place() for name in stakes}
    for name in stakes:
        shells.add(name)
    for name, role, more in (("sol", "solver", ()), ("vera", "verifier", ("--tickets", str(TICKETS)))):
        words = (role, "start", "--deposit", str(stakes[name] // ETHER + 100), "--metrics", places[name])
        shells.start(name, *words, *more, "--log-format", "json" if name == "sol" else "plain")
    made.fund()
    shells.wait(lambda v: len(v.books.registry.tickets) == TICKETS and v.free_seats == 1)
    ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
    shells.wait(lambda v: v.now > ripe)
    made.launch()
    view = shells.wait(lambda v: v.round == 2 and len(v.state.works) >= 2)

    for name, place in places.items():
        assert judged(place, "/health") == (200, {"alive": True})
        wait_for(place, "/ready", 200)
        assert judged(place, "/ready")[1] == dict.fromkeys(("node", "store", "key", "enrolled"), True)
        who, chain = shells.people[name], made.chain
        # Actors go on until they rest; the figures follow what the vault says.
        found = wait_until(place, lambda samples, who=who: one(samples, "assay_locked_wei") == float(locked(made, who)))
        assert one(found, "assay_locked_wei") >= float(stakes[name])
        assert one(found, "assay_free_wei") == float(made.free(who))
        assert found["assay_process_info"][0][0]["address"] == "0x" + who.hex()
        assert 0 < one(found, "assay_account_gas_wei") <= 10 * ETHER
        found = wait_until(place, lambda samples: one(samples, "assay_head_block") >= view.block)
        assert one(found, "assay_head_block") <= chain.head().number
        assert "done" in outcomes(found) and "failed" not in outcomes(found)
        assert one(found, "assay_rpc_seconds_count", method="eth_getBlockByNumber") > 5
        assert one(found, "assay_store_requests_total", kind="slot", outcome="ok") > 0
        # Whoever scrapes sees names of the table alone, beside those of the process.
        known = {known.name for known in names.ALL}
        shown = {sample.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for sample in found}
        assert {sample for sample in shown if sample.startswith("assay_")} <= known
    trained = one(scrape(places["sol"]), "assay_rounds_trained_total")
    assert 2 <= trained <= len(made.view.state.works)
    assert one(scrape(places["vera"]), "assay_rounds_trained_total") == 0

    # The node goes: the process lives on and says so, and is ready again with the node.
    shells.running["sol"].send_signal(signal.SIGINT)
    code, _, said = shells.ended("sol")
    assert code == ExitCode.INTERRUPTED
    assert [line for line in said.splitlines() if not line.startswith("{")] == []
    check_log(made, shells.people["sol"], [json.loads(line) for line in said.splitlines()])
    node = desk.stage.node.process
    node.send_signal(signal.SIGSTOP)
    try:
        wait_for(places["vera"], "/ready", 503)
        assert judged(places["vera"], "/ready")[1]["node"] is False
        assert judged(places["vera"], "/health")[0] == 200
    finally:
        node.send_signal(signal.SIGCONT)
    wait_for(places["vera"], "/ready", 200)
    assert one(scrape(places["vera"]), "assay_rpc_requests_total", method="eth_getBlockByNumber", outcome="unanswered")
