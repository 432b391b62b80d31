"""Reads the faults that `make mutants` applies: tables of find and replace, one file per area, in tests/mutants/.

    [finish-ties-up]
    what = 'the tie rule of `finish` rounds up'
    test = 'tests/unit/protocol/test_rounding.py::test_ties_go_to_even'
    file = 'assay/protocol/arithmetic/rounding.py'
    find = '''
        if rest == half and not odd:
    '''
    replace = '''
        if rest == half:
    '''

The table's name is the fault's. `test` holds pytest's arguments, quoted as for a shell; `forge`, in its place, those
of `forge test`. `find` is text that stands in `file` exactly once, whole lines as a rule; an empty `replace` takes it
out. A second place in the same file follows as `[[NAME.also]]` with a `find` and a `replace` of its own. The test must
fail in its own call; `red` names another phase (tools/mutant_outcomes.py) where the fault shows there alone.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.mutant_outcomes import CALL, PHASES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "mutants"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
TEXTS = frozenset({"what", "file", "find", "replace"})


class TableError(ValueError):
    """A table, or one of its faults, cannot be used; the sentence names it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One replacement: `find` stands in the file exactly once."""

    find: str
    replace: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: where it is put, and the test that must turn `red`. `file` is relative to the tree's root."""

    name: str
    area: str
    what: str
    is_forge: bool
    test: str
    file: str
    places: tuple[Place, ...]
    red: str = CALL

    @property
    def words(self) -> list[str]:
        """The arguments in `test`, as a shell would read them: `-k "one and other"` is two."""
        return shlex.split(self.test)

    def faulty(self, tree: Path) -> str:
        """The text of `file` in `tree` with the fault; raises TableError where the fault does not apply."""
        path = tree / self.file
        if not path.is_file():
            raise TableError(f"{self.name}: {self.file} does not exist: correct `file` in {self.area}.toml")
        text = path.read_bytes().decode()
        for place in self.places:
            if (count := text.count(place.find)) != 1:
                first = place.find.strip().splitlines()[0].strip()
                raise TableError(
                    f"{self.name}: {self.file} holds the text to find {count} times, not once: "
                    f"correct `find` in {self.area}.toml, which begins with `{first}`"
                )
            text = text.replace(place.find, place.replace)
        return text

    def row(self) -> str:
        """The line of docs/mutants.md that says this fault was caught."""
        return f"| {self.name} | {self.what} | `{self.test}` |\n"


def _place(name: str, entry: dict[str, object]) -> Place:
    find, replace = entry["find"], entry["replace"]
    if not isinstance(find, str) or not isinstance(replace, str):
        raise TableError(f"{name}: `find` and `replace` must be texts")
    if not find.strip() or find == replace:
        raise TableError(f"{name}: `find` must hold text that `replace` changes")
    return Place(find, replace)


def _mutant(name: str, area: str, entry: dict[str, object]) -> Mutant:
    if not NAME.fullmatch(name):
        raise TableError(f"{area}.toml: {name} must be small letters, digits and single hyphens")
    kind = "forge" if "forge" in entry else "test"
    also, red = entry.get("also", []), entry.get("red", CALL)
    texts = TEXTS | {kind}
    if entry.keys() - {"also", "red"} != texts or not all(isinstance(entry[key], str) for key in texts):
        raise TableError(f"{name}: must have the texts what, file, find, replace and either test or forge")
    if not isinstance(also, list) or not all(isinstance(p, dict) and p.keys() == {"find", "replace"} for p in also):
        raise TableError(f"{name}: each place under `also` must have find and replace, and nothing else")
    if red not in PHASES:
        raise TableError(f"{name}: `red` is one of {', '.join(PHASES)}")
    places = (_place(name, entry), *(_place(name, place) for place in also))
    what, test, file = (str(entry[key]) for key in ("what", kind, "file"))
    try:
        shlex.split(test)
    except ValueError as error:
        raise TableError(f"{name}: `{kind}` cannot be read as arguments: {error}") from error
    return Mutant(name, area, what, kind == "forge", test, file, places, str(red))


def read_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """All faults by name; raises TableError for a table that cannot be read, another file, a name that stands twice."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if path.suffix != ".toml":
            raise TableError(f"{path.name}: is no table: write its fault into that of its area")
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise TableError(f"{path.name}: {error}") from error
        for name, entry in tables.items():
            if name in found:
                raise TableError(f"{name}: stands in {found[name].area}.toml and in {path.name}: rename one")
            if not isinstance(entry, dict):
                raise TableError(f"{path.name}: {name} stands outside any fault's table")
            found[name] = _mutant(name, path.stem, entry)
    return [found[name] for name in sorted(found)]
