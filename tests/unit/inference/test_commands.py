"""`assay inference` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eth_account import Account

from assay.inference.sampling import SamplingTerms
from assay.inference.statement import StatementRefused, sign, statement_of
from assay.inference.verify import FalseAnswer
from assay.protocol.errors import AssayError, ExitCode
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import create_key
from tests.harness.commands import assay
from tests.harness.inference.models import small_gpt, write_folder

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
    assert "--tokenizer" not in (refused.remedy or ""), "an option of conversions, which no question has"


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


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A key, as options name it."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "password").write_text("not a secret")
    create_key(folder / "keys", "gate", "not a secret", kdf=Kdf("scrypt", 1 << 12))
    return ["--key", "gate", "--keys-dir", str(folder / "keys"), "--password-file", str(folder / "password")]


def test_a_signed_answer_is_found_equal_and_an_altered_one_is_nobodys(
    monkeypatch: pytest.MonkeyPatch, folder: Path, key: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "answer.json"
    said = answer(monkeypatch, folder, "--out", str(file), *key)
    at = ("inference", "verify", str(file), "--model", str(folder), "--json")
    done = assay(monkeypatch, *at, "--by", said["signer"])
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    assert (found["equal"], found["text"], found["signer"]) == (True, said["text"], said["signer"])
    assert (found["chain_id"], found["run"]) == (0, "0x" + "00" * 20)
    other = assay(monkeypatch, *at, "--by", "0x" + "11" * 20).exception
    assert isinstance(other, StatementRefused) and other.exit_code is ExitCode.REJECTED
    file.write_bytes(file.read_bytes().replace(b'"top_k":0', b'"top_k":1'))
    refused = assay(monkeypatch, *at).exception
    assert isinstance(refused, StatementRefused) and refused.exit_code is ExitCode.REJECTED


def test_a_false_answer_that_is_signed_ends_as_fraud(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
) -> None:
    model, file = small_gpt(), tmp_path / "answer.json"
    false = sign(statement_of(model, [1], SamplingTerms(), 2, [3, 3]), Account.from_key(b"\x07" * 32))
    file.write_bytes(false.encode())
    found = assay(monkeypatch, "inference", "verify", str(file), "--model", str(folder)).exception
    assert isinstance(found, FalseAnswer) and found.exit_code is ExitCode.FRAUD
