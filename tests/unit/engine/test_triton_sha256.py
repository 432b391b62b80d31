"""Triton's SHA-256, by its interpreter: the protocol's roots for leaves and trees of every shape."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest
import torch

from assay.engine.runtime import roots
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.trace import TorchTrace
from assay.engine.runtime.triton import sha256
from assay.engine.runtime.values import state_io
from assay.protocol.errors import UserError
from assay.protocol.trees import merkle, tensors
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from tests.harness.engine.helpers import captured

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


def wanted(data: bytes) -> Digest:
    return merkle.root(tensors.leaf_digests(TensorSpec(DType.U8, (len(data),)), data))


def found(data: bytes, spans: list[tuple[int, int]]) -> list[Digest]:
    return sha256.tree_roots(torch.frombuffer(bytearray(data), dtype=torch.uint8), sha256.tables(spans))


def test_constants_are_those_of_the_standard() -> None:
    """FIPS 180-4, 4.2.2 and 5.3.3: the first and the last."""
    squares, cubes = sha256._fractions(8, 2), sha256._fractions(64, 3)
    assert (squares[0], squares[-1], cubes[0], cubes[-1]) == (0x6A09E667, 0x5BE0CD19, 0x428A2F98, 0xC67178F2)


def test_short_leaves_of_every_length_at_odd_offsets_have_the_protocol_s_root() -> None:
    """Up to three blocks: every place of the one and of the length, at every offset from a word."""
    data = random.Random(1).randbytes(20_000)
    spans, at = [], 0
    for size in range(130):
        spans.append((at, size))
        at += size + size % 3
    assert found(data, spans) == [wanted(data[o : o + s]) for o, s in spans]


def test_whole_leaves_and_trees_of_every_small_count_have_the_protocol_s_root() -> None:
    data = random.Random(2).randbytes(40_000)
    sizes = (0, 1023, 1024, 1025, 2048, 2049, 3 * 1024, 5 * 1024 - 1, 7 * 1024 + 1, 8 * 1024, 9 * 1024 + 11)
    spans = [(7 * k, size) for k, size in enumerate(sizes)]
    assert found(data, spans) == [wanted(data[o : o + s]) for o, s in spans]


def test_no_bytes_at_all_have_the_root_of_nothing() -> None:
    assert found(b"x", [(0, 0)]) == [wanted(b"")] == [Digest(bytes(32))]
    assert sha256.tensor_roots([]) == []


def test_tensors_of_one_memory_and_of_several_hash_as_the_native_kernels_say() -> None:
    """Views of one arena, a turned one, a scalar, nothing, bools, a NaN that no store writes; nothing is changed."""
    whole = torch.arange(500, dtype=torch.float32)
    whole.view(torch.int32)[3] = 0x7FC00001
    held = [whole[:20], whole[30:62].view(4, 8), torch.randn(5, 6).t(), torch.tensor(3, dtype=torch.int64)]
    held += [torch.empty(0, 4), torch.tensor([True, False, True]), torch.arange(9).to(torch.uint16)]
    assert sha256.tensor_roots(held) == [state_io.root_of(t) for t in held]


def test_a_tensor_that_programs_do_not_have_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        sha256.tensor_roots([torch.zeros(3, dtype=torch.float64)])
    assert caught.value.code == "UnknownElementType"


def test_the_self_test_of_a_device_finds_a_wrong_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """By digests of hashlib's in place of the kernels', of which one is wrong or none."""

    def hashed(memory: torch.Tensor, made: sha256.Tables) -> list[Digest]:
        sizes = (0, 1, 54, 55, 62, 63, 64, 1023, 1024, 1025, 4113)
        assert len(made.ends) == len(sizes)
        return [wanted(bytes(memory[:size].tolist())) for size in sizes]

    monkeypatch.setattr(sha256, "tree_roots", hashed)
    assert sha256.failure.__wrapped__() == ""
    monkeypatch.setattr(sha256, "tree_roots", lambda m, t: [*hashed(m, t)[:-1], Digest(bytes(32))])
    assert sha256.failure.__wrapped__() == "Triton's SHA-256 (interpreted) is wrong for 4113 bytes"


def test_a_state_on_the_cpu_is_hashed_there() -> None:
    state = [[torch.randn(300)], [torch.ones(3, dtype=torch.bool)]]
    assert roots.state_root(state) == state_io.state_root(state)


def test_values_of_a_trace_hash_where_they_lie_as_a_store_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd NaNs and truth values by the interpreter; the nodes of a step by hashes in the place of its kernels'."""
    odd = torch.tensor([0x7FC00001, 0x3F800000], dtype=torch.int32).view(torch.float32)
    values = [odd, torch.tensor([0, 1, 2], dtype=torch.uint8).view(torch.bool), torch.randn(5, 6).t()]
    program = captured(lambda x: ((x * 2.0).log(), (x > 0.0).sum().to(torch.int32)), torch.ones(2, 300)).program
    state = [[torch.linspace(-1.0, 1.0, 600).view(2, 300)]]
    count, hashed = len(program.nodes), list[int]()
    nodes = [TorchTrace(Executor(program), state).node_root(1, k) for k in range(count)]
    monkeypatch.setattr(roots, "is_hashed_there", lambda _: True)
    assert roots.slot_roots([values[:1], values[1:]]) == state_io.slot_roots([values[:1], values[1:]])

    def hashes(tensors: list[torch.Tensor]) -> list[Digest]:
        hashed.append(len(tensors))
        return [state_io.root_of(t) for t in tensors]

    monkeypatch.setattr(sha256, "tensor_roots", hashes)
    assert [roots.stored_root(t) for t in values] == [state_io.stored_root(t) for t in values]
    trace = TorchTrace(Executor(program), state)
    assert [trace.node_root(1, k) for k in range(count)] == nodes
    assert len(hashed) > len(values)
