"""What the card of a run above 64 seats says that a generation is made of."""

from __future__ import annotations

from assay.protocol.digests import ZERO
from assay.protocol.game.state import NO_FAMILY, Outcome, Verdict
from assay.protocol.game.table import Side
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round
from assay.sponsor.model_cards import model_card
from assay_ledger.index.records import GameRecord
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_player import TERMS
from tests.harness.rounds.keeper_calls import view_of
from tests.harness.rounds.told_world import ToldGroupedWorld


def test_a_card_counts_and_names_what_the_sums_of_groups_brought_into_a_generation() -> None:
    """Bad luck: the auditors of a group are away; its updates count, and are part of nothing."""
    world = ToldGroupedWorld(RoundChain(TERMS))
    people = world.start()
    world.commit_some(people)
    world.hold_groups()
    left_out, *summed = world.groups()
    for ticket in world.committee(world.node(left_out)):
        assert world.abstain_at(world.node(left_out), ticket) == ""
    world.sum_groups(summed)
    world.merge_top("root")
    view = view_of(world, people[0])
    assert world.generations.counted_groups(Round(0)) == summed
    for number, group in enumerate((left_out, summed[0])):
        seat = min(view.counted(Round(0), group)[0])
        liar = view.books.tenures.existing(view.state.works[Round(0), seat].tenure).holder
        ref = ClaimRef(ClaimKind.INTERVAL, Round(0), seat, 0, NO_ADDRESS, ZERO)
        found = GameRecord(number, Digest(bytes(32)), ref, people[0], liar, b"")
        found.verdict = Verdict(liar, Side.DEFENDER, Outcome.DEFAULT, NO_FAMILY, 0, 0, 0, 0, 0)
        world.told.games[number] = found
    card = model_card(view)
    assert card.generations[1].updates == sum(len(view.counted(Round(0), group)[0]) for group in summed)
    assert [work.generation for work in card.false_work] == [None, 1]
