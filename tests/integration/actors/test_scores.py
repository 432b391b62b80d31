"""What updates of a real run do for its model, seat by seat, as anybody can read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Round, Seat
from assay.provenance.scores import (
    ELSEWHERE,
    HARMFUL,
    SURE,
    WINDOWS,
    Gain,
    ScoredText,
    SeatScore,
    by_its_share,
    drawn_windows,
    gain_of,
    score,
    scores_of,
    skills,
)
from assay.sponsor.cards import read_card, read_corpus
from assay.training.initialize import initialize
from assay.training.model import build_model
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.store.objects import Objects
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain

ADA, BOB, CLEO = (Address(bytes([k] * 20)) for k in (1, 2, 3))


def test_honest_updates_of_a_run_gain_on_their_own_text_and_everywhere(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=3, rounds=2)
    made.begin_with("ada", "bob", "cleo")
    run = made.run
    objects = Objects(made.store)
    archive = Archive(run.charter, run.facts, objects, Publications(run.chain, objects))
    preset, corpus = read_corpus(made.store, read_card(made.store, run.address), run.charter.training.data)
    reading = ScoredText(build_model(preset, len(corpus.vocabulary)), corpus.train)
    with pytest.raises(RejectedError, match="No update of round 0 counts yet"):
        scores_of(made.view, archive, COMPUTE, reading, Round(0))
    view = made.settle(lambda view: len(view.openings(2)) == 3)
    found = [scores_of(view, archive, COMPUTE, reading, Round(r)) for r in range(2)]
    assert [[one.seat for one in scores] for scores in found] == [[0, 1, 2]] * 2
    assert {one.solver for one in found[0]} == {made.address(name) for name in ("ada", "bob", "cleo")}
    assert all(one.own.mean > 0 and one.other.mean > 0 for scores in found for one in scores)
    assert all(one.alarms == [] for scores in found for one in scores)
    # The same for everybody who looks.
    assert scores_of(view, archive, COMPUTE, reading, Round(1)) == found[1]
    assert skills(found).keys() == {one.solver for one in found[0]}


def scored(seat: int, solver: Address, own: Gain, other: Gain) -> SeatScore:
    return SeatScore(Round(0), Seat(seat), solver, own, other)


def test_alarms_are_surer_than_two_standard_errors() -> None:
    none = Gain(0.0, 0.0)
    at_limit, beyond = Gain(-2.0, 1.0), Gain(-2.0001, 1.0)
    assert scored(0, ADA, none, at_limit).alarms == []
    assert scored(0, ADA, none, beyond).alarms == [HARMFUL]
    other = Gain(SURE * 5.0, 4.0)  # hypot(3, 4) is 5
    assert scored(0, ADA, Gain(0.0, 3.0), other).alarms == []
    assert scored(0, ADA, Gain(-0.001, 3.0), other).alarms == [ELSEWHERE]


def test_windows_lie_in_their_part_of_the_text_to_its_last_token() -> None:
    tokens = torch.arange(100, dtype=torch.uint8)
    windows_NW = drawn_windows(tokens, 40, 8, 6, b"seed")
    assert windows_NW.shape == (WINDOWS, 7)
    assert (int(windows_NW.min()), int(windows_NW.max())) == (40, 47)
    assert torch.equal(windows_NW, drawn_windows(tokens, 40, 8, 6, b"seed"))
    assert not torch.equal(windows_NW, drawn_windows(tokens, 40, 8, 6, b"seen"))


def test_what_harms_and_what_was_trained_elsewhere_is_named() -> None:
    """A text whose second half is another language: who was to train on the first, and trained on the second."""
    halves = torch.cat([torch.arange(4000) % 5, 5 + torch.arange(4000) % 7 * 3 % 7]).to(torch.uint8)
    from assay.training.presets import TINY

    model = build_model(TINY, 12)
    base = initialize(model, 1)
    context = TINY.context

    def trained_on(part: int) -> list[torch.Tensor]:
        from torch.func import functional_call

        from assay.training.model import next_token_loss

        names = [name for name, _ in model.named_parameters()]
        own = [p.clone().requires_grad_() for p in base]
        steps = torch.optim.Adam(own, 3e-3)
        for k in range(60):
            windows = drawn_windows(halves, 4000 * part, 4000, context, bytes([k]))
            steps.zero_grad()
            logits = functional_call(model, dict(zip(names, own, strict=True)), (windows[:, :-1],))
            next_token_loss(logits, windows[:, 1:]).backward()
            steps.step()
        return [p.detach() for p in own]

    first, second = trained_on(0), trained_on(1)
    against = [p - (q - p) for p, q in zip(base, first, strict=True)]
    own = {Seat(k): drawn_windows(halves, 0, 4000, context, bytes([200 + k])) for k in range(3)}
    everywhere = drawn_windows(halves, 0, 8000, context, b"all")
    after = {Seat(k): (lambda lists=lists: lists) for k, lists in enumerate((first, second, against))}
    found = score(model, base, after, own, everywhere, Round(0), {Seat(0): ADA, Seat(1): BOB, Seat(2): CLEO})
    assert found[0].alarms == [] and found[0].own.mean > found[0].other.mean
    assert found[1].alarms == [ELSEWHERE]
    assert HARMFUL in found[2].alarms
    ranks = skills([found] * 4)
    assert min(ranks, key=ranks.__getitem__) == CLEO and len(ranks) == 3


def test_an_update_is_read_by_its_share_of_the_mean() -> None:
    """Alone, at the whole rate of a merge, honest updates overshoot, and half of them were called harmful."""
    base, alone = [torch.tensor([1.0, 2.0])], [torch.tensor([9.0, -2.0])]
    assert torch.equal(by_its_share(base, alone, 8)[0], torch.tensor([2.0, 1.5]))


def test_who_has_several_seats_is_ranked_by_their_mean() -> None:
    low, high, middle = (Gain(mean, 0.1) for mean in (0.0, 3.0, 2.0))
    scores = [scored(0, ADA, low, low), scored(1, ADA, high, high), scored(2, BOB, middle, middle)]
    ranks = skills([scores])
    assert ranks.keys() == {ADA, BOB} and ranks[BOB] > ranks[ADA]
    assert skills([scores[:2]]) == {}


def test_a_gain_is_a_mean_of_windows_with_its_standard_error() -> None:
    assert gain_of([3.0, 5.0], [1.0, 1.0]) == Gain(3.0, 1.0)
