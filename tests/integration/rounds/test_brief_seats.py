"""A seat that is held for no more than a second, from which a merge is challenged without a commitment before.

Its holder wins what any third party wins that commits to its challenge, and takes nothing from an honest seat that
challenges too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address
from tests.harness.games import Player, player, silent_after
from tests.harness.rounds.played_scenes import LIAR, opened_root
from tests.harness.rounds.played_world import PlayedWorld
from tests.harness.rounds.samples import ETHER

START = 10**5 * ETHER


class BriefSeats:
    """Mallory opened a false root; one seat is free, and a puppet has money and no seat."""

    def __init__(self) -> None:
        self.w = PlayedWorld("brief")
        self.people, self.ref, self.lie, self.truth = opened_root(self.w, is_lie=True)
        self.honest, self.mallory, goes = self.people[0], self.people[LIAR], self.people[3]
        assert self._leave(goes) == ""
        self.puppet = self.w.add_person(START)
        self.bond = self.w.book.config.bond

    def challenge_from_a_seat(self, ref: ClaimRef) -> int:
        """The puppet sits down, challenges and is gone with all but its bond, within one second; its game."""
        w, at = self.w, self.w.now
        assert w.join(self.puppet) == ""
        game = w.open_direct(self.puppet, ref)
        assert self._leave(self.puppet) == w.release(self.puppet) == ""
        assert w.now == at and w.vault.free_of(self.puppet) == START - self.bond
        return game

    def challenge_as_a_third_party(self, ref: ClaimRef) -> int:
        """The puppet commits to its challenge and reveals it."""
        return self.w.open_committed(self.puppet, ref, self.truth.state_root(1))

    def play(self, game: int, challenger: Player | None = None) -> Side:
        """A game to its end; who lost."""
        w, arity = self.w, self.w.book.config.arity
        truth = player(Side.CHALLENGER, self.truth, arity)
        verdict = w.play(game, player(Side.DEFENDER, self.lie, arity), challenger or truth).verdict
        assert verdict is not None
        return verdict.side

    def free(self, who: Address) -> int:
        return int(self.w.vault.free_of(who))

    def _leave(self, who: Address) -> str:
        number = self.w.tenures[who]
        return self.w.do(lambda: self.w.model.tenures.leave(who, number), "Tenures", "leave", number, who=who)


@pytest.fixture
def seats() -> Iterator[BriefSeats]:
    made = BriefSeats()
    try:
        yield made
        made.w.check_money()
    finally:
        made.w.end()


def test_a_seat_of_a_second_wins_no_more_than_a_committed_challenge() -> None:
    won = []
    for how in ("challenge_from_a_seat", "challenge_as_a_third_party"):
        made = BriefSeats()
        try:
            game = getattr(made, how)(made.ref)
            assert made.play(game) is Side.DEFENDER
            won.append(made.free(made.puppet) - START)
            made.w.check_money()
        finally:
            made.w.end()
    assert won[0] == won[1] > 0


def test_who_copies_a_challenge_from_a_seat_of_a_second_costs_the_honest_nothing(seats: BriefSeats) -> None:
    # Attack: a challenge from the pool, sent again for more, and each of its moves too; the copy is first everywhere.
    before = seats.free(seats.honest)
    copy = seats.challenge_from_a_seat(seats.ref)
    game = seats.w.open_direct(seats.honest, seats.ref)
    assert seats.play(copy) is Side.DEFENDER and seats.free(seats.puppet) > START
    assert seats.play(game) is Side.DEFENDER
    assert seats.free(seats.honest) == before, "its bond and what it advanced are back"


def test_a_game_that_is_lost_on_purpose_from_such_a_seat_saves_no_root(seats: BriefSeats) -> None:
    # Attack: the liar's puppet opens the game first, and loses it.
    w, before, silent = seats.w, seats.free(seats.honest), silent_after(lambda *_: None, 0)
    thrown = seats.challenge_from_a_seat(seats.ref)
    defends = player(Side.DEFENDER, seats.lie, w.book.config.arity)
    while w.step(thrown, defends, silent, times_out=False):
        pass
    game = w.open_direct(seats.honest, seats.ref)
    assert seats.play(game) is Side.DEFENDER and seats.free(seats.honest) > before
    assert w.time_out(thrown) == ""
    assert seats.free(seats.puppet) == START - seats.bond
    assert w.model.tenures.is_convicted(w.tenures[seats.mallory])
