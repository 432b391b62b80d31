"""States and the scalars that the contract builds."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.arithmetic import words
from assay.protocol.errors import InvariantError
from assay.protocol.trees import state
from assay.protocol.trees.state import Scalar, TrainingList
from assay.protocol.types import Digest, DType, Round, Seat
from tests.harness.programs import counting_training, round_scalars


def digests(count: int) -> list[Digest]:
    return [Digest(sha256(bytes((i,))).digest()) for i in range(count)]


@given(st.integers(1, 40), st.data())
def test_every_slot_opens_under_its_list_root(count: int, data: st.DataObject) -> None:
    roots = digests(count)
    index = data.draw(st.integers(0, count - 1))
    root, path = state.list_root(roots), state.slot_path(roots, index)
    assert state.verify_slot(root, roots[index], count, index, path)
    assert not state.verify_slot(root, roots[index], count + 1, index, path)
    assert not state.verify_slot(root, Digest(bytes(32)), count, index, path)
    assert not state.verify_slot(root, roots[index], count, count, path)


def test_lists_bind_their_count_and_order() -> None:
    a, b, c = digests(3)
    assert (
        len({state.state_root(s) for s in ([[a, b], [c]], [[a], [b, c]], [[c], [a, b]], [[b, a], [c]], [[a, b, c]])})
        == 5
    )


def test_scalars_follow_from_round_and_seat() -> None:
    data = bytes(range(64))
    scalars = round_scalars(data, seat=4, round_=3, lr=0.5)
    values = scalars.values()
    assert words.from_bytes(DType.I32, values[Scalar.STEP]) == [75, 0]
    assert values[Scalar.LR] == b"\0\0\0\x3f"
    assert words.from_bytes(DType.I32, values[Scalar.SHARD_START]) == [32]  # (4 + 3) mod 2 = 1
    assert words.from_bytes(DType.I32, values[Scalar.SHARD_LENGTH]) == [32]
    digest = sha256(b"assay-key-v1" + bytes(32) + b"\0\0\0\x04" + b"\0" * 7 + b"\x03").digest()
    assert values[Scalar.KEY] == digest[3::-1] + digest[7:3:-1]
    assert scalars.roots()[Scalar.DATA] == scalars.data_root
    assert len(scalars.roots()) == len(Scalar) == 8


def test_a_step_beyond_32_bits_goes_on_in_the_high_word() -> None:
    scalars = replace(round_scalars(bytes(64), round_=1000), steps_per_round=1 << 24)
    step = 1000 << 24
    expected = words.to_bytes(DType.I32, [step & 0xFFFFFFFF, step >> 32])
    assert scalars.values()[Scalar.STEP] == expected


@pytest.mark.parametrize("field", [{"shard_length": 1 << 31}, {"seat": 1 << 31}, {"round": 1 << 31}])
def test_scalars_that_fit_no_i32_are_refused(field: dict[str, int]) -> None:
    with pytest.raises(InvariantError):
        replace(round_scalars(bytes(64)), **field).values()


def test_the_contracts_initial_state_is_the_state_that_a_solver_starts_from() -> None:
    example = counting_training()
    trace = example.trace()
    parameters, optimizer, _ = trace.list_roots(0)
    assert state.initial_state(parameters, optimizer, round_scalars(example.state[2][Scalar.DATA])) == trace.state_root(
        0
    )
    assert trace.slot_roots(0, TrainingList.SCALARS) == round_scalars(example.state[2][Scalar.DATA]).roots()


def test_keys_differ_per_run_seat_and_round() -> None:
    runs = digests(2)
    keys = {state.random_key(run, Seat(s), Round(r)) for run in runs for s in range(3) for r in range(3)}
    assert len(keys) == 18
