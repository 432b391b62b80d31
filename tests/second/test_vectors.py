"""The implementation that knows docs/protocol alone gives every known answer, and notices a wrong one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors"


def check(folder: Path, code: Path = HERE) -> dict[str, Any]:
    """Cases and wrong answers per group."""
    done = subprocess.run(
        ["node", str(code / "check.mjs"), str(folder)], capture_output=True, text=True, timeout=120, check=True
    )
    return dict(json.loads(done.stdout))


def test_the_second_implementation_gives_every_known_answer() -> None:
    tally = check(VECTORS)
    assert {group: entry["wrong"] for group, entry in tally.items() if entry["wrong"]} == {}
    counts = {group: entry["cases"] for group, entry in tally.items()}
    assert min(counts.values()) >= 10 and sum(counts.values()) > 6_000, counts


def spoil(document: Any, path: tuple[Any, ...], value: Any) -> None:
    """Puts another value into a document."""
    for key in path[:-1]:
        document = document[key]
    assert document[path[-1]] != value
    document[path[-1]] = value


SPOILT = (
    ("arithmetic", ("operations", "F32_ADD", "words", 2), "0x1", "operations"),
    ("arithmetic", ("finish", 2), "0x1", "finish"),
    ("arithmetic", ("random", 6), "0x1", "random"),
    ("rules", ("descriptors", 1, "rule"), None, "descriptors"),
    ("rules", ("headers", 3, "rule"), None, "headers"),
    ("rules", ("files", 1, "rule"), None, "files"),
    ("rules", ("programs", 1, "rule"), None, "programs"),
    ("rules", ("openings", 0, "words"), ["0x1"], "openings"),
    ("rules", ("objects", 0, "rule"), "STO-17", "objects"),
    ("elements", ("elements", 0, "value"), "0x123456", "elements"),
    ("games", ("games", 0, "turns", 0, "key"), "00" * 32, "games"),
    ("games", ("games", 1, "verdict", "expected"), "77", "games"),
    ("games", ("games", 0, "turns", 1, "refused", 0, "error"), "accepted", "games"),
    ("digests", ("draw", 0, "rank"), "7", "digests"),
    ("terms", ("prices", 0, "stake"), "7", "terms"),
    ("terms", ("reserves", 0, "wages"), "7", "terms"),
    ("terms", ("masks", 0, "mask"), 7, "terms"),
    ("answers", ("draws", 4, "token"), -1, "answers"),
    ("answers", ("statements", 0, "digest"), "00", "answers"),
    ("answers", ("vouchers", 0, "seed"), "7", "answers"),
    ("answers", ("claims", 0, "x"), "00", "answers"),
    ("nodes", ("cases", 0, "y", 0, 0), "00", "whole programs"),
    ("witness", ("cases", 0, "accumulator"), "00", "witness"),
    ("witness", ("cases", 3, "root"), "00", "witness"),
    ("witness", ("cases", -1, "rule"), "WT-2", "witness"),
)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tally over vectors in which one answer per row of the table is another."""
    folder = tmp_path_factory.mktemp("vectors")
    documents = {path.stem: json.loads(path.read_text()) for path in VECTORS.glob("*.json")}
    documents["nodes"]["cases"] = documents["nodes"]["cases"][:3]  # the others take seconds
    for name, path, value, _ in SPOILT:
        spoil(documents[name], path, value)
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return check(folder)


def test_the_second_implementation_notices_a_wrong_answer_in_every_group(spoilt: dict[str, Any]) -> None:
    wrong = {group: len(entry["wrong"]) for group, entry in spoilt.items()}
    expected = [group for *_, group in SPOILT]
    assert {group: wrong[group] for group in set(expected)} == {group: expected.count(group) for group in set(expected)}


