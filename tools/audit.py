"""Looks for known vulnerabilities of everything that is locked: `make audit`.

Asks the advisories of PyPI (or OSV) through a pinned pip-audit, in a throw-away environment. Where no service of
advisories can be reached, the newest list that is itself a package is read instead, and its date is said: such a list
is years old and proves little. A folder of the advisories of PyPI (a checkout of pypa/advisory-database), fetched
beforehand, can be read instead. Exit code 0: nothing known, with --offline to the list alone; 1: something found;
2: nobody could be asked, and the list knows nothing.

tools/audit.py [--offline | --advisories FOLDER]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "requirements-models.lock", "requirements-slither.lock")
PIP_AUDIT = "pip-audit==2.10.1"
LIST = "safety-db"
"""The list that is a package: names, and which versions of them are insecure."""

FOUND, ASKED_NOBODY = 1, 2
UNREACHABLE = re.compile(r"not found on PyPI and could not be audited|ConnectionError|Failed to upload|ServiceError")

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def pins(text: str) -> list[tuple[str, str]]:
    """Name and version of everything in a lock file."""
    return [(canonicalize_name(name), version) for name, version in _PIN.findall(text)]


def insecure(locked: Sequence[tuple[str, str]], known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What of it a list calls insecure, in a line each; the list has specifiers of versions by name."""
    named = {canonicalize_name(name): specifiers for name, specifiers in known.items() if name != "$meta"}
    for name, version in locked:
        for specifier in named.get(name, ()):
            if SpecifierSet(specifier).contains(version, prereleases=True):
                yield f"{name} {version} is among {name}{specifier}"


def is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """Whether an entry of an advisory names this version, by its list or by its ranges.

    Source: https://ossf.github.io/osv-schema (affected[].versions, affected[].ranges[] of type ECOSYSTEM).
    """
    if version in affected.get("versions", ()):
        return True
    asked = Version(version)
    return any(_in_range(asked, each["events"]) for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM")


def _in_range(asked: Version, events: Sequence[Mapping[str, str]]) -> bool:
    """Of events by version: introduced begins a range, fixed ends it before, last_affected after it."""
    inside = False
    for event in sorted(events, key=lambda one: Version(next(iter(one.values())))):
        ((kind, text),) = event.items()
        at = Version(text)
        if kind == "introduced" and asked >= at:
            inside = True
        elif (kind == "fixed" and asked >= at) or (kind == "last_affected" and asked > at):
            inside = False
    return inside


def advised(locked: Sequence[tuple[str, str]], advisories: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What of it advisories name that were not withdrawn, in a line each."""
    versions: dict[str, set[str]] = {}
    for name, version in locked:
        versions.setdefault(name, set()).add(version)
    for advisory in advisories:
        for affected in () if "withdrawn" in advisory else advisory.get("affected", ()):
            name = canonicalize_name(affected["package"]["name"])
            for version in sorted(versions.get(name, ())):
                if is_affected(version, affected):
                    yield f"{name} {version} is named by {advisory['id']} ({', '.join(advisory.get('aliases', ()))})"


def read_folder(folder: Path) -> list[Mapping[str, Any]]:
    """The advisories of a checkout of pypa/advisory-database.

    Raises:
        SystemExit: there are none in it.
    """
    found = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(folder.glob("**/PYSEC-*.yaml"))]
    if not found:
        sys.exit(
            f"audit: no advisories in {folder}; fetch https://github.com/pypa/advisory-database and name its folder"
        )
    return found


def ask_service(python: Path, lock: Path) -> int:
    """Exit code of pip-audit over one lock file; 2 where it reached nobody."""
    asked = subprocess.run(
        [python, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off", "-r", lock],
        capture_output=True,
        text=True,
    )
    if UNREACHABLE.search(asked.stdout + asked.stderr):
        return ASKED_NOBODY
    print(asked.stdout, end="")
    return asked.returncode and FOUND


def read_list(python: Path, folder: Path) -> tuple[Mapping[str, Sequence[str]], str]:
    """The list, and the day of it."""
    pip = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, LIST]
    subprocess.run(pip, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        known = json.loads(archive.read("safety_db/insecure.json"))
    return known, datetime.fromtimestamp(known["$meta"]["timestamp"], UTC).date().isoformat()


def audit_by_folder(folder: Path) -> int:
    """Exit code of an audit by advisories in a folder; says how many there were and the day of the newest."""
    advisories = read_folder(folder)
    locked = sorted({pin for name in LOCKS for pin in pins((ROOT / name).read_text())})
    found = list(advised(locked, advisories))
    for line in found:
        print(f"audit: {line}")
    newest = max(str(one["modified"]) for one in advisories)[:10]
    print(f"audit: {len(found)} found in {len(locked)} pins by {len(advisories)} advisories, the newest of {newest}")
    return FOUND if found else 0


def main(arguments: list[str]) -> int:
    """See the module."""
    if "--advisories" in arguments:
        return audit_by_folder(Path(arguments[arguments.index("--advisories") + 1]))
    is_offline = "--offline" in arguments
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        codes = set[int]()
        if not is_offline:
            subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_AUDIT], check=True, capture_output=True)
            codes = {ask_service(python, ROOT / name) for name in LOCKS}
        if not is_offline and ASKED_NOBODY not in codes:
            print("audit: see above" if FOUND in codes else f"audit: {len(LOCKS)} lock files, nothing known")
            return FOUND if FOUND in codes else 0
        known, day = read_list(python, Path(folder))
    found = [line for name in LOCKS for line in insecure(pins((ROOT / name).read_text()), known)]
    for line in found:
        print(f"audit: {line}")
    how = "asked" if is_offline else "reached"
    print(f"audit: no service of advisories was {how}; {len(found)} found in the list of {day}", file=sys.stderr)
    if found or FOUND in codes:
        return FOUND
    return 0 if is_offline else ASKED_NOBODY


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
