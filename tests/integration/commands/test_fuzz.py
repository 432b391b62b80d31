"""The differential fuzzer: every executor here gives the reference's bytes on hostile states; deaths are counted."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.conformance.fuzz import campaign
from assay.conformance.fuzz import executors as fuzz_executors
from assay.conformance.fuzz.campaign import Campaign, CampaignResult, _Process
from assay.conformance.fuzz.executors import ReferenceRun, executors
from assay.conformance.fuzz.programs import draw
from assay_ledger.deployment.places import LEAVES
from tests.harness.commands import assay
from tests.harness.contracts.fresh import fresh_artifacts


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The leaves as the sources stand now, where children find them."""
    with fresh_artifacts(tmp_path_factory.mktemp("artifacts"), (*LEAVES.values(), "LeafBatch")):
        yield


def check(found: CampaignResult, programs: int) -> None:
    """Nothing was found, and something was looked at."""
    assert not found.cases, found.cases
    assert (found.differences, found.crashes) == (0, 0)
    assert all(pair.programs >= programs - 1 and pair.elements > 50 * programs for pair in found.pairs)
    names = {pair.pair for pair in found.pairs}
    assert {"stock", "cross-check", "pieces", "trace", "contract"} <= names
    assert {name for name, _ in found.skipped} | names >= {"native vnni", "native avx2", "native, 2 threads"}


def test_every_executor_gives_the_references_bytes_on_hostile_states(contracts: None) -> None:
    check(Campaign(60, 0, programs=12).run(), 11)


@pytest.mark.long
@pytest.mark.timeout(6600)  # 20 minutes on two cores; a busy machine takes its time
def test_every_executor_gives_the_references_bytes_on_hostile_states_at_length(contracts: None) -> None:
    """100,000 programs and 10,000,000 elements over pairs, of them 2,000 and 1,000,000 through the contract."""
    found = Campaign(6000, 1_000_000, jobs=2, programs=10_000).run()
    check(found, 9_990)
    assert found.programs >= 100_000 and found.elements >= 10_000_000
    contract = next(pair for pair in found.pairs if pair.pair == "contract")
    assert contract.programs >= 2_000 and contract.elements >= 1_000_000


@pytest.fixture
def lying_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Children in which "stock" dies at seed 3, gives other bytes at seed 4 and raises at seed 5."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "import assay.conformance.fuzz.executors as e\n"
        "def lying(truth):\n"
        "    if truth.case.seed == 3: os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    if truth.case.seed == 5: raise ValueError('no such kernel')\n"
        "    return 10, 'slot 0' if truth.case.seed == 4 else ''\n"
        "fine = lambda truth: (1 << truth.case.seed, '')\n"
        "e._makers = lambda: iter([('fine', lambda: fine), ('stock', lambda: lying), ('after', lambda: fine)])\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_what_dies_differs_or_raises_is_counted_with_its_seed(lying_children: None) -> None:
    told: list[str] = []
    found = Campaign(60, 0, programs=9, talk=told.append).run()
    assert [(c["seed"], c["pair"], c["what"]) for c in found.cases] == [
        (3, "stock", "crash"),
        (4, "stock", "difference"),
        (5, "stock", "crash"),
    ]
    assert found.cases[0]["how"] == f"ended by signal {int(signal.SIGSEGV)}"
    assert found.cases[2]["how"] == "ValueError: no such kernel"
    assert (found.differences, found.crashes) == (1, 2)
    fine, stock, after = found.pairs
    assert [fine.elements & 0xFF, after.elements & 0xFF] == [0xFF, 0xFF], "all is compared, also after one that died"
    assert stock.elements == 10 * (stock.programs - 2)
    assert len(told) == 3


def test_a_reference_that_lies_is_found_by_every_pair(contracts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: a changed element of the truth is a difference for each of them."""
    found = [each for each in executors() if isinstance(each, tuple)]
    seen = dict.fromkeys((name for name, _ in found), 0)
    for seed in range(12):
        truth = ReferenceRun(draw(seed))
        computed = len(truth.program.nodes) - sum(truth.program.outputs) - 1
        if truth.program.specs[computed].numel == 0 or computed < sum(truth.program.inputs):
            continue
        altered = bytes([truth.values[computed][0] ^ 1]) + truth.values[computed][1:]
        ends = {computed} | {k for k, n in enumerate(truth.program.nodes) if getattr(n, "node", None) == computed}
        truth.values = tuple(altered if k in ends else data for k, data in enumerate(truth.values))
        truth.states[-1] = tuple(tuple(truth.values[k] for k in nodes) for nodes in truth.program.output_nodes)
        for name, compare in found:
            seen[name] += bool(compare(truth)[1])
    assert all(count > 0 for count in seen.values()), seen


def test_the_command_says_what_was_compared_and_fails_when_something_differs(
    lying_children: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = assay(monkeypatch, "conformance", "--fuzz", "4", "--seed", "0", "--json")
    document = json.loads(done.stdout)
    assert done.exit_code != 0 and document["differences"] == 1 and document["crashes"] == 2
    assert document["programs"] == sum(pair["programs"] for pair in document["pairs"])
    assert document["elements"] == sum(pair["elements"] for pair in document["pairs"])
    assert done.exception is not None


def test_names_of_executors_can_be_chosen() -> None:
    names = [
        each.name if isinstance(each, fuzz_executors.Absent) else each[0] for each in executors(frozenset(["stock"]))
    ]
    assert names == ["stock"]


@pytest.mark.long
def test_a_process_starts_afresh_after_its_cases_and_leaves_none_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.conformance.fuzz.campaign.CASES", 2)
    drawn: list[int] = []
    hear = Campaign._hear

    def listen(self: Campaign, worker: _Process, line: bytes) -> None:
        word, _, rest = line.decode().partition(" ")
        if word == "at" and json.loads(rest)[1] == "reference":
            drawn.append(json.loads(rest)[0])
        hear(self, worker, line)

    monkeypatch.setattr(Campaign, "_hear", listen)
    found = Campaign(60, 7, only=["stock"], programs=5).run()
    assert drawn[:5] == [7, 8, 9, 10, 11]
    assert (found.differences, found.crashes) == (0, 0) and found.pairs[0].programs >= 4


def test_a_process_that_waits_for_a_busy_machine_is_not_taken_for_one_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "PATIENCE_S", 0.5)
    process = _Process(0, 1, ["stock"])
    try:
        process.child.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        assert not process.is_stuck()
        monkeypatch.setattr(campaign, "LONGEST_S", 0.5)
        assert process.is_stuck()
        monkeypatch.setattr(campaign, "LONGEST_S", 1e9)
        process.child.send_signal(signal.SIGCONT)
        while not process.is_stuck():  # it computes, and what it says is not read
            time.sleep(0.05)
        assert process.lines()
        assert not process.is_stuck()
    finally:
        process.child.kill()
        process.child.wait()
