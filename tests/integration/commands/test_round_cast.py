"""Who plays in a demo of the second round, and on which terms."""

from __future__ import annotations

import pytest

from assay.demo.round_cast import MOST_DUTIES, TICKETS, RoundDemoCheat, choose_round_cast
from assay.protocol.errors import UsageError
from assay_solver.round_cheats import ROUND_CHEATS
from assay_verifier.round_cheats import AuditCheat
from tests.harness.commands import assay

SOLVERS = [c for c in RoundDemoCheat if c.auditors is None and c is not RoundDemoCheat.NONE]


def test_every_cheat_of_solvers_and_auditors_can_be_shown() -> None:
    assert {str(c) for c in SOLVERS} == set(ROUND_CHEATS)
    assert {c.auditors for c in RoundDemoCheat if c.auditors} == {str(c) for c in AuditCheat}


@pytest.mark.parametrize("cheats", [[RoundDemoCheat.NONE], [RoundDemoCheat.FALSE_STEP], [RoundDemoCheat.BLIND_AUDITOR]])
def test_there_are_four_solvers_three_honest_auditors_and_five_honest_tickets(cheats: list[RoundDemoCheat]) -> None:
    cast = choose_round_cast(cheats)
    assert len(cast.solvers) == 4 and cast.seats == 5
    honest = [a for a in cast.auditors if a.cheat == "none"]
    assert {a.name: a.tickets for a in honest} == TICKETS and sum(a.tickets for a in honest) == cast.shifts == 5


@pytest.mark.parametrize("cheats", [[RoundDemoCheat.FALSE_STEP], SOLVERS[:2], [RoundDemoCheat.BLIND_AUDITOR]])
def test_a_ticket_answers_for_twice_the_duties_that_all_seats_make(cheats: list[RoundDemoCheat]) -> None:
    cast = choose_round_cast(cheats)
    assert cast.capacity <= MOST_DUTIES
    assert cast.capacity * (100 - cast.reaudit_percent) >= 200 * cast.seats
    assert cast.is_certain is (len(cast.auditors) == len(TICKETS))


def test_more_solvers_than_one_ticket_can_replay_are_refused() -> None:
    assert len(choose_round_cast(SOLVERS[:2]).solvers) == 5
    with pytest.raises(UsageError) as refused:
        choose_round_cast(SOLVERS[:3])
    assert refused.value.code == "TooManySolvers"


@pytest.mark.parametrize(
    ("cheats", "code"),
    [
        ([RoundDemoCheat.NONE, RoundDemoCheat.ABSENT], "CheatNone"),
        ([RoundDemoCheat.ABSENT, RoundDemoCheat.ABSENT], "CheatTwice"),
    ],
)
def test_a_senseless_choice_is_refused(cheats: list[RoundDemoCheat], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose_round_cast(cheats)
    assert refused.value.code == code


@pytest.mark.parametrize(("words", "known"), [(("--second",), "false-step"), ((), "bit-flip")])
def test_a_demo_refuses_a_cheat_that_it_does_not_know_and_names_those_it_does(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], known: str
) -> None:
    refused = assay(monkeypatch, "demo", *words, "--cheat", "nonsense").exception
    assert isinstance(refused, UsageError)
    assert refused.code == "UnknownCheat" and known in refused.remedy
