"""Disputes as an actor plays them: answer from a trace, send the move.

Solver, verifier and whistleblower use this one player, each for the side it is on. Nothing is kept here beyond traces,
so an actor that is killed and restarted goes on in the same game.
Source: docs/protocol.md, section 5; docs/adr/0007-actors.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, assert_never

from web3.types import TxReceipt

from assay.protocol.arithmetic.words import canonical
from assay.protocol.digests import digest_list_hash
from assay.protocol.errors import AssayError, InvariantError, MismatchError
from assay.protocol.game.descent import position_key
from assay.protocol.game.moves import (
    AnyMove,
    BisectDigests,
    OpenLeaf,
    OpenNode,
    OpenState,
    OpenSubtree,
    PostDigests,
    PostParts,
    ProveRoot,
    ProveTerm,
    SelectElement,
    SelectList,
    SelectPart,
    SelectSubtree,
)
from assay.protocol.game.player_values import Position
from assay.protocol.game.players import Challenger, Defender
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program import leaf
from assay.protocol.program.trace import Trace
from assay.protocol.trees.tensors import LEAF_SIZE
from assay.protocol.types import Digest
from assay_ledger.agents.traces import LooksUp, Traces
from assay_ledger.bindings.game import GameContract
from assay_ledger.chain.client import address_of
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.contract import Call
from assay_ledger.index.games import Game, Games

AT_A_NODE: Final = (Stage.NODE, Stage.ROOT, Stage.TENSOR, Stage.LEAF, Stage.PARTS, Stage.TERM)


AT_A_STEP: Final = (Stage.NODES, *AT_A_NODE, Stage.SLOT)
"""Where a player needs the prefix roots of the disputed step, and the value of the disputed node."""


class GamePlayer:
    """Moves for one account in any number of games, from traces that `trace_of` rebuilds once per claim and side.

    `traces` keeps them for the next player of the same account.
    """

    def __init__(
        self,
        games: Games,
        account: TransactionSigner,
        arity: int,
        trace_of: Callable[[Game], Trace],
        traces: Traces | None = None,
    ) -> None:
        self._games = games
        self._account = account
        self._arity = arity
        self._trace_of = trace_of
        self._traces = Traces() if traces is None else traces

    def is_ready(self, claim_id: Digest, side: Side) -> bool:
        """Has the run behind a claim been executed for games on this side of it?"""
        return (claim_id, side) in self._traces

    def is_due(self, game: Game) -> bool:
        """Is this account to move, or may it end the game because the opponent's clock ran out?"""
        side = game.side_of(address_of(self._account))
        return side is not Side.NONE and not game.state.is_over and game.state.turn is side

    def move(self, game: Game) -> TxReceipt | None:
        """Makes this account's move; None when it has none to make.

        Raises RejectedError where the contract refuses the move, and what `confirm` raises.
        """
        call = self.call_of(game)
        return None if call is None else self._games.chain.send(self._account, call)

    def call_of(self, game: Game) -> Call | None:
        """The contract call of this account's move; None when it has none to make. Raises what `confirm` raises."""
        move = self.next_move(game)
        if move is None:
            return None
        self.confirm(game, move)
        return encode_move(self._games.contract, game.game_id, move)

    def calls_of(self, games: Sequence[Game]) -> Iterator[tuple[Game, Call | AssayError | None]]:
        """The calls of this account's moves in several games, sent in this order; an error where there is none.

        Games on one claim are answered by one run of each step that they stand at. Of games that wait for the same list
        the first is sent it; the others are left out, since their reply is a short one as soon as it is known.
        Raises InvariantError.
        """
        failed = self._look_ahead(games)
        positions: set[Digest] = set()
        for game in games:
            if (lost := failed.get(game.state.claim.id)) is not None:
                yield game, lost
                continue
            try:
                move = self.next_move(game)
                if isinstance(move, PostDigests) and move.digests:
                    if (position := position_key(game.state)) in positions:
                        continue
                    positions.add(position)
                if move is not None:
                    self.confirm(game, move)
            except InvariantError:
                raise
            except AssayError as error:
                yield game, error
            else:
                yield game, None if move is None else encode_move(self._games.contract, game.game_id, move)

    def _look_ahead(self, games: Sequence[Game]) -> dict[Digest, AssayError]:
        """Has every trace compute at once what the games on its claim ask for; errors by the claim's id."""
        failed: dict[Digest, AssayError] = {}
        by_claim: dict[Digest, list[Game]] = {}
        for game in games:
            if self.is_due(game):
                by_claim.setdefault(game.state.claim.id, []).append(game)
        for claim, found in by_claim.items():
            try:
                trace = self._trace(found[0])
                if isinstance(trace, LooksUp):
                    at = [g.state for g in found if g.state.stage in AT_A_STEP]
                    trace.look_up((s.step, s.node if s.stage in AT_A_NODE else None) for s in at)
            except InvariantError:
                raise
            except AssayError as error:
                failed[claim] = error
        return failed

    def next_move(self, game: Game) -> AnyMove | None:
        """The move that this account would make now, from its trace; None when it has none to make."""
        state = game.state
        side = game.side_of(address_of(self._account))
        if state.is_over or state.turn is not side:
            return None
        trace = self._trace(game)
        if side is Side.DEFENDER:
            move = self._shortened(state, Defender(trace, self._arity).next_move(state))
        else:
            move = Challenger(trace, self._arity).next_move(state, self._games.posted(state))
        if move is None:
            raise InvariantError(f"No move for stage {state.stage.name}.", code="NoMove")
        return move

    def _shortened(self, state: GameState, move: AnyMove | None) -> AnyMove | None:
        """A list that was posted at this position after the game had come to it is not sent again."""
        if isinstance(move, PostDigests) and self._games.cached_list(state) == digest_list_hash(move.digests):
            return PostDigests(())
        return move

    def confirm(self, game: Game, move: AnyMove) -> None:
        """A last look before a move is sent: see `check_element`, whose MismatchError stops it."""
        check_element(self._trace(game), game.state, move)

    def overdue_call(self, game: Game, now: int) -> Call | None:
        """The contract call that ends a game whose other side's clock has run out; None while it has not."""
        state = game.state
        mine = game.side_of(address_of(self._account))
        if state.is_over or mine is Side.NONE or state.turn is mine or now <= state.deadline:
            return None
        return self._games.contract.timeout(game.game_id)

    def _trace(self, game: Game) -> Trace:
        # The id binds claimant, X and Y: after a reorganization of the chain the same game can be on another claim.
        key = game.state.claim.id, game.side_of(address_of(self._account))
        return self._traces.get(key, lambda: self._trace_of(game))


