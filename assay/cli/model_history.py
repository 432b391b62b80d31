"""`assay model replay` and `assay model diff`: a piece of history done again, and what two models differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from assay.cli.common import archive_of, open_blobs, open_round_run, print_fields, print_json, print_table
from assay.cli.options import STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import moved, progress
from assay.cli.seeing import sight
from assay.protocol.errors import ExitCode, shown
from assay.protocol.trees.state import TrainingList
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.provenance.differences import TensorDifference

DIFF_SIDE: Final = "A safetensors file, a folder that `assay model pull` wrote, or the number of a generation."

MOST_ROWS: Final = 50
"""Tensors of a table; --json has all."""


@with_settings(*STORED_RUN)
def replay(
    settings: Settings,
    round_: Annotated[int, typer.Option("--round", metavar="R", min=0, help="Round of the work, from 0.")],
    seat: Annotated[int, typer.Option("--seat", metavar="S", min=0, help="Seat whose work it is, from 0.")],
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", min=1, help="End with the unit of this step of the commitment, from 1."),
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a seat's work of a round again, exactly, and compare it with what stands on chain.

    Exit code 8: it is another. Nothing is needed of whoever did it: base and data are fetched by root and checked. A
    replay begins where the round did; with --step it ends early, and marks of progress are compared up to there.
    """
    from assay.provenance.replay import find_work, replay_work, work_of
    from assay.training.rounds import TorchCompute
    from assay_verifier.audit_jobs import AuditJobs

    the_run, store = open_round_run(settings), open_blobs(settings)
    archive, view, compute = archive_of(the_run, store), sight(the_run, settings), TorchCompute()
    record = find_work(view, round_, seat)
    with progress("fetching what the round started from", measure=moved(store)):
        work = work_of(view, archive, compute, record)
    with TemporaryDirectory(prefix="assay-replay-") as folder, progress("replaying units", work.units) as done:
        found = replay_work(record, work, AuditJobs(archive, compute), compute, Path(folder), step, done)
    document = found.document()
    solver = view.books.tenures.existing(record.tenure).holder
    document["solver"] = "0x" + solver.hex()
    if as_json:
        print_json(document)
    else:
        _print_replay(document)
    if not found.equal:
        raise typer.Exit(int(ExitCode.FRAUD))


