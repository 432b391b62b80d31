"""`assay inference` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.protocol.errors import AssayError
from tests.harness.commands import assay
from tests.harness.inference.models import small_gpt, write_folder

pytestmark = pytest.mark.usefixtures("own_cache")

ASKED = ("inference", "generate", "--prompt", "the cat", "--tokens", "20", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(small_gpt(), tmp_path_factory.mktemp("pulled"))


def answer(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> dict:
    done = assay(monkeypatch, *ASKED, "--model", str(folder), *words)
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def test_the_same_seed_gives_the_same_text_and_another_one_another(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    first, again, other = (answer(monkeypatch, folder, "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again
    assert len(first["tokens"]) == len(first["text"]) == 20
    assert first["text"] != other["text"]
    assert first["model"] == "0x" + small_gpt().root.hex()
    assert first["program"] == other["program"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--prompt", ""), "EmptyPrompt"),
        (("--prompt", "THE CAT"), "UnknownCharacter"),
        (("--tier", "fixed9"), "UnknownTier"),
        (("--seed", str(1 << 64)), "BadSampling"),
        (("--model", "/nowhere"), "ModelWrong"),
    ],
    ids=["no-prompt", "strange-letters", "no-tier", "wide-seed", "no-folder"],
)
def test_what_cannot_be_answered_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, folder: Path, words: tuple[str, ...], code: str
) -> None:
    refused = assay(monkeypatch, *ASKED, "--model", str(folder), *words).exception
    assert isinstance(refused, AssayError) and refused.code == code


def test_a_question_to_no_model_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = assay(monkeypatch, *ASKED).exception
    assert isinstance(refused, AssayError) and refused.code == "ModelNotNamed"


@pytest.mark.parametrize("change", ["config", "tensor"])
def test_a_folder_whose_parts_do_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    made = write_folder(small_gpt(), tmp_path / "pulled")
    if change == "config":
        config = json.loads((made / "config.json").read_text()) | {"layers": 3}
        (made / "config.json").write_text(json.dumps(config))
    else:
        (made / "model.safetensors").write_bytes(b"no tensors")
    refused = assay(monkeypatch, *ASKED, "--model", str(made)).exception
    assert isinstance(refused, AssayError) and refused.code == "ModelWrong"
