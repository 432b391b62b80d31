"""How many tickets a run ever had, which no contract counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.protocol.types import Address
from assay.sponsor.vault_stakes import _newest_ticket

NOBODY, SOMEBODY = Address(b"\0" * 20), Address(b"\7" * 20)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 9, 100])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_tickets_that_left_or_were_convicted_are_numbered_too(count: int, left: int) -> None:
    def owner(number: int) -> Address:
        return SOMEBODY if number <= count and number % 3 != left else NOBODY

    def payee(number: int) -> Address:
        return SOMEBODY if number <= count and number % 3 == left else NOBODY

    tickets = SimpleNamespace(ticket_of=lambda number: SimpleNamespace(owner=owner(number)), payee_of=payee)
    run = SimpleNamespace(chain=SimpleNamespace(ask=lambda answer: answer), tickets=tickets)
    assert _newest_ticket(cast(Any, run)) == count
