"""Imports between the parts run one way, and the pure rules touch no outside world."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACTORS = {"assay_solver", "assay_verifier", "assay_whistleblower"}
BELOW: dict[str, set[str]] = {
    "assay.protocol": set(),
    "assay.engine": {"assay.protocol", "assay.checkout"},
    "assay.training": {"assay.engine", "assay.protocol"},
    "assay_ledger": {"assay.engine", "assay.protocol", "assay.checkout"},
    **{actor: {"assay.training", "assay_ledger", "assay.engine", "assay.protocol"} for actor in sorted(ACTORS)},
}
"""What each part may import besides itself."""

# What the pure rules may not touch: the outside world, the clock, chance, and the heavy libraries.
IMPURE = {
    *("torch", "web3", "numpy", "numba", "scipy", "requests", "httpx", "obstore", "safetensors", "sqlalchemy"),
    *("io", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "threading", "asyncio", "urllib"),
    *("time", "datetime", "random", "secrets", "uuid", "logging", "multiprocessing"),
}


def folder_of(part: str) -> Path:
    """Where a part's modules lie."""
    if part.startswith("assay_"):
        return ROOT / part.removeprefix("assay_") / part
    return ROOT.joinpath(*part.split("."))


def imports(path: Path, part: str) -> set[str]:
    """Absolute names of all that `path` imports, relative imports resolved."""
    found = set()
    package = [*part.split("."), *path.relative_to(folder_of(part)).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            found |= {f"{module}.{alias.name}" for alias in node.names} if module in ("assay", base) else {module}
    return found


def part_of(name: str) -> str:
    """The part that an imported name belongs to: `assay.engine` of `assay.engine.ir`, `assay_ledger` of its modules."""
    return ".".join(name.split(".")[: 2 if name.partition(".")[0] == "assay" else 1])


@pytest.mark.parametrize("part", sorted(BELOW))
def test_imports_between_parts_run_one_way(part: str) -> None:
    paths = sorted(folder_of(part).rglob("*.py"))
    assert paths
    for path in paths:
        for name in imports(path, part):
            if name.startswith("assay") and part_of(name) != part:
                assert part_of(name) in BELOW[part], f"{path.relative_to(ROOT)} may not import {name}"


def test_the_pure_rules_import_no_outside_world() -> None:
    paths = sorted(folder_of("assay.protocol").rglob("*.py"))
    assert paths
    for path in paths:
        for name in imports(path, "assay.protocol"):
            assert name.split(".")[0] not in IMPURE, f"{path.relative_to(ROOT)} imports {name}"
