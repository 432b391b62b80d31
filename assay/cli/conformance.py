"""`assay conformance`: known answers, or random programs, against this machine's implementations."""

from __future__ import annotations

import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import DeviceOption, JsonOption
from assay.cli.progress import progress
from assay.protocol.errors import NumericsError, UsageError

EPILOG = (
    'Example: assay conformance --json  ->  {"executors": [{"executor", "equal", "cases", "reason"}, ...],'
    ' "groups": [{"implementation", "group", "cases", "wrong", "first", "skipped"}, ...]}'
)


def conformance(
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="DIR", help="Folder of the known answers; the checkout's own.")
    ] = None,
    fuzz: Annotated[
        float | None,
        typer.Option("--fuzz", metavar="SECONDS", help="Instead: random programs on hostile states, for so long."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="First seed of --fuzz; one that was reported draws that case.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes of --fuzz at once.")] = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every executor here, reference and curves with the known answers; exit code 7 when one differs."""
    from assay.engine.runtime.executor import usual_variant

    usual_variant()  # refuses a GPU that is asked for and not usable, before others are asked
    if fuzz is not None:
        _fuzz(fuzz, seed, jobs, as_json)
    elif seed is not None or jobs != 1:
        raise UsageError("--seed and --jobs belong to --fuzz.", code="UsageError")
    else:
        _vectors(vectors, as_json)


def _fuzz(seconds: float, seed: int | None, jobs: int, as_json: bool) -> None:
    """Every executor against the reference on random well-formed programs."""
    from assay.conformance.fuzz.campaign import Campaign

    chosen = secrets.randbelow(1 << 40) if seed is None else seed
    found = Campaign(seconds, chosen, jobs=jobs, talk=lambda line: typer.echo(line, err=True)).run()
    if as_json:
        print_json(found.document())
    else:
        rows = [[p.pair, p.programs, p.elements, p.differences, p.crashes] for p in found.pairs]
        rows += [[name, reason, "-", "-", "-"] for name, reason in found.skipped]
        rows.append(["all", found.programs, found.elements, found.differences, found.crashes])
        print_table(
            f"from seed {found.seed}, {found.seconds:.0f} s",
            ["reference and", "programs, or why it is skipped", "elements", "differences", "crashes"],
            rows,
        )
    if found.differences or found.crashes:
        case = found.cases[0]
        raise NumericsError(
            f"{found.differences} differences and {found.crashes} crashes; first {case['pair']}, seed {case['seed']}: "
            f"{case['how']}.",
            code="NotConformant",
            remedy=f"`assay conformance --fuzz 10 --seed {case['seed']}` draws it again; take no part with this.",
        )


def _vectors(vectors: Path | None, as_json: bool) -> None:
    from assay.conformance.answers import check_all, default_vectors, executor_results

    with progress("comparing with the known answers"):
        tallies = list(check_all(vectors or default_vectors()))
    if as_json:
        print_json(
            {"executors": [asdict(e) for e in executor_results(tallies)], "groups": [asdict(t) for t in tallies]}
        )
    else:
        rows = [
            [t.implementation, t.group, t.cases, t.wrong]
            if t.skipped is None
            else [t.implementation, t.skipped, "-", "-"]
            for t in tallies
        ]
        print_table("", ["implementation", "group, or why it is skipped", "cases", "wrong"], rows)
    wrong = next((t for t in tallies if t.wrong), None)
    if wrong is not None:
        raise NumericsError(
            f"{wrong.implementation} differs in {wrong.wrong} of {wrong.cases} {wrong.group}; first {wrong.first}.",
            code="NotConformant",
            remedy="Do not take part with this machine: what it computes would be refuted.",
        )
