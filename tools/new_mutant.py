"""Writes a fault for `make mutants` from one replacement in one file, without touching that file.

tools/new_mutant.py NAME --what "..." --test PYTEST_ID|--forge FORGE_FLAGS --file PATH --old TEXT --new TEXT
"""

import argparse
import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def patch(name: str, old: str, new: str) -> str:
    """A unified diff as `git apply` reads it."""
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return f"diff --git a/{name} b/{name}\n" + "".join(lines)


def main() -> int:
    """Write tests/mutants/NAME.patch; 1 with one sentence when the replacement does not apply exactly once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--what", required=True)
    test = parser.add_mutually_exclusive_group(required=True)
    test.add_argument("--test")
    test.add_argument("--forge")
    parser.add_argument("--file", required=True)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    options = parser.parse_args()
    text = (ROOT / options.file).read_text(encoding="utf-8")
    if text.count(options.old) != 1:
        print(f"new_mutant: the old text occurs {text.count(options.old)} times in {options.file}", file=sys.stderr)
        return 1
    kind = f"Test: {options.test}" if options.test else f"Forge: {options.forge}"
    head = f"What: {options.what}\n{kind}\n\n"
    target = ROOT / "tests" / "mutants" / f"{options.name}.patch"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(head + patch(options.file, text, text.replace(options.old, options.new)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
