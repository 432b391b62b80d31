"""Committees are drawn by a seed that is known only once the block that closes the mask is built."""

from __future__ import annotations

from tests.harness.rounds.charters import RUN, WIDE, changed
from tests.integration.contracts.test_run_terms import by_contract, by_model

SLOT_S, DRAND_S = 12, 3
"""Seconds of a block of Ethereum, and of a round of drand: a block is built within its slot."""


def test_who_closes_the_mask_has_not_seen_what_draws_its_committees() -> None:
    """Attack: a seat holds its commitment back, and closes the mask in a block whose committees it likes."""
    least = 2 * SLOT_S
    assert least > SLOT_S + DRAND_S
    assert by_contract(changed(WIDE, "timing", beacon_delay=least)) is None
    soon = changed(WIDE, "timing", beacon_delay=least - 1)
    assert by_contract(soon) == by_model(soon) == ("WindowTooShort", "beacon delay")
    assert by_contract(changed(RUN, "timing", beacon_delay=0)) is None, "one level draws no committee"
