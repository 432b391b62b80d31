"""Every contract that a deployment can hold fits the chain's limit with a tenth to spare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import MAX_DEPLOYED, ROOT, artifact, sources

_CONTRACT = re.compile(r"^contract\s+(\w+)", re.MULTILINE)


def _contracts() -> list[tuple[str, Path]]:
    """Names and files of all concrete contracts, tests left out."""
    return [(name, path) for path in sources() for name in _CONTRACT.findall(path.read_text())]


def _size(name: str, path: Path) -> int:
    """Bytes of the deployed contract."""
    return len(artifact(name, str(path.relative_to(ROOT))).deployed)


@pytest.mark.parametrize(("name", "path"), _contracts(), ids=[name for name, _ in _contracts()])
def test_a_contract_fits_with_a_tenth_to_spare(name: str, path: Path) -> None:
    assert 0 < _size(name, path) <= MAX_DEPLOYED


def test_the_table_of_sizes_holds() -> None:
    rows = {name: {"bytes": _size(name, path), "limit": MAX_DEPLOYED} for name, path in sorted(_contracts())}
    snapshots.check("sizes", rows)


def test_the_list_holds_the_contracts_of_a_run() -> None:
    names = {name for name, _ in _contracts()}
    assert names >= {"Vault", "Game", "MapLeaf", "DotLeaf", "RandomLeaf"}
