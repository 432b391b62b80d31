"""When an accuser holds back because somebody else's game is open on what it accuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Seat
from assay_ledger.bindings import game
from assay_ledger.index.game_fold import fold_game
from assay_ledger.rounds.records import AccusationRecord
from assay_whistleblower.agent import is_tried_elsewhere
from tests.harness.rounds.samples import mark
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.harness.rounds.told_world import TRANSACTION

ME, ANOTHER = Address(b"m" * 20), Address(b"a" * 20)


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    """All that six tickets found of four seats, all of whose work was called false."""
    made = ToldMoneyWorld()
    people = made.start()
    made.commit_all(people)
    made.at(made.model.commitments.round_of(made.round).t0 + made.charter.timing.commit + 10**4)
    while made.own_epoch(0) >= len(made.run.duties.epochs):
        made.play_epoch()
    made.play_epoch(lies={ticket: set(map(Seat, range(4))) for ticket in made.chains})
    yield made
    made.end()


def test_a_game_about_the_same_seats_merge_holds_no_accuser_back(world: ToldMoneyWorld) -> None:
    view = world.view(ME)
    of_work = next(a for a in view.state.accusations.values() if a.is_work)
    by = view.state.attestations[of_work.by]
    of_finding = AccusationRecord(mark("accusation"), of_work.by, of_work.by, is_work=False)

    def held_back(kind: ClaimKind, about: Digest, challenger: Address = ANOTHER) -> tuple[bool, bool]:
        view.state.games.clear()
        ref = ClaimRef(kind, by.round, by.seat, outer_root=about)
        fold_game(view.state.games, game.GameOpened(1, mark("claim"), challenger, ME, ref), TRANSACTION)
        return is_tried_elsewhere(view, of_work, ME), is_tried_elsewhere(view, of_finding, ME)

    # A merge's reference has a seat and a root too, which names no attestation.
    assert held_back(ClaimKind.OUTER, mark("a root")) == (False, False)
    assert held_back(ClaimKind.UPDATE, Digest(bytes(32))) == (True, False)
    assert held_back(ClaimKind.INTERVAL, Digest(bytes(32))) == (True, False)
    assert held_back(ClaimKind.ATTESTATION, by.id) == (False, True)
    assert held_back(ClaimKind.ATTESTATION, by.id, challenger=ME) == (False, False)
