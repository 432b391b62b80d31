"""`assay doctor`: what is there, what is missing, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from assay.cli.common import print_json
from assay.cli.options import JsonOption
from assay.protocol.errors import ExitCode

EPILOG = 'Example: assay doctor --json  ->  [{"name", "state", "found", "remedy"}, ...]'


def doctor(as_json: JsonOption = False) -> None:
    """Check this machine and what is configured; exit code 3 when something is broken."""
    from assay.cli.checks import CheckState, examine

    findings = examine()
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            typer.echo(f"{finding.state.value:<8}{finding.name:<{width}}  {finding.found}")
            if finding.remedy:
                typer.echo(" " * (10 + width) + finding.remedy)
    if any(finding.state is CheckState.BROKEN for finding in findings):
        raise typer.Exit(int(ExitCode.CONFIG))
