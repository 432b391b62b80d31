"""Who plays in a demo and on which terms, what their processes cost, and what is said in the end."""

from __future__ import annotations

import io
import os
from typing import Any
from unittest.mock import Mock

import pytest
from rich.console import Console

from assay.demo import show
from assay.demo.cast import FALSE_TICKETS, MOST_DUTIES, TICKETS, DemoCheat, choose_cast
from assay.demo.meter import KINDS, CpuMeter, kind_of
from assay.demo.show import sentences
from assay.protocol.digests import ZERO
from assay.protocol.errors import UsageError
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Round, Seat
from assay_ledger.agents.game_actions import CommitChallenge, describe
from assay_solver.actions import CommitWork, TrainUnit
from assay_solver.cheats import SOLVER_CHEATS
from assay_solver.merging import ComputeMerge
from assay_verifier.answering import ConfirmFinding
from assay_verifier.cheats import AuditCheat
from assay_whistleblower.pursuing import TryAccusation
from tests.harness.commands import assay

SOLVERS = [c for c in DemoCheat if c.auditors is None and c is not DemoCheat.NONE]
AUDITORS = [c for c in DemoCheat if c.auditors]


def test_every_cheat_can_be_shown_but_one_that_needs_anothers_lie() -> None:
    assert {str(c) for c in SOLVERS} == set(SOLVER_CHEATS)
    # A demo has four seats, and sums of groups are above 64.
    assert {c.auditors for c in AUDITORS} == {str(c) for c in AuditCheat} - {"silent", "false-sum"}


@pytest.mark.parametrize("cheats", [[DemoCheat.NONE], [DemoCheat.FALSE_STEP], [DemoCheat.BLIND_AUDITOR]])
def test_there_are_four_solvers_three_honest_auditors_and_five_honest_tickets(cheats: list[DemoCheat]) -> None:
    cast = choose_cast(cheats)
    assert len(cast.solvers) == 4 and cast.seats == 5
    assert {a.name: a.tickets for a in cast.auditors if a.cheat == "none"} == TICKETS
    assert sum(TICKETS.values()) == 5


@pytest.mark.parametrize("cheats", [[DemoCheat.FALSE_STEP], SOLVERS[:2], *([c] for c in AUDITORS)])
def test_tickets_on_call_answer_for_twice_the_duties_that_all_seats_make(cheats: list[DemoCheat]) -> None:
    cast = choose_cast(cheats)
    on_call = sum(TICKETS.values()) // cast.shifts
    assert cast.capacity <= MOST_DUTIES
    assert on_call * cast.capacity * (100 - cast.reaudit_percent) >= 2 * cast.audit_percent * cast.seats
    assert cast.is_certain is (len(cast.auditors) == len(TICKETS))


@pytest.mark.parametrize("cheat", AUDITORS)
def test_an_auditor_that_cheats_has_tickets_in_every_call_yet_fewer_than_half(cheat: DemoCheat) -> None:
    cast = choose_cast([cheat])
    assert (cast.shifts, cast.rounds) == (1, 8)
    assert [a.tickets for a in cast.auditors if a.cheat == cheat.auditors] == [FALSE_TICKETS]
    assert FALSE_TICKETS + sum(TICKETS.values()) > 2 * FALSE_TICKETS


def test_more_solvers_than_one_ticket_can_replay_are_refused() -> None:
    assert len(choose_cast(SOLVERS[:2]).solvers) == 5
    with pytest.raises(UsageError) as refused:
        choose_cast(SOLVERS[:3])
    assert refused.value.code == "TooManySolvers"


