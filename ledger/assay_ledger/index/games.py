"""Disputes of a run, read from the chain: a game's state, what the last move showed, and its verdict.

Source: docs/protocol.md, section 5; docs/adr/0007-actors.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import UnavailableError
from assay.protocol.game.clock import DEFERRAL
from assay.protocol.game.descent import position_key
from assay.protocol.game.players import Posted
from assay.protocol.game.state import DisputedClaim, GameState, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.game import DigestsPosted, DigestsReused, GameContract, LeafPosted, PartsPosted
from assay_ledger.bindings.game import Verdict as VerdictEvent
from assay_ledger.chain.client import Chain
from assay_ledger.contract import E, Logged, Search

BLOCKS_PER_QUERY: Final = 5_000
"""Most nodes refuse to search more blocks at once."""


WITHOUT_LIST: Final = (Stage.ROOT, Stage.TERM, Stage.SLOT, Stage.OVER)


@dataclass(frozen=True, slots=True)
class Game:
    """A game as the chain has it now."""

    state: GameState
    ref: ClaimRef

    @property
    def game_id(self) -> int:
        """Its number, from 1."""
        return self.state.game_id

    def side_of(self, who: Address) -> Side:
        """The side that an address plays."""
        return next((s for s in (Side.DEFENDER, Side.CHALLENGER) if self.state.party(s) == who), Side.NONE)


class Games:
    """The disputes of a run, read from the chain."""

    def __init__(self, chain: Chain, contract: GameContract, first_block: int = 0) -> None:
        self.chain = chain
        self.contract = contract
        self._first_block = first_block

    def count(self) -> int:
        """How many games there have been."""
        return self.chain.ask(self.contract.games())

    def game(self, game_id: int) -> Game:
        """One game; X, Y and steps of its claim are those at stage STEPS or from what the contract still stores."""
        stored = self.chain.ask(self.contract.game_of(game_id))
        claim = DisputedClaim(stored.claim_id, stored.defender, ZERO, ZERO, stored.program, 0, stored.lock_id)
        state = GameState(
            game_id=game_id,
            claim=claim,
            challenger=stored.challenger,
            stage=stored.stage,
            turn=stored.turn,
            turn_started=stored.turn_started,
            deadline=stored.deadline,
            budget_left=(stored.defender_budget, stored.challenger_budget),
            advanced=stored.advanced,
            held=stored.held,
            lo=stored.lo,
            hi=stored.hi,
            agreed=stored.agreed,
            disputed=stored.disputed,
            posted=stored.posted,
            before=stored.before,
            after=stored.after,
            step=stored.step,
            node=stored.node,
            family=stored.family,
            node_hash=stored.node_hash,
            value=stored.value,
            level=stored.level,
            index=stored.index,
            count=stored.count,
            last=stored.last,
            list_index=stored.list_index,
            whole=stored.whole,
            element=stored.element,
            claimed=stored.claimed,
            heads=stored.heads,
            deferrals=(stored.defender_deferrals, stored.challenger_deferrals),
        )
        return Game(state, stored.ref)

    def posted(self, state: GameState) -> Posted:
        """What the challenger is to select from, from its event; empty where there is nothing to select from.

        Leaves and parts are looked up by the game, a list by its hash: the claimant may have posted it in another game.
        Raises UnavailableError (EventsMissing) where the node does not find the event.
        """
        if state.turn is not Side.CHALLENGER or state.stage in WITHOUT_LIST:
            return Posted()
        at, game_id = self.contract.address, state.game_id
        if state.stage is Stage.LEAF:
            return Posted(leaf=self._of_this_turn(LeafPosted.search(at, game_id=game_id), state).event.leaf)
        if state.stage is Stage.PARTS:
            return Posted(parts=self._of_this_turn(PartsPosted.search(at, game_id=game_id), state).event.parts)
        return Posted(digests=self._list(state).digests)

    def cached_list(self, state: GameState) -> Digest | None:
        """K(list) of what the claimant has posted at the position that a game stands at; None if it has not."""
        found = self.chain.ask(self.contract.position_cache(position_key(state)))
        return None if found == ZERO else found

    def verdict(self, game_id: int) -> tuple[Verdict, bytes] | None:
        """The verdict of a game and the hash of the transaction that brought it; None where the game is not over.

        Raises UnavailableError (EventsMissing) where the node does not find the verdict.
        """
        # A search for what is not there would read the whole chain, before each move of a game that lasts.
        game = self.game(game_id)
        if not game.state.is_over:
            return None
        found = self._of_this_turn(VerdictEvent.search(self.contract.address, game_id=game_id), game.state)
        return verdict_of(found.event, game.side_of(found.event.loser)), found.transaction

    def _list(self, state: GameState) -> DigestsPosted:
        at = self.contract.address
        posted = DigestsPosted.search(at, list=state.posted)
        found, first = self._newest(posted, since=_turn_began(state))
        if found is None and self.chain.events(
            DigestsReused.search(at, game_id=state.game_id, list=state.posted), first
        ):
            found, _ = self._newest(posted, before=first)
        if found is None:
            raise _missing(state)
        return found.event

    def _of_this_turn(self, search: Search[E], state: GameState) -> Logged[E]:
        """The newest event of these, which the last move brought."""
        found, _ = self._newest(search, since=_turn_began(state))
        if found is None:
            raise _missing(state)
        return found

    def _newest(self, search: Search[E], *, since: int = 0, before: int | None = None) -> tuple[Logged[E] | None, int]:
        """The newest event of these in blocks before one, and the first block looked at.

        Blocks before chain time `since` are left alone: the event is not there where a node does not have it yet.
        """
        low = self.chain.head().number + 1 if before is None else before
        for high in range(low - 1, self._first_block - 1, -BLOCKS_PER_QUERY):
            low = max(self._first_block, high - BLOCKS_PER_QUERY + 1)
            if found := self.chain.events(search, low, high):
                return max(found, key=lambda logged: (logged.block, logged.log_index)), low
            if since and self._time_of(low) < since:
                break
        return None, low

    def _time_of(self, block: int) -> int:
        """Chain time of a block, in seconds."""
        return int(self.chain.block_at(block)["timestamp"])


def _turn_began(state: GameState) -> int:
    """Chain time of the last move or before: a deferral moves the turn's own start on."""
    return state.turn_started - DEFERRAL * sum(state.deferrals)


def _missing(state: GameState) -> UnavailableError:
    return UnavailableError(
        f"The node does not find what the last move of game {state.game_id} told.",
        code="EventsMissing",
        remedy="It is asked again; if it goes on, name another node. Nothing is lost as long as time is left.",
    )


def verdict_of(told: VerdictEvent, side: Side) -> Verdict:
    """A verdict as its event tells of it, against the side that lost."""
    place = told.family, told.node, told.element, told.term
    return Verdict(told.loser, side, told.outcome, *place, told.expected, told.claimed)
