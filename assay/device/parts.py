"""Parts of a step by themselves: its products beside cuBLAS, and the root of a state, shapes of GPT-2 small's step.

Of GPT-2 small: 8,192 tokens, width 768, four times that inside, 50,257 tokens known (Radford et al., 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench.sides import there
from assay.bench.step import alternate, clock_for
from assay.engine.runtime import roots
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

_TOKENS, _WIDTH, _INSIDE, _KNOWN = 8192, 768, 3072, 50_257
_FORWARD: Final = ((3 * _WIDTH, _WIDTH), (_WIDTH, _WIDTH), (_INSIDE, _WIDTH), (_WIDTH, _INSIDE), (_KNOWN, _WIDTH))

SHAPES: Final = tuple(
    shape
    for n, k in _FORWARD
    for shape in ((_TOKENS, n, k), (_TOKENS, k, n), (n, k, _TOKENS))  # the product, its gradients by both operands
)
"""Rows, columns, terms."""

SMALL: Final = ((24, 40, 32),)

PARAMETERS: Final = 124_439_808
MOMENTS: Final = 2
INTERVAL: Final = 25
"""Steps between two roots of a state."""


def product_rows(
    place: torch.device, variant: str, seconds: float, shapes: Sequence[tuple[int, int, int]]
) -> Iterator[dict[str, Any]]:
    """Per shape a fixed14 product, exponents and all, over torch's; on a GPU that rounds to TF32.

    seconds: for all of them. Both sides find their operands on the device and leave the product there.
    """
    clock = clock_for(torch.get_num_threads(), place)
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if place.type == "cuda" else usual)
    try:
        for m, n, k in shapes:
            torch.manual_seed(1)
            a, b = torch.randn(m, k, device=place), torch.randn(n, k, device=place)
            exact, name = _product(a, b, variant, place)
            direct: list[Callable[[], object]] = [partial(torch.mm, a, b.t()), exact]
            sides = captured(direct) if place.type == "cuda" else None
            times = alternate(sides or direct, seconds / len(shapes), clock=clock)
            ratio = median(ours / stock for stock, ours in times)
            yield {
                "rows": m, "columns": n, "terms": k, "by": name, "captured": bool(sides), "ratio": round(ratio, 3),
                "exact_ms": round(median(ours for _, ours in times), 4),
                "stock_ms": round(median(stock for stock, _ in times), 4),
            }  # fmt: skip
    finally:
        torch.set_float32_matmul_precision(usual)


def captured(sides: Sequence[Callable[[], object]]) -> list[Callable[[], object]] | None:
    """Sides as a step has them, graphs whose launches wait for no Python; None where one of them cannot be one."""
    found: list[Callable[[], object]] = []
    for side in sides:
        for _ in range(2):  # kernels are compiled, libraries make what they keep
            side()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                side()
        except RuntimeError:
            return None
        found.append(graph.replay)
    return found


def _product(a: Tensor, b: Tensor, variant: str, place: torch.device) -> tuple[Callable[[], object], str]:
    """The product of a and b transposed by a program, and how it is computed."""
    builder = ProgramBuilder([[TensorSpec(DType.F32, tuple(t.shape)) for t in (a, b)]])
    program = builder.build([[builder.matmul(builder.input(0, 0), builder.input(0, 1))]])
    with there(place):
        executor = Executor(program, variant=KernelVariant(variant))
    name = ", ".join(executor.product_variants.values())
    if executor.whole is None:
        return partial(_run, executor, [[a, b]], place), name or variant
    # Past the arena, into which operands would have to be copied first.
    groups = executor.whole.groups
    return lambda: groups.run([a, b]), name


def _run(executor: Executor, inputs: list[list[Tensor]], place: torch.device) -> None:
    with there(place):
        executor.run(inputs)


def attention_rows(
    program: Program, state: Sequence[Sequence[Tensor]], place: torch.device, seconds: float
) -> Iterator[dict[str, Any]]:
    """A program's whole runs by Triton's kernels with the scores of attention stored, then by tiles: milliseconds, GiB
    of memory, and whether both gave one state. seconds: of each.
    """
    clock, before = clock_for(torch.get_num_threads(), place), None
    for by_tiles in (False, True):
        with there(place):
            executor = Executor(program, variant=KernelVariant.TRITON, by_tiles=by_tiles)
        assert executor.whole is not None
        with there(place):
            after = roots.state_root(executor.run(state))
        times = alternate([partial(_step, executor, state, place)], seconds, least=1, clock=clock)
        row = {"by_tiles": by_tiles, "gib": round(executor.whole.plan.size / 2**30, 3)}
        row["step_ms"] = round(median(t for (t,) in times), 2)
        yield row if before is None else row | {"equal": after == before}
        before = after
        del executor  # its memory is the other's


def _step(executor: Executor, state: Sequence[Sequence[Tensor]], place: torch.device) -> None:
    with there(place):
        executor.run(state, store=False)


def root_figures(place: torch.device, sizes: Sequence[int], step_ms: float | None) -> Iterator[dict[str, Any]]:
    """The root of a state of f32 tensors with so many elements each, that lie in one piece of memory on the device.

    step_ms: of a step, of which 25 are what a root's time is a share of; None where it was not measured.
    """
    total = sum(sizes)
    memory = torch.randn(total, device=place)
    state, at = list[Tensor](), 0
    for size in sizes:
        state.append(memory[at : at + size])
        at += size
    clock = clock_for(torch.get_num_threads(), place)
    here = roots.state_root([[t.cpu() for t in state]])
    times = alternate([lambda: roots.state_root([state])], 0.0, clock=clock)
    root_ms = median(row[0] for row in times)
    is_equal = roots.state_root([state]) == here
    yield {
        "tensors": len(sizes),
        "bytes": 4 * total,
        "root_ms": round(root_ms, 3),
        "equal_to_the_cpu_s": is_equal,
        "wrong": [] if is_equal else ["the root"],
        "share_of_25_steps": None if step_ms is None else round(root_ms / (INTERVAL * step_ms), 5),
    }


def sizes_of_gpt2_small() -> list[int]:
    """Elements of each parameter and moment: what is not the table of tokens, in twelve layers of twelve tensors."""
    table = _KNOWN * _WIDTH
    rest, parts = divmod(PARAMETERS - table, 144), 144
    return [table, *[rest[0]] * (parts - 1), rest[0] + rest[1]] * (1 + MOMENTS)
