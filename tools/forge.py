"""Runs the pinned native forge from node_modules with the given arguments, offline, in the repository root."""

import os
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def main(argv: list[str]) -> NoReturn:
    """Replace this process by forge; exits 1 with one sentence when forge is not installed."""
    found = sorted((ROOT / "node_modules" / "@foundry-rs").glob("forge-*/bin/forge"))
    if not found:
        sys.exit("forge is missing: run `make setup` (it needs Node.js 20 with npm)")
    os.chdir(ROOT)
    os.execv(found[0], [str(found[0]), *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
