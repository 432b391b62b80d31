"""`assay program`: a model of one's own as a program: capture it, read it, check it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.common import print_fields, print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption
from assay.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.programs.against_eager import Beside
    from assay.protocol.program.program import Program
    from assay.training.recipes.recipe import RecipeStep

app = typer.Typer(no_args_is_help=True, help="Programs captured from PyTorch modules of one's own.")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A program file.")]
SHOWN_LOSSES = 8


@app.command(
    "capture",
    epilog="Example: assay program capture examples.own_model:factory --out own.program --json"
    '  ->  {"files": [...], "root", "families": [...], "rounding": [...], "first_loss", ...}',
)
def capture(
    factory: Annotated[
        str,
        typer.Argument(metavar="PACKAGE.MODULE:FACTORY", help="A function without arguments that returns a Recipe."),
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write; MODULE.program.")] = None,
    tier: Annotated[str, typer.Option("--tier", metavar="TIER", help="fixed8, fixed14 or fixed22.")] = "fixed14",
    calibrate: Annotated[
        bool, typer.Option(help="Where rounding costs too much on the first batch, take more bits or a second product.")
    ] = True,
    state: Annotated[
        bool, typer.Option(help="Write the first state too, as the batch for `assay program check`.")
    ] = True,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a module, loss and optimizer into a program: one whole training step with one meaning on every machine."""
    from assay.programs.capture import capture_recipe, tier_of
    from assay.programs.describe import program_document
    from assay.programs.factory import load_recipe
    from assay.programs.files import write_capture

    tier_of(tier)
    recipe = load_recipe(factory)
    with progress(f"capturing {factory}"):
        captured = capture_recipe(recipe, tier, calibrate=calibrate)
    file = out or Path(factory.partition(":")[0].rsplit(".", 1)[-1] + ".program")
    written = write_capture(captured, file, with_state=state)
    document = program_document(captured.program, captured.report(), with_nodes=False)
    document |= {"files": [str(path) for path in written], "first_loss": captured.first_loss}
    document["state_root_after_one_step"] = "0x" + captured.after.hex()
    document["unreached"] = captured.unreached
    document["mapped"] = captured.mapped
    if as_json:
        print_json(document)
        return
    _print_head(document)
    _print_rounding(document["rounding"])
    for sentence in captured.mapped:
        talk.print(f"16 bits: {sentence}.", markup=False, soft_wrap=True)
    if captured.unreached:
        talk.print(f"The loss does not reach, and no step changes: {', '.join(captured.unreached)}.")
    talk.print(f"Read it: assay program show {file}. Check it: assay program check {file}.")


