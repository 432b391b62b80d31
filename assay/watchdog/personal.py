"""A watchdog for one address: beside what every watchdog says, its gas, its losses, its process and its store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eth_utils.address import to_checksum_address

from assay.amounts import COIN
from assay.protocol.errors import AssayError
from assay.protocol.types import Address
from assay.watchdog.alarms import Alarm, AlarmKind
from assay.watchdog.watch import Watchdog
from assay_ledger.agents.heartbeat import DEAD_AFTER_S, Activity, Heartbeat, read_heartbeats
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import BlobStore

SILENT_S = 10 * DEAD_AFTER_S
"""A restart takes a while: silence is told after so many seconds."""


class PersonalWatch(Watchdog):
    """`gas_low` in wei. Without a store neither the store nor the process is looked at."""

    def __init__(self, run: Run, who: Address, store: BlobStore | None, gas_low: int, **options: Any) -> None:
        super().__init__(run, **options)
        self.who, self._beats, self._gas_low = who, store, gas_low
        self._counter, self._heard_at, self._is_silent = -1, self._clock(), False

    def found(self) -> Iterator[Alarm]:
        """See ChainWatch."""
        yield from super().found()
        yield from self._own_games()
        chain, me = self.run.chain, to_checksum_address(self.who)
        coin = int(chain.read(lambda: chain.w3.eth.get_balance(me)))
        if coin < self._gas_low:
            has, least = COIN.show(coin), COIN.show(self._gas_low)
            text = f"{has} coins are left for gas, fewer than {least}: without gas no move can be made"
            yield Alarm(AlarmKind.GAS_LOW, "account", text, (("coin", str(coin)), ("wanted", str(self._gas_low))))
        if self._beats is not None:
            yield from self._process(self._beats)

    def _own_games(self) -> Iterator[Alarm]:
        for number, game in sorted(self.view.games.items()):
            if game.verdict is None and game.defender == self.who:
                text = f"a claim of round {game.ref.round} is challenged: answer in time, or its stake is lost"
                yield Alarm(AlarmKind.CHALLENGED, f"game {number}", text, (("deadline", game.deadline),))
        for what, rows in (("tenure", self.view.tenures_of(self.who)), ("ticket", self.view.tickets_of(self.who))):
            for number, held in rows:
                if held.convicted_at:
                    yield Alarm(AlarmKind.CONVICTED, f"{what} {number}", "it was convicted: its stake is slashed")

    def _process(self, store: BlobStore) -> Iterator[Alarm]:
        try:
            self._hear(read_heartbeats(store, self.run.address, [self.who]).get(self.who))
        except AssayError as error:
            # What was known of the process stays: nothing new is known of it.
            yield Alarm(AlarmKind.STORE_DARK, "store", error.explain())
        if self._is_silent:
            text = f"its process has said nothing for more than {SILENT_S:.0f} s: start it again"
            yield Alarm(AlarmKind.PROCESS_SILENT, "process", text)

    def _hear(self, beat: Heartbeat | None) -> None:
        now = self._clock()
        # Attack: a store that shows old messages in turn, or one of several that is behind, and the process is dead.
        if beat is not None and beat.counter > self._counter:
            self._counter, self._heard_at = beat.counter, now
        # Of whom nothing can be lost a process is missed only if it spoke, did not end, and still had something to do.
        is_done = beat is not None and beat.activity is Activity.DONE
        is_missed = self._counter >= 0 and not is_done and not self.view.state.money.is_ended
        self._is_silent = now - self._heard_at > SILENT_S and (is_missed or self._is_at_stake())

    def _is_at_stake(self) -> bool:
        """Whether anything of the address could still be lost, whatever its process said when it ended."""
        view, me = self.view, self.who
        seats = any(not (tenure.released or tenure.convicted_at) for _, tenure in view.tenures_of(me))
        tickets = any(not held.convicted_at for _, held in view.tickets_of(me))
        return seats or tickets or any(not g.is_over and me in (g.defender, g.challenger) for g in view.games.values())
