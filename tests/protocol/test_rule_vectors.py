"""Every rule that refuses bytes has a vector that breaks it, and Python refuses it by that number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from assay.protocol import leaf
from assay.protocol.encoding import MalformedError, decode_header, decode_node
from assay.protocol.leaf import Read
from assay.protocol.programfile import decode_program
from assay.protocol.tensors import TensorSpec
from assay.protocol.types import DType
from assay.protocol.wellformed import violations
from tests.second import objects
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


def broken_by(decode: Any, data: bytes) -> str | None:
    """The rule that an error cites."""
    try:
        decode(data)
    except MalformedError as error:
        assert f"({error.rule})" in error.message
        return error.rule
    return None


@pytest.mark.parametrize("tool", [rule_vectors, element_vectors, game_vectors], ids=lambda tool: tool.__name__)
def test_the_published_files_are_up_to_date(tool: Any) -> None:
    assert tool.PATH.read_text() == tool.text()


def test_every_rule_that_refuses_has_a_vector_and_every_vector_a_rule() -> None:
    known = {c["rule"] for cases in DOCUMENT.values() for c in cases} - {None}
    refusing = {r for r in rules_of_the_text() if re.match(r"(MAL|HDR|FILE|WF|OPEN)-", r)}
    assert known == refusing - set(COVERED_ELSEWHERE) | {"STO-4", "STO-5", "STO-8", "STO-9", "STO-10", "STO-16"}
    for cases in DOCUMENT.values():
        assert any(c["rule"] is None for c in cases)


def test_the_code_cites_every_rule_that_it_checks() -> None:
    folder = Path(leaf.__file__).parent
    cited = set(re.findall(r'"((?:MAL|HDR|FILE|WF)-\d+)"', "".join(p.read_text() for p in folder.glob("*.py"))))
    checked = {r for r in rules_of_the_text() if re.match(r"(MAL|HDR|FILE|WF)-", r)}
    assert cited == checked - {"FILE-3", "FILE-4"}  # those are the header's and the descriptor's own numbers


@pytest.mark.parametrize("group", ["descriptors", "headers"])
def test_descriptors_and_headers_are_refused_by_number(group: str) -> None:
    decode = decode_node if group == "descriptors" else decode_header
    for case in DOCUMENT[group]:
        assert broken_by(decode, bytes.fromhex(case["bytes"])) == case["rule"], case["what"]


def test_files_are_refused_by_number() -> None:
    for case in DOCUMENT["files"]:
        data = bytes.fromhex(case["bytes"]) + bytes(case.get("zeros", 0))
        assert broken_by(decode_program, data) == case.get("cites", case["rule"]), case["what"]


def test_programs_break_the_one_rule_that_they_are_there_for() -> None:
    for case in DOCUMENT["programs"]:
        found = violations(decode_program(bytes.fromhex(case["bytes"])))
        assert {v.number for v in found} == ({case["rule"]} if case["rule"] else set()), case["what"]
        assert all(f"({v.number})" in str(v) for v in found)


def test_elements_of_ill_formed_nodes_are_stored_in_the_nodes_type() -> None:
    document = json.loads(element_vectors.PATH.read_text())
    assert {(decode_node(bytes.fromhex(e["descriptor"])).spec.dtype) for e in document["elements"]} == set(range(7))
    for entry in document["elements"]:
        node, element = decode_node(bytes.fromhex(entry["descriptor"])), int(entry["element"])
        words = {_read(r): int(r["word"], 16) for r in entry["heads"]}
        words |= {_read(r): int(r["word"], 16) for t in entry["terms"] for r in t["reads"]}
        assert leaf.element(node, element, words.__getitem__) == int(entry["value"], 16)


def _read(document: Any) -> Read:
    if "fill" in document:
        return Read(document["node"], 0, True, int(document["fill"]))
    return Read(document["node"], int(document["address"]))


def test_objects_of_a_store_are_taken_or_passed_over() -> None:
    takes = {
        "state": lambda c, data: objects.is_state(bytes.fromhex(c["root"]), data),
        "list": lambda c, data: objects.is_list([TensorSpec(DType(t), tuple(d)) for t, d in c["specs"]], data),
        "manifest": lambda c, data: objects.entries(data) == c["entries"] and (c["entries"] > 0 or not data),
    }
    for case in DOCUMENT["objects"]:
        taken = takes[case["kind"]](case, bytes.fromhex(case["bytes"]))
        assert taken is (case["rule"] is None), case["what"]


def test_openings_cover_both_sides_of_every_rule() -> None:
    cases = list(opening_vectors.cases())
    assert sum("words" in c for c in cases) > 15 and sum("error" in c for c in cases) > 15
