"""A base in dispute when a run is stopped, on the contracts and their model: it is final once its game is over."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids
from assay.protocol.rounds.terms import GenerationStatus, UpdateEntry
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Address, Round, Seat
from assay_ledger.agents.round_actions import CutGeneration, FinalizeGeneration, Restart
from assay_ledger.agents.stalls import winds_down_at
from tests.harness.contracts.game_chain import ref_tuple
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.integration.rounds.test_locks_that_are_gone import due, in_rescue, leave, on_party

FIRST = ClaimRef(ClaimKind.OUTER, Round(0), Seat(0), 0, NO_ADDRESS, ZERO)
"""What the first seat opened as the generation of round 0."""


def prepare(w: ToldMoneyWorld) -> None:
    """X of round 0's merge is built."""
    works = {seat: w.works[Round(0), seat] for seat in w.model.commitments.group_of(Round(0), 0).maskable}
    entries = [UpdateEntry(seat, work.units, work.update) for seat, work in works.items()]
    words = [(e.seat, e.units, e.update) for e in entries]
    made = partial(w.model.generations.prepare, Round(0), entries, w.now)
    assert w.do(made, "Generations", "prepare", 0, words) == ""


def open_game(w: ToldMoneyWorld, ref: ClaimRef, who: Address) -> str:
    """A game on an opening."""
    w.told.books.on_games(ref, 1)
    opens = partial(w.model.generations.on_opened, 1, ids.seat_party(ref.seat))
    return w.do(opens, "VerdictStage", "open", ref_tuple(ref), who=who)


def end_game(w: ToldMoneyWorld, ref: ClaimRef) -> None:
    """Its opener was right."""
    w.told.books.on_games(ref, -1)
    w.call("VerdictStage", "finish", ref_tuple(ref), False, "0x" + bytes(20).hex())
    w.model.generations.on_closed(1, ids.seat_party(ref.seat), False, w.now)


def asked(w: ToldMoneyWorld, who: Address) -> set[type]:
    """What keepers would do about rounds and generations."""
    kinds = (CutGeneration, FinalizeGeneration, Restart)
    return {type(action) for action in due(w, who) if isinstance(action, kinds)}


def test_a_base_that_a_game_holds_through_a_stop_is_final_after_it() -> None:
    """Attack: a game that is lost, open when a run is stopped; then close what stood its window, or give up the round
    that nobody commits to any more, and nothing that was merged since is ever final."""
    w = ToldMoneyWorld()
    people = w.start(tickets=12)
    w.play_round(people)
    prepare(w)
    ref, third = replace(FIRST, outer_root=w.model.generations.votes[1].root), w.add_person()
    assert open_game(w, ref, third) == ""
    w.at(winds_down_at(w.view(people[0])))
    assert w.wind_down() == "" and w.call("Generations", "statusOf", 1) == GenerationStatus.MERGED
    assert asked(w, people[0]) == set() and w.restart() == "RunStopped"
    defender, *others = people
    assert w.seat(defender) == 0 and on_party(w, "close", 1, defender) == "GamesOpen"
    assert [on_party(w, "close", 1, who) for who in others] == [""] * len(others)
    assert w.finalize(1, w.seat(others[0])) == "GamesOpen"
    end_game(w, ref)
    assert on_party(w, "close", 1, defender) == ""
    assert asked(w, people[0]) == {FinalizeGeneration}
    assert w.finalize(1, w.seat(defender)) == ""
    assert w.call("Generations", "statusOf", 1) == GenerationStatus.FINAL
    assert [(leave(w, who), w.release(who)) for who in people] == [("", "")] * len(people)
    w.end()


def test_nobody_locks_anything_behind_a_root_after_a_stop() -> None:
    """What is opened then never becomes final, and would keep the root from falling."""
    w = ToldMoneyWorld()
    (_, ends), rescuer = in_rescue(w), w.add_person(w.terms.seat_lock)
    root, made = w.root_of(("root", 0))[2], w.model.generations

    def back() -> str:
        return w.do(partial(made.back, rescuer, 1, root, w.now), "Generations", "back", 1, root, who=rescuer)

    w.at(ends)
    assert w.wind_down() == "" and back() == "RunStopped"
    assert w.vault.free_of(rescuer) == w.terms.seat_lock
    w.end()
