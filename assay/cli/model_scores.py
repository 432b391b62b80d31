"""`assay model scores`: what each seat's update of a round does for the model, as an alarm."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from assay.cli.common import archive_of, open_blobs, open_round_run, print_json, print_table, talk
from assay.cli.options import STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import moved, progress
from assay.cli.seeing import sight
from assay.protocol.errors import RejectedError
from assay.protocol.types import Round
from assay.settings import Settings

MOST_ROUNDS: Final = 1_000


@with_settings(*STORED_RUN)
def scores(
    settings: Settings,
    round_: Annotated[int, typer.Option("--round", metavar="R", min=0, help="The round, from 0.")],
    last: Annotated[
        int,
        typer.Option("--last", metavar="N", min=1, max=MOST_ROUNDS, help="Rounds up to it that skill is of."),
    ] = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read by how much each update of a round lowers the loss, on its seat's own text and on all of it.

    An alarm, no verdict, and nothing is paid by it: what is false is found by `assay model replay`. Of presets, in runs
    of at most 64 seats. Skill ranks solvers over rounds by what their updates gained.
    """
    from assay.provenance.scores import ScoredText, scores_of, skills
    from assay.sponsor.cards import read_card, read_corpus
    from assay.training.model import build_model
    from assay.training.rounds import TorchCompute

    the_run, store = open_round_run(settings), open_blobs(settings)
    archive, view, compute = archive_of(the_run, store), sight(the_run, settings), TorchCompute()
    if not view.rules.by_seats:
        raise RejectedError(
            "In a run of more than 64 seats updates are merged by groups: there is no merge of one alone.",
            code="ScoresOfGroups",
            remedy="Replay work of the round: `assay model replay`.",
        )
    if round_ >= len(view.books.commitments.rounds):
        raise RejectedError(
            f"Round {round_} has not begun.", code="RoundNotOpen", remedy="`assay run show` lists the rounds."
        )
    preset, corpus = read_corpus(store, read_card(store, the_run.address), the_run.charter.training.data)
    reading = ScoredText(build_model(preset, len(corpus.vocabulary)), corpus.train)
    rounds = list(map(Round, range(max(0, round_ - last + 1), round_ + 1)))
    with progress("scoring rounds", len(rounds), measure=moved(store)) as done:
        found = []
        for one in rounds:
            found.append(scores_of(view, archive, compute, reading, one))
            done()
    ranks = skills(found)
    rows: list[dict[str, Any]] = [
        {
            "seat": int(one.seat),
            "solver": "0x" + one.solver.hex(),
            "own": round(one.own.mean, 6),
            "own_error": round(one.own.error, 6),
            "other": round(one.other.mean, 6),
            "other_error": round(one.other.error, 6),
            "skill": round(ranks[one.solver], 3) if one.solver in ranks else None,
            "alarms": one.alarms,
        }
        for one in found[-1]
    ]
    if as_json:
        print_json({"round": round_, "rounds": len(rounds), "seats": rows})
        return
    cells = [
        [
            row["seat"],
            row["solver"],
            f"{row['own']:+.4f} ({row['own_error']:.4f})",
            f"{row['other']:+.4f} ({row['other_error']:.4f})",
            "" if row["skill"] is None else f"{row['skill']:+.1f}",
            ", ".join(row["alarms"]) or "none",
        ]
        for row in rows
    ]
    title = f"round {round_}: by how much the loss falls, nats a token (standard error)"
    print_table(title, ["seat", "solver", "own text", "all text", "skill", "alarms"], cells)
    talk.print("An alarm is no proof: `assay model replay` does the work again.")
