"""Counters that strangers can raise: none is so narrow that somebody could fill it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.contracts.harness import artifact

COUNTED = {
    ("Tenures", "tenureOf"): {"unsettled", "games", "accusations", "suspensions"},
    ("Attestations", "attestationOf"): {"disputes"},
    ("Generations", "nodeOf"): {"standing", "games"},
    ("Generations", "openingOf"): {"games"},
    ("Commitments", "workOf"): {"games"},
    ("Tickets", "ticketOf"): {"obligations", "disputes"},
}


@pytest.mark.parametrize(("contract", "view"), COUNTED)
def test_nobody_fills_a_counter_so_that_no_other_game_opens(contract: str, view: str) -> None:
    """A liar would play 65,535 games against itself; at 32 bits they take more gas than a chain has in years."""
    (shown,) = artifact(contract).entry("function", view)["outputs"]
    fields: dict[str, dict[str, Any]] = {part["name"]: part for part in shown["components"]}
    counters = COUNTED[contract, view]
    assert counters <= fields.keys()
    assert {name: fields[name]["type"] for name in counters} == dict.fromkeys(counters, "uint32")
