"""`assay model`: the weights that the chain names, as a file, and whether a file holds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import archive_of, open_blobs, open_round_run, print_fields, print_json, print_table
from assay.cli.model_history import diff, replay
from assay.cli.model_scores import scores
from assay.cli.options import STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import moved, progress
from assay.cli.seeing import events_kept, sight
from assay.protocol.errors import UnavailableError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.cli.weights import Weights

app = typer.Typer(no_args_is_help=True, help="The model's weights.")


@app.command("pull", epilog='Example: assay model pull --out model.safetensors --json  ->  {"file", "root", ...}')
@with_settings(*STORED_RUN)
def pull(
    settings: Settings,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="safetensors file to write; of a folder, model.safetensors in it."),
    ],
    generation: Annotated[
        int | None,
        typer.Option("--generation", min=0, help="Genesis is 0; the newest that stands unless given."),
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the weights that stand on chain, check them against their root, and write them under their names.

    The file has every name that the module's load_state_dict wants; config.json beside it, where the model has one,
    lets from_pretrained read the folder; tokenizer.json is the tokenizer that the model was trained with. README.md and
    model-card.json say where the model came from: roots, contributors, audits, disputes, data.
    """
    from assay.cli.weights import (
        fetch_weights,
        names_and_outline,
        tokenizer_digest,
        unproven,
        write_config,
        write_tokenizer,
        write_weights,
    )
    from assay.provenance.books import history_of
    from assay.provenance.document import card_document, told_card
    from assay.provenance.files import write_card
    from assay.training.rounds import TorchCompute

    the_run, store = open_round_run(settings), open_blobs(settings)
    archive = archive_of(the_run, store)
    with progress("fetching the weights", measure=moved(store)):
        names, outline = names_and_outline(archive, store)
        view, books = history_of(the_run, events_kept(settings))
        weights = fetch_weights(archive, view, names, TorchCompute(), generation)
    file = out / "model.safetensors" if out.is_dir() or not out.suffix else out
    write_weights(file, weights, outline)
    first: dict[str, object] = {"file": str(file)}
    config = write_config(file.parent, outline)
    first |= {} if config is None else {"config": str(config)}
    if outline.tokenizer:
        first |= {"tokenizer": str(write_tokenizer(file.parent, outline) or "another file stands in its place")}
        first |= {"tokenizer_sha256": tokenizer_digest(outline)}
    card = card_document(view, books, told_card(store, the_run.address), weights.generation)
    first |= {name: str(path or "another file stands in its place") for name, path in write_card(file.parent, card)}
    taken = unproven(archive, outline)
    # Nothing on chain says what they are, so nothing here does either.
    first |= {"from_the_card": taken} if taken else {}
    _show(first, weights, as_json=as_json)


@app.command(
    "verify",
    epilog='Example: assay model verify model.safetensors --json  ->  {"root", "on_chain": true, "generation", ...}',
)
@with_settings(*STORED_RUN)
def verify(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `assay model pull` wrote, or a copy.")],
    as_json: JsonOption = False,
) -> None:
    """Recompute the root of a file's weights and look for it on chain; exit code 8 when it does not stand there."""
    from assay.cli.weights import find_weights, names_and_outline

    the_run, store = open_round_run(settings), open_blobs(settings)
    archive = archive_of(the_run, store)
    with progress("hashing the file", measure=moved(store)):
        names, outline = names_and_outline(archive, store)
        found = find_weights(archive, sight(the_run, settings), names, file, outline)
    _show({"on_chain": True}, found, as_json=as_json)


app.command(
    "replay",
    epilog="Example: assay model replay --round 1 --seat 3 --json"
    '  ->  {"equal": true, "parts": null, "steps", "of_steps", "committed": {...}, "computed": {...}, ...}',
)(replay)
app.command(
    "diff",
    epilog="Example: assay model diff pulled 3 --json"
    '  ->  {"equal": false, "a": {"root", ...}, "b": {...}, "tensors": [{"name", "differing", "largest", ...}], ...}',
)(diff)
app.command(
    "scores",
    epilog="Example: assay model scores --round 3 --last 4 --json"
    '  ->  {"round", "rounds", "seats": [{"seat", "own", "other", "skill", "alarms", ...}]}',
)(scores)


@app.command(
    "capture-report",
    epilog="Example: assay model capture-report examples.own_model:factory --json"
    '  ->  {"examples.own_model:factory": {"outcome": "right", "captured": true, "refusals": [], "nodes", ...}}',
)
def capture_report(
    factories: Annotated[
        list[str],
        typer.Argument(
            metavar="PACKAGE.MODULE:FACTORY...",
            help="Functions without arguments that return a Recipe, or mappings from names to such functions.",
        ),
    ],
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Steps beside stock PyTorch.")] = 20,
    tier: Annotated[str, typer.Option("--tier", metavar="TIER", help="fixed8, fixed14 or fixed22.")] = "fixed22",
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="Wall time that each model gets.")] = 300.0,
    as_json: JsonOption = False,
) -> None:
    """Capture models, each in a process of its own, and run them beside stock PyTorch: right, refused, crashed, wrong.

    Exit code 11: one trains something else than stock PyTorch. 1: one crashed, hung or took all memory. 7: one is
    refused.
    """
    from assay.cli.capture_rows import check_rows, print_row
    from assay.programs.capture import tier_of
    from assay.programs.factory import listed
    from assay.programs.report_process import ReportTerms, reports

    tier_of(tier)
    names = [name for given in factories for name in listed(given)]
    rows = {}
    with progress("capturing models", len(names)) as done:
        for name, row in reports(names, ReportTerms(steps, tier, seconds)):
            rows[name] = row
            done()
            if not as_json:
                print_row(name, row)
    if as_json:
        print_json({name: row.to_json() for name, row in rows.items()})
    check_rows(rows)


@app.command("losses", epilog='Example: assay model losses --json  ->  [{"generation": 0, "loss": 0.69, ...}, ...]')
@with_settings(*STORED_RUN)
def losses(settings: Settings, _device: DeviceOption = None, as_json: JsonOption = False) -> None:
    """The loss on held-out data of every generation that stands: of a preset's text, or a recipe's `validation`."""
    from assay.cli.weights import standing_generations
    from assay.explorer.losses import evaluation

    the_run, store = open_round_run(settings), open_blobs(settings)
    weigh, _ = evaluation(store, the_run.charter, the_run.address)
    rows, standing = [], standing_generations(sight(the_run, settings))
    with progress("evaluating generations", len(standing), moved(store)) as done:
        for generation, root in standing.items():
            try:
                loss = weigh(root)
            except UnavailableError as error:
                rows.append({"generation": generation, "root": "0x" + root.hex(), "loss": None, "reason": str(error)})
            else:
                rows.append({"generation": generation, "root": "0x" + root.hex(), "loss": loss})
            done()
    if as_json:
        print_json(rows)
        return
    cells = [(r["generation"], r.get("reason", "") if r["loss"] is None else f"{r['loss']:.4f}") for r in rows]
    print_table("Loss on held-out data", ("generation", "loss"), cells)


def _show(first: dict[str, object], weights: Weights, *, as_json: bool) -> None:
    document = first | {
        "root": "0x" + weights.root.hex(),
        "generation": weights.generation,
        "final": weights.is_final,
    }
    print_json(document) if as_json else print_fields(document)
