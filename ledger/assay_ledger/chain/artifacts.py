"""Compiled contracts: ABI, bytecode and NatSpec as forge wrote them.

`ASSAY_ARTIFACTS` names another folder than the checkout's own `.build/forge/out`, or than the one that an installed
package brings along (tools/compiled_contracts.py).
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from assay.checkout import ROOT
from assay.protocol.errors import ConfigError

PACKED: Final = Path(__file__).resolve().parents[1] / "compiled"
"""Where wheel and sdist hold what this release reads; no checkout has it."""


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
    if named:
        return Path(named)
    own = ROOT / ".build" / "forge" / "out"
    return own if own.is_dir() else PACKED


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
            remedy="In a checkout run `make setup`; elsewhere install a package that holds them, as releases do, "
            "or name their folder by ASSAY_ARTIFACTS.",
        ) from error
