"""Python, the contract and the second implementation accept and refuse the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from assay.conformance.fuzz.programs import draw as draw_program
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS, draw
from tests.second import fuzzing, moves, objects
from tests.second.fuzzing import Json, Second

DESCRIPTORS, HEADERS, OPENINGS, FILES, OBJECTS = 2_500, 400, 600, 500, 150
ELEMENTS, PROGRAMS, MOVES = 400, 60, 20
"""Cases in the gate; the long test draws 25 times as many."""
LONG = 25


@pytest.fixture(scope="module")
def second() -> Iterator[Second]:
    with Second() as made:
        yield made


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("RulesHarness")


def both_kinds(answers: list[Json], refused: Callable[[Json], bool]) -> None:
    """A generator whose cases are all refused, or all accepted, proves nothing."""
    share = sum(map(refused, answers)) / len(answers)
    assert 0.05 < share < 0.98, share


def descriptors(second: Second, harness: EvmContract, seed: str, count: int) -> int:
    """Number of descriptors on which all three agree."""
    found: list[Json] = []
    for batch in fuzzing.batches(count, 100):
        cases = [fuzzing.descriptor(Random(f"{seed} descriptor {i}")) for i in batch]
        ours = [fuzzing.of_descriptor(data) for data in cases]
        theirs = second.ask("descriptors", [data.hex() for data in cases])
        chain = fuzzing.contract_descriptors(harness, cases)
        for data, mine, other, contract in zip(cases, ours, theirs, chain, strict=True):
            assert mine == other, data.hex()
            assert [mine[0] is None, *mine[1:]] == contract, data.hex()
        found += ours
    both_kinds(found, lambda answer: answer[0] is not None)
    return len(found)


def headers(second: Second, harness: EvmContract, seed: str, count: int) -> int:
    """Number of headers on which all three agree."""
    found: list[Json] = []
    for batch in fuzzing.batches(count, 200):
        cases = [fuzzing.header(Random(f"{seed} header {i}")) for i in batch]
        ours = [fuzzing.of_header(data) for data in cases]
        assert ours == second.ask("headers", [data.hex() for data in cases])
        known = [0 if isinstance(answer, str) else answer for answer in ours]
        assert known == list(harness.call("headers", cases))
        found += ours
    both_kinds(found, lambda answer: isinstance(answer, str))
    return len(found)


def opened(second: Second, harness: EvmContract, seed: str, count: int) -> int:
    """Number of openings of which all three load the same word, or refuse it by the same name."""
    found: list[Json] = []
    for batch in fuzzing.batches(count, 40):
        cases = [fuzzing.opened(Random(f"{seed} opening {i}")) for i in batch]
        ours = [fuzzing.of_opening(case) for case in cases]
        theirs = second.ask("openings", [fuzzing.opened_document(case) for case in cases])
        chain = fuzzing.contract_openings(harness, cases)
        for case, mine, other, contract in zip(cases, ours, theirs, chain, strict=True):
            assert mine == other == contract, case
        found += ours
    both_kinds(found, lambda answer: isinstance(answer, str))
    return len(found)


def files(second: Second, seed: str, count: int) -> int:
    """Number of program files of which both say the same."""
    found: list[Json] = []
    for batch in fuzzing.batches(count, 100):
        cases = [fuzzing.file(Random(f"{seed} file {i}")) for i in batch]
        ours = [fuzzing.of_file(data) for data in cases]
        for data, mine, other in zip(cases, ours, second.ask("files", [d.hex() for d in cases]), strict=True):
            assert mine == other, data.hex()
        found += ours
    both_kinds(found, lambda answer: answer != [])
    return len(found)


def stored(second: Second, seed: str, count: int) -> int:
    """Number of objects of a store of which both say the same: marks, lists, packed ones, manifests."""
    rngs = [Random(f"{seed} object {i}") for i in range(count)]
    marks = [objects.marks_object(rng) for rng in rngs]
    ours = [objects.is_marks(*each) for each in marks]
    assert ours == second.ask("marks", [objects.marks_document(*each) for each in marks])
    both_kinds(ours, lambda answer: not answer)
    lists = [objects.list_object(rng) for rng in rngs]
    ours = [objects.is_list(specs, data) for specs, data in lists]
    assert ours == second.ask("lists", [objects.list_document(specs, data) for specs, data in lists])
    both_kinds(ours, lambda answer: not answer)
    packed = [objects.packed_object(rng) for rng in rngs]
    ours = [objects.is_packed(each) for each in packed]
    assert ours == second.ask("packed", packed)

    manifests = [objects.manifest_object(rng) for rng in rngs]
    counts = [objects.entries(data) for data in manifests]
    assert counts == second.ask("manifests", [data.hex() for data in manifests])
    both_kinds(counts, lambda answer: answer == 0)
    return 3 * count


def elements(second: Second, seed: str, count: int) -> int:
    """Number of elements of nodes, ill-formed ones among them, that are the same word in both."""
    for batch in fuzzing.batches(count, 50):
        cases = [draw(list(CONTRACTS)[i % len(CONTRACTS)], Random(f"{seed} element {i}")) for i in batch]
        ours, documents = zip(*(fuzzing.element_document(case) for case in cases), strict=True)
        for case, mine, other in zip(cases, ours, second.ask("elements", documents), strict=True):
            assert mine == int(other), f"element {case.element} of {case.node}"
    return count


def damaged_moves(second: Second, seed: str, count: int) -> int:
    """Number of damaged moves in recorded games of which model and second implementation make the same."""
    found: list[str] = []
    for number, game in enumerate(moves.games()):
        ours, documents = moves.attempts(game, Random(f"{seed} moves {number}"), count)
        (theirs,) = second.ask("moves", [{"game": game.document, "attempts": documents}])
        for mine, other, document in zip(ours, theirs, documents, strict=True):
            assert mine == other, f"{game.document['what']}: {document}"
        found += ours
    both_kinds(found, lambda answer: " " not in answer)
    return len(found)


def runs(second: Second, first: int, count: int) -> int:
    """Number of nodes' values, of random programs on hostile states, on which both agree."""
    nodes = 0
    for batch in fuzzing.batches(count, 20):
        cases = [draw_program(first + i) for i in batch]
        theirs = second.ask("runs", [fuzzing.run_document(case) for case in cases])
        for case, other in zip(cases, theirs, strict=True):
            ours = fuzzing.of_run(case)
            assert ours == other, f"seed {case.seed}: node {next(k for k, o in enumerate(ours) if o != other[k])}"
            nodes += len(ours)
    return nodes


