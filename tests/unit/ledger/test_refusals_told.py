"""What an actor's log says of an action that is refused: once, and again when it is refused in other words."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.types import Digest
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
