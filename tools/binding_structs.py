"""What forge compiled, as `tools/bindings.py` reads it: the contracts, and the structs that they take and give."""

import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from tools.binding_tables import CONTRACTS, TERMS

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / ".build" / "forge" / "out"

LONG_STRUCT = 24
"""Fields; a struct with more stands in `structs`, so that the module of its contract stays one that people read."""


@cache
def compiled(name: str) -> dict[str, Any]:
    """A contract as forge compiled it. Exits where it did not, or where a source has changed since."""
    path = OUT / f"{name}.sol" / f"{name}.json"
    if not path.exists():
        sys.exit(f"{name} is not compiled: run `make setup`.")
    document: dict[str, Any] = json.loads(path.read_text())
    # As the compiler wrote it: forge's own copy leaves out what is said of events and errors.
    document["metadata"] = json.loads(document["rawMetadata"])
    for source, known in document["metadata"]["sources"].items():
        file = ROOT / source
        if not file.exists() or "0x" + keccak(file.read_bytes()).hex() != known["keccak256"]:
            sys.exit(f"{source} has changed since {name} was compiled: run `make setup`.")
    return {**document, "name": name, "path": next(iter(document["metadata"]["settings"]["compilationTarget"]))}


@dataclass(frozen=True)
class Struct:
    """A struct of the contracts: its fields, and the module that it stands in."""

    parts: list[dict[str, Any]]
    home: str


@cache
def known_structs() -> dict[str, Struct]:
    """The structs in the functions and events of the contracts, by name."""
    found: dict[str, Struct] = {}
    for contract, module in CONTRACTS.items():
        for name, parts in _structs_of(compiled(contract)).items():
            known = found.setdefault(name, Struct(parts, module))
            if known.parts != parts:
                sys.exit(f"{name}: two structs of one name")
            if known.home != module or len(parts) > LONG_STRUCT:
                found[name] = Struct(parts, "structs")
    return dict(sorted(found.items()))


def _structs_of(contract: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The structs in a contract's functions and events, with their fields."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in contract["abi"]:
        if entry["type"] in ("function", "event"):
            for item in (*entry["inputs"], *entry.get("outputs", ())):
                _collect(item, found)
    return found


def struct_of(item: dict[str, Any]) -> str | None:
    """The struct that a type is, or is a list of: "struct IGame.GameState[]" is GameState."""
    if not item["type"].startswith("tuple"):
        return None
    return re.sub(r"\[\d*\]", "", item["internalType"]).split()[-1].split(".")[-1]


def _collect(item: dict[str, Any], found: dict[str, list[dict[str, Any]]]) -> None:
    name = struct_of(item)
    if name is None or name == TERMS:
        return
    found[name] = item["components"]
    for part in item["components"]:
        _collect(part, found)
