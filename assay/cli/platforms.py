"""Which pinned tools and packages have no build for this machine, so that a sentence says so and no traceback does."""

from __future__ import annotations

import platform
from typing import Final

TESTED: Final = "Linux x86_64"

UNBUILT: Final = {
    "anvil": "there is no local chain: name a node by --rpc-url, or another anvil by ASSAY_ANVIL",
    "forge": "contracts are not compiled here: bring `.build/forge` from a machine that compiles them",
    "obstore": "buckets are no stores, folders are",
    "pyrevm": "tests of the contracts do not run here",
}
"""What has builds for `TESTED` alone among the pins, and what follows without."""


def name() -> str:
    """System and processor, such as "Linux aarch64"."""
    return f"{platform.system()} {platform.machine()}"


def without(tool: str) -> str:
    """What follows from a tool that has no build for this machine; empty where it has one."""
    if name() == TESTED:
        return ""
    return f"{tool} has no build for {name()}: {UNBUILT[tool]}"


def summary() -> str:
    """What was tested on machines of this kind, and what they lack."""
    if name() == "Linux aarch64":
        tested = "kernels were tested under emulation, nothing on such a machine"
    else:
        tested = "nothing was tested on such a machine"
    return f"{name()}: {tested}; no builds of {', '.join(UNBUILT)}"
