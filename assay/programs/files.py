"""Files of a captured recipe: the program, and beside it what people want to know and the state that it starts from.

    FILE                     the program, as stores and runs know it
    FILE.json                names, source lines, rounding report
    FILE.state.safetensors   the calibration batch: the first state, `list.slot` for each tensor

The two beside it are conveniences: a reader checks that they belong to the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import TORCH
from assay.programs.capture import CapturedRecipe
from assay.protocol.errors import ConfigError, UsageError, shown
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program
from assay_ledger.json_input import DEFAULT_DEPTH, is_deeper
from assay_ledger.store.programs_in_use import MAX_PROGRAM_BYTES

MAX_REPORT: Final = 1 << 28

_ROUNDING: Final = ("error", "zeroed", "worst_row")
"""Numbers of every operand in the rounding report."""


def report_path(file: Path) -> Path:
    """Where the report of a program file lies."""
    return file.with_name(file.name + ".json")


def state_path(file: Path) -> Path:
    """Where the first state of a program file lies."""
    return file.with_name(file.name + ".state.safetensors")


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """A block that writes a file which a person has named. Raises ConfigError (FileNotWritable)."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written ({error.strerror}).", code="FileNotWritable", remedy="Name another file."
        ) from None


def write_capture(captured: CapturedRecipe, file: Path, *, with_state: bool = True) -> list[Path]:
    """Write program, report and state; returns what was written. Raises ConfigError (FileNotWritable)."""
    from safetensors.torch import save_file

    paths = [file, report_path(file)]
    with writing(file):
        file.write_bytes(encode_program(captured.program))
        paths[1].write_text(json.dumps(captured.report(), indent=1), encoding="utf-8")
        if with_state:
            paths.append(state_path(file))
            named = {f"{i}.{k}": t.clone() for i, part in enumerate(captured.state) for k, t in enumerate(part)}
            save_file(named, paths[2], {"assay_root": state_io.state_root(captured.state).hex()})
        else:
            # The state of an earlier capture does not belong to this program.
            state_path(file).unlink(missing_ok=True)
    return paths


def read_program(file: Path) -> Program:
    """The program in a file. Raises ConfigError (FileUnreadable), MalformedError."""
    try:
        with file.open("rb") as stream:
            # One byte more than any program has: what is longer is refused by its length, whatever the file is.
            data = stream.read(MAX_PROGRAM_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read ({error.strerror}).",
            code="FileUnreadable",
            remedy="Name a file that `assay program capture` wrote.",
        ) from None
    return decode_program(data, MAX_PROGRAM_BYTES)


def read_report(file: Path, program: Program) -> dict[str, Any] | None:
    """The report beside a program file, if there is one and it is of this program."""
    try:
        path = report_path(file)
        if path.stat().st_size > MAX_REPORT:
            return None
        data = path.read_bytes()
        # A parser recurses over what is nested, and where some library allows that, to the end of its stack.
        document: Any = {} if is_deeper(data, DEFAULT_DEPTH) else _unarmed(json.loads(data.decode("utf-8")))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(document, dict) and document.get("program") == "0x" + program.root.hex()
    return document if is_ours and _has_shape(document, program) else None


def _unarmed(a: Any) -> Any:
    """The same in texts that no terminal obeys, each in one line.

    Attack: whoever passes a program on words its slots and lines so that they clear the screen, or look like ours.
    """
    match a:
        case str():
            return shown(a).replace("\n", "\ufffd")
        case list():
            return [_unarmed(x) for x in a]
        case dict():
            return {name: _unarmed(x) for name, x in a.items()}
        case _:
            return a


def _is_share(a: object) -> bool:
    return isinstance(a, float) or (isinstance(a, int) and a.bit_length() <= 64)


def _has_shape(document: dict[str, Any], program: Program) -> bool:
    """Whether the parts that commands read are what they expect."""
    slots, sources, rounding = (document.get(name) for name in ("slots", "sources", "rounding"))
    return (
        isinstance(slots, list)
        and [len(part) if isinstance(part, list) else -1 for part in slots] == list(program.inputs)
        and isinstance(sources, dict)
        and isinstance(rounding, list)
        and all(isinstance(r, dict) and all(_is_share(r.get(n)) for n in _ROUNDING) for r in rounding)
    )


def read_state(file: Path, program: Program) -> list[list[Tensor]]:
    """The calibration batch beside a program file.

    Raises:
        UsageError: BatchMissing. ConfigError: BatchUnreadable, when it is damaged or of another program.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = state_path(file)
    if not path.exists():
        raise UsageError(
            f"There is no calibration batch beside {file}.",
            code="BatchMissing",
            remedy="Give --factory package.module:factory, or capture without --no-state.",
        )
    try:
        named = load_file(path)
        return [
            [_slot(named[f"{i}.{k}"], program, node) for k, node in enumerate(nodes)]
            for i, nodes in enumerate(program.input_nodes)
        ]
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise ConfigError(
            f"{path} holds no state of this program ({type(error).__name__}).",
            code="BatchUnreadable",
            remedy="Capture the program again.",
        ) from None


def _slot(t: Tensor, program: Program, node: int) -> Tensor:
    spec = program.specs[node]
    if t.dtype is not TORCH[spec.dtype] or tuple(t.shape) != spec.dims or t.device != torch.device("cpu"):
        raise ValueError(node)
    return t
