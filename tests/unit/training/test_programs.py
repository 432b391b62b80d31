"""The three programs of a run: small enough, iterable, equal to the reference, and they train as stock PyTorch does."""

from __future__ import annotations

import pytest
import torch

from assay.engine.compiler import cache
from assay.engine.runtime.executor import Executor
from assay.protocol.program.nodes import Family, Map
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations
from assay.protocol.program.witness import witnessed_program
from assay.protocol.trees.state import SCALAR_SPECS, Scalar
from assay.training.data import Corpus, corpus_from_text, pydoc_text
from assay.training.evaluate import validation_loss
from assay.training.initialize import initialize
from assay.training.outer import SLOTS, outer_step, zero_momentum
from assay.training.presets import DEMO, TINY, Preset
from assay.training.programs import outer_program, training_program, update_program, zero_parameters
from assay.training.state import SCALAR_NAMES, Scalars
from assay.training.step import initial_state, preset_step
from assay.training.updates import compute_update
from tests.harness.engine.helpers import differing_nodes, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_from_text(pydoc_text())


@pytest.fixture(scope="module")
def small_corpus() -> Corpus:
    return corpus_from_text(pydoc_text()[:3000])


@pytest.fixture(scope="module")
def demo(corpus: Corpus) -> Program:
    return training_program(DEMO, corpus)


def zeros_of(preset: Preset, corpus: Corpus) -> list[torch.Tensor]:
    """Parameters of the preset's shapes."""
    return zero_parameters(preset_step(preset, len(corpus.vocabulary)))


def test_programs_are_well_formed_and_the_training_step_repeats(corpus: Corpus, demo: Program):
    programs = [demo, update_program(zeros_of(DEMO, corpus)), outer_program(zeros_of(DEMO, corpus))]
    assert [violations(p) for p in programs] == [(), (), ()]
    assert [p.is_iterable() for p in programs] == [True, False, False]
    assert len(demo.nodes) < 1000
    families = {n.family for n in demo.nodes}
    assert families == set(Family) - {Family.RANK}


def test_the_state_has_the_layout_of_the_protocol(demo: Program):
    parameters, optimizer, scalars = demo.input_nodes
    assert len(optimizer) == 2 * len(parameters) + 2
    assert len(scalars) == len(Scalar)
    assert tuple(s.name.lower() for s in Scalar)[:1] == SCALAR_NAMES[:1]
    for slot, spec in SCALAR_SPECS.items():
        assert demo.specs[scalars[slot]] == spec


def test_an_outer_program_has_lists_for_eight_seats(corpus: Corpus):
    program = outer_program(zeros_of(TINY, corpus))
    count = program.inputs[0]
    assert program.inputs == (count,) * (2 + SLOTS) + (1,)
    assert program.outputs == (count, count)
    assert update_program(zeros_of(TINY, corpus)).inputs == (count, count)


def test_two_tiny_steps_equal_the_reference_on_every_node(small_corpus: Corpus):
    program = training_program(TINY, small_corpus)
    step = preset_step(TINY, len(small_corpus.vocabulary))
    state = initial_state(
        step,
        initialize(step.module, 3),
        Scalars.of(small_corpus.train, learning_rate=1e-3, key=(1, 2**31), step=2**32 - 1),
    )
    assert differing_nodes(program, state) == []
    state = Executor(program).run(state)
    assert state[2][0].tolist() == [0, 1]
    assert differing_nodes(program, state) == []


@pytest.mark.long
def test_restarting_steps_equal_the_reference_and_know_their_place_in_the_round(small_corpus: Corpus):
    program = training_program(TINY, small_corpus, restarts=True)
    assert program.root != training_program(TINY, small_corpus).root
    assert violations(witnessed_program(program)) == ()
    step = preset_step(TINY, len(small_corpus.vocabulary), restarts=True)
    found = []
    # The last step of a round, and the first of the next one, whose low word has wrapped.
    for round_, number in ((429_496_729, 2**32 - 7 + TINY.inner_steps), (429_496_730, 2**32 + 4), (0, 1)):
        scalars = Scalars.of(small_corpus.train, learning_rate=1e-3, key=(1, 2), round=round_, step=number)
        state = initial_state(step, initialize(step.module, 3), scalars)
        assert differing_nodes(program, state) == []
        found.append(float((Executor(program).run(state)[0][0] - state[0][0]).abs().max()))
    assert found[0] == pytest.approx(4e-3 / 3.4, rel=0.01)
    assert found[1] == pytest.approx(1e-3 / 3.4, rel=0.01)
    assert found[2] == pytest.approx(2e-3 / 3.4, rel=0.01)


def test_update_and_outer_step_equal_stock_pytorch_bit_for_bit(small_corpus: Corpus):
    step = preset_step(TINY, len(small_corpus.vocabulary))
    start, end = initialize(step.module, 1), initialize(step.module, 2)
    (update,) = Executor(update_program(zeros_of(TINY, small_corpus))).run([start, end])
    assert same_lists([update], compute_update(start, end))
    zeros = zero_momentum(start)
    executor = Executor(outer_program(zeros_of(TINY, small_corpus)))
    for included in (0, 1, 3):
        slots = [update] * included + [zeros] * (SLOTS - included)
        mask = torch.tensor([1.0] * included + [0.0] * (SLOTS - included))
        lists = [start, end, *slots, [mask]]
        assert same_lists(executor.run(lists), outer_step(start, end, *slots, [mask]))


def test_exact_training_reaches_the_loss_of_stock_training(corpus: Corpus, demo: Program):
    step = preset_step(DEMO, len(corpus.vocabulary))
    start = initial_state(step, initialize(step.module, 1), Scalars.of(corpus.train, learning_rate=1e-3, key=(7, 8)))
    exact, stock = start, start
    executor = Executor(demo)
    for _ in range(75):
        exact, stock = executor.run(exact), step(*stock)
    ours, theirs = (validation_loss(step.module, state[0], corpus) for state in (exact, stock))
    assert ours == pytest.approx(theirs, abs=0.01)
    assert ours < corpus.letter_entropy() - 0.4
    assert not same_lists(exact, stock)


def test_programs_are_captured_once_and_read_back(small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch):
    first = update_program(zeros_of(TINY, small_corpus))
    monkeypatch.setattr("assay.training.programs.capture", lambda *_: pytest.fail("captured again"))
    assert update_program(zeros_of(TINY, small_corpus)).root == first.root


def test_a_damaged_cache_entry_is_made_again(small_corpus: Corpus, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    first = update_program(zeros_of(TINY, small_corpus))
    (entry,) = cache.cache_folder().iterdir()
    entry.write_bytes(entry.read_bytes()[:-5])
    assert update_program(zeros_of(TINY, small_corpus)).root == first.root
    assert update_program(zeros_of(TINY, small_corpus)).root == first.root


def test_capture_is_deterministic(small_corpus: Corpus, tmp_path, monkeypatch: pytest.MonkeyPatch):
    roots = []
    for name in ("a", "b"):
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / name))
        roots.append(training_program(TINY, small_corpus).root)
    assert roots[0] == roots[1]


def test_maps_leave_room_under_the_contracts_limits(demo: Program):
    maps = [n for n in demo.nodes if isinstance(n, Map)]
    assert max(len(n.operands) for n in maps) <= 5
    assert max(len(n.code) // 8 for n in maps) <= 64
