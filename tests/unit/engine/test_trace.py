"""The trace by re-execution answers as the reference trace does, honest or lying, and keeps little."""

from __future__ import annotations

import random

import pytest
import torch

from assay.engine.runtime.executor import Executor
from assay.engine.runtime.trace import PREFIX_BYTES_PER_NODE, TorchTrace
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import ReferenceTrace, flip_bit
from assay_solver.lies import Lie
from tests.harness.engine.helpers import tensors_of
from tests.harness.programs import Example, all_examples, counting, every_family, mlp_step

STEPS = 3


def assert_same(ours: TorchTrace, theirs: ReferenceTrace) -> None:
    """Every question of a game has the same answer."""
    count = len(ours.program.nodes)
    for t in range(theirs.steps + 1):
        assert ours.state_root(t) == theirs.state_root(t)
        assert ours.list_roots(t) == theirs.list_roots(t)
        for number, _ in enumerate(theirs.list_roots(t)):
            assert ours.slot_roots(t, number) == theirs.slot_roots(t, number)
    for t in range(theirs.steps, 0, -1):
        assert [ours.prefix_root(t, k) for k in range(count + 1)] == [
            theirs.prefix_root(t, k) for k in range(count + 1)
        ]
        assert ours.prefix_path(t, count, count // 2) == theirs.prefix_path(t, count, count // 2)
        assert ours.prefix_path(t, count // 2, count // 2) == theirs.prefix_path(t, count // 2, count // 2)
        for k in range(count):
            assert ours.node_root(t, k) == theirs.node_root(t, k)
            assert ours.node_bytes(t, k) == theirs.node_bytes(t, k)


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_an_honest_trace_answers_as_the_reference_does(example: Example):
    assert_same(TorchTrace(example.program, example.state, STEPS), example.trace(STEPS))


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("example", [every_family(), mlp_step()], ids=lambda e: e.name)
def test_a_lie_begins_in_exactly_the_node_that_is_tampered_with(example: Example):
    rng = random.Random(1)
    for k, node in enumerate(example.program.nodes):
        if not node.spec.nbytes:
            continue
        tamper = flip_bit(2, k, rng.randrange(min(8 * node.spec.nbytes, 300)))
        ours, theirs = TorchTrace(example.program, example.state, 2, tamper), example.trace(2, tamper)
        assert ours.state_root(1) == theirs.state_root(1)
        assert ours.state_root(2) == theirs.state_root(2)
        assert ours.prefix_root(2, k) == example.trace(2).prefix_root(2, k)
        assert [ours.node_root(2, j) for j in range(len(example.program.nodes))] == [
            theirs.node_root(2, j) for j in range(len(example.program.nodes))
        ]
        assert ours.node_bytes(2, k) == theirs.node_bytes(2, k)


def test_a_tampered_exponent_is_used_as_it_is_claimed():
    example = every_family()
    rowexps = example.nodes_of(Family.ROWEXP)
    for k in rowexps:
        for bit in (0, 2, 6, 8, 31):
            tamper = flip_bit(1, k, bit)
            ours, theirs = TorchTrace(example.program, example.state, 1, tamper), example.trace(1, tamper)
            assert ours.state_root(1) == theirs.state_root(1)


def test_a_slot_can_be_altered_behind_its_output_node():
    example = mlp_step()

    def tamper(step: int, number: int, index: int, data: bytes) -> bytes:
        return bytes([data[0] ^ 1]) + data[1:] if (step, number, index) == (2, 0, 1) else data

    ours = TorchTrace(example.program, example.state, 3, tamper_slot=tamper)
    theirs = example.trace(3, tamper_slot=tamper)
    assert [ours.state_root(t) for t in range(4)] == [theirs.state_root(t) for t in range(4)]
    assert ours.prefix_root(2, len(example.program.nodes)) == theirs.prefix_root(2, len(example.program.nodes))


def test_states_that_do_not_fit_are_computed_again(monkeypatch: pytest.MonkeyPatch):
    example = mlp_step()
    monkeypatch.setattr("assay.engine.runtime.trace.MAX_STATE_BYTES", 0)
    monkeypatch.setattr("assay.engine.runtime.trace.MAX_NODE_BYTES", 0)
    trace = TorchTrace(example.program, example.state, STEPS)
    assert_same(trace, example.trace(STEPS))
    assert list(trace._states) == [0]


@pytest.mark.parametrize("steps_kept", (1, 2, 3))
def test_a_trace_keeps_the_prefixes_of_as_many_steps_as_fit(monkeypatch: pytest.MonkeyPatch, steps_kept: int):
    example = mlp_step()
    each = PREFIX_BYTES_PER_NODE * len(example.program.nodes)
    monkeypatch.setattr("assay.engine.runtime.trace.MAX_PREFIX_BYTES", steps_kept * each)
    trace = TorchTrace(example.program, example.state, STEPS)
    for t in (1, 2, 3):
        trace.prefix_root(t, 3)
    assert list(trace._prefixes) == [1, 2, 3][-steps_kept:]


def test_a_trace_that_shed_its_states_answers_as_before():
    example = mlp_step()
    trace = TorchTrace(example.program, example.state, STEPS)
    assert_same(trace, example.trace(STEPS))
    before = trace.bytes_kept
    trace.shed()
    assert trace.bytes_kept < before
    assert_same(trace, example.trace(STEPS))


def test_games_that_stand_at_every_step_in_turn_cost_one_run_of_each():
    example = mlp_step()
    executor = Counted(example.program)
    trace = TorchTrace(executor, example.state, STEPS)
    roots = [trace.state_root(t) for t in range(STEPS + 1)]
    assert executor.steps == STEPS and len(set(roots)) == STEPS + 1
    for _ in range(5):
        for t in range(1, STEPS + 1):
            trace.prefix_root(t, 3)
    assert executor.steps == 2 * STEPS


def test_tensors_and_bytes_start_the_same_trace():
    example = mlp_step()
    state = tensors_of(example.program, example.state)
    a = TorchTrace(Executor(example.program), state, 1)
    assert a.state_root(1) == TorchTrace(example.program, example.state, 1).state_root(1)


def test_bits_of_a_start_that_nobody_stores_are_hashed_as_they_came():
    example = mlp_step()
    raw = [[bytearray(b) for b in part] for part in example.state]
    raw[0][0][:4] = (0x7FC00001).to_bytes(4, "little")
    state = tuple(tuple(bytes(b) for b in part) for part in raw)
    assert_same(TorchTrace(example.program, state, 2), ReferenceTrace(example.program, state, 2))


def test_several_steps_need_a_program_whose_end_is_a_start():
    from assay.engine.compiler.capture import capture

    program = capture(lambda a: (a, a), [[torch.zeros(2)]]).program
    with pytest.raises(InvariantError) as caught:
        TorchTrace(program, [[torch.zeros(2)]], 2)
    assert caught.value.code == "NotIterable"


class Counted(Executor):
    """Counts the steps that it runs, and the nodes that a hook saw in the last one."""

    steps = 0
    seen = 0

    def run(self, inputs, hook=None):
        self.steps, self.seen = self.steps + 1, 0

        def counting(k, value):
            self.seen += 1
            return hook(k, value)

        return super().run(inputs, hook and counting)


@pytest.mark.parametrize(("limit", "kept"), [(0, [0]), (3, [0, 4, 8]), (8, [0, 2, 4, 6, 8]), (99, list(range(10)))])
def test_states_are_kept_at_equal_distances_and_every_step_is_run_once_for_the_roots(
    limit: int, kept: list[int], monkeypatch: pytest.MonkeyPatch
):
    example = counting()
    monkeypatch.setattr("assay.engine.runtime.trace.MAX_STATE_BYTES", limit * len(example.state[0][0]))
    executor, truth = Counted(example.program), example.trace(9)
    trace = TorchTrace(executor, example.state, 9)
    assert trace.state_root(9) == truth.state_root(9)
    assert executor.steps == 9
    assert sorted(trace._states) == kept
    assert trace.bytes_kept == (len(kept) + (9 not in kept)) * len(example.state[0][0])
    assert trace.node_bytes(8, 1) == truth.node_bytes(8, 1)
    assert executor.steps == 9 + 8 - max(k for k in kept if k <= 7)
    assert trace.prefix_root(8, 2) == truth.prefix_root(8, 2)
    assert executor.steps == 9 + 9 - max(k for k in kept if k <= 7), "the state before the step is still there"


def test_of_a_disputed_step_no_node_is_run_after_the_one_asked_for():
    example = every_family()
    executor = Counted(example.program)
    trace = TorchTrace(executor, example.state, 1)
    for k in (0, 20, len(example.program.nodes) - 1):
        assert trace.node_bytes(1, k) == example.trace().node_bytes(1, k)
        assert executor.seen == k + 1
        trace._nodes.clear()


def test_a_step_that_a_liar_leaves_alone_is_run_uninstrumented():
    example = counting()
    executor = Counted(example.program)
    tamper = Lie({(2, 2): lambda data: bytes(len(data))})
    trace = TorchTrace(executor, example.state, 3, tamper)
    seen = [trace.state_root(t) and executor.seen for t in range(1, 4)]
    assert seen == [0, len(example.program.nodes), 0]
    assert trace.state_root(3) == example.trace(3, tamper).state_root(3)
