"""Openings of elements, good ones and refused ones, for tests/vectors/rules.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from assay.protocol.digests import leaf_digest
from assay.protocol.game import openings
from assay.protocol.game.errors import GameError
from assay.protocol.game.header import Header
from assay.protocol.game.openings import NOTHING, Opening
from assay.protocol.program.leaf import Read
from assay.protocol.trees import merkle, prefix
from assay.protocol.trees.tensors import TensorSpec, TensorTree
from assay.protocol.types import Digest, DType

K = 5
"""The node that reads; nodes 0..K-1 have values."""

SPECS = (
    TensorSpec(DType.F32, (3,)),
    TensorSpec(DType.I8, (3, 400)),
    TensorSpec(DType.I64, ()),
    TensorSpec(DType.BOOL, (5,)),
    TensorSpec(DType.U16, (0, 7)),
)


def opening_document(opening: Opening) -> dict[str, object]:
    """An opening as the files have it."""
    return {
        "dtype": opening.dtype,
        "dims": [str(d) for d in opening.dims],
        "leaf": opening.leaf.hex(),
        "path": [d.hex() for d in opening.path],
        "prefixPath": [d.hex() for d in opening.prefix_path],
    }


def read_document(read: Read) -> dict[str, object]:
    """A read as the files have it: an address, or a fill that is not opened."""
    return {"node": read.node} | ({"fill": str(read.fill)} if read.is_fill else {"address": str(read.address)})


def _case(
    rule: str | None, what: str, reads: tuple[Read, ...], opened: tuple[Opening, ...], root: Digest
) -> dict[str, object]:
    """One case, with the words or the error that the reference gives."""
    document: dict[str, object] = {"rule": rule, "what": what, "k": K, "root": root.hex()}
    document["reads"] = [read_document(r) for r in reads]
    document["openings"] = [opening_document(o) for o in opened]
    try:
        words = openings.load(reads, opened, root, K)
    except GameError as error:
        assert rule is not None, what
        return document | {"error": error.code}
    assert rule is None, what
    return document | {"words": [f"0x{w:x}" for w in words]}


def cases() -> Iterator[dict[str, object]]:
    """Every case."""
    rng = Random(7)
    trees = []
    for spec in SPECS:
        data = bytearray(rng.randbytes(spec.nbytes))
        if spec.dtype is DType.F32:
            data[:8] = bytes.fromhex("0100c0ff 000080ff")  # a NaN with a payload, -inf
        trees.append(TensorTree(spec, bytes(data)))
    prefixes = prefix.PrefixTree([t.root for t in trees])
    root = prefixes.roots[K]

    def honest(node: int, element: int) -> Opening:
        tree = trees[node]
        spec, index, siblings = tree.spec, tree.spec.locate(element)[0], prefixes.path(K, node)
        if element >= spec.numel:
            return Opening(spec.dtype, spec.dims, b"", (tree.tree.root,), siblings)
        return Opening(spec.dtype, spec.dims, tree.leaf(index), tree.path(index), siblings)

    for node, element in ((0, 0), (0, 1), (0, 2), (1, 1023), (1, 1024), (1, 1199), (2, 0), (3, 0), (3, 4)):
        yield _case(None, f"element {element} of node {node}", (Read(node, element),), (honest(node, element),), root)
    for node, element in ((0, 3), (1, (1 << 64) - 1), (4, 0)):
        what = f"an address outside: {element} of node {node}"
        yield _case(None, what, (Read(node, element),), (honest(node, element),), root)
    fill, later = Read(0, 0, True, 77), Read(K, 0)
    any_opening = replace(NOTHING, leaf=b"not looked at")
    yield _case(None, "a fill and a later node: nothing is opened", (fill, later), (NOTHING, any_opening), root)
    yield from _malformed_heads()
    yield from _refused(honest, root)


def _malformed_heads() -> Iterator[dict[str, object]]:
    """Values of malformed nodes: cut to 2^64 - 1 elements, unknown types as wide as u8 (OPEN-4)."""
    most = (1 << 64) - 1
    for dtype, dims, address in (
        (0, (1 << 33, 1 << 33), 5),
        (0, (1 << 33, 1 << 33), most - 1),
        (2, (1 << 33, 1 << 33), most),
        (0, (1 << 63, 3), most),
        (5, (1 << 63, 0, 1 << 63), 0),
        (7, (3, 5), 14),
        (255, (1 << 40, 1 << 40), 1 << 63),
    ):
        head = Header(0, dtype, dims, 0)
        siblings = tuple(Digest(bytes([100 + i]) * 32) for i in range(20))
        index = address * head.width // 1024
        if address < head.numel:
            leaf = bytes(i % 251 for i in range(min(1024, head.nbytes - 1024 * index)))
            path = tuple(Digest(bytes([i]) * 32) for i in range(merkle.path_length(head.leaf_count, index)))
            tree = merkle.root_from_path(leaf_digest(leaf), head.leaf_count, index, path)
        else:
            leaf, path, tree = b"", (Digest(b"t" * 32),), Digest(b"t" * 32)
        assert tree is not None
        root = prefix.root_from_path(head.tensor_root(tree), 2, siblings)
        assert root is not None
        what = f"type {dtype}, dims {list(dims)}, address {address}"
        yield _case(None, what, (Read(2, address),), (Opening(dtype, dims, leaf, path, siblings),), root)


def _refused(honest, root: Digest) -> Iterator[dict[str, object]]:  # type: ignore[no-untyped-def]
    """One thing changed in a good opening."""
    inner, outer = honest(1, 1100), honest(0, 3)
    here, there = Read(1, 1100), Read(0, 3)
    zero = Digest(bytes(32))
    yield _case("OPEN-1", "no opening for a read", (here,), (), root)
    yield _case("OPEN-1", "an opening too many", (here,), (inner, inner), root)
    for rule, what, read, bad in (
        ("OPEN-3", "nine dims", here, replace(inner, dims=(1,) * 9)),
        ("OPEN-5", "a leaf with a byte too few", here, replace(inner, leaf=inner.leaf[:-1])),
        ("OPEN-5", "a leaf padded to 1,024 bytes", here, replace(inner, leaf=inner.leaf.ljust(1024, b"\0"))),
        ("OPEN-5", "a path with a digest too few", here, replace(inner, path=inner.path[:-1])),
        ("OPEN-5", "a path with a digest too many", here, replace(inner, path=(*inner.path, zero))),
        ("OPEN-6", "a leaf for an address outside", there, replace(outer, leaf=b"\0")),
        ("OPEN-6", "no root of the leaves", there, replace(outer, path=())),
        ("OPEN-6", "two roots of the leaves", there, replace(outer, path=(*outer.path, zero))),
        ("OPEN-7", "19 siblings", here, replace(inner, prefix_path=inner.prefix_path[:-1])),
        ("OPEN-7", "21 siblings", here, replace(inner, prefix_path=(*inner.prefix_path, zero))),
        ("OPEN-8", "another byte in the leaf", here, replace(inner, leaf=b"\1" + inner.leaf[1:])),
        ("OPEN-8", "another sibling in the tree", here, replace(inner, path=(zero,))),
        ("OPEN-8", "another sibling under P_k", here, replace(inner, prefix_path=(zero, *inner.prefix_path[1:]))),
        ("OPEN-8", "another type of the same width", here, replace(inner, dtype=DType.U8)),
        ("OPEN-8", "the same numel in other dims", here, replace(inner, dims=(400, 3))),
        ("OPEN-8", "a smaller source than the true one", Read(0, 2), replace(outer, dims=(2,))),
        ("OPEN-8", "another node", Read(2, 1100), inner),
    ):
        yield _case(rule, what, (read,), (bad,), root)
    other, short = replace(inner, leaf=b"\1" + inner.leaf[1:]), replace(inner, dims=(1,) * 9)
    yield _case("OPEN-8", "a wrong leaf, then nine dims: read by read", (here, here), (other, short), root)
    yield _case("OPEN-3", "nine dims, then a wrong leaf: read by read", (here, here), (short, other), root)
    yield _case("OPEN-1", "nine dims, and an opening missing: their number first", (here, here), (short,), root)
    yield _case("OPEN-8", "under another prefix root", (here,), (inner,), prefix.EMPTY)
