"""What is drawn, signed and claimed of answers, as it is published for other programs (tests/second runs it)."""

from __future__ import annotations

import json

from assay.inference.statement import read_statement
from tools import answer_vectors


def test_the_published_answers_are_those_of_gateways_and_contracts_models() -> None:
    assert answer_vectors.PATH.read_text() == answer_vectors.text()


def test_answers_of_every_kind_are_among_the_published_ones() -> None:
    document = json.loads(answer_vectors.PATH.read_text())
    assert {case["temperature"] for case in document["draws"]} == set(answer_vectors.TEMPERATURES)
    assert {"error" in case or int(case["y"], 16) == 0 for case in document["claims"]} == {True, False}
    for case in (*document["statements"], *document["claims"]):
        read_statement(case["file"].encode())
