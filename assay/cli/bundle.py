"""`assay bundle`: a dispute's evidence in one file that a stranger replays without a chain."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.common import open_round_run, print_fields, print_json, talk
from assay.cli.options import RUN, JsonOption, with_settings
from assay.cli.progress import progress
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.bundle.replay import ReplayedDispute

app = typer.Typer(no_args_is_help=True, help="Evidence of a dispute in one file.")


@app.command(
    "export",
    epilog='Example: assay bundle export 1 --out game-1.json --json  ->  {"file", "sha256", "bytes", "transactions"}',
)
@with_settings(*RUN)
def export(
    settings: Settings,
    game: Annotated[int, typer.Argument(metavar="GAME", min=1, help="Number of the game (`assay dispute list`).")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")],
    as_json: JsonOption = False,
) -> None:
    """Write the signed transactions of a finished game, and what its claim follows from, to a file."""
    from assay.bundle.document import encode_bundle
    from assay.bundle.export import export_bundle
    from assay.bundle.replay import verify
    from assay.programs.files import writing
    from assay_ledger.rounds.index import RunIndex

    the_run = open_round_run(settings)
    with progress("reading the game from the chain"):
        bundle = export_bundle(the_run, RunIndex(the_run).sync(), game)
    data = encode_bundle(bundle)
    with writing(out):
        out.write_bytes(data)
    document = {
        "file": str(out),
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "transactions": len(bundle.transactions) + len(bundle.origin.transactions),
    }
    if as_json:
        print_json(document)
    else:
        print_fields(document)
    # A file that does not verify is still evidence, of a defect or of worse: it is written, and said.
    with progress("replaying the dispute"):
        verify(bundle)
    talk.print(f"Anybody can check it without a chain: assay bundle verify {out}")


@app.command(
    "verify",
    epilog='Example: assay bundle verify game-1.json --json  ->  {"agrees": true, "verdict", "claim", "moves", ...}',
)
def verify_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `assay bundle export` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Replay a dispute from its file: exit code 0 when the verdict follows, 8 when the file contradicts itself."""
    from assay.bundle.document import MAX_BYTES, decode_bundle
    from assay.bundle.errors import BundleMalformed
    from assay.bundle.replay import verify

    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise BundleMalformed(f"{file} cannot be read ({error.strerror}).", code="BundleUnreadable") from None
    bundle = decode_bundle(data)
    with progress("replaying the dispute"):
        found = verify(bundle)
    document = describe(found, hashlib.sha256(data).hexdigest())
    if as_json:
        print_json(document)
    else:
        _print(document)


def describe(found: ReplayedDispute, digest: str) -> dict[str, Any]:
    """What a replay found, for people and scripts."""
    from assay.bundle.document import verdict_document
    from assay.bundle.words import claim_text, family_text, value_texts

    claim, verdict = found.claim, found.verdict
    assert verdict is not None
    expected, claimed = value_texts(found)
    return {
        "agrees": True,
        "file_sha256": digest,
        "run": "0x" + found.charter.run.hex(),
        "claim": {
            "id": "0x" + claim.id.hex(),
            "what": claim_text(found),
            "claimant": "0x" + claim.claimant.hex(),
            "challenger": "0x" + found.begin.challenger.hex(),
            "program": "0x" + claim.program.root.hex(),
            "steps": claim.steps,
            "x": "0x" + claim.x.hex(),
            "y": "0x" + claim.y.hex(),
            "own_root": None if found.own_root is None else "0x" + found.own_root.hex(),
        },
        "moves": [
            {
                "move": step.name,
                "side": step.side.name.lower(),
                "stage": step.before.stage.name,
                "time": step.sent.time,
                "transaction": "0x" + step.sent.hash.hex(),
                "agreed": "0x" + step.after.agreed.hex(),
                "disputed": "0x" + step.after.disputed.hex(),
            }
            for step in found.steps
        ],
        "verdict": verdict_document(verdict) | {"family_name": family_text(verdict.family)},
        "expected": expected,
        "claimed": claimed,
    }


def _print(document: dict[str, Any]) -> None:
    claim, verdict = document["claim"], document["verdict"]
    print_fields(
        {
            "file": f"sha256 {document['file_sha256']}",
            "run": document["run"],
            "claim": claim["id"],
            "about": claim["what"],
            "claimant": claim["claimant"],
            "challenger": claim["challenger"],
            "X": claim["x"],
            "Y": claim["y"],
            "program": f"{claim['program']}, {claim['steps']} steps",
        }
    )
    if claim["own_root"] is not None:
        print_fields({"challenger's own end root": claim["own_root"]})
    typer.echo("")
    for number, move in enumerate(document["moves"], 1):
        typer.echo(f"{number:3}  {move['stage']:<6}  {move['side']:<10}  {move['move']:<12}  {move['transaction']}")
    typer.echo("")
    print_fields(
        {
            "verdict": f"{verdict['outcome']}: the {verdict['side'].lower()} {verdict['loser']} lost",
            "node": f"{verdict['node']} ({verdict['family_name']}), element {verdict['element']}, "
            f"term {verdict['term']}",
            "expected": document["expected"],
            "claimed": document["claimed"],
        }
    )
    typer.echo("Every signature, digest and move was checked here: the recorded verdict follows from them.")
