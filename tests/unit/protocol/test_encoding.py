"""Descriptors and program files: one encoding per node, and hostile bytes raise nothing but MalformedError."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from assay.protocol.program import encoding, programfile
from assay.protocol.program.encoding import MalformedError, decode_header, decode_node, encode_header, encode_node
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Family,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from tests.harness.programs import all_examples, every_family

i64s = st.integers(-(1 << 63), (1 << 63) - 1)
u32s = st.integers(0, (1 << 32) - 1)
dims_of = lambda rank: st.lists(st.integers(0, 9), min_size=rank, max_size=rank).map(tuple)  # noqa: E731
any_dims = st.integers(0, 3).flatmap(dims_of)


def operand(rank: int) -> st.SearchStrategy[Operand]:
    """Any operand over this rank."""
    triple = st.tuples(*[i64s] * rank)
    return st.builds(Operand, u32s, st.builds(View, i64s, triple, triple, triple, st.integers(0, (1 << 64) - 1)))


@st.composite
def nodes(draw: Callable[..., object]) -> Node:
    """Any node that satisfies the local bounds."""
    family = draw(st.sampled_from(list(Family)))
    spec = TensorSpec(draw(st.sampled_from(list(DType))), draw(any_dims))
    if family in (Family.SCATTER_SUM, Family.RANK) and not spec.dims:
        spec = TensorSpec(spec.dtype, (3,))
    red = draw(dims_of(1) if family is Family.RANK else any_dims)
    out, inner = len(spec.dims), len(spec.dims) + len(red)
    match family:
        case Family.INPUT:
            return Input(spec, draw(st.integers(0, 255)), draw(u32s))
        case Family.OUTPUT:
            return Output(spec, draw(st.integers(0, 255)), draw(u32s), draw(u32s))
        case Family.CONST:
            return Const(spec, Digest(draw(st.binary(min_size=32, max_size=32))))
        case Family.MAP:
            code = draw(st.integers(0, 64).flatmap(lambda c: st.binary(min_size=8 * c, max_size=8 * c)))
            return Map(spec, tuple(draw(st.lists(operand(out), max_size=8))), code)
        case Family.ROWEXP:
            return RowExp(spec, red, draw(operand(inner)))
        case Family.MAX:
            return Max(spec, red, draw(operand(inner)))
        case Family.RANK:
            return Rank(spec, red, draw(operand(inner)))
        case Family.DOT:
            p = st.integers(2, 31)
            reads = [draw(operand(r)) for r in (inner, inner, out, out)]
            return Dot(spec, red, draw(p), draw(p), *reads)
        case Family.SUM:
            return Sum(spec, red, draw(operand(inner)), draw(operand(out)))
        case Family.GATHER:
            return Gather(spec, draw(st.integers(0, (1 << 64) - 1)), draw(operand(out + 1)), draw(operand(out)))
        case Family.SCATTER_SUM:
            return ScatterSum(spec, red, draw(operand(inner)), draw(operand(inner)), draw(operand(out)))
        case Family.RANDOM:
            return Random(spec, draw(u32s), draw(u32s), draw(u32s))


@given(nodes())
def test_a_node_goes_to_bytes_and_back(node: Node) -> None:
    data = encode_node(node)
    assert len(data) <= encoding.MAX_DESCRIPTOR
    assert decode_node(data) == node
    assert encode_node(decode_node(data)) == data


@given(nodes(), st.data())
def test_a_changed_descriptor_means_another_node_or_nothing(node: Node, data: st.DataObject) -> None:
    encoded = bytearray(encode_node(node))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        changed = decode_node(bytes(encoded))
    except MalformedError:
        return
    assert changed != node
    assert encode_node(changed) == bytes(encoded)


@given(nodes(), st.data())
def test_no_shorter_or_longer_bytes_are_a_descriptor(node: Node, data: st.DataObject) -> None:
    encoded = encode_node(node)
    with pytest.raises(MalformedError):
        decode_node(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
    with pytest.raises(MalformedError):
        decode_node(encoded + data.draw(st.binary(min_size=1, max_size=9)))


@settings(max_examples=500)
@given(st.binary(max_size=300))
@example(b"\x02\x00\x08" + b"\xff" * 64)
@example(b"\x05" + b"\x00" * 200)
def test_hostile_bytes_raise_nothing_but_the_named_error(data: bytes) -> None:
    for decode in (decode_node, decode_header, programfile.decode_program):
        try:
            decode(data)
        except MalformedError:
            continue
        # A decoder that accepts is the inverse of its encoder.
        if decode is decode_node:
            assert encode_node(decode_node(data)) == data


def test_local_bounds_are_refused() -> None:
    spec = TensorSpec(DType.F32, (2,))
    flat = Operand(0, View(0, (1,), (0,), (2,)))
    point = Operand(0, View(0, (), (), ()))
    for node in (
        Input(TensorSpec(DType.F32, (1,) * 9), 0, 0),
        Input(TensorSpec(DType.F32, (1 << 20, (1 << 20) + 1)), 0, 0),
        Input(TensorSpec(DType.F32, (0, (1 << 40) + 1)), 0, 0),
        Map(spec, (flat,) * 9, b""),
        Map(spec, (flat,), bytes(8 * 65)),
        Map(spec, (point,), b""),
        Sum(spec, (), flat, point),
        Dot(spec, (), 1, 14, flat, flat, flat, flat),
        Dot(spec, (), 14, 32, flat, flat, flat, flat),
        ScatterSum(TensorSpec(DType.F32, ()), (2,), flat, flat, point),
        Rank(spec, (), flat),
        Rank(TensorSpec(DType.I32, ()), (2,), flat),
        RowExp(spec, (1 << 41,), Operand(0, View(0, (0, 0), (0, 0), (0, 0)))),
    ):
        with pytest.raises(MalformedError):
            decode_node(encode_node(node))


sizes = st.lists(st.integers(0, 1 << 16), max_size=5).map(tuple)


@given(st.integers(1 << 16, 1 << 20), sizes, sizes, st.data())
def test_a_header_goes_to_bytes_and_back(
    count: int, inputs: tuple[int, ...], outputs: tuple[int, ...], data: st.DataObject
) -> None:
    assume(sum(inputs) + sum(outputs) <= count)
    header = encode_header(count, inputs, outputs)
    assert decode_header(header) == (count, inputs, outputs)
    with pytest.raises(MalformedError):
        decode_header(header + b"\0")
    with pytest.raises(MalformedError):
        decode_header(header[: data.draw(st.integers(0, len(header) - 1))])
    with pytest.raises(MalformedError):
        decode_header(b"\0\2" + header[2:])


def test_the_counts_of_a_header_are_refused_just_beyond_their_limits() -> None:
    for good in ((1, (), ()), (1 << 20, (), ()), (3, (2,), (1,)), (1, (0,) * 255, (0,) * 255)):
        assert decode_header(encode_header(*good)) == good
    for rule, bad in (
        ("HDR-2", (0, (), ())),
        ("HDR-2", ((1 << 20) + 1, (), ())),
        ("HDR-3", (3, (2,), (1, 1))),
        ("HDR-3", (1, ((1 << 32) - 1,), ((1 << 32) - 1,))),
    ):
        with pytest.raises(MalformedError, match=rule):
            decode_header(encode_header(*bad))


@pytest.mark.parametrize("which", all_examples(), ids=lambda e: e.name)
def test_a_program_file_is_deterministic_and_gives_the_program_back(which: object) -> None:
    program = which.program  # type: ignore[attr-defined]
    data = programfile.encode_program(program)
    read = programfile.decode_program(data)
    assert read == program
    assert read.consts == program.consts
    assert read.root == program.root
    assert programfile.encode_program(read) == data
    assert programfile.file_digest(data) == programfile.file_digest(programfile.encode_program(program))


@settings(max_examples=300)
@given(st.data())
def test_a_changed_program_file_is_refused_or_another_program(data: st.DataObject) -> None:
    program = every_family().program
    file = bytearray(programfile.encode_program(program))
    at = data.draw(st.integers(0, len(file) - 1))
    file[at] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.sampled_from([len(file), at]))
    try:
        changed = programfile.decode_program(bytes(file[:cut]))
    except MalformedError:
        return
    assert cut == len(file)
    assert changed.root != program.root


def test_a_program_file_above_the_limit_or_with_another_constant_is_refused() -> None:
    file = programfile.encode_program(every_family().program)
    with pytest.raises(MalformedError, match="above"):
        programfile.decode_program(file, max_bytes=len(file) - 1)
    with pytest.raises(MalformedError, match="other bytes"):
        programfile.decode_program(file[:-1] + bytes((file[-1] ^ 1,)))


def test_a_file_that_promises_more_than_it_holds_allocates_nothing() -> None:
    huge = Const(TensorSpec(DType.F32, (1 << 40,)), Digest(bytes(32)))
    descriptor = encode_node(huge)
    file = programfile.MAGIC + encode_header(1, (), ()) + len(descriptor).to_bytes(2, "big") + descriptor
    with pytest.raises(MalformedError, match="missing"):
        programfile.decode_program(file)
    with pytest.raises(MalformedError):
        programfile.decode_program(programfile.MAGIC + encode_header((1 << 32) - 1, (), ()))