def test_random_programs_on_hostile_states_have_the_same_values(second: Second) -> None:
    assert runs(second, 0, PROGRAMS) > 5 * PROGRAMS


@pytest.mark.long
def test_thousands_of_programs_on_hostile_states_have_the_same_values(second: Second) -> None:
    assert runs(second, 1_000_000, LONG * PROGRAMS) > 5 * LONG * PROGRAMS
    assert elements(second, "long", LONG * ELEMENTS) == LONG * ELEMENTS
    assert damaged_moves(second, "long", LONG * MOVES) == LONG * MOVES * len(moves.games())


def test_descriptors_are_accepted_and_refused_alike_by_all_three(second: Second, harness: EvmContract) -> None:
    assert descriptors(second, harness, "gate", DESCRIPTORS) == DESCRIPTORS


def test_headers_are_accepted_and_refused_alike_by_all_three(second: Second, harness: EvmContract) -> None:
    assert headers(second, harness, "gate", HEADERS) == HEADERS


def test_openings_load_and_are_refused_alike_by_all_three(second: Second, harness: EvmContract) -> None:
    assert opened(second, harness, "gate", OPENINGS) == OPENINGS


def test_files_are_accepted_and_refused_alike(second: Second) -> None:
    assert files(second, "gate", FILES) == FILES


def test_damaged_moves_are_refused_or_lead_to_the_same(second: Second) -> None:
    assert damaged_moves(second, "gate", MOVES) == MOVES * len(moves.games())


def test_objects_of_a_store_are_accepted_and_refused_alike(second: Second) -> None:
    assert stored(second, "gate", OBJECTS) == 3 * OBJECTS


def test_elements_of_ill_formed_nodes_are_the_same_words(second: Second) -> None:
    assert elements(second, "gate", ELEMENTS) == ELEMENTS


@pytest.mark.long
def test_a_hundred_thousand_damaged_bytes_are_judged_alike(second: Second, harness: EvmContract) -> None:
    total = descriptors(second, harness, "long", LONG * DESCRIPTORS) + headers(second, harness, "long", LONG * HEADERS)
    total += opened(second, harness, "long", LONG * OPENINGS)
    total += files(second, "long", LONG * FILES) + stored(second, "long", LONG * OBJECTS)
    assert total >= 100_000
