"""What follows from a charter's terms, as it is published for other implementations (tests/second runs it)."""

from __future__ import annotations

import json

from tools import term_vectors


def test_the_published_answers_about_terms_are_those_of_the_model() -> None:
    assert term_vectors.PATH.read_text() == term_vectors.text()


def test_terms_of_every_kind_are_among_the_published_ones() -> None:
    document = json.loads(term_vectors.PATH.read_text())
    refused = {case.get("error") for case in document["prices"]}
    assert refused == {None, "NoStakeSuffices"}
    answered = [case for case in document["prices"] if "error" not in case]
    assert {int(case["most_unsettled"]) < int(case["unsettled"]) for case in answered} == {True, False}
    assert {case["seats"] > 64 for case in document["reserves"]} == {True, False}
    assert {case["mask"] - case["commit"] - case["inclusion"] < 0 for case in document["masks"]} == {True, False}