@with_settings(*STORED_RUN)
def diff(
    settings: Settings,
    a: Annotated[str, typer.Argument(metavar="A", help=DIFF_SIDE)],
    b: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two models bit by bit, one tensor at a time: which tensors differ, in how many elements, by how much.

    Exit code 12: they differ. A number is a generation of the run; ./7 is a file of that name. Where a run and its
    store are named, the root of a file is computed in the run's order; what its own metadata say is a word.
    """
    from assay.provenance.differences import differences

    with TemporaryDirectory(prefix="assay-diff-") as folder:
        sides = _sides(settings, (a, b), Path(folder))
        with progress("comparing tensors"):
            found = list(differences(*(side.file for side in sides)))
    differing = [one for one in found if not one.equal]
    document = {
        "equal": not differing,
        "a": sides[0].document,
        "b": sides[1].document,
        "differing_tensors": len(differing),
        "differing_elements": sum(one.differing or 0 for one in found),
        "tensors": [one.document() for one in found],
    }
    if as_json:
        print_json(document)
    else:
        _print_diff(document, differing)
    if differing:
        raise typer.Exit(int(ExitCode.NO))


@dataclass(frozen=True, slots=True)
class ModelSide:
    """One of two models: its file, and what is said of it."""

    file: Path
    document: dict[str, object]


def _sides(settings: Settings, wanted: Sequence[str], folder: Path) -> list[ModelSide]:
    """Both models as files: generations are fetched into a folder, one after the other.

    Raises ConfigError (FileUnreadable, RunMissing, StoreMissing), and what fetching raises.
    """
    from assay.cli.weights import fetch_weights, names_and_outline, write_weights
    from assay.provenance.differences import root_in_order, says_root, sha256_of
    from assay.training.rounds import TorchCompute

    numbered = [text.isascii() and text.isdigit() for text in wanted]
    names = specs = None
    if any(numbered) or (settings.run is not None and settings.store is not None):
        the_run, store = open_round_run(settings), open_blobs(settings)
        archive = archive_of(the_run, store)
        names, outline = names_and_outline(archive, store)
        specs = archive.specs(TrainingList.PARAMETERS)
    view = sight(the_run, settings) if any(numbered) else None
    sides = []
    for place, (text, is_number) in enumerate(zip(wanted, numbered, strict=True)):
        if is_number and view is not None:
            file = folder / f"{place}.safetensors"
            with progress(f"fetching generation {text}", measure=moved(store)):
                weights = fetch_weights(archive, view, names or (), TorchCompute(), int(text[:20]))
                write_weights(file, weights, outline)
            said: dict[str, object] = {"generation": weights.generation, "root": "0x" + weights.root.hex()}
            del weights  # of two models only one is in memory
        else:
            file = Path(text) / "model.safetensors" if Path(text).is_dir() else Path(text)
            root = None if names is None or specs is None else root_in_order(file, names, specs)
            said = {"file": str(file), "root": None if root is None else "0x" + root.hex(), "says": says_root(file)}
        sides.append(ModelSide(file, said | {"sha256": sha256_of(file)}))
    return sides


def _print_diff(document: dict[str, Any], differing: Sequence[TensorDifference]) -> None:
    for name in ("a", "b"):
        print_fields({f"{name} {what}": shown(str(value)) for what, value in document[name].items()})
    if not differing:
        typer.echo(f"All {len(document['tensors'])} tensors are equal bit by bit.")
        return
    rows = [[shown(one.name).replace("\n", " "), *_row(one)] for one in differing[:MOST_ROWS]]
    print_table("", ["tensor", "elements that differ", "largest difference", "not finite"], rows)
    if len(differing) > MOST_ROWS:
        typer.echo(f"and {len(differing) - MOST_ROWS} more tensors")
    typer.echo(f"{len(differing)} of {len(document['tensors'])} tensors differ.")


def _row(one: TensorDifference) -> list[object]:
    if one.a is None or one.b is None:
        return [f"only in {'b' if one.a is None else 'a'}", "", ""]
    if one.differing is None:
        return [f"{one.a.dtype} {list(one.a.shape)} and {one.b.dtype} {list(one.b.shape)}", "", ""]
    return [one.differing, "" if one.largest is None else f"{one.largest:.9g}", one.not_finite]


def _print_replay(document: dict[str, object]) -> None:
    """What a person reads of a replay."""
    parts, committed, computed = (document[name] for name in ("parts", "committed", "computed"))
    assert isinstance(committed, dict) and isinstance(computed, dict)
    fields: dict[str, object] = {
        "work": f"seat {document['seat']} in round {document['round']}, by {document['solver']}",
        "replayed": f"{document['steps']} of {document['of_steps']} steps",
        "equal": "yes" if document["equal"] else "NO",
    }
    if isinstance(parts, dict):
        where = "at a step that no mark tells"
        if parts["what"] == "update":
            where = "after the last step, in the update"
        elif parts["unit"] is not None:
            where = f"in unit {parts['unit']}, at one of the steps {parts['first_step']} to {parts['last_step']}"
        fields["parts"] = where
    elif document["false_mark"] is not None:
        fields["mark"] = f"that of unit {document['false_mark']} is false; the work is true, and nobody is judged by it"
    elif document["steps"] != document["of_steps"]:
        fields["compared"] = "the marks of the units up to there"
    for name, root in committed.items():
        fields[f"{name} on chain"] = root
        if computed[name] is not None:
            fields[f"{name} here"] = computed[name]
    print_fields(fields)
