"""`make device` on a bare machine: nothing but Python and torch is installed, and every stage gives its figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.device.bare import BareMachine, needs_of

NEEDED_ELSEWHERE = {
    "assay.conformance.fuzz.leaves": "eth_abi",
    "assay.bench.arena": "eth_account",
    "assay.bench.dispute": "eth_account",
    "assay.bench.explorer": "eth_abi",
    "assay.bench.imagined_run": "eth_abi",
    "assay.bench.index": "eth_abi",
    "assay.bench.index_events": "eth_abi",
    "assay.bench.multiplier": "requests",
    "assay.bench.packing": "numpy",
    "assay.bench.plot": "numpy",
    "assay.bench.serving": "requests",
    "assay.bench.vouchers": "eth_account",
}
"""What needs the contracts, a chain or a picture, and the first package that it misses."""

STAGES = ("conformance", "training", "step", "products", "root", "attention", "quality")

KERNELS = "assay.engine.runtime.triton.kernels"
IN_TRITONS_LANGUAGE = {f"{KERNELS}.{name}": "triton" for name in ("arith", "product", "scalar", "tile", "weigh")}
"""Kernels, which a torch that is built for CPUs leaves without a language."""

IMPORT_ALL = """
import json, pkgutil, importlib, warnings
warnings.simplefilter("ignore")
missing, found = {}, 0
for room in ("protocol", "engine", "training", "programs", "conformance", "bench", "device"):
    package = importlib.import_module(f"assay.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"assay.{room}."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
                found += 1
            except ModuleNotFoundError as error:
                missing[module.name] = error.name
print(json.dumps([missing, found]))
"""

HASH = "from assay.protocol.keccak import keccak256; print(keccak256.__name__, keccak256(b'abc').hex())"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> BareMachine:
    return BareMachine.made(tmp_path_factory.mktemp("bare"), "torch")


def test_protocol_engine_training_and_bench_import_with_torch_alone(bare: BareMachine) -> None:
    done = bare.run("-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    missing, found = json.loads(done.stdout)
    assert missing == NEEDED_ELSEWHERE | ({} if "triton" in needs_of("torch") else IN_TRITONS_LANGUAGE)
    assert found > 200
    absent = bare.run("-c", "import importlib.util as u; print([u.find_spec(n) for n in ('numpy', 'web3', 'typer')])")
    assert absent.stdout.strip() == "[None, None, None]"


def test_a_bare_machine_hashes_by_plain_python(bare: BareMachine) -> None:
    assert bare.run("-c", HASH).stdout.split() == [
        "plain_keccak256",
        "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
    ]


ANSWERS = """
from assay.conformance import answers, nodes
nodes.executors = lambda: iter(())
for t in answers.check_all(answers.default_vectors()):
    print(t.implementation, t.group, t.wrong, t.skipped, sep=", ")
"""


def test_a_bare_machine_is_asked_for_all_known_answers_but_of_curves(bare: BareMachine) -> None:
    """Packed objects of stores among them, without NumPy."""
    done = bare.run("-c", ANSWERS)
    assert done.returncode == 0, done.stderr
    of_reference = ("roundings", "random", "digests", "rules", "elements", "witness")
    wanted = [f"reference, {group}, 0, None" for group in of_reference]
    assert done.stdout.splitlines() == [*wanted, "py_ecc, beacon, 0, eth_hash is not installed"]


@pytest.mark.long
def test_every_stage_runs_without_a_gpu_and_writes_its_figures(bare: BareMachine, tmp_path: Path) -> None:
    words = "the model that nobody trusts is trained by many and checked by all who care to look at what was done "
    (tmp_path / "text").write_text("".join(words[k * 7 % 90 :] for k in range(60)))
    given = ["--small", "--minutes", "2.5", "--out", str(tmp_path), "--data", str(tmp_path / "text")]
    done = bare.run("-m", "assay.device", *given, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("cuda: there is no GPU that torch can use")
    figures = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in STAGES}
    assert all(f["finished"] and f["error"] is None and f["device"] == "cpu" for f in figures.values())
    assert all(f["machine"]["torch"] and f["machine"]["numpy"] is None for f in figures.values())
    results = {e["executor"]: e["equal"] for e in figures["conformance"]["executors"]}
    assert results["reference"] is results["torch"] is True and "torch, cuda" not in results
    assert figures["conformance"]["wrong"] == []
    trained = figures["training"]
    assert (trained["equal"], trained["wrong"], len(set(trained["by"]))) == (True, [], 2)
    assert figures["step"]["failed"] == {}
    assert [(r["model"], r["tier"]) for r in figures["step"]["rows"]] == [("gpt-2x96", "fixed14")]
    assert [row["terms"] for row in figures["products"]["rows"]] == [32]
    assert figures["root"]["equal_to_the_cpu_s"] is True
    assert figures["attention"]["reason"] == "tiles are for GPUs"
    eager, exact = figures["quality"]["runs"]
    assert (eager["tier"], exact["tier"]) == ("f32", "fixed14")
    assert abs(exact["loss"] - eager["loss"]) < 1e-3


def test_a_stage_that_dies_is_said_and_leaves_the_others_their_time(bare: BareMachine, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xff")
    given = ["--only", "quality", "--small", "--device", "cpu", "--out", str(tmp_path)]
    done = bare.run("-m", "assay.device", *given, "--data", str(tmp_path / "text"))
    assert done.returncode == 1
    kept = json.loads((tmp_path / "quality.json").read_text())
    assert (kept["finished"], kept["error"].split(":")[0]) == (False, "UserError")


def test_a_gpu_that_is_asked_for_and_not_there_is_refused(bare: BareMachine, tmp_path: Path) -> None:
    done = bare.run("-m", "assay.device", "--device", "cuda", "--out", str(tmp_path), CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stderr.split(":")[0]) == (3, "NoDevice")


def test_a_python_without_torch_is_refused_by_a_sentence(tmp_path: Path) -> None:
    done = BareMachine.made(tmp_path / "nothing").run("-m", "assay.device")
    assert done.returncode == 3
    assert done.stderr.startswith("torch is not installed for ")
