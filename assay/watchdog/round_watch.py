"""The watchdog of a run of the second round: clocks of games, stakes, duties, epochs, escrow and roots.

It recomputes nothing: who audits does that. So it takes the parties that it is told to watch for as honest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from eth_utils.address import to_checksum_address

from assay.protocol.game.clock import LARGEST, most_moves
from assay.protocol.game.table import Side
from assay.protocol.model.games import game_lock
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Wei
from assay.watchdog.alarms import Alarm, AlarmKind, GameFacts, GameTerms, judge_game
from assay.watchdog.looking import GAS_PER_MOVE, USUALLY, ChainWatch, WatchOptions
from assay.watchdog.round_alarms import judge_duties, judge_epoch, judge_escrow, judge_roots, judge_stakes
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.round_index import RoundIndex
from assay_ledger.rounds.round_view import RoundView
from assay_ledger.rounds.run import RoundRun


class RoundWatchdog(ChainWatch):
    """See ChainWatch."""

    def __init__(
        self,
        run: RoundRun,
        options: WatchOptions = USUALLY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(run, options, clock, wall)
        self.run: RoundRun = run
        self._terms = GameTerms(run.charter.economics.challenge_bond, options.near, GAS_PER_MOVE)
        self._index = RoundIndex(run)

    @property
    def head(self) -> tuple[int, int]:
        """See ChainWatch."""
        return self._index.state.head.number, self._index.state.head.timestamp

    @property
    def view(self) -> RoundView:
        """The run as an outsider sees it."""
        return RoundView(self.run.charter, self.run.facts, NO_ADDRESS, self._index.state)

    def sync(self) -> None:
        """See ChainWatch."""
        self._index.sync()

    def found(self) -> Iterator[Alarm]:
        """See ChainWatch."""
        view = self.view
        yield from self.of_the_chain()
        for who in sorted(self.options.parties):
            yield from judge_stakes(view, who)
            yield from judge_duties(view, who, self.options.near)
        yield from judge_epoch(view)
        yield from judge_escrow(view)
        yield from judge_roots(view)
        for _, record in sorted(view.games.items()):
            if record.is_over:
                yield from self._lost(record)
            elif self.options.parties & {record.defender, record.challenger}:
                yield from self._open(record, view.now)

    def _lost(self, record: GameRecord) -> Iterator[Alarm]:
        verdict = record.verdict
        assert verdict is not None
        if verdict.loser in self.options.parties:
            name = verdict.side.name.lower()
            text = f"the honest {name} has lost ({verdict.outcome.name})"
            figures = (("side", name), ("party", "0x" + verdict.loser.hex()), ("outcome", verdict.outcome.name))
            yield Alarm(AlarmKind.HONEST_LOST, f"game {record.game_id}", text, figures)

    def _open(self, record: GameRecord, now: int) -> Iterator[Alarm]:
        run, ask, parties = self.run, self.run.chain.ask, self.options.parties
        state = run.games.game(record.game_id).state
        if state.is_over:
            # Ended since the index was read; the next look has its verdict.
            return
        ours = [side for side in (Side.DEFENDER, Side.CHALLENGER) if state.party(side) in parties]
        _, claim_lock = ask(run.vault.lock_of(state.claim.lock_id))
        _, bond_locked = ask(run.vault.lock_of(game_lock(record.game_id)))
        eth, mover = run.chain.w3.eth, state.party(state.turn)
        made = sum(m.mover == mover for m in record.moves[1:])
        most = most_moves(LARGEST, run.charter.clocks.arity)[state.turn - 1]
        facts = GameFacts(
            state=state,
            honest=ours[0] if len(ours) == 1 else Side.NONE,
            favoured=Side.NONE,
            standing_known=False,
            bond_locked=bond_locked,
            claim_lock=claim_lock,
            claim_lock_promised=None,
            coin=Wei(run.chain.read(lambda: eth.get_balance(to_checksum_address(mover)))),
            gas_price=Wei(run.chain.read(lambda: eth.gas_price)),
            moves_left=max(most - made, 1),
        )
        yield from judge_game(facts, now, self._terms)
