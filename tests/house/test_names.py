"""One meaning, one definition: no two modules give a class or a type the same name."""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

GENERATED = "ledger/assay_ledger/bindings/"
"""Bindings are named after what each contract calls its own events and structs."""
USERS_CODE = "tests/harness/training/own_"
"""Modules as users write them."""
PENDING = {}


def type_names(path: Path) -> list[str]:
    """The classes of a module at any depth, and the types that it gives a name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            is_type = isinstance(node.value, ast.Subscript | ast.BinOp) and not name.isupper()
            found += [name] if is_type and name.lstrip("_")[0].isupper() else []
    return found


@pytest.fixture(scope="module")
def twice() -> dict[str, list[str]]:
    """Names that more than one module gives, with those modules."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    places = defaultdict(set)
    for name in listed.split():
        path = ROOT / name
        if not path.is_file() or name.startswith((GENERATED, USERS_CODE)):
            continue
        for found in type_names(path):
            places[found].add(name)
    assert len(places) > 500
    return {name: sorted(where) for name, where in places.items() if len(where) > 1}


def test_a_type_name_has_one_meaning(twice: dict[str, list[str]]) -> None:
    assert {name: where for name, where in twice.items() if name not in PENDING} == {}


def test_a_name_that_is_pending_still_means_several_things(twice: dict[str, list[str]]) -> None:
    assert PENDING.keys() - twice.keys() == set()
