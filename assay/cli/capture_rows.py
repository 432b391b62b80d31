"""Rows of `assay model capture-report`: how one is printed, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from assay.programs.capture_report import CaptureEnd, CaptureReport
from assay.protocol.errors import AssayError, NumericsError, PartedError, UserError


def print_row(name: str, row: CaptureReport) -> None:
    """One model in a line, and below it what went wrong."""
    figures = ""
    if row.captured:
        bits = {True: "equal bits", False: "BITS DIFFER", None: "stock alone"}[row.equal_bits]
        figures = f"  {row.nodes} nodes, {row.seconds:.1f} s, {bits}"
    if row.loss_eager is not None and row.loss_exact is not None:
        figures += f", loss {row.loss_eager:.5f} stock, {row.loss_exact:.5f} exact after {row.steps} steps"
    typer.echo(f"{row.outcome.value:<14}  {name}{figures}")
    for line in _what_went_wrong(row):
        typer.echo(f"{'':<16}{line}")


def _what_went_wrong(row: CaptureReport) -> list[str]:
    lines = [] if row.error is None else [row.error]
    if row.parting is not None:
        p = row.parting
        lines.append(
            f"after step {p['step']} {p['tensor']} is off by {p['difference']:.2g} of its way; rounding explains"
            f" {p['limit']:.2g}"
        )
    if row.frozen_state:
        lines.append(f"changed by stock steps, not by the program: {', '.join(row.frozen_state[:5])}")
    return lines


def check_rows(rows: Mapping[str, CaptureReport]) -> None:
    """The gravest of what the rows say, as an error.

    Raises:
        PartedError: SilentlyWrong. AssayError: CaptureCrashed. UserError: NotCompared. NumericsError: CaptureRefused.
    """
    found = {o: [name for name, row in rows.items() if row.outcome is o] for o in CaptureEnd}
    if wrong := found[CaptureEnd.WRONG]:
        raise PartedError(
            f"{len(wrong)} of {len(rows)} train something else than stock PyTorch: {', '.join(wrong[:5])}.",
            code="SilentlyWrong",
            remedy="Train none of these, and report them: capture should have refused them.",
        )
    if crashed := found[CaptureEnd.CRASHED]:
        raise AssayError(
            f"{len(crashed)} of {len(rows)} crashed: {', '.join(crashed[:5])}.",
            code="CaptureCrashed",
            remedy="Give more --seconds where one was stopped; report the others.",
        )
    if unknown := found[CaptureEnd.UNCOMPARED]:
        raise UserError(
            f"{len(unknown)} of {len(rows)} are too large to be held beside stock PyTorch: {', '.join(unknown[:5])}.",
            code="NotCompared",
            remedy="Compare a smaller model of the same layers.",
        )
    if refused := found[CaptureEnd.REFUSED]:
        raise NumericsError(
            f"{len(refused)} of {len(rows)} are refused: {', '.join(refused[:5])}.",
            code="CaptureRefused",
            remedy="Each row says what to write instead.",
        )
