"""What a gateway's description of its interface allows is answered, and what it does not allow is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.inference.gateway.asked import CompletionAsked
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import create_key
from tests.harness.inference.models import bytes_gpt, write_folder
from tests.harness.inference.served import Served


def asked(**more: Any) -> CompletionAsked:
    return CompletionAsked.model_validate({"model": "assay", "prompt": [1, 2.0]} | more)


def test_a_whole_number_is_one_however_it_is_written() -> None:
    assert asked(max_tokens=6.0, seed=2.0**53).max_tokens == 6 and asked().prompt == [1, 2]
    assert asked(seed=(1 << 64) - 1, top_p=1.0).seed == (1 << 64) - 1


@pytest.mark.parametrize(
    "more",
    [{"seed": 1 << 64}, {"n": True}, {"presence_penalty": False}, {"echo": 0}, {"max_tokens": 6.5}, {"top_k": True}],
    ids=["seed-2-64", "n-true", "penalty-false", "echo-0", "half-a-token", "top-k-true"],
)
def test_what_only_looks_like_an_allowed_value_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        asked(**more)


@pytest.mark.long
def test_to_read_a_model_does_not_import_the_compiler_of_torch(tmp_path: Path) -> None:
    """It takes longer than all the rest of a gateway's start."""
    write_folder(bytes_gpt(), tmp_path)
    program = "import sys; from pathlib import Path; from assay.inference.model import read_folder as read; "
    program += f"read(Path({str(tmp_path)!r})); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_request_that_the_description_allows_is_answered(tmp_path: Path, seed: int) -> None:
    """By schemathesis: bounds of every field, values beside them, and random requests."""
    (tmp_path / "password").write_text("not a secret")
    create_key(tmp_path / "keys", "gate", "not a secret", kdf=Kdf("scrypt", 1 << 12))
    write_folder(bytes_gpt(), tmp_path / "pulled")
    words = ["gateway", "start", "--model", str(tmp_path / "pulled"), "--port", "0", "--tokens", "64", "--json"]
    words += ["--key", "gate", "--keys-dir", str(tmp_path / "keys"), "--password-file", str(tmp_path / "password")]
    served = Served([*words, "--rate", "10000"], tmp_path / "log")
    asker = ["-m", "schemathesis.cli", "run", f"{served.said['url']}openapi.json", "--no-color", "--seed", str(seed)]
    found = subprocess.run(
        [sys.executable, *asker, "--max-examples", "200"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert served.client.get("/health").json()["alive"] is True
    served.stop()
    assert found.returncode == 0, found.stdout
