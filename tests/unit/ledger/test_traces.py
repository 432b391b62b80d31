"""One run per claim, however many games ask in turn; memory is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

from assay.protocol.game.table import Side, Stage
from assay.protocol.types import Address, Digest
from assay_ledger.agents.game_actions import Defer, Play
from assay_ledger.agents.game_actor import GameActor
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.agents.traces import Traces

ME, OTHER = Address(b"\1" * 20), Address(b"\2" * 20)


class SheddingTrace:
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
        return SheddingTrace()

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
    runs = [SheddingTrace() for _ in range(6)]

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


class Asked(SheddingTrace):
    """A trace that notes what is looked up at once."""

    def __init__(self, asked: list[list[Any]]) -> None:
        super().__init__()
        self.asked = asked

    def look_up(self, places: Iterable[tuple[int, int | None]]) -> None:
        self.asked.append(sorted(places, key=str))


def at(number: int, claim: int, stage: Stage, step: int, node: int) -> Any:
    """A game that waits for this account's answer there."""
    made = game(number, claim)
    made.state.stage, made.state.step, made.state.node = stage, step, node
    made.state.turn, made.state.is_over = Side.DEFENDER, False
    return made


def test_what_all_games_on_a_claim_ask_for_is_looked_up_at_once() -> None:
    asked: list[list[Any]] = []
    account: Any = SimpleNamespace(address="0x" + ME.hex())
    mine = GamePlayer(SimpleNamespace(), account, 64, lambda _: Asked(asked))  # type: ignore[arg-type, return-value]
    games = [
        at(1, 1, Stage.STEPS, 0, 0),
        at(2, 1, Stage.NODES, 3, 0),
        at(3, 1, Stage.LEAF, 3, 7),
        at(4, 2, Stage.NODE, 1, 5),
        at(5, 1, Stage.PARTS, 2, 9),
    ]
    assert not mine._look_ahead(games)
    assert asked == [[(2, 9), (3, 7), (3, None)], [(1, 5)]]


def test_moves_that_wait_for_no_execution_but_the_first_ones_go_out_together() -> None:
    claims = {1: Digest(b"\1" * 32), 2: Digest(b"\2" * 32), 3: Digest(b"\1" * 32), 4: Digest(b"\3" * 32)}
    records = {k: SimpleNamespace(claim_id=claim, turn=Side.DEFENDER) for k, claim in claims.items()}
    view: Any = SimpleNamespace(games=records)
    ready = {claims[4]}
    actor: Any = SimpleNamespace(_player=lambda _: SimpleNamespace(is_ready=lambda claim, _: claim in ready))
    actor._is_at_hand = partial(GameActor._is_at_hand, actor)
    due = [Play(1, 0), Defer(2, 0), Play(2, 0), Play(3, 4), Play(4, 1)]
    assert list(GameActor.together(actor, due, view)) == [Play(1, 0), Play(3, 4), Play(4, 1)]
    assert list(GameActor.together(actor, due[1:], view)) == [Defer(2, 0)]
