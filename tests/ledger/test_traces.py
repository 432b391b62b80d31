"""One run per claim, however many games ask in turn; memory is bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from assay.ledger.games import GamePlayer
from assay.ledger.traces import Traces
from assay.protocol.game_table import Side
from assay.protocol.types import Address, Digest

ME, OTHER = Address(b"\1" * 20), Address(b"\2" * 20)


class Run:
    """A trace that knows how often it shed."""

    def __init__(self) -> None:
        self.shed_times = 0

    def shed(self) -> None:
        self.shed_times += 1


def player(made: list[int]) -> GamePlayer:
    """A player whose runs are counted."""
    account: Any = SimpleNamespace(address="0x" + ME.hex())

    def trace_of(game: Any) -> Any:
        made.append(game.game_id)
        return Run()

    return GamePlayer(SimpleNamespace(), account, 64, trace_of)  # type: ignore[arg-type]


def game(number: int, claim: int, defends: bool = True) -> Any:
    """A game of this account's on a claim."""
    parties = {Side.DEFENDER: ME if defends else OTHER, Side.CHALLENGER: OTHER if defends else ME}
    state = SimpleNamespace(claim=SimpleNamespace(id=Digest(bytes([claim]) * 32)), party=parties.__getitem__)
    side_of = lambda who: next(s for s, p in parties.items() if p == who)  # noqa: E731
    return SimpleNamespace(game_id=number, ref="the same", state=state, side_of=side_of)


def test_games_in_lockstep_on_one_claim_share_one_run() -> None:
    made: list[int] = []
    mine = player(made)
    for _ in range(17):
        for number in range(10):
            mine._trace(game(number, 1))
    assert made == [0]
    assert mine.is_ready(Digest(b"\1" * 32), Side.DEFENDER)
    assert not mine.is_ready(Digest(b"\1" * 32), Side.CHALLENGER)


def test_a_run_is_of_one_claim_and_one_side_of_it() -> None:
    made: list[int] = []
    mine = player(made)
    runs = {id(mine._trace(g)) for g in (game(1, 1), game(2, 2), game(3, 1, defends=False), game(4, 1), game(5, 2))}
    assert made == [1, 2, 3] and len(runs) == 3


def test_what_was_asked_for_longest_ago_sheds_first_and_then_goes() -> None:
    kept = Traces(whole=2, most=4)
    runs = [Run() for _ in range(6)]

    def ask(k: int) -> Any:
        return kept.get(k, lambda: runs[k])  # type: ignore[arg-type, return-value]

    for k in (0, 1):
        ask(k)
    assert not any(r.shed_times for r in runs)
    ask(2)
    assert [r.shed_times > 0 for r in runs[:3]] == [True, False, False]
    ask(0)
    ask(3)
    assert ask(0) is runs[0] and len(kept) == 4
    ask(4)
    assert 1 not in kept and 0 in kept and len(kept) == 4
    assert runs[4].shed_times == 0
