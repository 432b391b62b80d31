"""Programs: a flat list of nodes, the header and the program root (docs/protocol.md, section 3).

A `Program` may be ill-formed: it is whatever somebody encoded. `wellformed.violations` says whether it is a program to
take part in; `encoding` reads and writes descriptors; `builder` makes well-formed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.protocol.digests import leaf_digest, program_digest
from assay.protocol.program.encoding import MAX_NODES as MAX_NODES
from assay.protocol.program.encoding import encode_header, encode_node
from assay.protocol.program.nodes import Node
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest


@dataclass(frozen=True)
class Program:
    """Nodes, the sizes of the lists of X and Y, and the bytes of constants by tensor root.

    Not slotted: descriptors and root are computed once and kept. Equality and hash ignore the constants' bytes, which
    their roots in the descriptors determine.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    consts: Mapping[Digest, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def header(self) -> bytes:
        """version u16 ‖ nodes u32 ‖ inputs u8 ‖ sizes u32[] ‖ outputs u8 ‖ sizes u32[]."""
        return encode_header(len(self.nodes), self.inputs, self.outputs)

    @cached_property
    def descriptors(self) -> tuple[bytes, ...]:
        """The encoded nodes."""
        return tuple(encode_node(node) for node in self.nodes)

    @cached_property
    def tree(self) -> merkle.Tree:
        """The tree over the descriptors' leaf digests."""
        return merkle.Tree([leaf_digest(d) for d in self.descriptors])

    @cached_property
    def root(self) -> Digest:
        """The program root."""
        return program_digest(self.header, self.tree.root)

    @cached_property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Type and dims of every node's value."""
        return tuple(node.spec for node in self.nodes)

    @property
    def input_nodes(self) -> tuple[tuple[int, ...], ...]:
        """Per list of X, the nodes of its slots by the layout rule (inputs first)."""
        return _slots(0, self.inputs)

    @property
    def output_nodes(self) -> tuple[tuple[int, ...], ...]:
        """Per list of Y, the nodes of its slots by the layout rule (outputs last)."""
        return _slots(len(self.nodes) - sum(self.outputs), self.outputs)

    def is_iterable(self) -> bool:
        """Whether Y can be X of another step: same lists, types and dims."""
        if self.inputs != self.outputs:
            return False
        ends = zip(self.input_nodes, self.output_nodes, strict=True)
        return all(self.specs[i] == self.specs[o] for ins, outs in ends for i, o in zip(ins, outs, strict=True))


def verify_descriptor(
    root: Digest, header: bytes, count: int, k: int, descriptor: bytes, path: tuple[Digest, ...]
) -> bool:
    """Whether `descriptor` is node k of the program with this root, header and number of nodes."""
    tree_root = merkle.root_from_path(leaf_digest(descriptor), count, k, path)
    return tree_root is not None and program_digest(header, tree_root) == root


def _slots(first: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Consecutive node indices cut into lists of these sizes."""
    lists = []
    for size in sizes:
        lists.append(tuple(range(first, first + size)))
        first += size
    return tuple(lists)
