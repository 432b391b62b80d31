"""Fails when the house no longer stands as drawn.

Each function returns complaints, one a line, and none where all is in order. Modules: `tools/house.py`. Source files:
none above 400 lines, tools and tests included. Documents: no line of prose above 100 columns (tables, code, and what
cannot be broken, such as one long link, are no prose). Tests: no name above 80 characters. Contracts: every error and
event says in NatSpec when it is thrown or emitted and what each value is, errors what to do about it.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools import house

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("*.py", "*.sol", "*.c", "*.h", "*.mjs", "*.html", "*.css")
COLUMNS = 100
NAME_LENGTH = 80
TEST_NAME = re.compile(r"^\s*(?:async )?(?:def|function) (test\w*)\(", re.MULTILINE)
FENCE = re.compile(r"\s*(?:```|~~~)")
BEFORE_TEXT = re.compile(r"\s*(?:[-*+] |\d+[.)] |> )?\s*")
UNBREAKABLE = re.compile(r"`[^`]*`|\]\([^)]*\)|^\[[^\]]+\]: .*$")
DECLARATION = re.compile(
    r"(?P<doc>(?:^[ \t]*///.*\n)*)^[ \t]*(?P<kind>error|event) (?P<name>\w+)\s*\((?P<values>[^)]*)\)", re.MULTILINE
)
TAG = re.compile(r"@(param \w+|[\w:]+)[ \t]+\S")


def files(*patterns: str) -> list[Path]:
    """Every file of the project that matches, tracked or new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return [ROOT / name for name in sorted(set(names.split("\0"))) if name and (ROOT / name).is_file()]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines of prose with their numbers: what no fence, table or heading is."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith(("|", "#")):
            yield number, line


def long_lines(paths: Iterable[Path] | None = None) -> list[str]:
    """Lines of documents above 100 columns that could be broken: of all documents, or of these."""
    return [
        f"{path}:{number}: {len(line)} columns are above {COLUMNS}: break the line"
        for path in (files("*.md") if paths is None else paths)
        for number, line in prose(path.read_text(encoding="utf-8"))
        if len(line) > COLUMNS and " " in UNBREAKABLE.sub("x", line[BEFORE_TEXT.match(line).end() :])  # type: ignore[union-attr]
    ]


def long_names(paths: Iterable[Path] | None = None) -> list[str]:
    """Names of tests above 80 characters: of all tests, or of these files."""
    return [
        f"{path}: {name} has {len(name)} characters, above {NAME_LENGTH}: say what is checked in fewer words"
        for path in (files("tests/*.py", "contracts/test/*.sol") if paths is None else paths)
        for name in TEST_NAME.findall(path.read_text(encoding="utf-8"))
        if len(name) > NAME_LENGTH
    ]


def natspec_missing(texts: Mapping[str, str] | None = None) -> list[str]:
    """Errors and events without `@notice` and a `@param` per value, errors without a remedy: of these texts by path.

    Without `texts`: of all contracts, their tests left out.
    """
    if texts is None:
        paths = sorted((ROOT / "contracts").rglob("*.sol"))
        ours = (path for path in paths if "test" not in path.relative_to(ROOT / "contracts").parts)
        texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ours}
    wrong = []
    for path, text in texts.items():
        for found in DECLARATION.finditer(text):
            tags = set(TAG.findall(found["doc"]))
            values = [value.split()[-1] for value in found["values"].split(",") if value.strip()]
            needed = [
                "notice",
                *(["custom:remedy"] if found["kind"] == "error" else []),
                *(f"param {v}" for v in values),
            ]
            line = text.count("\n", 0, found.start("kind")) + 1
            wrong += [
                f"{path}:{line}: {found['kind']} {found['name']} has no @{tag}" for tag in needed if tag not in tags
            ]
    return wrong


def main() -> int:
    """Print every complaint; 0 when there is none."""
    found = house.modules()
    wrong = house.second_names() + house.upward_arrows(found) + house.cycles(found)
    wrong += house.large_files(files(*SOURCES))
    wrong += long_lines() + long_names() + natspec_missing()
    for what in wrong:
        print(what)
    print(f"layout check: {len(wrong)} found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
