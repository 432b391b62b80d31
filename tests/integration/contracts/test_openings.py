"""Openings against the reference: an honest one gives the element, one with any bit changed is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from assay.protocol.arithmetic.words import canonical
from assay.protocol.digests import leaf_digest
from assay.protocol.game import openings
from assay.protocol.game.header import Header
from assay.protocol.game.openings import NOTHING, Opening
from assay.protocol.program.leaf import Read
from assay.protocol.trees import merkle
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.prefix import root_from_path as prefix_root_from_path
from assay.protocol.trees.tensors import TensorSpec, TensorTree
from assay.protocol.types import Digest, DType
from tests.harness.contracts.harness import Evm, EvmContract, Reverted

K = 5
"""The node that reads; nodes 0..K-1 have values."""

SPECS = (
    TensorSpec(DType.F32, (700,)),
    TensorSpec(DType.I8, (3, 1000)),
    TensorSpec(DType.I64, ()),
    TensorSpec(DType.BOOL, (2000,)),
    TensorSpec(DType.U16, (0, 7)),
)


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("LeafHarness")


@pytest.fixture(scope="module")
def trees() -> list[TensorTree]:
    rng = Random(7)
    built = []
    for spec in SPECS:
        data = bytearray(rng.randbytes(spec.nbytes))
        if spec.dtype is DType.F32:
            data[:8] = bytes.fromhex("0100c0ff 000080ff")  # a NaN with a payload, -inf
        built.append(TensorTree(spec, bytes(data)))
    return built


@pytest.fixture(scope="module")
def prefixes(trees: list[TensorTree]) -> PrefixTree:
    return PrefixTree([t.root for t in trees])


def opened(trees: list[TensorTree], prefixes: PrefixTree, node: int, element: int) -> Opening:
    """The honest opening of an element under P_K."""
    tree = trees[node]
    index, _ = tree.spec.locate(element)
    siblings = prefixes.path(K, node)
    if element >= tree.spec.numel:
        return Opening(tree.spec.dtype, tree.spec.dims, b"", (tree.tree.root,), siblings)
    return Opening(tree.spec.dtype, tree.spec.dims, tree.leaf(index), tree.path(index), siblings)


def load(harness: EvmContract, read: Read, opening: Opening, root: Digest, k: int = K) -> int:
    """The word that the contract loads."""
    fields = (opening.dtype, opening.dims, opening.leaf, opening.path, opening.prefix_path)
    reads = [(read.node, read.address, read.is_fill, read.fill)]
    (word,) = harness.call("load", reads, [fields], root, k)
    return int(word)


def test_an_honest_opening_gives_the_canonical_element(
    harness: EvmContract, trees: list[TensorTree], prefixes: PrefixTree
) -> None:
    for node, tree in enumerate(trees):
        numel = tree.spec.numel
        for element in sorted({0, 1, 255, 256, 511, 699, 1023, 1024, 2999, numel - 1} & set(range(numel))):
            word = load(harness, Read(node, element), opened(trees, prefixes, node, element), prefixes.roots[K])
            assert word == canonical(tree.spec.dtype, tree.word(element))


def test_an_address_outside_the_source_reads_zero_and_still_proves_the_size(
    harness: EvmContract, trees: list[TensorTree], prefixes: PrefixTree
) -> None:
    for node, tree in enumerate(trees):
        for element in (tree.spec.numel, tree.spec.numel + 1, (1 << 64) - 1):
            opening = opened(trees, prefixes, node, element)
            assert load(harness, Read(node, element), opening, prefixes.roots[K]) == 0
    # A smaller source than the true one would turn an element into 0.
    small = replace(opened(trees, prefixes, 0, 700), dims=(5,))
    with pytest.raises(Reverted, match="WrongDigest"):
        load(harness, Read(0, 6), small, prefixes.roots[K])


def test_fills_and_later_nodes_open_nothing(harness: EvmContract, prefixes: PrefixTree) -> None:
    assert load(harness, Read(0, 0, True, 77), NOTHING, prefixes.roots[K]) == 77
    for node in (K, K + 1, (1 << 32) - 1):
        assert load(harness, Read(node, 0), NOTHING, prefixes.roots[K]) == 0


def test_the_number_of_openings_is_the_number_of_reads(harness: EvmContract) -> None:
    with pytest.raises(Reverted, match="WrongCount"):
        harness.call("load", [(0, 0, True, 0)], [], bytes(32), K)


def _flips(data: bytes, every: int) -> Iterator[bytes]:
    for at in range(0, len(data), every):
        yield data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


def _damaged(opening: Opening) -> Iterator[Opening]:
    """Openings that differ from an honest one in a bit, an entry or a length."""
    yield from (replace(opening, dtype=other) for other in (*range(7), 255) if other != opening.dtype)
    for d, size in enumerate(opening.dims):
        for other in (size - 1, size + 1, size + 256, 1 << 63):
            yield replace(opening, dims=(*opening.dims[:d], other % (1 << 64), *opening.dims[d + 1 :]))
    yield replace(opening, dims=(*opening.dims, 1))
    yield replace(opening, dims=(1, *opening.dims))
    yield replace(opening, dims=(1,) * 9)
    yield from (replace(opening, leaf=leaf) for leaf in _flips(opening.leaf, 61))
    yield replace(opening, leaf=opening.leaf[:-1])
    yield replace(opening, leaf=opening.leaf + b"\0")
    for name in ("path", "prefix_path"):
        path: tuple[Digest, ...] = getattr(opening, name)
        for i, sibling in enumerate(path):
            for bad in _flips(sibling, 31):
                yield replace(opening, **{name: (*path[:i], Digest(bad), *path[i + 1 :])})
        yield replace(opening, **{name: path[:-1]})
        yield replace(opening, **{name: (*path, Digest(bytes(32)))})
        if len(set(path)) > 1:
            yield replace(opening, **{name: path[::-1]})


@pytest.mark.parametrize(("node", "element"), [(0, 300), (1, 2999), (2, 0), (3, 1999), (4, 0), (0, 700)])
def test_an_opening_with_anything_changed_is_refused(
    harness: EvmContract, trees: list[TensorTree], prefixes: PrefixTree, node: int, element: int
) -> None:
    read, root = Read(node, element), prefixes.roots[K]
    honest = opened(trees, prefixes, node, element)
    load(harness, read, honest, root)
    count = 0
    for bad in _damaged(honest):
        if bad == honest:
            continue
        count += 1
        with pytest.raises(Reverted) as refusal:
            load(harness, read, bad, root)
        assert refusal.value.name in ("WrongDigest", "WrongCount"), bad
        with pytest.raises((openings.WrongDigest, openings.WrongCount)):
            openings.load_one(read, bad, root, K)
    assert count > 40
    with pytest.raises(Reverted, match="WrongDigest"):
        load(harness, Read((node + 1) % K, element), honest, root)
    with pytest.raises(Reverted, match="WrongDigest"):
        load(harness, read, honest, prefixes.roots[K - 1])


def _claimed(dtype: int, dims: tuple[int, ...], address: int, leaf: bytes) -> tuple[Opening, Digest]:
    """An opening of node 2 as the head of a malformed descriptor claims it, with any siblings, and the P_K over it."""
    head = Header(0, dtype, dims, 0)
    index = address * head.width // 1024
    if address >= head.numel:
        leaf, path, tree = b"", (Digest(b"t" * 32),), Digest(b"t" * 32)
    else:
        count = merkle.path_length(head.leaf_count, index)
        path = tuple(Digest(bytes([i]) * 32) for i in range(count))
        found = merkle.root_from_path(leaf_digest(leaf), head.leaf_count, index, path)
        assert found is not None
        tree = found
    siblings = tuple(Digest(bytes([100 + i]) * 32) for i in range(20))
    root = prefix_root_from_path(head.tensor_root(tree), 2, siblings)
    assert root is not None
    return Opening(dtype, dims, leaf, path, siblings), root


@pytest.mark.parametrize("dtype", [*DType, 7, 200])
@pytest.mark.parametrize("dims", [(1 << 33, 1 << 33), (1 << 40, 0, 1 << 40), (1 << 63, 3, 1), ((1 << 64) - 1,)])
def test_values_of_malformed_nodes_open_by_type_and_dims_as_the_contract_cuts_them(
    harness: EvmContract, dtype: int, dims: tuple[int, ...]
) -> None:
    """OPEN-4: the number of elements is cut to 2^64 - 1, and an unknown type is as wide as u8."""
    head = Header(0, dtype, dims, 0)
    leaf = Random(5).randbytes(1024)
    for address in (0, 3, 1 << 62, head.numel - 1, head.numel, (1 << 64) - 1):
        if not 0 <= address < 1 << 64:
            continue
        index = address * head.width // 1024
        cut = leaf[: min(1024, head.nbytes - 1024 * index)] if address < head.numel else b""
        opening, root = _claimed(dtype, dims, address, cut)
        word = load(harness, Read(2, address), opening, root)
        assert openings.load_one(Read(2, address), opening, root, K) == word
        if address >= head.numel:
            assert word == 0
