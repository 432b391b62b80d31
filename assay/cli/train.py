"""`assay train`: training without a chain, by the very programs of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.common import digest_typed, print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption, TextOption, ThreadsOption
from assay.protocol.errors import UsageError

if TYPE_CHECKING:
    from assay.bench.compare import ComparedRun
    from assay.bench.methods.trained import TrainedModel

app = typer.Typer(no_args_is_help=True, help="Training without a chain, by the very programs of a run.")

EPILOG = (
    "Example: assay train compare --method int8,sparse --workers 4 --seed 1 --json"
    '  ->  {"rows": [{"method", "workers", "seed", "loss", "loss_dense", "bytes_per_parameter", "tokens", ...}], ...}'
)


@app.callback()
def train() -> None:
    """Each verb trains on this machine; heavy imports happen inside."""


@app.command("compare", epilog=EPILOG)
def compare(
    method: Annotated[
        str, typer.Option("--method", metavar="NAMES", help="Methods, with commas; f32 is always run beside them.")
    ] = "bf16,int8,int4,sparse",
    workers: Annotated[str, typer.Option("--workers", metavar="NUMBERS", help="Workers, with commas.")] = "4",
    seed: Annotated[str, typer.Option("--seed", metavar="NUMBERS", help="Seeds, with commas.")] = "1",
    merge: Annotated[
        str,
        typer.Option(
            "--merge",
            metavar="NAMES",
            help="Merges, with commas: mean, median-norm, median, centered-clip, bucketed-clip.",
        ),
    ] = "mean",
    guard: Annotated[
        float | None,
        typer.Option("--guard", metavar="SHARE", min=0.0, help="As `assay run post --guard`; f32 beside it has none."),
    ] = None,
    group_size: Annotated[
        int,
        typer.Option(
            "--group-size", min=0, max=64, help="Workers of a group, whose updates are summed before all sums are; 0."
        ),
    ] = 0,
    sums: Annotated[str, typer.Option("--sums", help="How sums of groups travel: f32, bf16 or int8.")] = "f32",
    poison: Annotated[
        str, typer.Option("--poison", metavar="NAMES", help="What poisoned workers do, with commas; none.")
    ] = "none",
    poisoned: Annotated[int, typer.Option("--poisoned", min=1, help="How many workers do it.")] = 1,
    preset: Annotated[
        str | None, typer.Option("--preset", help="What is trained: tiny, demo or gpt-4x128; tiny unless a recipe is.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe", metavar="PACKAGE.MODULE:FACTORY", help="Train a model of your own, with its own data."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of each training.")] = 20,
    inner_steps: Annotated[
        int | None, typer.Option("--inner-steps", min=1, help="Steps of a worker in a round; the preset's, or 25.")
    ] = None,
    data: TextOption = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="HEX",
            help="Batches of a run's seats, of which `assay run show` says run_id: its bases come out, by their roots.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Finished trainings, one CSV row each.")] = Path(
        "compare.csv"
    ),
    threads: ThreadsOption = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train by several methods, same seeds, batches and tokens, and compare loss and bytes.

    Methods are how updates travel, by the names of `assay run post --update`, and others that no run can have, such as
    sign-carried, streaming, eager, islands, muloco and demo-ranks: docs/updates.md lists them. Of a recipe, a factory
    that takes a `seed` is given it, and losses are those of its validation. Poisons are sign-flip,
    scale-100, noise, alie, inner-product, copy, average, drift, not-finite, label-flip and backdoor. What the file
    holds already is not run again.
    """
    import torch

    from assay.bench.compare import METHODS, read_rows, run_jobs, summary
    from assay.bench.methods.poison import POISONS
    from assay.training.robust import MergeKind

    torch.set_num_threads(threads)
    counts = _numbers("--workers", workers, most=64)
    if poison != "none" and poisoned >= min(counts):
        raise UsageError(
            f"{poisoned} of {min(counts)} workers cannot be poisoned: none would be honest.",
            code="TooManyPoisoned",
            remedy="Give a smaller --poisoned, or more --workers.",
        )
    model, steps = _model(preset, recipe, data, max(counts))
    jobs = _jobs(
        model.name,
        rounds,
        inner_steps or steps,
        counts,
        _numbers("--seed", seed, most=1 << 31),
        _named("method", method, METHODS),
        _named("merge", merge, list(MergeKind)),
        {name: 0 if name == "none" else poisoned for name in _named("poison", poison, POISONS)},
        ""
        if run_id is None
        else digest_typed(run_id, "--run-id", "BadRunId", "Take run_id of `assay run show --json`.").hex(),
        guard,
        (group_size, _sums(sums, group_size)),
    )
    for _ in run_jobs(jobs, model, out, talk.print):
        pass
    rows = summary(read_rows(out), jobs, model.digest)
    if as_json:
        print_json({"rows": rows, "file": str(out)})
        return
    _print_rows(model.name, rows)


