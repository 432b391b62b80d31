"""Runs slither on the product's contracts and compares what it finds with docs/security/slither.md, line by line.

Every finding must stand there with the reason why it is no fault, and every line there must still be found: a new
finding and a stale explanation fail alike. `--write` rewrites the table: what is explained keeps its words, what is new
gets none, and a line without words fails. Runs in the environment that `make slither` makes, needing nothing else.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".build" / "slither-info"
TRIAGE = ROOT / "docs" / "security" / "slither.md"
BLOCK = re.compile(r"(<!-- findings -->\n)(.*?)(<!-- /findings -->)", re.DOTALL)
ROW = re.compile(r"^\| (\S+) \| `(\S+)` \| (\d+) \| (.*?) ?\|$", re.MULTILINE)
HEAD = "| detector | where | times | why it is no fault |\n|---|---|---:|---|\n"
IMPORT = re.compile(r'import\s+(?:[^"\';]*\s+from\s+)?"([^"]+)"\s*;')

FindingKey = tuple[str, str]
"""A detector, and the contract and function, or the file, that it points at."""


def sources() -> dict[str, str]:
    """The product's Solidity files and all that they import, by path in the repository; no tests."""
    product = (p for p in (ROOT / "contracts").rglob("*.sol") if "test" not in p.relative_to(ROOT).parts)
    pending, texts = sorted(product), {}
    while pending:
        path = pending.pop()
        name = Path(os.path.normpath(path)).relative_to(ROOT).as_posix()
        if name in texts:
            continue
        texts[name] = path.read_text(encoding="utf-8")
        for target in IMPORT.findall(texts[name]):
            pending.append(path.parent / target if target.startswith(".") else ROOT / "node_modules" / target)
    return dict(sorted(texts.items()))


def compile_sources() -> None:
    """Write what slither reads of a build: syntax trees and interfaces. No code is generated: slither needs none."""
    profile = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]["default"]
    wanted = {"*": {"*": ["abi", "evm.methodIdentifiers"], "": ["ast"]}}
    settings = {"evmVersion": profile["evm_version"], "viaIR": True, "remappings": profile["remappings"]}
    job = {
        "language": "Solidity",
        "sources": {name: {"content": text} for name, text in sources().items()},
        "settings": settings | {"optimizer": {"enabled": False}, "outputSelection": wanted},
    }
    compiler = [ROOT / "tools" / "solc", "--standard-json"]
    done = subprocess.run(compiler, input=json.dumps(job), capture_output=True, text=True, check=True)
    output = json.loads(done.stdout)
    if errors := [e["formattedMessage"] for e in output.get("errors", []) if e["severity"] == "error"]:
        sys.exit("slither: the contracts do not compile:\n" + "\n".join(errors))
    for contracts in output["contracts"].values():
        for contract in contracts.values():
            code = {"object": "", "sourceMap": "", "linkReferences": {}}
            contract["evm"] |= {"bytecode": code, "deployedBytecode": code}
    version = json.loads((ROOT / "node_modules" / "solc" / "package.json").read_text())["version"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    info = {"id": "product", "solcVersion": version, "input": job, "output": output}
    (FOLDER / "product.json").write_text(json.dumps(info))


def findings() -> tuple[Counter[FindingKey], dict[FindingKey, str]]:
    """How often slither finds what where, and its own words for the first of each."""
    (forge,) = (ROOT / "node_modules" / "@foundry-rs").glob("forge-*/bin")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{forge}:{os.environ['PATH']}"}
    report = FOLDER / "report.out"
    report.unlink(missing_ok=True)
    command = ["slither", ".", "--foundry-ignore-compile", "--foundry-build-info-directory", str(FOLDER)]
    command += ["--filter-paths", "node_modules", "--json", str(report), "--fail-none", "--disable-color"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode != 0 or not report.exists():
        sys.exit("slither: it did not finish:\n" + done.stderr[-3000:])
    answer = json.loads(report.read_text(encoding="utf-8"))
    if not answer["success"]:
        sys.exit(f"slither: {answer['error']}")
    counts: Counter[FindingKey] = Counter()
    words: dict[FindingKey, str] = {}
    for finding in answer["results"].get("detectors", []):
        place = finding["check"], place_of(finding["elements"])
        counts[place] += 1
        words.setdefault(place, f"{finding['impact']}: {' '.join(finding['description'].split())}")
    return counts, words


def place_of(elements: list[dict[str, Any]]) -> str:
    """`Contract.function` of the first element of a finding, without line numbers, which every edit moves."""
    if not elements:
        return "-"
    names: list[str] = []
    element: dict[str, Any] | None = elements[0]
    while element:
        if element["type"] in ("contract", "function", "variable", "struct", "event", "custom_error", "enum"):
            names.insert(0, element["name"])
        element = element.get("type_specific_fields", {}).get("parent")
    return ".".join(names) or str(elements[0]["source_mapping"]["filename_relative"])


def explained() -> dict[FindingKey, tuple[int, str]]:
    """The checked-in table: how often each finding is known, and why it is no fault."""
    block = BLOCK.search(TRIAGE.read_text(encoding="utf-8"))
    if block is None:
        sys.exit(f"slither: {TRIAGE.name} has no findings block")
    return {(check, place): (int(count), why) for check, place, count, why in ROW.findall(block[2])}


def write(found: Counter[FindingKey], known: dict[FindingKey, tuple[int, str]]) -> None:
    """The table of what was found today, with the reasons that are known."""
    rows = "".join(
        f"| {check} | `{place}` | {count} | {known.get((check, place), (0, ''))[1]} |\n"
        for (check, place), count in sorted(found.items())
    )
    text = TRIAGE.read_text(encoding="utf-8")
    TRIAGE.write_text(BLOCK.sub(lambda m: m[1] + HEAD + rows + m[3], text), encoding="utf-8")


def differences(found: Counter[FindingKey], known: dict[FindingKey, tuple[int, str]]) -> list[str]:
    """What is found and not explained, explained and not found, or explained without words."""
    wrong = []
    for place in sorted(found.keys() | known.keys()):
        check, where = place
        count, why = known.get(place, (0, "unexplained"))
        if found[place] > count:
            wrong.append(f"{check} in {where}: {found[place]} found, {count} explained")
        elif found[place] < count:
            wrong.append(f"{check} in {where}: {count} explained, {found[place]} found: the explanation is stale")
        elif not why:
            wrong.append(f"{check} in {where} has no reason")
    return wrong


def main() -> int:
    """0 when every finding is explained and every explanation is of a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the table, keeping the reasons")
    options = parser.parse_args()
    compile_sources()
    found, words = findings()
    if options.write:
        write(found, explained())
    known = explained()
    wrong = differences(found, known)
    for what in wrong:
        print(what)
    for place in sorted(found):
        if found[place] > known.get(place, (0, ""))[0] or not known[place][1]:
            print(f"\n{words[place]}")
    print(f"slither: {found.total()} findings in {len(found)} places, {len(wrong)} not as {TRIAGE.name} says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