WRONG_READINGS = (
    ("EL-9: a part of max is signed", "elements", "BigInt(fromOrder(order(x))) :", "BigInt(fromOrder(order(x)) | 0) :"),
    (
        "EL-20: the largest integer",
        "elements",
        "node.family === MAX && node.dtype === F32",
        "node.family === undefined",
    ),
    (
        "EL-20: the part as posted",
        "elements",
        "return BigInt(fromOrder(Math.max(...parts.map((p) => order(asF32(p))))));",
        "return parts.reduce((a, b) => (order(asF32(a)) >= order(asF32(b)) ? a : b));",
    ),
    (
        "EL-8: no wrapping",
        "elements",
        "return int256(parts.reduce((a, b) => a + b));",
        "return parts.reduce((a, b) => a + b);",
    ),
    ("EL-16: ranks above 8", "decode", "Math.min(Number(at(2, 1)), 8)", "Number(at(2, 1))"),
    ("EL-2: addresses of 63 bits", "elements", "address >= 1n << 64n", "address >= 1n << 63n"),
    (
        "EL-12: max without terms is 0",
        "elements",
        "going(node.terms) : decided(missing)",
        "going(node.terms) : decided(0n)",
    ),
    (
        "EL-15: malformed nodes have no elements",
        "game",
        "if (!(error instanceof Malformed)) throw error;",
        "throw error;",
    ),
    ("GM-11: a game does not begin on a list", "game", "claim.y);\n    this.reuse();", "claim.y);"),
    ("GM-16: one part more", "game", "while (size * BigInt(this.arity) <", "while (size * BigInt(this.arity) <="),
    ("GM-17: parts are not judged", "game", "this.standsFor(node, parts) === this.claimed", "!!parts"),
    ("GM-22: the challenger never loses", "game", "expected !== claimed ? D : C", "D"),
    ("GM-23: parts are kept as f32", "game", "claimed: parts[index],", "claimed: BigInt.asUintN(32, parts[index]),"),
    ("GM-24: family 0 before openNode", "game", "family: 255", "family: 0"),
    ("GM-24: the term too", "game", "term: 0n, expected", "term: this.from ?? 0n, expected"),
    ("CK-4: who waits has lost", "game", "loser, outcome: DEFAULT", "loser: 3 - loser, outcome: DEFAULT"),
    ("WT-2: what is passed through moves too", "witness", " && nodes[n - slots + j].source !== j;", ";"),
    ("WT-3: a piece has one row", "witness", "Math.ceil(8 / pieces.length)", "1"),
    ("WT-6: every piece begins at 0", "witness", "{ offset: from }", "{ offset: 0 }"),
    ("WT-7: joined in groups of 7", "witness", "parts.slice(f, f + 8)", "parts.slice(f, f + 7)"),
    ("WT-8: the exponent of 127", "witness", "constant([], [8])", "constant([], [7])"),
    ("CH-13: the merge pay is never unsettled", "check_terms", "saved + PPM * U * V", "saved + PPM * U * W"),
    ("CH-14: the bribe of an auditor alone", "check_terms", "least(...silent.map(bought))", "bought(silent[0])"),
    ("CK-5: a node is opened for nothing", "check_terms", "[1 + o(e) + d(k), 2", "[o(e) + d(k), 2"),
    ("CK-6: turns of the challenger are short", "check_terms", "2 * begin * c.replay", "begin * (c.replay + c.move)"),
    ("MO-3: rounded up once for all seats", "check_terms", "N * up(W * ppm, PPM)", "up(N * W * ppm, PPM)"),
    ("WK-4: nearly all are fewer than two thirds", "check_terms", "(95 * N) / 100), twoThirds);", "(95 * N) / 100));"),
    ("CM-1: drawn for the node", "check_terms", 'named("assay.group", word(c.round), word(c.group))', "word(c.round)"),
    ("AN-4: the seed's upper half first", "check_answers", "[low(value), value >> 32n]", "[value >> 32n, low(value)]"),
    ("AN-5: the most tokens bind nobody", "check_answers", "p >= s.most || ", ""),
    (
        "OPEN: rule by rule across reads",
        "openings",
        "  return reads.map(",
        '  openings.forEach((o) => demand(o.dims.length <= 8, "WrongCount", "OPEN-3"));\n  return reads.map(',
    ),
)
"""A rule, and a reading of it that is wrong, as a replacement in a file of the second implementation."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vectors but for what takes long and what no reading below is about."""
    folder = tmp_path_factory.mktemp("quick")
    for path in VECTORS.glob("*.json"):
        document = json.loads(path.read_text())
        if path.stem == "arithmetic":
            document = {name: type(group)() for name, group in document.items()}
        if path.stem == "nodes":
            document["cases"] = []
        (folder / path.name).write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("reading", WRONG_READINGS, ids=lambda reading: reading[0].split(":")[0])
@pytest.mark.gate_takes(3)
def test_a_wrong_reading_of_a_rule_gives_wrong_answers(reading: tuple[str, ...], quick: Path, tmp_path: Path) -> None:
    _, module, old, new = reading
    for path in HERE.glob("*.mjs"):
        shutil.copy(path, tmp_path)
    target = tmp_path / f"{module}.mjs"
    text = target.read_text()
    assert text.count(old) == 1
    target.write_text(text.replace(old, new))
    assert any(entry["wrong"] for entry in check(quick, tmp_path).values())