def check_element(trace: Trace, state: GameState, move: AnyMove) -> None:
    """Computes the element that a challenger is about to select once more, by the reference.

    A fault of this machine's executor would lose the game at the contract. Raises MismatchError (ElementMismatch).
    """
    if not isinstance(move, SelectElement):
        return
    place = Position(trace, state.step, state.node)
    dtype = place.value.spec.dtype
    element = state.index * (LEAF_SIZE // dtype.size) + move.offset
    own = canonical(dtype, place.value.word(element))
    expected = leaf.element(place.node, element, place.load)
    if own != expected:
        raise MismatchError(
            f"Element {element} of node {state.node} is {expected:#x} by the reference and {own:#x} in this run.",
            code="ElementMismatch",
            remedy="This machine's arithmetic or memory is at fault: stop the actor and test the hardware.",
        )


def encode_move(contract: GameContract, game_id: int, move: AnyMove) -> Call:
    """The contract call for a move."""
    match move:
        case PostDigests():
            return contract.post_digests(game_id, move.digests)
        case BisectDigests():
            return contract.bisect_digests(game_id, move.index, move.digests)
        case OpenNode():
            return contract.open_node(game_id, move.node, move.program_path, move.append_path, move.digests)
        case ProveRoot():
            return contract.prove_root(game_id, move.node, move.path, move.opening)
        case SelectSubtree():
            return contract.select_subtree(game_id, move.index, move.digests)
        case OpenSubtree():
            return contract.open_subtree(game_id, move.digests)
        case OpenLeaf():
            return contract.open_leaf(game_id, move.leaf)
        case SelectElement():
            return contract.select_element(game_id, move.offset, move.leaf, move.node, move.heads)
        case PostParts():
            return contract.post_parts(game_id, move.node, move.parts)
        case SelectPart():
            return contract.select_part(game_id, move.index, move.parts)
        case ProveTerm():
            return contract.prove_term(game_id, move.node, move.reads)
        case OpenState():
            return contract.open_state(game_id, move.list_roots)
        case SelectList():
            return contract.select_list(game_id, move.index, move.list_roots)
        case _:
            assert_never(move)
