"""Who plays in a demo."""

from __future__ import annotations

import pytest

from assay.demo.cast import DemoCheat, choose_cast
from assay.demo.meter import KINDS, CpuMeter, kind_of
from assay.protocol.errors import UsageError
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.actions import Commit, CommitChallenge, describe
from assay_solver.cheats import CHEATS

ROOT = Digest(bytes(32))


def test_every_solver_cheat_can_be_shown() -> None:
    assert {str(c) for c in DemoCheat} - {"none", "lazy-verifier"} == set(CHEATS)


def test_a_demo_shows_as_many_cheats_at_once_as_find_a_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    cheats = [c for c in DemoCheat if c not in (DemoCheat.NONE, DemoCheat.LAZY_VERIFIER)]
    monkeypatch.setattr("assay.demo.cast.SEATS", len(cheats) + 2)
    cast = choose_cast([*cheats, DemoCheat.LAZY_VERIFIER])
    assert [s.cheat for s in cast.solvers] == ["none", "none", *cheats]
    assert [v.lazy for v in cast.verifiers] == [False, False, True]
    assert cast.whistle_rate == 1.0
    monkeypatch.setattr("assay.demo.cast.SEATS", len(cheats) + 1)
    with pytest.raises(UsageError) as refused:
        choose_cast(cheats)
    assert refused.value.code == "TooManySolvers"


def test_lazy_verifiers_alone_overlook_a_flipped_bit() -> None:
    cast = choose_cast([DemoCheat.LAZY_VERIFIER])
    assert [s.cheat for s in cast.solvers] == ["none", "none", "bit-flip"]
    assert all(v.lazy for v in cast.verifiers) and len(cast.verifiers) == 2


def test_without_a_cheat_everybody_is_honest() -> None:
    cast = choose_cast([DemoCheat.NONE])
    assert all(p.cheat == "none" and not p.lazy for p in cast.players)
    assert cast.whistle_rate == 0.2


@pytest.mark.parametrize("cheats", [[DemoCheat.NONE, DemoCheat.SILENT], [DemoCheat.SILENT, DemoCheat.SILENT]])
def test_a_senseless_choice_is_refused(cheats: list[DemoCheat]) -> None:
    with pytest.raises(UsageError):
        choose_cast(cheats)


@pytest.mark.parametrize(
    ("doing", "kind"),
    [
        ("train round 1 seat 0 3/25", "training"),
        ("receipt round 1 seat 0", "commitment"),
        ("replay round 0 seat 1 duty 2", "audit"),
        ("play game 1", "dispute"),
        (describe(Commit(Round(0), Seat(1), ROOT)), "commitment"),
        (describe(CommitChallenge(ClaimRef(ClaimKind.UPDATE, Round(0)), ROOT)), "dispute"),
        ("waiting", "chain"),
        ("starting", "start"),
    ],
)
def test_time_is_booked_to_what_an_actor_says_it_does(doing: str, kind: str) -> None:
    assert kind_of(doing) == kind
    assert kind in KINDS


def test_a_meter_books_what_a_process_used_since_the_last_look() -> None:
    import os

    meter = CpuMeter()
    meter.book({"me": os.getpid()}, {"me": "train round 0"}, {})
    first = meter.seconds["training"]
    assert first > 0
    sum(i * i for i in range(2_000_000))
    meter.book({"me": os.getpid()}, {"me": "play game 1"}, {})
    assert meter.seconds["training"] == first
    assert meter.seconds["dispute"] > 0
    assert meter.weigh({"me": os.getpid()}) > 1 << 20
