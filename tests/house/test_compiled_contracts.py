"""The compiled contracts that a package holds: all that the product asks for, or none and a sentence that says so."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import ConfigError
from assay_ledger.chain import artifacts
from assay_ledger.chain.contract_names import READ, REFUSING
from assay_ledger.deployment.answers import ANSWER_CONTRACTS
from assay_ledger.deployment.places import GOVERNOR, GROUPED_CONTRACTS, LEAVES, ROUND_CONTRACTS
from tools.compiled_contracts import HASH, NAMES, PACKED, ContractsHook, at

ROOT = Path(__file__).resolve().parents[2]
HERE = artifacts.artifacts_dir()
"""What was compiled for these tests."""
ASKED = re.compile(r"load_artifact\(\"(\w+)\"\)|\.deploy\(account, \"(\w+)\"\)")
COMPILED = {"abi": [], "bytecode": {"object": "0x01"}, "deployedBytecode": {"object": "0x02"}, "rawMetadata": "{}"}


def compiled(folder: Path, *names: str) -> Path:
    """A folder in which forge has written these contracts."""
    for name in names:
        (folder / at(name)).parent.mkdir(parents=True)
        (folder / at(name)).write_text(json.dumps({**COMPILED, "ast": {"id": 1}}))
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which nothing is compiled, and nothing else is named."""
    monkeypatch.delenv("ASSAY_ARTIFACTS", raising=False)
    for name in (NAMES, HASH):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def packed(root: Path, version: str = "standard") -> dict[str, dict[str, Any]]:
    """What the hook includes, by its place in the package."""
    hook, data = ContractsHook(str(root), {}, None, None, "", "wheel"), {"force_include": {}}  # type: ignore[arg-type]
    hook.initialize(version, data)
    found = {place: json.loads(Path(file).read_text()) for file, place in data["force_include"].items()}
    hook.finalize(version, data, "")
    assert not any(Path(file).exists() for file in data["force_include"])
    return found


def test_every_contract_that_the_product_asks_for_is_named() -> None:
    sources = [p.read_text() for top in ("assay", "ledger", "solver", "verifier") for p in (ROOT / top).rglob("*.py")]
    literal = {name for text in sources for found in ASKED.findall(text) for name in found if name}
    assert {"Arbiter", "TestToken", "Vouchers"} <= literal
    tables = [ROUND_CONTRACTS, GROUPED_CONTRACTS, GOVERNOR, LEAVES]
    assert {*literal, *REFUSING, *ANSWER_CONTRACTS, *(n for table in tables for n in table.values())} == set(READ)


def test_what_is_compiled_is_packed_without_what_only_forge_reads(root: Path) -> None:
    compiled(root / ".build/forge/out", *READ, "Harness")
    assert packed(root) == {f"{PACKED}/{at(name)}": COMPILED for name in READ}


def test_an_sdist_without_a_compiler_hands_on_what_it_holds(root: Path) -> None:
    compiled(root / PACKED, *READ)
    assert packed(root).keys() == {f"{PACKED}/{at(name)}" for name in READ}


def test_an_editable_install_packs_nothing_and_says_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert packed(root, "editable") == {}
    assert capsys.readouterr() == ("", "")


def test_where_one_is_missing_none_is_packed_and_it_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled(root / ".build/forge/out", *READ[1:])
    assert packed(root) == {}
    said = "".join(capsys.readouterr())
    assert "takes part in no run" in said and "make setup" in said and str(root / ".build/forge/out") in said


def test_what_was_compiled_from_other_text_is_not_packed_and_it_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "contracts", root / "contracts")
    monkeypatch.setenv("ASSAY_ARTIFACTS", str(HERE))
    assert len(packed(root)) == len(READ) and capsys.readouterr() == ("", "")
    changed, gone = root / "contracts/Vault.sol", root / "contracts/interfaces/IVault.sol"
    changed.write_text(changed.read_text() + "\n")
    assert packed(root) == {}
    said = "".join(capsys.readouterr())
    assert "another text of contracts/Vault.sol than lies here" in said and "make setup" in said and str(HERE) in said
    gone.unlink()
    assert packed(root) == {} and "contracts/Vault.sol and 1 more" in "".join(capsys.readouterr())


def test_contracts_are_those_named_else_the_checkouts_else_the_packages(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "ROOT", root)
    monkeypatch.setattr(artifacts, "PACKED", root / PACKED)
    assert artifacts.artifacts_dir() == root / PACKED
    artifacts.load_artifact.cache_clear()
    with pytest.raises(ConfigError, match="Vault cannot be read") as caught:
        artifacts.load_artifact("Vault")
    assert caught.value.code == "ContractsNotCompiled" and "install a package that holds them" in caught.value.explain()
    compiled(root / ".build/forge/out", "Vault")
    assert artifacts.artifacts_dir() == root / ".build/forge/out"
    monkeypatch.setenv("ASSAY_ARTIFACTS", str(root / "named"))
    assert artifacts.artifacts_dir() == root / "named"
