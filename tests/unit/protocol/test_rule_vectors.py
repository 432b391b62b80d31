"""Every rule that refuses bytes has a vector that breaks it, and Python refuses it by that number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from assay import protocol
from assay.conformance import rules
from assay.protocol.program.encoding import MalformedError, decode_node
from assay.protocol.program.programfile import decode_program
from assay.protocol.program.wellformed import violations
from tools import element_vectors, game_vectors, opening_vectors, rule_vectors
from tools.check_docs import rules as rules_of_the_text

DOCUMENT: dict[str, Any] = json.loads(rule_vectors.PATH.read_text())
COVERED_ELSEWHERE = {
    "WF-1": "a header: HDR",
    "WF-5": "a descriptor: MAL",
    "OPEN-2": "a definition",
    "OPEN-4": "a definition",
    "OPEN-9": "a definition",
}


@pytest.mark.parametrize("tool", [rule_vectors, element_vectors, game_vectors], ids=lambda tool: tool.__name__)
def test_the_published_files_are_up_to_date(tool: Any) -> None:
    assert tool.PATH.read_text() == tool.text()


def test_every_rule_that_refuses_has_a_vector_and_every_vector_a_rule() -> None:
    known = {c["rule"] for cases in DOCUMENT.values() for c in cases} - {None}
    refusing = {r for r in rules_of_the_text() if re.match(r"(MAL|HDR|FILE|WF|OPEN)-", r)}
    assert known == refusing - set(COVERED_ELSEWHERE) | {
        "STO-2",
        "STO-4",
        "STO-8",
        "STO-9",
        "STO-10",
        "STO-11",
        "STO-16",
        "STO-17",
        "STO-20",
        "STO-21",
    }
    for cases in DOCUMENT.values():
        assert any(c["rule"] is None for c in cases)


def test_the_code_cites_every_rule_that_it_checks() -> None:
    folder = Path(protocol.__file__).parent
    cited = set(
        re.findall(r'"((?:MAL|HDR|FILE|WF)-\d+)"', "".join(p.read_text() for p in sorted(folder.rglob("*.py"))))
    )
    checked = {r for r in rules_of_the_text() if re.match(r"(MAL|HDR|FILE|WF)-", r)}
    assert cited == checked - {"FILE-3", "FILE-4"}  # those are the header's and the descriptor's own numbers


def test_python_refuses_every_case_by_its_number_and_takes_what_is_valid() -> None:
    for what, got, known in rules.rules(DOCUMENT):
        assert got == known, what


def test_errors_say_which_rule_is_broken() -> None:
    case = next(c for c in DOCUMENT["descriptors"] if c["rule"] == "MAL-6")
    with pytest.raises(MalformedError, match=r"\(MAL-6\)"):
        decode_node(bytes.fromhex(case["bytes"]))
    case = next(c for c in DOCUMENT["programs"] if c["rule"] == "WF-9")
    (found,) = violations(decode_program(bytes.fromhex(case["bytes"])))
    assert "(WF-9)" in str(found)


def test_elements_of_ill_formed_nodes_are_stored_in_the_nodes_type() -> None:
    document = json.loads(element_vectors.PATH.read_text())
    assert {(decode_node(bytes.fromhex(e["descriptor"])).spec.dtype) for e in document["elements"]} == set(range(7))
    for what, got, known in rules.elements(document):
        assert got == known, what


def test_openings_cover_both_sides_of_every_rule() -> None:
    cases = list(opening_vectors.cases())
    assert sum("words" in c for c in cases) > 15 and sum("error" in c for c in cases) > 15
