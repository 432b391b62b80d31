"""`assay model`: the weights that the chain names, as a file, and whether a file holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import open_blobs, open_run, print_fields, print_json
from assay.cli.options import STORED_RUN, JsonOption, with_settings
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="The model's weights.")


@app.command("pull", epilog='Example: assay model pull --out model.safetensors --json  ->  {"file", "root", "round"}')
@with_settings(*STORED_RUN)
def pull(
    settings: Settings,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="safetensors file to write.")],
    after: Annotated[
        int | None, typer.Option("--round", min=0, help="The model after this round; after the last unless given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the weights that stand on chain, check them against their root, and write them under their names."""
    from assay.cli.weights import fetch_weights, write_weights
    from assay_ledger.index.indexer import Index

    the_run = open_run(settings)
    weights = fetch_weights(the_run, Index(the_run).sync(), open_blobs(settings), after)
    write_weights(out, weights)
    document = {"file": str(out), "root": "0x" + weights.root.hex(), "round": weights.round, "final": weights.is_final}
    print_json(document) if as_json else print_fields(document)


@app.command(
    "verify",
    epilog='Example: assay model verify model.safetensors --json  ->  {"root", "on_chain": true, "round", ...}',
)
@with_settings(*STORED_RUN)
def verify(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `assay model pull` wrote, or a copy.")],
    as_json: JsonOption = False,
) -> None:
    """Recompute the root of a file's weights and look for it on chain; exit code 8 when it does not stand there."""
    from assay.cli.weights import find_weights
    from assay_ledger.index.indexer import Index

    the_run = open_run(settings)
    found = find_weights(the_run, Index(the_run).sync(), open_blobs(settings), file)
    document = {"root": "0x" + found.root.hex(), "on_chain": True, "round": found.round, "final": found.is_final}
    print_json(document) if as_json else print_fields(document)
