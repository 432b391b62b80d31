"""`assay program`: an own model becomes a file that is read and checked; everything wrong is said in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.cli.program import app
from assay.programs.files import read_program, report_path, state_path
from assay.protocol.errors import AssayError, ExitCode
from assay.protocol.program.programfile import encode_program
from assay.protocol.program.witness import WrongWitness
from assay.protocol.program.witness_rows import NoWitness
from tests.harness.programs import counting, mlp_step

ROOT = Path(__file__).resolve().parents[3]

MODULE = """
import torch
from torch import nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe

number = 3


def loss(module, x):
    return module(x).square().mean()


def make(module, loss=loss):
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    return Recipe(module, loss, optimizer, data=(torch.linspace(-1, 1, 60).reshape(20, 3),), batch_size=4)


def factory():
    return make(nn.Linear(3, 2))


def bad_loss(module, x):
    a = torch.lgamma(module(x).abs() + 1)
    b = torch.digamma(a + 2)
    return b.sum()


def cannot():
    return make(nn.Linear(3, 2), bad_loss)


def tuple_():
    return nn.Linear(3, 2), loss


def wants(module, size=3):
    return module


def fails():
    raise ValueError("no such data")


def wants_data():
    import assay_has_no_such_data


def other():
    return make(nn.Linear(3, 2), lambda m, x: (m(x) - 1).square().mean())


