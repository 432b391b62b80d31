"""The table of terms (CH-6): a row for every term, in the order of the struct, with the errors that its limits play."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import (
    ClockTerms,
    RunChain,
    RunCharter,
    RunEconomics,
    RunGovernance,
    RunLaunch,
    RunTiming,
    RunTraining,
)
from assay_ledger.deployment.places import contracts_of
from tests.harness.rounds.charters import GOVERNED, WIDE
from tests.harness.rounds.run_limits import run_limits

PAGE: Final = Path(__file__).parents[3] / "docs" / "protocol" / "charter.md"

ROW: Final = re.compile(r"^\| `([\w.]+)` \| [^|]+ \| [^|]+ \| ?([^|]*) ?\|$", re.MULTILINE)

PARTS: Final = {
    "training": RunTraining,
    "timing": RunTiming,
    "economics": RunEconomics,
    "launch": RunLaunch,
    "clocks": ClockTerms,
    "chain": RunChain,
    "governance": RunGovernance,
    **dict.fromkeys(("step", "update", "merge", "witness", "partial_sum"), ProgramRef),
}

BY_THE_GAME: Final = {"timing.longestDispute": {"DisputeTooLong"}, "clocks.arity": {"WrongArity"}}
"""Refused by the constructor of the game: tests/integration/contracts/test_game_bounds.py."""

SHADOWED: Final = {"economics.capacity": {"ScheduleTooLong"}}
"""At a capacity of 16 more than 64 rounds are unsettled, so no charter stands at that limit."""


def rows() -> dict[str, set[str]]:
    """The terms of the table, in its order, with the errors that refuse them."""
    return {term: set(re.findall(r"`(\w+)`", errors)) for term, errors in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def terms() -> Iterator[str]:
    """Every term as the table names it, in the order of the struct."""
    for field in fields(RunCharter):
        part = PARTS.get(field.name)
        for inner in fields(part) if part is not None else ():
            yield f"{_solidity(field.name)}.{_solidity(inner.name)}"
        if part is None:
            yield _solidity(field.name)


def _solidity(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def test_the_table_of_terms_has_one_row_for_each_in_the_order_of_the_struct() -> None:
    assert list(rows()) == list(terms())


def test_every_error_of_a_row_is_played_at_a_limit_of_its_term_and_no_other_is() -> None:
    played = defaultdict(set, {term: set(errors) for term, errors in (BY_THE_GAME | SHADOWED).items()})
    for limit in run_limits():
        term = ".".join(map(_solidity, limit.term.split(" ")[0].split(".")))
        # A run of one level that names a program of partial sums: whichever of its three terms it is.
        for name in [t for t in terms() if t == term or t.startswith(f"{term}.")]:
            played[name].add(limit.code)
    assert {term: errors for term, errors in rows().items() if errors != played[term]} == {}


def test_the_page_names_the_contracts_of_runs_of_either_kind_in_their_order() -> None:
    rule = re.search(r"\*\*CH-9\*\* Modules, in this order: (.+?)\.\n- ", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert rule is not None
    text = " ".join(rule[1].split())
    grouped = re.search(r"Generations \(above 64 seats (\w+)\)", text)
    assert grouped is not None
    named = text.replace(f" (above 64 seats {grouped[1]})", "").split(", ")
    assert named == list(contracts_of(GOVERNED).values())
    wide = replace(WIDE, governance=GOVERNED.governance)
    assert [grouped[1] if name == "Generations" else name for name in named] == list(contracts_of(wide).values())
