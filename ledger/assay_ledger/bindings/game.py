"""Calls, queries and events of contracts/game/Game.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.game.openings import Opening
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.structs import GameStateFields, as_claim_ref
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Deferred(Event):
    """The side to move took an hour more, because the base fee is above the cap."""

    ABI: ClassVar = "Deferred(uint256 indexed gameId, address indexed mover, uint256 left)"
    game_id: int
    mover: Address
    left: int

    @classmethod
    def _of(cls, v: Decoded) -> Deferred:
        return cls(v[0], address(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class DigestsPosted(Event):
    """The defender opened a list of digests."""

    ABI: ClassVar = "DigestsPosted(uint256 indexed gameId, bytes32 indexed list, bytes32[] digests)"
    game_id: int
    list: Digest
    digests: tuple[Digest, ...]

    @classmethod
    def _of(cls, v: Decoded) -> DigestsPosted:
        return cls(v[0], Digest(v[1]), tuple(Digest(x) for x in v[2]))


@dataclass(frozen=True, slots=True)
class DigestsReused(Event):
    """A list that the claimant posted at the same position of another game counts as posted in this one."""

    ABI: ClassVar = "DigestsReused(uint256 indexed gameId, bytes32 indexed list)"
    game_id: int
    list: Digest

    @classmethod
    def _of(cls, v: Decoded) -> DigestsReused:
        return cls(v[0], Digest(v[1]))


@dataclass(frozen=True, slots=True)
class GameOpened(Event):
    """A claim is challenged: a game began."""

    ABI: ClassVar = (
        "GameOpened(uint256 indexed gameId, bytes32 indexed claimId, address indexed challenger, address defender, "
        "(uint8,uint64,uint32,uint32,address,bytes32) ref)"
    )
    game_id: int
    claim_id: Digest
    challenger: Address
    defender: Address
    ref: ClaimRef

    @classmethod
    def _of(cls, v: Decoded) -> GameOpened:
        return cls(v[0], Digest(v[1]), address(v[2]), address(v[3]), as_claim_ref(v[4]))


@dataclass(frozen=True, slots=True)
class LeafPosted(Event):
    """The defender opened the bytes of the disputed leaf."""

    ABI: ClassVar = "LeafPosted(uint256 indexed gameId, bytes leaf)"
    game_id: int
    leaf: bytes

    @classmethod
    def _of(cls, v: Decoded) -> LeafPosted:
        return cls(v[0], v[1])


@dataclass(frozen=True, slots=True)
class LockTaken(Event):
    """The first conviction took a claim's lock."""

    ABI: ClassVar = (
        "LockTaken(uint256 indexed gameId, bytes32 indexed lockId, uint256 bounty, uint256 burned, uint256 reserved)"
    )
    game_id: int
    lock_id: Digest
    bounty: Wei
    burned: Wei
    reserved: Wei

    @classmethod
    def _of(cls, v: Decoded) -> LockTaken:
        return cls(v[0], Digest(v[1]), Wei(v[2]), Wei(v[3]), Wei(v[4]))


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """A move was made or a turn deferred, and the next turn began."""

    ABI: ClassVar = "Moved(uint256 indexed gameId, address indexed mover, uint8 stage, uint8 turn, uint64 deadline)"
    game_id: int
    mover: Address
    stage: Stage
    turn: Side
    deadline: int

    @classmethod
    def _of(cls, v: Decoded) -> Moved:
        return cls(v[0], address(v[1]), Stage(v[2]), Side(v[3]), v[4])


@dataclass(frozen=True, slots=True)
class PartsPosted(Event):
    """The defender opened partial results of the disputed element."""

    ABI: ClassVar = "PartsPosted(uint256 indexed gameId, int256[] parts)"
    game_id: int
    parts: tuple[int, ...]

    @classmethod
    def _of(cls, v: Decoded) -> PartsPosted:
        return cls(v[0], tuple(v[1]))


