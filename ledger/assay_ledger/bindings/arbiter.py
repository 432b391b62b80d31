"""Calls, queries and events of contracts/Arbiter.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.protocol.game.openings import Opening
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Contract, Decoded, Query, address


@dataclass(frozen=True, slots=True)
class NodeOpenedFields:
    """The struct `NodeOpened`, as contracts give it."""

    family: int
    value: Digest
    level: int
    count: int
    last: int

    @staticmethod
    def of(v: Decoded) -> NodeOpenedFields:
        """Of its fields in order."""
        return NodeOpenedFields(v[0], Digest(v[1]), v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class NodePlaceFields:
    """The struct `NodePlace`, as contracts give it."""

    tree: Digest
    nodes: int
    k: int
    agreed: Digest
    disputed: Digest
    levels: int

    @staticmethod
    def of(v: Decoded) -> NodePlaceFields:
        """Of its fields in order."""
        return NodePlaceFields(Digest(v[0]), v[1], v[2], Digest(v[3]), Digest(v[4]), v[5])


@dataclass(frozen=True, slots=True)
class StartedFields:
    """The struct `Started`, as contracts give it."""

    element: int
    claimed: int
    done: bool
    value: Wei
    terms: int
    heads: tuple[int, ...]

    @staticmethod
    def of(v: Decoded) -> StartedFields:
        """Of its fields in order."""
        return StartedFields(v[0], v[1], v[2], Wei(v[3]), v[4], tuple(v[5]))


class ArbiterContract(Contract):
    """`contracts/Arbiter.sol` at an address."""

    EVENTS = ()

    CALLS = ()

    def compute_term(
        self,
        node: bytes,
        element: int,
        term: int,
        heads: Sequence[int],
        reads: Sequence[Opening],
        prefix: Digest,
        k: int,
        whole: bool,
    ) -> Query[int]:
        """One term of an element."""
        return self._query(
            "computeTerm(bytes,uint64,uint64,uint256[],(uint8,uint64[],bytes,bytes32[],bytes32[])[],bytes32,uint32,bool)",
            "(int256)",
            lambda v: v[0],
            node,
            element,
            term,
            heads,
            reads,
            prefix,
            k,
            whole,
        )

    def leaf_of(self, family: int) -> Query[Address]:
        """The contract that computes a family's elements; zero for a family without one."""
        return self._query("leafOf(uint256)", "(address)", lambda v: address(v[0]), family)

    def open_node(
        self,
        place: NodePlaceFields,
        node: bytes,
        program_path: Sequence[Digest],
        append_path: Sequence[Digest],
        digests: Sequence[Digest],
    ) -> Query[NodeOpenedFields]:
        """Binds a node's opening: its descriptor to the program, type and dims to the descriptor, the value to P_k and
        P_(k+1).
        """
        return self._query(
            "openNode((bytes32,uint32,uint32,bytes32,bytes32,uint8),bytes,bytes32[],bytes32[],bytes32[])",
            "((uint8,bytes32,uint8,uint64,uint16))",
            lambda v: NodeOpenedFields.of(v[0]),
            place,
            node,
            program_path,
            append_path,
            digests,
        )

    def root_of(
        self, node: bytes, path: Sequence[Digest], opening: bytes, inputs: Sequence[int], before: Digest, agreed: Digest
    ) -> Query[Digest]:
        """The tensor root that the value of an input, const or output node must have."""
        return self._query(
            "rootOf(bytes,bytes32[],bytes,uint32[],bytes32,bytes32)",
            "(bytes32)",
            lambda v: Digest(v[0]),
            node,
            path,
            opening,
            inputs,
            before,
            agreed,
        )

    def source_root(self, source: int, path: Sequence[Digest], opening: bytes, agreed: Digest) -> Query[Digest]:
        """The tensor root of an earlier node under an agreed prefix root: its 20 siblings and the root itself."""
        return self._query(
            "sourceRoot(uint32,bytes32[],bytes,bytes32)",
            "(bytes32)",
            lambda v: Digest(v[0]),
            source,
            path,
            opening,
            agreed,
        )

    def stands_for(self, node: bytes, heads: Sequence[int], parts: Sequence[int], whole: bool) -> Query[int]:
        """What parts stand for: the element's word if `whole`, else the coarser part."""
        return self._query(
            "standsFor(bytes,uint256[],int256[],bool)", "(int256)", lambda v: v[0], node, heads, parts, whole
        )

    def start(
        self, node: bytes, leaf: bytes, index: int, offset: int, heads: Sequence[Opening], prefix: Digest, k: int
    ) -> Query[StartedFields]:
        """Starts the computation of the element that stands at `offset` (in elements) of leaf `index` of node k."""
        return self._query(
            "start(bytes,bytes,uint64,uint256,(uint8,uint64[],bytes,bytes32[],bytes32[])[],bytes32,uint32)",
            "((uint64,int256,bool,int256,uint64,uint256[]))",
            lambda v: StartedFields.of(v[0]),
            node,
            leaf,
            index,
            offset,
            heads,
            prefix,
            k,
        )
