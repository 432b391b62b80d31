"""Puts the contracts that this release reads into wheel and sdist, as they were compiled before: nothing compiles here.

They come from the folder that `ASSAY_ARTIFACTS` names, else the checkout's `.build/forge/out`, else from the sdist that
is built from. Of what forge wrote the product's own fields are kept. Where a contract is missing, or was compiled from
other text than `contracts/` holds, the package is built without any, and says so.
"""

import json
import os
import runpy
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAMES = "ledger/assay_ledger/chain/contract_names.py"
HASH = "assay/protocol/keccak.py"
PACKED = "ledger/assay_ledger/compiled"


class ContractsHook(BuildHookInterface[Any]):
    """hatchling calls it before and after it builds a wheel or an sdist."""

    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include each contract. An editable install reads the checkout's own, which may be compiled later."""
        if version == "editable":
            return
        root = Path(self.root)
        names = sorted(runpy.run_path(str(root / NAMES))["READ"])
        named = os.environ.get("ASSAY_ARTIFACTS")
        folders = [Path(named)] if named else [root / ".build" / "forge" / "out", root / PACKED]
        whole = [folder for folder in folders if all((folder / at(name)).is_file() for name in names)]
        if not whole:
            self.app.display_warning(
                f"No compiled contracts are in this package, which takes part in no run: {folders[0]} lacks some or "
                "all. Run `make setup` first, or name another folder by ASSAY_ARTIFACTS."
            )
            return
        texts = {name: (whole[0] / at(name)).read_text(encoding="utf-8") for name in names}
        if other := changed_since(root, texts.values()):
            more = f" and {len(other) - 1} more" if other[1:] else ""
            self.app.display_warning(
                f"No compiled contracts are in this package, which takes part in no run: {whole[0]} was compiled from "
                f"another text of {other[0]}{more} than lies here. Run `make setup` first, or name another folder by "
                "ASSAY_ARTIFACTS."
            )
            return
        self._made = Path(tempfile.mkdtemp(prefix="assay-contracts-"))
        for name, text in texts.items():
            file = self._made / f"{name}.json"
            file.write_text(kept(text), encoding="utf-8")
            build_data["force_include"][str(file)] = f"{PACKED}/{at(name)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made to be included."""
        if self._made is not None:
            shutil.rmtree(self._made)


def at(name: str) -> str:
    """Where forge writes a contract, within its folder."""
    return f"{name}.sol/{name}.json"


def changed_since(root: Path, compiled: Iterable[str]) -> list[str]:
    """Files of `contracts/` that hold other text than was compiled, or are gone; none where that folder is not there.

    An sdist leaves it out only if somebody took it out, and a library's text has its version instead.
    """
    if not (root / "contracts").is_dir():
        return []
    keccak256 = runpy.run_path(str(root / HASH))["keccak256"]
    read = {
        (place, source["keccak256"])
        for text in compiled
        for place, source in json.loads(json.loads(text)["rawMetadata"]).get("sources", {}).items()
        if place.startswith("contracts/")
    }
    held = {place: (root / place).read_bytes() for place, _ in read if (root / place).is_file()}
    digests = {place: "0x" + keccak256(text).hex() for place, text in held.items()}
    return sorted({place for place, digest in read if digests.get(place) != digest})


def kept(compiled: str) -> str:
    """The fields that `assay_ledger.chain.artifacts` reads, in its form, without places in sources and trees."""
    document = json.loads(compiled)
    codes = {kind: {"object": document[kind]["object"]} for kind in ("bytecode", "deployedBytecode")}
    packed = {"abi": document["abi"], **codes, "rawMetadata": document["rawMetadata"]}
    return json.dumps(packed, separators=(",", ":"), ensure_ascii=False)
