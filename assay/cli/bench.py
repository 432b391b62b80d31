"""`assay bench`: what exactness costs, what it does to training, what a dispute costs, measured on this machine."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="Measurements on this machine: speed, quality of training, disputes.")


@app.callback()
def bench() -> None:
    """Each verb measures one thing; heavy imports happen inside."""
