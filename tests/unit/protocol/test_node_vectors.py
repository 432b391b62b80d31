"""The published programs are what the reference computes, and cover every family and the hard rows."""

import json

from assay.conformance.nodes import read, split_mix
from assay.protocol.program.nodes import Family
from tools.node_vectors import PATH, text


def test_the_published_programs_are_up_to_date() -> None:
    assert PATH.read_text() == text()


def test_every_family_occurs_and_the_file_stays_small() -> None:
    cases = read(json.loads(PATH.read_text()))
    assert {node.family for case in cases for node in case.program.nodes} == set(Family)
    assert PATH.stat().st_size < 200_000


def test_drawn_words_are_those_of_split_mix() -> None:
    # The first outputs of the published generator for the seed 1234567.
    assert [split_mix(1234567, i) for i in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]
