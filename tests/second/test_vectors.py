"""The implementation that knows docs/protocol alone gives every known answer, and notices a wrong one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors"


def check(folder: Path) -> dict[str, Any]:
    """Cases and wrong answers per group."""
    done = subprocess.run(
        ["node", str(HERE / "check.mjs"), str(folder)], capture_output=True, text=True, timeout=120, check=True
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
    ("rules", ("objects", 0, "rule"), "STO-5", "objects"),
    ("elements", ("elements", 0, "value"), "0x123456", "elements"),
    ("games", ("games", 0, "turns", 0, "key"), "00" * 32, "games"),
    ("games", ("games", 1, "verdict", "expected"), "77", "games"),
    ("games", ("games", 0, "turns", 1, "refused", 0, "error"), "accepted", "games"),
    ("digests", ("draw", 0, "ticket"), "7", "digests"),
    ("nodes", ("cases", 0, "y", 0, 0), "00", "whole programs"),
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