def explodes():
    return make(nn.Linear(3, 2), lambda m, x: (m(x) * 1e38).square().mean())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mymodels.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import torch\n\nx = 1 / 0\n")
    (tmp_path / "lacking.py").write_text("import assay_has_no_such_dependency\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("mymodels", "broken", "lacking"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def document(*words: str) -> dict:
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def error(*words: str) -> AssayError:
    result = invoke(*words)
    assert isinstance(result.exception, AssayError), (result.exception, result.output)
    assert result.exception.remedy
    return result.exception


def test_an_own_model_is_captured_shown_and_checked(folder: Path) -> None:
    captured = document("capture", "mymodels:factory", "--out", "own.program")
    assert captured["files"] == ["own.program", "own.program.json", "own.program.state.safetensors"]
    shown = document("show", "own.program")
    assert shown["root"] == captured["root"] == "0x" + read_program(folder / "own.program").root.hex()
    assert [s["name"] for s in shown["slots"]][:3] == ["weight", "bias", "step"]
    assert any(n["family"] == "dot" and "mymodels.py:" in n["source"] for n in shown["nodes"])
    assert sum(f["nodes"] for f in shown["families"]) == len(shown["nodes"])
    dots = [n for n in shown["nodes"] if n["family"] == "dot"]
    assert sum(n["work"] for n in dots) == 4 * 3 * 2 * 2, "one product forward and one for the weight"
    checked = document("check", "own.program", "--reference")
    assert checked["well_formed"]
    assert checked["state_root_after_one_step"] == captured["state_root_after_one_step"]
    assert checked["nodes_equal_to_reference"] == len(shown["nodes"])
    assert checked["rounding"] == shown["rounding"] != []
    assert document("check", "own.program", "--factory", "mymodels:factory")["well_formed"]


def test_what_people_read_names_slots_nodes_and_losses(folder: Path) -> None:
    invoke("capture", "mymodels:factory")
    text = invoke("show", "mymodels.program").output
    for words in ("weight", "learning_rate", "14 x 14 bits", "mymodels.py:", "What rounding costs"):
        assert words in text
    assert len(invoke("show", "mymodels.program", "--no-nodes").output) < len(text)


def test_equal_recipes_make_equal_programs_and_tiers_different_ones(folder: Path) -> None:
    first = document("capture", "mymodels:factory", "--out", "a")
    again = document("capture", "mymodels:factory", "--out", "b", "--no-calibrate", "--no-state")
    other = document("capture", "mymodels:factory", "--out", "c", "--tier", "fixed8")
    assert first["root"] == again["root"] != other["root"]
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


@pytest.mark.parametrize(
    ("name", "code", "exit_code", "words"),
    [
        ("mymodels", "FactoryMalformed", 2, "names no factory"),
        ("my models:factory", "FactoryMalformed", 2, "names no factory"),
        ("nowhere.to:be_found", "ModuleMissing", 2, "'nowhere'"),
        ("mymodels:factry", "FactoryMissing", 2, "no 'factry'"),
        ("mymodels:number", "NotAFactory", 2, "is a int"),
        ("mymodels:wants", "NotAFactory", 2, "wants arguments: module"),
        ("mymodels:tuple_", "NotARecipe", 1, "returned a tuple"),
        ("mymodels:fails", "FactoryFails", 1, "ValueError: no such data at"),
        ("broken:factory", "ModuleFails", 1, "ZeroDivisionError"),
        ("mymodels:wants_data", "ModuleFails", 1, "needs the module 'assay_has_no_such_data'"),
        ("lacking:factory", "ModuleFails", 1, "needs the module 'assay_has_no_such_dependency'"),
        ("mymodels:cannot", "CannotLower", 7, "Cannot lower 4 operations"),
    ],
)
def test_a_wrong_factory_is_refused_in_one_sentence(
    folder: Path, name: str, code: str, exit_code: int, words: str
) -> None:
    found = error("capture", name)
    assert (found.code, int(found.exit_code)) == (code, exit_code)
    assert words in found.message
    assert not list(folder.glob("*.program*")), "nothing is written"


def test_a_near_miss_is_named(folder: Path) -> None:
    assert error("capture", "mymodels:factry").remedy == "Did you mean factory?"


def test_all_operations_without_a_form_are_named_with_their_lines(folder: Path) -> None:
    message = error("capture", "mymodels:cannot").message
    first = MODULE.splitlines().index("    a = torch.lgamma(module(x).abs() + 1)") + 1
    assert f"aten.lgamma.default at mymodels.py:{first}" in message
    assert f"aten.digamma.default at mymodels.py:{first + 1}" in message
    assert f"aten.polygamma.default at mymodels.py:{first + 1} (gradient)" in message


def test_files_that_are_missing_damaged_or_ill_formed_are_refused(folder: Path) -> None:
    document("capture", "mymodels:factory", "--out", "own")
    file = folder / "own"
    assert error("capture", "mymodels:factory", "--out", "no/such/folder").code == "FileNotWritable"
    assert error("capture", "mymodels:factory", "--tier", "fixed9").code == "UnknownTier"
    assert error("show", "nothing.program").code == "FileUnreadable"
    (folder / "junk").write_bytes(b"junk")
    assert int(error("show", "junk").exit_code) == 8
    with (folder / "endless").open("wb") as stream:
        stream.truncate(1 << 40)  # takes no room on disk; reading it all takes all memory
    assert "bytes is above" in error("show", "endless").message
    program = read_program(file)
    bad = folder / "bad"
    nodes = (*program.nodes[:-1], program.nodes[-2])
    bad.write_bytes(encode_program(type(program)(nodes, program.inputs, program.outputs, program.consts)))
    found = error("check", "bad")
    assert (found.code, int(found.exit_code)) == ("IllFormedProgram", 6)
    state_path(file).unlink()
    assert error("check", "own").code == "BatchMissing"
    state_path(file).write_bytes(b"junk")
    assert error("check", "own").code == "BatchUnreadable"


def test_a_report_of_another_program_is_not_believed(folder: Path) -> None:
    document("capture", "mymodels:factory", "--out", "own")
    path = report_path(folder / "own")
    report = json.loads(path.read_text())
    path.write_text(json.dumps(report | {"program": "0x00"}))
    shown = document("show", "own")
    assert shown["rounding"] is None
    assert shown["slots"][0]["name"] == ""
    path.write_text(json.dumps(report | {"slots": 3}))
    assert document("show", "own")["rounding"] is None


ARMED = "\x1b[2J\x1b]0;mine\x07w\nwell formed"


@pytest.mark.parametrize("part", ["slots", "sources", "rounding", "key", "number", "depth"])
def test_a_strangers_report_moves_no_cursor_and_begins_no_line(folder: Path, part: str) -> None:
    document("capture", "mymodels:factory", "--out", "own")
    path = report_path(folder / "own")
    report = json.loads(path.read_text())
    lost = report["rounding"][0]
    said = {
        "slots": {"slots": [[ARMED for _ in part] for part in report["slots"]]},
        "sources": {"sources": dict.fromkeys(report["sources"], ARMED)},
        "rounding": {"rounding": [lost | {"source": ARMED, "side": ARMED}]},
        "key": {"sources": {"\u00b2": "square", "9" * 5000: "far"}},
        "number": {"rounding": [lost | {"error": 10**400}]},
        "depth": {"slots": None},
    }
    text = json.dumps(report | said[part])
    path.write_text(text.replace('"slots": null', '"slots": ' + "[" * 10**5 + "]" * 10**5))
    for command in ("show", "check"):
        result = invoke(command, "own")
        assert result.exit_code == 0, result.exception
        assert "\x1b" not in result.output
        assert "\x07" not in result.output
        assert not any(line.startswith("well formed") for line in result.output.splitlines())


def test_a_step_that_ends_elsewhere_than_at_capture_is_a_mismatch(folder: Path) -> None:
    document("capture", "mymodels:factory", "--out", "own")
    path = report_path(folder / "own")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state_root_after_one_step": "0x" + "11" * 32}))
    found = error("check", "own")
    assert (found.code, int(found.exit_code)) == ("StateDiffers", 7)


def test_a_step_that_leaves_the_finite_numbers_is_reported(folder: Path) -> None:
    document("capture", "mymodels:explodes", "--out", "own")
    found = error("check", "own")
    assert (found.code, int(found.exit_code)) == ("NotFinite", 7)
    assert "weight" in found.message


def test_the_command_line_says_it_and_exits_with_the_code(folder: Path) -> None:
    words = [
        sys.executable,
        "-W",
        "error::UserWarning",
        "-m",
        "assay",
        "program",
        "capture",
        "mymodels:cannot",
        "--json",
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=150)
    assert done.returncode == 7
    assert done.stderr.startswith("CannotLower: Cannot lower 4 operations: ")
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"]["details"]["offenders"]


@pytest.mark.long
def test_a_program_that_trains_something_else_ends_its_process_with_11(folder: Path) -> None:
    document("capture", "mymodels:factory", "--out", "own.program")
    check = [sys.executable, "-m", "assay", "program", "check", "own.program", "--against-eager", "2", "--json"]
    ends = {
        name: subprocess.run([*check, "--factory", f"mymodels:{name}"], cwd=folder, capture_output=True, text=True)
        for name in ("factory", "other")
    }
    assert (ends["factory"].returncode, ends["other"].returncode) == (0, ExitCode.PARTED), ends
    error = json.loads(ends["other"].stdout.splitlines()[-1])["error"]
    assert (error["code"], error["exit_code"]) == ("PartsFromStock", 11) and "PartsFromStock: " in ends["other"].stderr


def test_the_witnessed_program_is_written_and_another_one_is_refused(tmp_path: Path) -> None:
    plain, own, theirs = (tmp_path / f"{name}.program" for name in ("plain", "own", "theirs"))
    plain.write_bytes(encode_program(mlp_step().program))
    done = CliRunner().invoke(app, ["witness", str(plain), "--out", str(own), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["products"], document["words"]) == (5, 80)
    assert "0x" + read_program(own).root.hex() == document["witnessed_root"]
    checked = CliRunner().invoke(app, ["witness", str(plain), "--check", str(own)])
    assert checked.exit_code == 0, checked.output

    theirs.write_bytes(encode_program(mlp_step(precision=13).program))
    refused = CliRunner().invoke(app, ["witness", str(plain), "--check", str(theirs)])
    assert isinstance(refused.exception, WrongWitness)
    assert refused.exception.exit_code == 6
    theirs.write_bytes(encode_program(counting().program))
    refused = CliRunner().invoke(app, ["witness", str(theirs)])
    assert isinstance(refused.exception, NoWitness)
