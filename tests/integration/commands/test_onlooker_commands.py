"""`explain`, `doctor`, `conformance` and `economics`: what they find, and with which exit code they say so."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from assay.cli.checks import CheckState, _finding, _python, examine
from assay.cli.explain import ContractsUnread
from assay.conformance.answers import check_all, default_vectors, executor_results
from assay.conformance.nodes import Absent, check, executors, read
from assay.engine.runtime.native.build import INSTRUCTION_SETS
from assay.protocol.economics.price_table import RATES
from assay.protocol.errors import ConfigError, NumericsError
from tests.harness.commands import CONFIGURED, run_in_process
from tests.harness.contracts.fresh import fresh_artifacts


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is configured but what a test says."""
    for name in CONFIGURED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("ASSAY_KEYS_DIR", str(tmp_path / "keys"))


def run(*words: str) -> Result:
    return run_in_process(words)


# --- explain


def test_explain_says_where_contracts_are_not_compiled_that_their_codes_are_unread(tmp_path: Path) -> None:
    with fresh_artifacts(tmp_path, []):
        found = run("explain", "EscrowShort").exception
        assert isinstance(found, ContractsUnread)
        assert "ASSAY_ARTIFACTS" in found.explain()
        assert run("explain", "RunMissing").exit_code == 0
    assert run("explain", "EscrowShort").stdout.startswith("EscrowShort (")
    missing = run("explain", "NoSuchName").exception
    assert isinstance(missing, ConfigError)
    assert missing.code == "RunMissing"


# --- doctor


def findings() -> dict[str, Any]:
    return {finding.name: finding for finding in examine()}


def test_a_machine_that_is_set_up_is_found_sound() -> None:
    found = findings()
    for name in ("python", "packages", "torch", "floating point", "settings"):
        assert found[name].state is CheckState.OK, found[name]
    for name in ("run", "store", "password"):
        assert found[name].state is CheckState.SKIPPED


def test_the_doctor_names_no_option_that_it_does_not_take() -> None:
    found = findings()
    for name in ("chain", "curves", "run", "beacon", "store"):
        assert "--" not in found[name].found, found[name]


def test_a_chain_that_was_named_and_is_down_is_broken_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETH_RPC_URL", "http://127.0.0.1:9")
    found = findings()["chain"]
    assert found.state is CheckState.BROKEN
    assert found.remedy
    done = run("doctor", "--json")
    assert done.exit_code == 3
    assert {"name": "chain", "state": "broken"}.items() <= next(
        f for f in json.loads(done.stdout) if f["name"] == "chain"
    ).items()


def test_a_store_that_reads_and_writes_is_sound_and_a_file_in_its_place_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "store"))
    assert findings()["store"].state is CheckState.OK
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "file"))
    assert findings()["store"].state is CheckState.BROKEN


def test_keys_that_others_can_read_and_missing_keys_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from assay_ledger.keys.keystore import create_key

    keys = tmp_path / "keys"
    create_key(keys, "mine", "secret")
    assert findings()["keys"].state is CheckState.OK
    keys.chmod(0o755)
    broken = findings()["keys"]
    assert broken.state is CheckState.BROKEN
    assert "chmod" in broken.remedy
    monkeypatch.setenv("ETH_KEYSTORE", "another")
    assert findings()["keys"].state is CheckState.BROKEN


def test_an_unreadable_configuration_is_a_finding_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text("rpc_urll = 1")
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "bad.toml"))
    found = findings()
    assert found["settings"].state is CheckState.BROKEN
    assert found["python"].state is CheckState.OK


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [((3, 10), CheckState.BROKEN, "the first that will do is 3.11"), ((3, 14), CheckState.OK, "nothing was tested")],
)
def test_a_python_that_is_too_old_is_broken_and_one_that_is_untested_says_so(
    monkeypatch: pytest.MonkeyPatch, found: tuple[int, int], state: CheckState, words: str
) -> None:
    monkeypatch.setattr(sys, "version_info", found)
    finding = _finding("python", _python)
    monkeypatch.undo()
    assert finding.state is state
    assert words in finding.found


# --- conformance


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "vectors"
    shutil.copytree(default_vectors(), folder)
    programs = json.loads((folder / "nodes.json").read_text())
    small = [case for case in programs["cases"] if len(case["program"]) < 2000 and "terms at" not in case["name"]]
    (folder / "nodes.json").write_text(json.dumps({"cases": small[:6]}))
    yield folder


@pytest.fixture
def one_beacon(vectors: Path) -> Path:
    """The same with one round of a beacon: the first test below asks for all, of which each takes 0.3 s."""
    path = vectors / "beacon.json"
    document = json.loads(path.read_text())
    document["rounds"], document["local"]["rounds"] = document["rounds"][:1], []
    path.write_text(json.dumps(document))
    return vectors


@pytest.mark.long
def test_every_known_answer_is_met_by_every_implementation_here() -> None:
    tallies = list(check_all(default_vectors()))
    assert {t.implementation for t in tallies} >= {"reference", "torch", "py_ecc"}
    assert all(t.wrong == 0 and (t.cases > 0) == (t.skipped is None) for t in tallies)
    assert sum(t.cases for t in tallies) > 5_000
    assert {t.implementation for t in tallies if t.group == "programs"} >= {
        "reference", "torch", "torch, cross-check", "native sse41"
    }  # fmt: skip
    by_triton = {t.implementation: t.cases for t in tallies if t.implementation.startswith("triton")}
    assert len(by_triton) == 1
    assert find_spec("triton") is None or by_triton["triton, interpreted"] > 0


