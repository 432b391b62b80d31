"""What an actor's log says of an action that is refused, or a node that is away: once, and again in other words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from web3.exceptions import Web3Exception

from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.types import Address, Digest
from assay_ledger.agents.loop import ActorLoop
from assay_ledger.agents.money_actions import SettleFinding
from assay_ledger.agents.observing import NOBODY
from assay_ledger.chain.client import Head


def short(there: int) -> RejectedError:
    """The escrow's refusal while it holds so much."""
    return RejectedError(f"The escrow holds {there} of 9 that are needed.", code="EscrowShort")


def test_what_waits_for_an_epoch_is_said_once_until_its_words_change(caplog: pytest.LogCaptureFixture) -> None:
    """Bad luck: at a run's end wages beyond what rounds reserved wait for the last round, for days on slow chains."""
    loop: Any = SimpleNamespace(_parked={}, observer=NOBODY, role="verifier", _clock=lambda: 0.0)
    one, other = (SettleFinding(Digest(bytes([number]) * 32)) for number in (1, 2))
    with caplog.at_level(logging.INFO, logger="assay.agent"):
        for number in range(20):
            for action in (one, other):
                ActorLoop._park(loop, action, Head(number, 60 * number), short(5 if number < 10 else 4))
    said = [record.getMessage() for record in caplog.records]
    assert (
        len(said) == 4
        and [("holds 5" in text, "holds 4" in text) for text in said] == [(True, False)] * 2 + [(False, True)] * 2
    )
    assert loop._parked[one].times == 20  # and it is tried ever more seldom, as before


class Looking(ActorLoop[Any, Any]):
    """An actor that has nothing to do, and whose looks at the run end as `ends` says, one a turn."""

    role = "verifier"

    def __init__(self, folder: Path, ends: list[Exception | None]) -> None:
        self._stop, self._ends = threading.Event(), ends
        outbox = SimpleNamespace(in_flight=(), cancel=lambda _: None)
        pace = SimpleNamespace(period=0.0, wait=lambda *_: None)
        chain: Any = SimpleNamespace(outbox=lambda *_: outbox, pace=pace)
        speaker = SimpleNamespace(address="0x" + "00" * 20)
        keys: Any = SimpleNamespace(account=None, address=Address(bytes(20)), speaker=speaker)
        nothing: Any = None
        super().__init__(chain, Address(bytes(20)), 0, keys, nothing, folder, nothing)
        beats: Any = SimpleNamespace(beating=nullcontext, report=lambda *_: None)
        self.heartbeat_writer = beats

    def goes_on(self) -> None:
        """Turns until the last look."""
        self.run(self._stop)

    def see(self) -> Any:
        """See ActorLoop."""
        end = self._ends.pop(0)
        if not self._ends:
            self._stop.set()
        if end is not None:
            raise end
        return SimpleNamespace(head=Head(len(self._ends), 0))

    def keep_copies(self, view: Any) -> None:
        """See ActorLoop."""

    def patience(self, action: Any, view: Any) -> float:
        """See ActorLoop."""
        return 0.0

    def is_in_game(self, action: Any) -> bool:
        """See ActorLoop."""
        return False

    def highest_base_fee(self, action: Any, base_fee: int) -> int | None:
        """See ActorLoop."""
        return None

    def candidates(self, view: Any) -> Iterator[Any]:
        """See ActorLoop."""
        return iter(())

    def times(self, view: Any) -> Iterator[int]:
        """See ActorLoop."""
        return iter(())


def test_a_node_that_is_away_is_said_once_and_once_when_it_answers(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Bad luck: a node that is away over a night, and at each turn the same two lines at the actor's terminal."""
    away, other = UnavailableError("The node is away.", code="NodeAway"), Web3Exception("nonsense")
    ends: list[Exception | None] = [None, *[away] * 50, *[other, away] * 20, None, None, away, None]
    with caplog.at_level(logging.INFO, logger="assay.agent"):
        Looking(tmp_path, ends).goes_on()
    said = [record.getMessage() for record in caplog.records]
    again = "The run can be read again."
    assert said == [
        *("The node is away.", "The node did not answer as expected (Web3Exception).", again),
        *("The node is away.", again),
    ]
