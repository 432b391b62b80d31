"""Disputes of a run, read from the chain: a game's state, what the last move showed, and its verdict.

Source: docs/protocol.md, section 5; docs/adr/0007-actors.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.game.descent import position_key
from assay.protocol.game.players import Posted
from assay.protocol.game.state import DisputedClaim, GameState, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.game import DigestsPosted, GameContract, LeafPosted, PartsPosted
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
        """
        if state.turn is not Side.CHALLENGER or state.stage in WITHOUT_LIST:
            return Posted()
        at, game_id = self.contract.address, state.game_id
        if state.stage is Stage.LEAF:
            leaf = self._newest(LeafPosted.search(at, game_id=game_id))
            return Posted() if leaf is None else Posted(leaf=leaf.leaf)
        if state.stage is Stage.PARTS:
            parts = self._newest(PartsPosted.search(at, game_id=game_id))
            return Posted() if parts is None else Posted(parts=parts.parts)
        digests = self._newest(DigestsPosted.search(at, list=state.posted))
        return Posted() if digests is None else Posted(digests=digests.digests)

    def cached_list(self, state: GameState) -> Digest | None:
        """K(list) of what the claimant has posted at the position that a game stands at; None if it has not."""
        found = self.chain.ask(self.contract.position_cache(position_key(state)))
        return None if found == ZERO else found

    def verdict(self, game_id: int) -> tuple[Verdict, bytes] | None:
        """The verdict of a game and the hash of the transaction that brought it, once it is over."""
        found = next(self._newest_first(VerdictEvent.search(self.contract.address, game_id=game_id)), None)
        if found is None:
            return None
        told = found.event
        return verdict_of(told, self.game(game_id).side_of(told.loser)), found.transaction

    def _newest(self, search: Search[E]) -> E | None:
        """The event of these that came last."""
        found = next(self._newest_first(search), None)
        return None if found is None else found.event

    def _newest_first(self, search: Search[E]) -> Iterator[Logged[E]]:
        head = self.chain.head().number
        for high in range(head, self._first_block - 1, -BLOCKS_PER_QUERY):
            low = max(self._first_block, high - BLOCKS_PER_QUERY + 1)
            found = self.chain.events(search, low, high)
            yield from sorted(found, key=lambda logged: (logged.block, logged.log_index), reverse=True)


def verdict_of(told: VerdictEvent, side: Side) -> Verdict:
    """A verdict as its event tells of it, against the side that lost."""
    place = told.family, told.node, told.element, told.term
    return Verdict(told.loser, side, told.outcome, *place, told.expected, told.claimed)