def _print_rows(name: str, rows: list[dict[str, Any]]) -> None:
    """A line for each; what is the same in all stands above, so that the table fits a screen."""
    first = rows[0]
    same: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
        "merge": ("merge {}", lambda row: str(row["merge"])),
        "sums": (
            "{}",
            lambda row: f"groups of {row['group_size']}, {row['sums']}" if row["group_size"] else "one level",
        ),
        "poison": ("poison {}", lambda row: f"{row['poisoned']} {row['poison']}" if row["poisoned"] else "none"),
        "workers": ("{} workers", lambda row: str(row["workers"])),
        "seed": ("seed {}", lambda row: str(row["seed"])),
        **({"refused": ("{} merges refused", lambda row: str(row["refused"]))} if first["guard"] is not None else {}),
        "tokens": ("{} tokens", lambda row: f"{row['tokens']:,}"),
    }
    varies = {what: say for what, (_, say) in same.items() if len({say(row) for row in rows}) > 1}
    table: dict[str, Callable[[dict[str, Any]], str]] = {
        "method": lambda row: str(row["method"]),
        **varies,
        "loss": lambda row: f"{row['loss']:.4f}",
        "over f32": lambda row: "-" if row["above"] is None else f"{row['above']:+.2%}",
        "bytes": lambda row: f"{row['bytes_per_parameter']:.3g}",
        "peak": lambda row: f"{row['peak_bytes_per_parameter']:.3g}",
        "carried": lambda row: f"{row['carried']:.3g}",
        "rule": lambda row: "-" if row["rule_share"] is None else f"{row['rule_share']:.1%}",
    }
    above = [words.format(say(first)) for what, (words, say) in same.items() if what not in varies]
    print_table(
        f"{name}, {first['rounds']} rounds of {first['inner_steps']} steps; {', '.join(above)}; bytes a parameter, CPU "
        "of the rule",
        list(table),
        [[say(row) for say in table.values()] for row in rows],
    )


def _model(preset: str | None, recipe: str | None, data: Path | None, workers: int) -> tuple[TrainedModel, int]:
    """What is trained by up to so many workers, and the steps of its rounds. Raises UsageError: OptionsClash."""
    from assay.bench.methods.own_model import RecipeModel
    from assay.bench.methods.trained import preset_model
    from assay.cli.posting_steps import DEFAULT_STEPS

    if recipe is None:
        model = preset_model(preset or "tiny", data, workers)
        return model, model.preset.inner_steps
    if preset is not None or data is not None:
        raise UsageError(
            "A recipe brings its own model and data.",
            code="OptionsClash",
            remedy="Leave --preset and --data out, or --recipe.",
        )
    return RecipeModel(recipe, workers), DEFAULT_STEPS


def _jobs(
    model: str,
    rounds: int,
    inner_steps: int,
    workers: list[int],
    seeds: list[int],
    methods: list[str],
    merges: list[str],
    poisons: dict[str, int],
    run_id: str,
    guard: float | None,
    grouped: tuple[int, str],
) -> list[ComparedRun]:
    """All of them, each cell's plain training among them; poisons: how many workers do each; grouped: size and sums."""
    from assay.bench.compare import ComparedRun

    wanted: list[ComparedRun] = []
    for count, seed, name, merge in product(workers, seeds, methods, merges):
        plain = ComparedRun(name, model, count, seed, rounds, inner_steps, merge, run_id=run_id, guard=guard)
        plain = replace(plain, group_size=grouped[0], sums=grouped[1])
        runs = [replace(plain, poison=poison, poisoned=number) for poison, number in poisons.items()]
        wanted += [plain.dense, *runs]
    return list(dict.fromkeys(wanted))


def _sums(name: str, group_size: int) -> str:
    """How sums travel. Raises UserError: UnknownSums, SumsOfNoGroups."""
    from assay.sponsor.preparing import check_sums
    from assay.training.updates import sum_wire

    check_sums(sum_wire(name), group_size)
    return name


def _named(what: str, words: str, known: Collection[str]) -> list[str]:
    """The names between commas, each once. Raises UsageError: UnknownMethod, UnknownMerge, UnknownPoison."""
    names = list(dict.fromkeys(word.strip() for word in words.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(
                f"There is no {what} {name!r}.",
                code=f"Unknown{what.capitalize()}",
                remedy=f"Choose from {', '.join(known)}.",
            )
    return names


def _numbers(option: str, words: str, most: int) -> list[int]:
    """The whole numbers from 1 between commas. Raises UsageError: BadNumbers."""
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        found = [0]
    if any(not 0 < number <= most for number in found):
        raise UsageError(
            f"{option} wants numbers from 1 to {most} with commas, not {words!r}.",
            code="BadNumbers",
            remedy=f"Write {option} 2,4, say.",
        )
    return found