@dataclass(frozen=True, slots=True)
class Verdict(Event):
    """A game is over: one side lost."""

    ABI: ClassVar = (
        "Verdict(uint256 indexed gameId, bytes32 indexed claimId, address indexed loser, uint8 outcome, "
        "uint8 family, uint32 node, uint64 element, uint64 term, int256 expected, int256 claimed)"
    )
    game_id: int
    claim_id: Digest
    loser: Address
    outcome: Outcome
    family: int
    node: int
    element: int
    term: int
    expected: int
    claimed: int

    @classmethod
    def _of(cls, v: Decoded) -> Verdict:
        return cls(v[0], Digest(v[1]), address(v[2]), Outcome(v[3]), v[4], v[5], v[6], v[7], v[8], v[9])


class GameContract(Contract):
    """`contracts/game/Game.sol` at an address."""

    EVENTS = (
        Deferred,
        DigestsPosted,
        DigestsReused,
        GameOpened,
        LeafPosted,
        LockTaken,
        Moved,
        PartsPosted,
        Verdict,
    )

    CALLS = (
        "bisectDigests(uint256,uint256,bytes32[])",
        "challenge((uint8,uint64,uint32,uint32,address,bytes32))",
        "defer(uint256)",
        "openFor((uint8,uint64,uint32,uint32,address,bytes32),address,bytes32)",
        "openLeaf(uint256,bytes)",
        "openNode(uint256,bytes,bytes32[],bytes32[],bytes32[])",
        "openState(uint256,bytes32[])",
        "openSubtree(uint256,bytes32[])",
        "postDigests(uint256,bytes32[])",
        "postParts(uint256,bytes,int256[])",
        "proveRoot(uint256,bytes,bytes32[],bytes)",
        "proveTerm(uint256,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])",
        "selectElement(uint256,uint256,bytes,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])",
        "selectList(uint256,uint256,bytes32[])",
        "selectPart(uint256,uint256,int256[])",
        "selectSubtree(uint256,uint256,bytes32[])",
        "timeout(uint256)",
    )

    def arbiter(self) -> Query[Address]:
        """`arbiter`."""
        return self._query("arbiter()", "(address)", lambda v: address(v[0]))

    def bisect_digests(self, game_id: int, index: int, digests: Sequence[Digest]) -> Call:
        """STEPS, NODES: names the first digest that is wrong; the one before it is thereby agreed."""
        return self._call("bisectDigests(uint256,uint256,bytes32[])", game_id, index, digests)

    def challenge(self, ref: ClaimRef) -> Call:
        """Opens a game as a party for whom IClaims.mayChallengeDirectly holds."""
        return self._call("challenge((uint8,uint64,uint32,uint32,address,bytes32))", ref)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def defer(self, game_id: int) -> Call:
        """Any turn, by whoever is to move, in time, while the base fee is above the charter's cap: the turn ends an
        hour later and the hour costs no budget.
        """
        return self._call("defer(uint256)", game_id)

    def game_of(self, game_id: int) -> Query[GameStateFields]:
        """Everything about a game; stage NONE when there is none of this number."""
        return self._query(
            "gameOf(uint256)",
            "((address,uint8,uint8,uint8,bool,uint32,uint16,uint8,uint8,address,uint64,uint32,uint64,uint64,uint64,uint64,uint64,uint64,uint64,uint64,uint8,uint32,uint128,uint128,uint128,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,int256,uint256[],bytes32,bytes32,bytes32,bytes32,(uint8,uint64,uint32,uint32,address,bytes32)))",
            lambda v: GameStateFields.of(v[0]),
            game_id,
        )

    def games(self) -> Query[int]:
        """Number of games so far; they are numbered from 1."""
        return self._query("games()", "(uint256)", lambda v: v[0])

    def move_refund(self) -> Query[Wei]:
        """What a reply of the defender is paid from the challenger's bond, in wei."""
        return self._query("moveRefund()", "(uint256)", lambda v: Wei(v[0]))

    def open_for(self, ref: ClaimRef, challenger: Address, own_root: Digest) -> Call:
        """Challenges only: opens a game for a third party that had committed to it."""
        return self._call(
            "openFor((uint8,uint64,uint32,uint32,address,bytes32),address,bytes32)", ref, challenger, own_root
        )

    def open_leaf(self, game_id: int, leaf: bytes) -> Call:
        """LEAF: the bytes of the disputed leaf."""
        return self._call("openLeaf(uint256,bytes)", game_id, leaf)

    def open_node(
        self,
        game_id: int,
        node: bytes,
        program_path: Sequence[Digest],
        append_path: Sequence[Digest],
        digests: Sequence[Digest],
    ) -> Call:
        """NODE: the node's descriptor under the program root, its append path, and the upper levels of its value's
        tree.
        """
        return self._call(
            "openNode(uint256,bytes,bytes32[],bytes32[],bytes32[])", game_id, node, program_path, append_path, digests
        )

    def open_state(self, game_id: int, list_roots: Sequence[Digest]) -> Call:
        """STATE: the list roots of s_t."""
        return self._call("openState(uint256,bytes32[])", game_id, list_roots)

    def open_subtree(self, game_id: int, digests: Sequence[Digest]) -> Call:
        """TENSOR, LIST: the digests, log2(arity) levels lower, that the disputed entry covers."""
        return self._call("openSubtree(uint256,bytes32[])", game_id, digests)

    def position_cache(self, position: Digest) -> Query[Digest]:
        """K(list) of what was posted at a position = K(claim id, program, stage, step, lo, hi, agreed, disputed); zero
        if nothing was.
        """
        return self._query("positionCache(bytes32)", "(bytes32)", lambda v: Digest(v[0]), position)

    def post_digests(self, game_id: int, digests: Sequence[Digest]) -> Call:
        """STEPS, NODES: the digests at min(arity, hi - lo) positions of (lo, hi], the last equal to the disputed one;
        where the claimant's list is known already, the same ones or none.
        """
        return self._call("postDigests(uint256,bytes32[])", game_id, digests)

    def post_parts(self, game_id: int, node: bytes, parts: Sequence[int]) -> Call:
        """PARTS: partial results of the disputed terms, in chunks."""
        return self._call("postParts(uint256,bytes,int256[])", game_id, node, parts)

    def prove_root(self, game_id: int, node: bytes, path: Sequence[Digest], opening: bytes) -> Call:
        """ROOT: what an input, const or output node must equal; SLOT: what a slot of Y must equal (`node` empty)."""
        return self._call("proveRoot(uint256,bytes,bytes32[],bytes)", game_id, node, path, opening)

    def prove_term(self, game_id: int, node: bytes, reads: Sequence[Opening]) -> Call:
        """TERM: opens what the disputed term reads."""
        return self._call("proveTerm(uint256,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])", game_id, node, reads)

    def select_element(self, game_id: int, offset: int, leaf: bytes, node: bytes, heads: Sequence[Opening]) -> Call:
        """LEAF: names a wrong element, counted in elements from the start of the leaf, and opens what its computation
        reads first.
        """
        return self._call(
            "selectElement(uint256,uint256,bytes,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])",
            game_id,
            offset,
            leaf,
            node,
            heads,
        )

    def select_list(self, game_id: int, index: int, list_roots: Sequence[Digest]) -> Call:
        """STATE: names a wrong list root."""
        return self._call("selectList(uint256,uint256,bytes32[])", game_id, index, list_roots)

    def select_part(self, game_id: int, index: int, parts: Sequence[int]) -> Call:
        """PARTS: names a wrong part."""
        return self._call("selectPart(uint256,uint256,int256[])", game_id, index, parts)

    def select_subtree(self, game_id: int, index: int, digests: Sequence[Digest]) -> Call:
        """TENSOR, LIST: names a wrong digest of the list posted."""
        return self._call("selectSubtree(uint256,uint256,bytes32[])", game_id, index, digests)

    def timeout(self, game_id: int) -> Call:
        """Ends the game against whoever's clock ran out; anyone may call, strictly after the deadline."""
        return self._call("timeout(uint256)", game_id)

    def vault(self) -> Query[Address]:
        """`vault`."""
        return self._query("vault()", "(address)", lambda v: address(v[0]))
