"""Where the document says something else than chain and store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.recompute.chain import Page

MEASURED = {"cpu_seconds", "wall_seconds", "decentralization_multiplier", "peak_pss_bytes"}
GIVEN = {"run", "rpc_url", "store"}
LOSS_TOLERANCE = 1e-4
"""Nats: sums of a different order on another machine."""


def differences(document: Page, fields: Page) -> list[str]:
    """Where the document says something else than chain and store."""
    found = []
    for name, value in sorted(fields.items()):
        if name not in document:
            continue
        found += list(_compare(name, document[name], value))
    unknown = document.keys() - fields.keys() - MEASURED - GIVEN - {"cheats"}
    found += [f"{name} cannot be recomputed" for name in sorted(unknown)]
    return found + _cheats(document)


def _compare(name: str, said: Any, computed: Any) -> Iterator[str]:
    if isinstance(said, dict) and isinstance(computed, dict):
        for key in sorted(said.keys() | computed.keys()):
            yield from _compare(f"{name}.{key}", said.get(key), computed.get(key))
    elif isinstance(said, list) and isinstance(computed, list):
        if len(said) != len(computed):
            yield f"{name}: {len(said)} entries, computed {len(computed)}"
        for k, (a, b) in enumerate(zip(said, computed, strict=False)):
            yield from _compare(f"{name}[{k}]", a, b)
    elif isinstance(said, float) or isinstance(computed, float):
        close = isinstance(said, int | float) and isinstance(computed, int | float)
        if not close or not abs(said - computed) <= LOSS_TOLERANCE:
            yield f"{name}: {said}, computed {computed}"
    elif said != computed:
        yield f"{name}: {said}, computed {computed}"


def _cheats(document: Page) -> list[str]:
    """What the chain shows of the cheats: who was convicted, in what role, and how."""
    cheats, slashed = set(document["cheats"]) - {"none"}, document["slashed"]
    solvers = {e["address"] for e in slashed if e["role"] == "solver"}
    verifiers = {e["address"] for e in slashed if e["role"] == "verifier"}
    expected = len(cheats - {"lazy-verifier"}) or int("lazy-verifier" in cheats)
    found = []
    if len(solvers) != expected:
        found.append(f"cheats: {sorted(cheats)} name {expected} cheating solvers, {len(solvers)} were convicted")
    if bool(verifiers) != ("lazy-verifier" in cheats):
        found.append(f"cheats: {sorted(cheats)}, and {len(verifiers)} verifiers were convicted")
    silent = {e["address"] for e in slashed if e["kind"] == "DEFAULT" and e["role"] == "solver"}
    if len(silent) != int("silent" in cheats):
        found.append(f"cheats: {sorted(cheats)}, and {len(silent)} solvers were convicted by silence")
    return found
