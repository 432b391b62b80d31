"""Contracts as their sources stand now, where whoever loads artifacts finds them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay_ledger.chain import artifacts
from tests.harness.contracts import harness


def write_artifact(folder: Path, name: str) -> None:
    """One contract as its sources stand now, as forge would write it."""
    built = harness.artifact(name)
    (folder / f"{name}.sol").mkdir(parents=True, exist_ok=True)
    codes = {"bytecode": built.bytecode, "deployedBytecode": built.deployed}
    document: dict[str, Any] = {"abi": built.abi, "rawMetadata": built.metadata}
    document |= {kind: {"object": "0x" + code.hex()} for kind, code in codes.items()}
    (folder / f"{name}.sol" / f"{name}.json").write_text(json.dumps(document))


@contextmanager
def fresh_artifacts(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """The contracts as the sources stand now, where `load_artifact` finds them."""
    for name in names:
        write_artifact(folder, name)
    before = os.environ.get("ASSAY_ARTIFACTS")
    os.environ["ASSAY_ARTIFACTS"] = str(folder)
    artifacts.load_artifact.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ["ASSAY_ARTIFACTS"]
        else:
            os.environ["ASSAY_ARTIFACTS"] = before
        artifacts.load_artifact.cache_clear()
