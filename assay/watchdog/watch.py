"""The watchdog itself: clocks and truth of games, stakes, duties, epochs, escrow and roots.

It holds no key and writes nothing, neither to the chain nor to the store. With a store it computes what is disputed,
and who says the same is honest; without one only the parties that it is told to watch for are. What it cannot fetch it
says it cannot check.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from eth_utils.address import to_checksum_address

from assay.protocol.game.book import game_lock
from assay.protocol.game.clock import LARGEST, Shape, most_moves
from assay.protocol.game.shapes import shape_of
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address, Digest, Wei
from assay.watchdog.alarms import Alarm, AlarmKind, CommittedFacts, GameFacts, GameTerms, judge_committed, judge_game
from assay.watchdog.looking import GAS_PER_MOVE, USUALLY, ChainWatch, WatchOptions, in_words
from assay.watchdog.run_alarms import (
    judge_beacon,
    judge_duties,
    judge_epoch,
    judge_escrow,
    judge_roots,
    judge_seats,
    judge_stakes,
)
from assay.watchdog.standing import favoured
from assay.watchdog.truths import Judge, Truth, Truths, TruthsInTime
from assay_ledger.bindings.challenges import ChallengeCommitted, ChallengeUncommitted
from assay_ledger.contract import Event, Logged
from assay_ledger.index.computing import Compute
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import ArtifactStore


@dataclass(frozen=True, slots=True)
class JudgedGame:
    """A game in a state, over its claim as we computed it."""

    state: GameState
    honest: Side
    favoured: Side
    shape: Shape


class Watchdog(ChainWatch):
    """Follows one run. Without a store (or without `compute`) nothing is recomputed and only `parties` are honest."""

    def __init__(
        self,
        run: Run,
        store: ArtifactStore | None = None,
        compute: Compute | None = None,
        options: WatchOptions = USUALLY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(run, options, clock, wall)
        self._truths: Judge | None = None
        if store is not None and compute is not None:
            truths = Truths(run, store, compute)
            self._truths = truths if options.waits else TruthsInTime(truths)
        window = game_config(run.charter).reveal_window
        self._terms = GameTerms(run.charter.economics.challenge_bond, options.near, GAS_PER_MOVE, run.currency, window)
        self._committed: dict[Digest, Address] = {}
        self._judged: dict[int, JudgedGame] = {}
        self._index = RunIndex(run, [self._on_event], run.all_contracts(), self._start_again)

    @property
    def head(self) -> tuple[int, int]:
        """See ChainWatch."""
        return self._index.state.head.number, self._index.state.head.timestamp

    @property
    def view(self) -> RunView:
        """The run as an outsider sees it."""
        return RunView(self.run.charter, self.run.facts, NO_ADDRESS, self._index.state)

    def sync(self) -> None:
        """See ChainWatch."""
        self._index.sync()

    def found(self) -> Iterator[Alarm]:
        """See ChainWatch."""
        view = self.view
        yield from self.of_the_chain()
        for who in sorted(self.options.parties):
            yield from judge_stakes(view, who)
            yield from judge_seats(view, who)
            yield from judge_duties(view, who, self.options.near)
        yield from judge_epoch(view)
        yield from judge_beacon(view)
        yield from judge_escrow(view)
        yield from judge_roots(view)
        for _, record in sorted(view.games.items()):
            yield from self._lost(record) if record.is_over else self._open(view, record)
        for commitment, owner in sorted(self._committed.items()):
            if not self.options.parties or owner in self.options.parties:
                yield from self._pending(commitment, owner)

    def strangers(self) -> list[Address]:
        """Parties that have nothing in the run, and had nothing: they have not joined yet, or are mistyped."""
        view = self.view
        players = {who for game in view.games.values() for who in (game.defender, game.challenger)}
        known = players | set(self._committed.values()) | set(view.books.registry.left.values())
        return [
            who
            for who in sorted(self.options.parties - known)
            if not (view.tenures_of(who) or view.tickets_of(who)) and who != self.run.charter.sponsor
        ]

    # --- committed challenges

    def _on_event(self, contract: str, found: Logged[Event]) -> None:
        match found.event:
            case ChallengeCommitted(commitment, challenger):
                self._committed[commitment] = challenger
            case ChallengeUncommitted(commitment):
                self._committed.pop(commitment, None)

    def _start_again(self) -> None:
        """The index started again after a reorganization."""
        self._committed.clear()
        self._judged.clear()

    def _pending(self, commitment: Digest, owner: Address) -> Iterator[Alarm]:
        ask, run = self.run.chain.ask, self.run
        _, _, committed_at = ask(run.challenges.committed_challenge(commitment))
        free = ask(run.vault.free(owner))
        if committed_at:
            facts = CommittedFacts(commitment, owner, committed_at, free)
            # Of a run that was stopped a reveal frees the deposit, and opens no game that asks for a bond.
            is_stopped = self._index.state.money.is_stopped
            terms = replace(self._terms, bond=Wei(0)) if is_stopped else self._terms
            yield from judge_committed(facts, self.head[1], terms)

    # --- games

    def _lost(self, record: GameRecord) -> Iterator[Alarm]:
        """A verdict against somebody honest: a party named, or the side that our own run had found right."""
        verdict = record.verdict
        assert verdict is not None
        judged = self._judged.get(record.game_id)
        honest = Side.NONE if judged is None else judged.honest
        if verdict.loser in self.options.parties or (honest is not Side.NONE and honest is verdict.side):
            name = verdict.side.name.lower()
            text = f"the honest {name} has lost ({verdict.outcome.name})"
            figures = (("side", name), ("party", "0x" + verdict.loser.hex()), ("outcome", verdict.outcome.name))
            yield Alarm(AlarmKind.HONEST_LOST, f"game {record.game_id}", text, figures)

    def _open(self, view: RunView, record: GameRecord) -> Iterator[Alarm]:
        run, ask, parties = self.run, self.run.chain.ask, self.options.parties
        if parties and not parties & {record.defender, record.challenger}:
            return
        state = run.games.game(record.game_id).state
        if state.is_over or state.stage is Stage.NONE:
            # Ended since the index was read; the next look has its verdict. Or this node does not have the game yet.
            return
        judged = self._judged.get(record.game_id)
        if self._truths is not None and (judged is None or judged.state != state):
            try:
                if (truth := self._truths.of(view, record.ref)) is None:
                    yield Alarm(AlarmKind.CANNOT_CHECK, f"game {record.game_id}", "its claim is still being computed")
                else:
                    judged = self._judged[record.game_id] = self._judge(record, state, truth)
            except Exception as error:  # of a stranger's claim, whatever it is made of: clocks and stakes are told
                text = f"its claim cannot be recomputed here: {in_words(error)}"
                yield Alarm(AlarmKind.CANNOT_CHECK, f"game {record.game_id}", text)
        is_known = judged is not None and judged.state == state
        _, bond_locked = ask(run.vault.lock_of(game_lock(record.game_id)))
        eth, mover = run.chain.w3.eth, state.party(state.turn)
        facts = GameFacts(
            state=state,
            honest=self._named(record) if judged is None else judged.honest,
            favoured=judged.favoured if judged is not None and is_known else Side.NONE,
            standing_known=is_known,
            bond_locked=bond_locked,
            coin=Wei(run.chain.read(lambda: eth.get_balance(to_checksum_address(mover)))),
            gas_price=Wei(run.chain.read(lambda: eth.gas_price)),
            moves_left=self._moves_left(record, state.turn, LARGEST if judged is None else judged.shape),
        )
        yield from judge_game(facts, view.now, self._terms)

    def _named(self, record: GameRecord) -> Side:
        """The party that we watch for, which is taken to be honest."""
        named = [s for s in (Side.DEFENDER, Side.CHALLENGER) if _party(record, s) in self.options.parties]
        return named[0] if len(named) == 1 else Side.NONE

    def _judge(self, record: GameRecord, state: GameState, truth: Truth) -> JudgedGame:
        """Who is honest: a party that we watch for, else one that says what our own run says; and who is ahead."""
        by_truth = Side.DEFENDER if truth.holds else Side.CHALLENGER
        side = favoured(state, self.run.games.posted(state), truth.trace, self.run.charter.clocks.arity)
        shape = shape_of(truth.trace.program, truth.trace.steps)
        return JudgedGame(state, self._named(record) or by_truth, side, shape)

    def _moves_left(self, record: GameRecord, side: Side, shape: Shape) -> int:
        """The most moves that a side can still have to make; by the encodings' limits where the program is unknown."""
        most = most_moves(shape, self.run.charter.clocks.arity)[side - 1]
        # The first event of a game is its opening.
        made = sum(m.mover == _party(record, side) for m in record.moves[1:])
        return max(most - made, 1)


def _party(record: GameRecord, side: Side) -> Address:
    return record.defender if side is Side.DEFENDER else record.challenger
