"""What an auditor that leaves looks at: its free stake, while a ticket of its own lacks some."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest
from assay_ledger.agents.agent import Agent
from assay_verifier.agent import ReplayingAgent
from assay_verifier.ticket_keeping import HeldTicket


@pytest.mark.parametrize(("missing", "asks"), [(4, True), (0, False)])
def test_who_leaves_learns_what_fills_up_a_ticket_that_is_called_in_vain(
    monkeypatch: pytest.MonkeyPatch, missing: int, asks: bool
) -> None:
    """Bad luck: free stake lay beside it, and each call until the ticket was retired was fined."""
    anchors = ((0, Digest(bytes(32))),)
    held = HeldTicket(TicketId(1), 0, 0, anchors, until=100, missing=missing, can_answer=not missing)
    epoch = SimpleNamespace(start=50, seed=None, deadline=60)
    records = SimpleNamespace(epochs=[epoch], held_tickets=lambda: [held])
    monkeypatch.setattr("assay_verifier.agent.ViewRecords", lambda _: records)
    monkeypatch.setattr("assay_verifier.agent.own_calls", lambda *_: ())
    monkeypatch.setattr(Agent, "refresh", lambda *_: None)
    monkeypatch.setattr(ReplayingAgent, "_answered", lambda *_: ())
    monkeypatch.setattr(ReplayingAgent, "__abstractmethods__", frozenset())
    kind: Any = ReplayingAgent
    auditor = object.__new__(kind)
    auditor.leaving, auditor.tickets_wanted, auditor.chains, auditor.me, auditor._free = True, 1, None, None, 0
    auditor.calls, auditor._called_at = (), ()
    auditor.chain = SimpleNamespace(ask=lambda amount: amount)
    auditor.target = SimpleNamespace(vault=SimpleNamespace(free=lambda _: 7))
    money = SimpleNamespace(is_stopped=False, is_ended=False)
    view: Any = SimpleNamespace(epochs=[epoch], works_of=lambda _: (), state=SimpleNamespace(money=money))
    auditor.refresh(view)
    assert auditor._free == (7 if asks else 0)