@pytest.mark.parametrize(
    ("cheats", "code"),
    [
        ([DemoCheat.NONE, DemoCheat.ABSENT], "CheatNone"),
        ([DemoCheat.ABSENT, DemoCheat.ABSENT], "CheatTwice"),
        ([DemoCheat.ABSENT, DemoCheat.BLIND_AUDITOR], "CheatsMixed"),
        ([DemoCheat.BLIND_AUDITOR, DemoCheat.ABSENT_AUDITOR], "CheatsMixed"),
    ],
)
def test_a_senseless_choice_is_refused(cheats: list[DemoCheat], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose_cast(cheats)
    assert refused.value.code == code


def test_a_demo_refuses_a_cheat_that_it_does_not_know_and_names_those_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = assay(monkeypatch, "demo", "--cheat", "nonsense").exception
    assert isinstance(refused, UsageError)
    assert refused.code == "UnknownCheat" and "false-step" in refused.remedy


@pytest.mark.parametrize(
    ("doing", "kind"),
    [
        ("training round 1 3/25", "training"),
        (describe(TrainUnit(Round(1), Seat(0), ZERO, 2)), "training"),
        (describe(CommitWork(Round(1), Seat(0), ZERO)), "commitment"),
        (describe(ComputeMerge(Round(1), frozenset())), "training"),
        ("replaying seat 1 of round 0 2/5", "audit"),
        (describe(ConfirmFinding(ZERO, 0, Seat(1), None)), "audit"),
        (describe(CommitChallenge(ClaimRef(ClaimKind.UPDATE, Round(0)), ZERO)), "dispute"),
        (describe(TryAccusation(ZERO)), "dispute"),
        ("play game 1", "dispute"),
        ("waiting", "chain"),
        ("starting", "start"),
    ],
)
def test_time_is_booked_to_what_an_actor_says_it_does(doing: str, kind: str) -> None:
    assert kind_of(doing) == kind
    assert kind in KINDS


def test_a_meter_books_what_a_process_used_since_the_last_look() -> None:
    meter = CpuMeter()
    meter.book({"me": os.getpid()}, {"me": "train round 0"}, {})
    first = meter.seconds["training"]
    assert first > 0
    sum(i * i for i in range(2_000_000))
    meter.book({"me": os.getpid()}, {"me": "play game 1"}, {})
    assert meter.seconds["training"] == first
    assert meter.seconds["dispute"] > 0
    assert meter.weigh({"me": os.getpid()}) > 1 << 20


def said(**changes: Any) -> str:
    """The last words of a demo in which nobody cheated, but for what is changed."""
    honest = {
        "rounds": 3,
        "final_generations": 3,
        "epochs": 9,
        "findings": 12,
        "slashed": [],
        "disputes": [],
        "fined": {},
        "claimed": {ADA: 5 * 10**18},
        "inference": None,
        "conservation_difference": 0,
        "cpu_seconds": {"training": 7.0},
        "wall_seconds": 60.0,
        "card": {"audits": {"owners": 3}, "false_work": (), "false_roots": ()},
    }
    return " ".join(sentences({ADA: "solver-ada", BOB: "verifier-bob"}, honest | changes))


ADA, BOB = (f"0x{digit * 40}" for digit in "12")


def test_the_last_words_of_an_honest_demo_name_nobody_as_false() -> None:
    words = said()
    assert words.startswith("1 solvers trained one model together for 3 rounds, of which 3 generations are final;")
    assert "No stake was slashed; " in words and "Fined" not in words and "false" not in words


def test_the_last_words_name_who_was_slashed_and_who_was_fined() -> None:
    disputes = [{"leaf_family": "map"}, {"leaf_family": None}]
    words = said(slashed=[{"address": ADA, "amount": 3 * 10**18}], disputes=disputes, fined={BOB: 10**18})
    assert "solver-ada lost 3.00 tokens in 2 disputes that ended in map; " in words
    assert "Fined in tokens for duties left undone: verifier-bob 1.00." in words


@pytest.mark.parametrize(
    ("generation", "where"), [(None, "which was not merged."), (2, "which is part of generation 2.")]
)
def test_the_last_words_name_what_the_model_card_names(generation: int | None, where: str) -> None:
    work = {"round": 1, "seat": 4, "solver": ADA, "what": "its update", "game": 7, "generation": generation}
    root = {"generation": 2, "by": ADA, "game": 8}
    words = said(card={"audits": {"owners": 3}, "false_work": (work,), "false_roots": (root,)})
    assert f"names the false update: update of round 1, seat 4, by solver-ada (game 7), {where}" in words
    assert "names a false root of generation 2, by solver-ada (game 8)." in words


def test_no_digit_of_the_final_ledger_is_left_out_where_a_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "names_of", lambda _: {ADA: "solver-false-step", BOB: "whistleblower-1"})
    sums = {name: {ADA: 1_278_936 * 10**18, BOB: 10**18} for name in ("deposited", "earned", "lost", "stake")}
    document = sums | {"shares": {ADA: 10**20}, "claimed": {BOB: 324 * 10**18}, "slashed": [], "fined": {}}
    shown = io.StringIO()
    Console(file=shown, width=80).print(show._ledger(Mock(), document))
    assert "…" not in shown.getvalue() and "324.00" in shown.getvalue()