@app.command(
    "show",
    epilog='Example: assay program show own.program --json  ->  {"root", "families": [...], "nodes": [...], ...}',
)
def show(
    file: FileArgument,
    nodes: Annotated[bool, typer.Option(help="List every node.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Print a program: slots, nodes with shapes and source lines, cost by family, what rounding costs."""
    from assay.programs.describe import program_document
    from assay.programs.files import read_program, read_report

    program = read_program(file)
    report = read_report(file, program)
    document = program_document(program, report, with_nodes=nodes)
    if as_json:
        print_json(document)
        return
    _print_head(document)
    _print_slots(document["slots"])
    if nodes:
        for row in _node_rows(document["nodes"]):
            typer.echo(row)
        typer.echo()
    if document["rounding"] is None:
        talk.print(f"No report of this program lies beside {file}: names, lines and rounding are unknown.")
    else:
        _print_rounding(document["rounding"])


@app.command(
    "check",
    epilog='Example: assay program check own.program --json  ->  {"root", "well_formed": true, "rounding": [...], ...}',
)
def check(
    file: FileArgument,
    factory: Annotated[
        str | None,
        typer.Option(
            "--factory", metavar="PACKAGE.MODULE:FACTORY", help="Where the batch comes from, if no file has it."
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Also compute every node by the slow reference (small programs).")
    ] = False,
    _device: DeviceOption = None,
    against_eager: Annotated[
        int | None,
        typer.Option(
            "--against-eager",
            metavar="N",
            min=1,
            help="Also run N steps beside the factory's stock module and optimizer, and say where they part.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a program is well formed, run it on the calibration batch, and report what rounding costs.

    Exit code 6: ill-formed. 7: the state after the batch is another than at capture, or not finite. 11: it trains
    something else than the stock module and optimizer.
    """
    from assay.programs.against_eager import check_beside
    from assay.programs.capture import rounding_document
    from assay.programs.check import above_limit, check_on_batch, check_well_formed
    from assay.programs.files import read_program, read_report, read_state
    from assay.protocol.errors import NumericsError, UsageError

    program = read_program(file)
    check_well_formed(program)
    report = read_report(file, program)
    step = None if factory is None else _step_of(factory)
    if against_eager is not None and step is None:
        raise UsageError(
            "Only a factory has the stock module and optimizer.",
            code="FactoryNotNamed",
            remedy="Add --factory PACKAGE.MODULE:FACTORY, the one that the program was captured from.",
        )
    with progress("running the program"):
        found = check_on_batch(
            program, read_state(file, program) if step is None else step.state(), report, reference=reference
        )
    with progress("running it beside the stock step"):
        beside = _beside(program, step, against_eager, report)
    rounding = [rounding_document(loss) for loss in found.rounding]
    document: dict[str, Any] = {
        "root": "0x" + program.root.hex(),
        "well_formed": True,
        "nodes": len(program.nodes),
        "state_root_after_one_step": "0x" + found.after.hex(),
        "seconds": round(found.seconds, 3),
        "nodes_equal_to_reference": found.reference_nodes if reference else None,
        "not_finite": found.not_finite,
        "rounding": rounding,
        "against_eager": None if beside is None else beside.to_json(),
    }
    if as_json:
        print_json(document)
    else:
        apart = ("rounding", "not_finite", "against_eager")
        print_fields({n: v for n, v in document.items() if n not in apart and v is not None})
        _print_rounding(rounding)
        if beside is not None:
            _print_beside(beside)
    if found.not_finite:
        names = ", ".join(found.not_finite[:5])
        raise NumericsError(
            f"After one step {len(found.not_finite)} tensors hold NaN or infinity: {names}.",
            code="NotFinite",
            remedy="Look at the loss, the data and the learning rate in plain PyTorch first.",
        )
    for loss in above_limit(found.rounding)[:1]:
        talk.print(
            f"Operand {loss.side} of node {loss.node} has an error of {loss.error:.2g} at {loss.bits} bits"
            f" ({loss.source or 'unknown line'}): capture with calibration, or normalize it."
        )
    if beside is not None:
        check_beside(beside)


@app.command(
    "witness",
    epilog="Example: assay program witness own.program --check their.program --json"
    '  ->  {"root", "witnessed_root", "products", "words", "nodes", "file", "checked"}',
)
def witness(
    file: FileArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the witnessed program there.")
    ] = None,
    other: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", help="Fail unless this is the witnessed program.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Derive the program that an audit of a step runs: the same step, which also samples its own products.

    Exit code 6: the step has no witnessed program, or the file to check holds another one.
    """
    from assay.programs.check import check_well_formed
    from assay.programs.files import read_program, writing
    from assay.protocol.program.programfile import encode_program
    from assay.protocol.program.witness import check_witness, witnessed_program
    from assay.protocol.program.witness_rows import LANES, witness_rows

    program = read_program(file)
    check_well_formed(program)
    found = witnessed_program(program)
    if other is not None:
        check_witness(program, read_program(other))
    if out is not None:
        with writing(out):
            out.write_bytes(encode_program(found))
    rows = witness_rows(program)
    document = {
        "root": "0x" + program.root.hex(),
        "witnessed_root": "0x" + found.root.hex(),
        "products": len({row.node for row in rows}),
        "words": LANES * len(rows),
        "nodes": len(found.nodes),
        "file": None if out is None else str(out),
        "checked": None if other is None else str(other),
    }
    if as_json:
        print_json(document)
    else:
        print_fields({n: v for n, v in document.items() if v is not None})


def _step_of(factory: str) -> RecipeStep:
    from assay.programs.factory import load_recipe
    from assay.training.recipes.recipe import RecipeStep

    return RecipeStep(load_recipe(factory))


def _beside(
    program: Program, step: RecipeStep | None, count: int | None, report: Mapping[str, Any] | None
) -> Beside | None:
    """What steps beside stock PyTorch show, where they are asked for."""
    from assay.programs.against_eager import beside_eager

    if step is None or count is None:
        return None
    tier = "fixed14" if report is None else str(report["tier"])
    return beside_eager(program, step, count, tier, mapped=bool(report and report.get("mapped")))


def _print_beside(found: Beside) -> None:
    """Losses beside each other, and where the two parted."""
    from assay.programs.against_eager import said_of

    shown = sorted({1, 2, 5, 10, 20, 50, 100, found.steps} & set(range(1, found.steps + 1)))
    rows = [[k, f"{found.loss_eager[k - 1]:.6f}", f"{found.loss_exact[k - 1]:.6f}"] for k in shown]
    print_table("Beside stock PyTorch: the loss in each step", ["step", "stock", "exact"], rows)
    if found.undetermined:
        named, more = found.undetermined[:4], len(found.undetermined) - 4
        names = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        talk.print(f"Rounding alone decides where these tensors go, in stock PyTorch too: {names}.")
    if found.parting is None:
        talk.print(
            f"After {found.steps} steps no tensor is off by more than rounding explains ({found.difference:.1g})."
        )
    elif found.is_right:
        p = found.parting
        talk.print(f"After step {p.step} {p.tensor} is off by {p.difference:.2g} of its way.{said_of(found.meaning)}")


def _print_head(document: dict[str, Any]) -> None:
    nodes = sum(f["nodes"] for f in document["families"])
    fields = {
        "root": document["root"],
        "nodes": nodes,
        "inputs": " + ".join(map(str, document["inputs"])),
        "outputs": " + ".join(map(str, document["outputs"])),
        "iterable": "yes" if document["iterable"] else "no",
        "tier": document["tier"] or "unknown",
        "file": ", ".join(document.get("files", [])),
        "first loss": document.get("first_loss", ""),
    }
    print_fields({n: v for n, v in fields.items() if v != ""})
    rows = [
        [f["family"], f["nodes"], f"{f['elements']:,}", f"{f['bytes']:,}", f"{f['work']:,}"]
        for f in document["families"]
    ]
    print_table("", ["family", "nodes", "elements", "bytes", "operations"], rows)


def _print_slots(slots: list[dict[str, Any]]) -> None:
    rows = [[f"{s['list']}.{s['slot']}", s["name"], s["dtype"], s["dims"]] for s in slots]
    print_table("", ["slot", "name", "type", "dims"], rows)


def _node_rows(nodes: list[dict[str, Any]]) -> list[str]:
    """One line per node, in columns."""
    rows = []
    for n in nodes:
        dims = str(n["dims"]) + (f" over {n['reduced']}" if n["reduced"] else "")
        reads = ", ".join(map(str, n["reads"]))
        rows.append([str(n["node"]), n["family"], n["dtype"], dims, reads, n["what"], n["source"]])
    widths = [min(max((len(row[c]) for row in rows), default=0), 60) for c in range(7)]
    return ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _print_rounding(rounding: list[dict[str, Any]]) -> None:
    """The operands that lose most."""
    above = sum(bool(r.get("above_limit")) for r in rounding)
    rows = [
        [
            r.get("node"),
            r.get("side"),
            r.get("bits"),
            f"{r['error']:.1e}",
            f"{r['zeroed']:.1%}",
            f"{r['worst_row']:.1%}",
            r.get("source"),
        ]
        for r in rounding[:SHOWN_LOSSES]
    ]
    title = f"What rounding costs: {len(rounding)} operands of products, {above} above their limit"
    print_table(title, ["node", "side", "bits", "error", "zeroed", "worst row", "source"], rows)
