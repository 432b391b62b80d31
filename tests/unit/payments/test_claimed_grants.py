"""What `assay ledger claim` says that it released: shares that vested, apart from those that a conviction cancelled."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hexbytes import HexBytes

from assay.cli import ledger
from assay.cli.shares_owned import ripe_grants
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.grants import GrantFields
from tests.harness.commands import assay

ME, NOW, SHARE = Address(b"\x08" * 20), 1000, 10**18
CONVICTED_AT = {0: 0, 1: 0, 2: 800, 3: 900, 4: 899}
"""When each tenure, and each ticket, was convicted."""


def grant(vests_at: int, *, tenure: int = 0, ticket: int = 0, done: bool = False) -> GrantFields:
    """Of one share."""
    return GrantFields(ME, vests_at, tenure, TicketId(ticket), Wei(SHARE), done)


GRANTS = {
    "of a seat": grant(900, tenure=1),
    "of a ticket": grant(900, ticket=1),
    "of a seat that was convicted": grant(900, tenure=2),
    "of a ticket that was convicted": grant(900, ticket=4),
    "vested before a conviction": grant(900, tenure=3),
    "still to vest": grant(NOW + 1, tenure=1),
    "released": grant(900, tenure=1, done=True),
}
RIPE = {"of a seat", "of a ticket", "vested before a conviction"}


@pytest.fixture
def run() -> Any:
    """A run whose contracts answer at once."""
    names = {Digest(bytes([k]) * 32): found for k, found in enumerate(GRANTS.values())}
    events = [SimpleNamespace(event=SimpleNamespace(id=name)) for name in names]
    chain = SimpleNamespace(
        head=lambda: SimpleNamespace(timestamp=NOW), ask=lambda answer: answer, events=lambda *_: events
    )
    grants = SimpleNamespace(address=Address(bytes(20)), grant_of=names.get, release=lambda name: name)
    earner = lambda number: SimpleNamespace(convicted_at=CONVICTED_AT[number])  # noqa: E731
    return SimpleNamespace(
        chain=chain,
        grants=grants,
        charter=SimpleNamespace(revenue_tokens=()),
        first_block=0,
        tenures=SimpleNamespace(tenure_of=earner),
        tickets=SimpleNamespace(ticket_of=earner),
    )


def test_grants_that_a_conviction_cancelled_are_told_from_those_that_vested(run: Any) -> None:
    found = {list(GRANTS)[each.name[0]]: each.is_cancelled for each in ripe_grants(run, ME)}
    assert {name for name, is_cancelled in found.items() if not is_cancelled} == RIPE
    assert set(found) - RIPE == {"of a seat that was convicted", "of a ticket that was convicted"}


def test_nothing_that_was_cancelled_is_said_to_have_vested(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad luck: who was convicted was told that all of its shares had vested, and had none of them."""
    receipt = {"transactionHash": HexBytes(bytes(32)), "gasUsed": 1}
    monkeypatch.setattr(ledger, "open_round_run", lambda _: run)
    monkeypatch.setattr(ledger, "unlock_key", lambda _: SimpleNamespace(account=None, address=ME))
    monkeypatch.setattr(ledger, "send_unless_done", lambda *_: receipt)
    words = ("ledger", "claim", "--rpc-url", "http://127.0.0.1:1", "--run", "0x" + "11" * 20, "--key", "me")
    done = assay(monkeypatch, *words, "--json")
    assert json.loads(done.stdout)["vested"] == len(RIPE) * SHARE, done.output
    assert "releases 3 shares that have vested, in 3 transactions" in done.stderr
    assert "strikes out 2 shares that a conviction cancelled before they vested" in done.stderr