def test_an_executor_that_is_not_here_is_skipped_by_name_and_with_the_reason() -> None:
    found = list(executors())
    here = {e[0] for e in found if not isinstance(e, Absent)}
    away = {e.name: e.reason for e in found if isinstance(e, Absent)}
    names = {f"native {instruction_set}" for instruction_set in INSTRUCTION_SETS} | {
        "reference",
        "torch",
        "torch, cross-check",
    }
    assert here | set(away) >= names
    assert not here & set(away)
    assert all(away.values())


def test_the_command_lists_every_executor_with_equal_or_why_it_is_absent(vectors: Path) -> None:
    document = json.loads(run("conformance", "--vectors", str(vectors), "--json").stdout)
    listed = document["executors"]
    found = {e.name if isinstance(e, Absent) else e[0]: isinstance(e, Absent) for e in executors()}
    assert {e["executor"]: e["equal"] is None for e in listed} == found
    for entry in listed:
        is_here = entry["equal"] is True and entry["cases"] > 0 and entry["reason"] is None
        is_absent = entry["equal"] is None and entry["cases"] == 0 and bool(entry["reason"])
        assert is_here or is_absent, entry
    (beacon,) = [group for group in document["groups"] if group["group"] == "beacon"]
    assert beacon["cases"] > 20 and beacon["wrong"] == 0


def test_an_executor_that_raises_is_not_equal_and_the_others_are_asked(
    one_beacon: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[list[bytes]]:
        raise OSError("the device is gone")

    monkeypatch.setattr("assay.conformance.nodes.executors", lambda: iter([("broken", broken), *executors()][:2]))
    results = executor_results(list(check_all(one_beacon)))
    assert [(r.executor, r.equal) for r in results] == [("broken", False), ("reference", True)]
    assert results[0].reason == "operations: OSError after 0 cases: the device is gone"


def test_one_wrong_program_is_found_on_every_executor(vectors: Path) -> None:
    path = vectors / "nodes.json"
    document = json.loads(path.read_text())
    answer = document["cases"][0]["y"][0][0]
    document["cases"][0]["y"][0][0] = ("1" if answer[0] == "0" else "0") + answer[1:]
    path.write_text(json.dumps(document))
    run_here = [e for e in executors() if not isinstance(e, Absent)]
    for _, execute in run_here:
        wrong = [name for name, got, known in check(read(document), execute) if got != known]
        assert wrong == [f"{document['cases'][0]['name']}, output 0"]


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(
    ("file", "key", "groups"),
    [
        ("arithmetic", "finish", {("reference", "roundings")}),
        ("arithmetic", "random", {("reference", "random")}),
        ("digests", "tree", {("reference", "digests")}),
        ("rules", "descriptors", {("reference", "rules")}),
        ("elements", "elements", {("reference", "elements")}),
        ("beacon", "hashes", {("py_ecc", "beacon")}),
    ],
)
def test_one_wrong_answer_is_found_in_its_group(
    one_beacon: Path, file: str, key: str, groups: set[tuple[str, str]]
) -> None:
    path = one_beacon / f"{file}.json"
    document = json.loads(path.read_text())
    if file == "arithmetic":
        document[key][-1] = hex(int(document[key][-1], 16) ^ 1)
    else:
        document[key][3] |= {"root": "00" * 32, "rule": "MAL-1", "value": "0x7", "point": "0x7"}
    path.write_text(json.dumps(document))
    done = run("conformance", "--vectors", str(one_beacon), "--json")
    assert {(t["implementation"], t["group"]) for t in json.loads(done.stdout)["groups"] if t["wrong"]} == groups
    assert isinstance(done.exception, NumericsError)
    assert done.exception.code == "NotConformant"


def test_missing_and_damaged_vectors_are_named(vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        list(check_all(tmp_path / "nowhere"))
    (vectors / "beacon.json").write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        list(check_all(vectors))


# --- economics


def test_the_table_of_locks_and_stakes_is_the_formulas() -> None:
    document = json.loads(run("economics", "table", "--json").stdout)
    assert document["run"] is None
    rates = {(row["audit_rate"], row["reaudit_rate"]): row for row in document["rates"]}
    assert set(rates) == {(p / 1e6, q / 1e6) for p, q in RATES}
    for (p, q), row in rates.items():
        honest, kept = p * 2 / 3, 1 - 0.1 * 2 / 3 - 0.97 / 3
        assert row["lock"] == pytest.approx(2 / (honest * kept), rel=1e-5)
        assert row["overhead"] == pytest.approx(1 + 1.3 * p / (1 - q), abs=1e-6)
        assert row["stake"] > 1.3 / (q * 2 / 3 * kept)
    # As published (docs/economics.md).
    assert (rates[0.1, 0.2]["lock"], rates[0.1, 0.2]["stake"]) == (
        pytest.approx(49.2, abs=0.05),
        pytest.approx(174.9, abs=0.05),
    )
