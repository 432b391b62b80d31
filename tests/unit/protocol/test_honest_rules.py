"""Each rule of the honest player can fail: it is broken here, and says its number; and what cites a rule cites one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from assay.protocol.game.moves import BisectDigests, PostDigests
from assay.protocol.game.players import Posted
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side
from assay.protocol.types import Address
from tests.harness import honest_rules as rules
from tests.harness.games import ETHER, GameWorld, address, honest_player, honest_trace, lie_at, play_out, player
from tests.harness.programs import counting
from tests.harness.tournaments import check, tournament

ROOT = Path(__file__).resolve().parents[3]
ADA, MALLORY = address("ada"), address("mallory")
TRUTH = honest_trace(counting())


def opened() -> GameWorld:
    """A game about a true claim, its defender to move."""
    world = GameWorld(counting().program)
    world.challenge(world.claim(TRUTH, ADA, ETHER), MALLORY)
    return world


STATE = opened().state(1)
VERDICT = Verdict(MALLORY, Side.CHALLENGER, Outcome.LEAF)
FALSE_START = replace(STATE, disputed=TRUTH.state_root(0))

BROKEN: dict[str, Callable[[], None]] = {
    "HP-1": partial(rules.hp1_is_never_silent, STATE, None),
    "HP-2": partial(rules.hp2_is_never_refused, STATE, PostDigests(()), False),
    "HP-3": partial(rules.hp3_is_favoured, FALSE_START, Posted(), TRUTH, 4),
    "HP-4": partial(rules.hp4_the_truth_wins, VERDICT, Side.CHALLENGER),
    "HP-5": partial(rules.hp5_a_verdict_convicts_a_party_to_its_own_game, STATE, replace(VERDICT, loser=ADA)),
    "HP-6": partial(rules.hp6_a_game_ends_within_its_bound, 11, 10),
    "HP-7": partial(rules.hp7_the_honest_lose_nothing, {ADA: -1, MALLORY: 1}, {ADA}),
    "HP-8": partial(rules.hp8_an_honest_claimant_is_paid_for_its_trouble, {ADA: 0, MALLORY: 1}, {ADA}),
    "HP-9": partial(rules.hp9_no_token_appears_or_vanishes, 10, 11),
    "HP-10": partial(rules.hp10_nothing_is_left_behind, rules.Left(0, 0, frozenset({b"lock"}), frozenset())),
    "HP-11": partial(rules.hp11_coalitions_lose_what_burns, {ADA: 0, MALLORY: -4}, {ADA}, 5, 0),
    "HP-12": partial(rules.hp12_bystanders_are_untouched, {ADA, MALLORY}, {ADA}),
    "HP-13": partial(rules.hp13_a_loser_loses_no_more_than_it_staked, MALLORY, 11, 10),
}


@pytest.mark.parametrize("number", BROKEN)
def test_a_broken_rule_says_its_number(number: str) -> None:
    with pytest.raises(AssertionError, match=f"^{number}: "):
        BROKEN[number]()


def test_rules_are_numbered_in_order_and_each_has_a_reason() -> None:
    assert [f"HP-{k}" for k in range(1, len(rules.RULES) + 1)] == list(BROKEN)
    for number, rule in zip(BROKEN, rules.RULES, strict=True):
        text = inspect.getdoc(rule) or ""
        assert text.startswith(f"{number}: ")
        assert "Reason: " in text
        assert rule.__name__.startswith(number.replace("-", "").lower() + "_")


def test_whatever_cites_a_rule_cites_one_that_exists() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "contracts" / "test").rglob("*.sol")]
    cited = {path: set(re.findall(r"\bHP-\d+\b", path.read_text(encoding="utf-8"))) for path in files}
    assert set().union(*cited.values()) == set(BROKEN)
    assert any(path.suffix == ".sol" and found for path, found in cited.items())


def test_an_honest_player_that_would_agree_to_a_lie_is_stopped_at_its_next_turn() -> None:
    lie = lie_at(counting(), 0)
    assert lie is not None
    world = GameWorld(counting().program)
    game_id = world.challenge(world.claim(lie, MALLORY, ETHER), ADA)
    honest = honest_player(Side.CHALLENGER, TRUTH)
    agreed: list[bool] = []

    def careless(state, posted):  # type: ignore[no-untyped-def]
        move = honest(state, posted)
        if isinstance(move, BisectDigests) and not agreed:
            agreed.append(True)
            return replace(move, index=len(posted.digests) - 1)
        return move

    with pytest.raises(AssertionError, match=r"^HP-3: "):
        play_out(world, game_id, player(Side.DEFENDER, lie), careless)
    assert agreed


def test_a_tournament_whose_books_were_tampered_with_is_found_out() -> None:
    example = counting()
    t = tournament(GameWorld(example.program), example, steps=2, seed=7, claims=2)
    t.run()
    check(t, example)
    t.world.vault.deposit(Address(b"stranger".ljust(20, b"\0")), 1)
    with pytest.raises(AssertionError, match=r"^HP-9: "):
        check(t, example)
