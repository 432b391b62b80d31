"""Compiled contracts: ABI, bytecode and NatSpec as forge wrote them.

`ASSAY_ARTIFACTS` names another folder than the checkout's own `.build/forge/out`.
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay.checkout import ROOT
from assay.protocol.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Artifact:
    """One compiled contract: creation code without constructor arguments, and the code that this leaves behind.

    `deployed` has zeros where a constructor writes immutables. `metadata` is what the compiler says of the contract as
    JSON, NatSpec included (ledger/assay_ledger/chain/natspec.py); it is no part of the code.
    """

    name: str
    abi: list[dict[str, Any]]
    bytecode: bytes
    deployed: bytes
    metadata: str


def artifacts_dir() -> Path:
    """The folder of compiled contracts."""
    named = os.environ.get("ASSAY_ARTIFACTS")
    return Path(named) if named else ROOT / ".build" / "forge" / "out"


@cache
def load_artifact(name: str) -> Artifact:
    """The compiled contract of this name.

    Raises ConfigError (ContractsNotCompiled).
    """
    path = artifacts_dir() / f"{name}.sol" / f"{name}.json"
    try:
        document = json.loads(path.read_text())
        code, deployed = (document[kind]["object"].removeprefix("0x") for kind in ("bytecode", "deployedBytecode"))
        metadata = document["rawMetadata"]
        return Artifact(name, document["abi"], bytes.fromhex(code), bytes.fromhex(deployed), metadata)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"The compiled contract {name} cannot be read ({error}).",
            code="ContractsNotCompiled",
            remedy="In a checkout run `make setup`; elsewhere name their folder by ASSAY_ARTIFACTS.",
        ) from error
