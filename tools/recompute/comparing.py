"""Where the document says something else than chain and store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.recompute.chain import Page

MEASURED = {"cpu_seconds", "wall_seconds", "decentralization_multiplier", "peak_pss_bytes"}
GIVEN = {"run", "rpc_url", "store"}
ANSWERED = {"inference"}
"""What a gateway answered, which is not on the chain; what it pays to the owners is in their revenue."""
LOSS_TOLERANCE = 1e-4
"""Nats: sums of a different order on another machine."""


def differences(document: Page, fields: Page) -> list[str]:
    """Where the document says something else than chain and store."""
    found = []
    for name, value in sorted(fields.items()):
        if name not in document:
            continue
        found += list(_compare(name, document[name], value))
    unknown = document.keys() - fields.keys() - MEASURED - GIVEN - ANSWERED - {"cheats"}
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


CONVICTED = {"false-step", "false-update", "copied-update", "false-root"}
"""Cheats of solvers that end in a verdict; others only cost what they left undone."""

CONVICTED_AUDITORS = {"blind-auditor", "copying-auditor", "false-accuser-auditor"}


def _cheats(document: Page) -> list[str]:
    """What the chain shows of the cheats: who was convicted, and in what role."""
    cheats, slashed = set(document["cheats"]), document["slashed"]
    found = []
    for role, lies in (("solver", CONVICTED), ("auditor", CONVICTED_AUDITORS)):
        liars = {e["address"] for e in slashed if e["role"] == role}
        if len(liars) != len(cheats & lies):
            found.append(
                f"cheats: {sorted(cheats)} name {len(cheats & lies)} lying {role}s, {len(liars)} were convicted"
            )
    return found
