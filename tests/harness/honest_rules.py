"""What an honest player does and what must become of it: numbered rules, each with its reason and its own message.

After every game that a test plays the same rules are asked: HP-1 to HP-3 at each move of an honest player, HP-4 to
HP-13 when all games are over. The forge invariants of contracts/test/invariants cite the same numbers. A rule raises
AssertionError, and its message begins with its number. Modelled on the rules of op-challenger
(op-challenger/game/fault/solver/rules.go and game_rules_test.go in ethereum-optimism/optimism).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.protocol.game.moves import AnyMove
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState, Outcome, Verdict
from assay.protocol.game.table import Side
from assay.protocol.program.trace import Trace
from assay.protocol.types import Address
from assay.watchdog.standing import favoured

Who = TypeVar("Who", Address, str)
"""A party, by its address or its name; `gains` is what each has more than before, in wei, negative where it lost."""


# --- at each move of an honest player


def hp1_is_never_silent(state: GameState, move: AnyMove | None) -> None:
    """HP-1: an honest player to move has a move.

    Reason: whatever is true, who says nothing loses by its clock.
    """
    assert move is not None, f"HP-1: the honest {state.turn.name} has no move at {state.stage.name}"


def hp2_is_never_refused(state: GameState, move: AnyMove, accepted: bool) -> None:
    """HP-2: the game takes every move that an honest player makes in time.

    Reason: a refused move costs gas, and the clock runs on.
    """
    assert accepted, f"HP-2: {type(move).__name__} of the honest {state.turn.name} was refused at {state.stage.name}"


def hp3_is_favoured(state: GameState, posted: Posted, truth: Trace, arity: int) -> None:
    """HP-3: whenever an honest player is to move, the game favours it.

    So none of its moves agreed to anything false, disputed anything true or opened anything but the true run.

    Reason: one such move loses a game that was won; and by this judgement the watchdog raises its alarm.
    """
    found = favoured(state, posted, truth, arity)
    assert found is state.turn, (
        f"HP-3: the honest {state.turn.name} to move at {state.stage.name}, {found.name} favoured"
    )


# --- when a game is over


def hp4_the_truth_wins(verdict: Verdict | None, honest: Side) -> None:
    """HP-4: the side that played the true run wins.

    Reason: true work stands and false work falls, or nothing that the run pays for is proved.
    """
    assert verdict is not None, "HP-4: the game is not over"
    other = Side.CHALLENGER if honest is Side.DEFENDER else Side.DEFENDER
    assert verdict.side is other, f"HP-4: the honest {honest.name} did not win ({verdict.outcome.name})"


def hp5_a_verdict_convicts_a_party_to_its_own_game(state: GameState, verdict: Verdict) -> None:
    """HP-5: the loser is the party on the losing side, by a computation or by its clock.

    Reason: nobody answers for a game in which it did not play.
    """
    loser = state.party(verdict.side)
    assert verdict.loser == loser, f"HP-5: {verdict.loser!r} is convicted on the side of {loser!r}"
    assert verdict.outcome in (Outcome.LEAF, Outcome.DEFAULT), f"HP-5: {verdict.outcome!r} is no way to lose"


def hp6_a_game_ends_within_its_bound(seconds: int, bound: int) -> None:
    """HP-6: no game lasts longer than the formula says, whatever both sides do.

    Reason: windows, exits and vesting are computed with it; a cheat could leave before the verdict.
    """
    assert seconds <= bound, f"HP-6: a game took {seconds} s and its bound is {bound} s"


# --- when all games are over


def hp7_the_honest_lose_nothing(gains: Mapping[Who, int], honest: Collection[Who]) -> None:
    """HP-7: who was honest in every game has at least what it had before.

    Reason: if honest work costs money, nobody does it.
    """
    losses = {who: gains[who] for who in sorted(honest) if gains[who] < 0}
    assert not losses, f"HP-7: honest parties lost: {losses}"


def hp8_an_honest_claimant_is_paid_for_its_trouble(gains: Mapping[Who, int], attacked: Collection[Who]) -> None:
    """HP-8: an honest claimant that was challenged wins a part of each bond.

    Reason: its replies cost gas and its computer; false challenges must pay for them.
    """
    unpaid = [who for who in sorted(attacked) if gains[who] <= 0]
    assert not unpaid, f"HP-8: challenged in vain and not paid: {unpaid}"


def hp9_no_token_appears_or_vanishes(before: int, after: int) -> None:
    """HP-9: the sum of all tokens, burned ones included, is what was paid in.

    Reason: what is paid to one and taken from none is taken from everybody.
    """
    assert after == before, f"HP-9: {before} wei became {after} wei"


@dataclass(frozen=True, slots=True)
class Left:
    """What is left in the game and in locks when no game is open; amounts in wei."""

    kept: int
    advanced: int
    locks: frozenset[object]
    claims_that_stand: frozenset[object]


def hp10_nothing_is_left_behind(left: Left) -> None:
    """HP-10: with no game open the game keeps nothing, owes no advance, and only claims that stand have locks.

    Reason: each bond and lock leaves once; money without an owner is somebody's loss.
    """
    assert left.kept == 0, f"HP-10: the game keeps {left.kept} wei"
    assert left.advanced == 0, f"HP-10: {left.advanced} wei are advanced and no game is open"
    stray = left.locks ^ left.claims_that_stand
    assert not stray, f"HP-10: locks without a standing claim, or claims without their lock: {stray}"


def hp11_coalitions_lose_what_burns(gains: Mapping[Who, int], honest: Collection[Who], burned: int, least: int) -> None:
    """HP-11: all who were not honest lose together at least what burned, and every lock taken burned its share.

    Reason: else a claimant could challenge itself, lose on purpose, and keep its lock.
    """
    together = sum(gain for who, gain in gains.items() if who not in honest)
    assert together <= -burned, f"HP-11: the dishonest lost {-together} wei and {burned} wei burned"
    assert burned >= least, f"HP-11: {burned} wei burned of at least {least} wei"


def hp12_bystanders_are_untouched(paid: Collection[Who], parties: Collection[Who]) -> None:
    """HP-12: only parties to a game are paid.

    Reason: a verdict that could pay a third account would be worth buying.
    """
    strangers = sorted(set(paid) - set(parties))
    assert not strangers, f"HP-12: no party to any game, and paid: {strangers}"


def hp13_a_loser_loses_no_more_than_it_staked(who: Who, lost: int, staked: int) -> None:
    """HP-13: a lost game costs the bond or the lock that stood for it, and nothing else of the loser's.

    Reason: a party knows before it plays what it can lose.
    """
    assert lost <= staked, f"HP-13: {who} lost {lost} wei and had staked {staked} wei"


RULES = (
    hp1_is_never_silent,
    hp2_is_never_refused,
    hp3_is_favoured,
    hp4_the_truth_wins,
    hp5_a_verdict_convicts_a_party_to_its_own_game,
    hp6_a_game_ends_within_its_bound,
    hp7_the_honest_lose_nothing,
    hp8_an_honest_claimant_is_paid_for_its_trouble,
    hp9_no_token_appears_or_vanishes,
    hp10_nothing_is_left_behind,
    hp11_coalitions_lose_what_burns,
    hp12_bystanders_are_untouched,
    hp13_a_loser_loses_no_more_than_it_staked,
)
"""All rules, in the order of their numbers."""
