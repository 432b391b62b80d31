"""The executor: runs a program on tensors, every bit as `protocol.program.reference` defines it.

Nodes run by fused native kernels where these are built (`assay/engine/runtime/fused`), else by stock torch; on a GPU by
Triton's (`assay/engine/runtime/triton`), where that is asked for. Only operations that
round once or are exact are used: add, sub, mul, div by a tensor, comparisons, integer operations, binary64 conversions.
Sums are exact integers, so the number of threads and the order of additions do not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

import torch
from torch import Tensor

from assay.engine.runtime import devices, footprint
from assay.engine.runtime.devices import Device
from assay.engine.runtime.exact.floats import check_float_environment, check_float_environment_held
from assay.engine.runtime.fused import layout, selftest
from assay.engine.runtime.fused.plan import FusedPlan, own_memory
from assay.engine.runtime.hooks import Hook, SeenOnce
from assay.engine.runtime.native import library
from assay.engine.runtime.node_kernels import KernelsByNode, exponents_of
from assay.engine.runtime.products import native_dot
from assay.engine.runtime.products.freivalds import ProductWatch, products
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.attention import whole_runs
from assay.engine.runtime.triton.whole import WholeRuns
from assay.engine.runtime.values.dtypes import TORCH, canonical
from assay.engine.runtime.values.state_io import Lists, check_inputs
from assay.protocol.errors import ConfigError, InvariantError, UserError
from assay.protocol.program.nodes import Const, Dot, Input, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations


class KernelVariant(StrEnum):
    """How nodes are run: all by stock torch, by native kernels where there are any, or by Triton's kernels."""

    STOCK = "stock"
    FUSED = "fused"
    TRITON = "triton"


@dataclass(frozen=True)
class Natives:
    """The native kernels of one machine: those of nodes, and those of products where there are any."""

    nodes: layout.NodeKernels
    products: native_dot.DotKernels | None


@dataclass(frozen=True)
class _Step:
    kernel: Kernel
    exponents: tuple[int, ...]
    dims: tuple[int, ...]
    dtype: torch.dtype
    dead: tuple[int, ...]


class Executor:
    """Runs one program, as often as wanted; holds its constants and a plan, no state between runs.

    variant: `usual_variant` unless another is asked for: on a CPU fused where the kernels are there. natives: others
    than this machine's. `reason` says why it is stock, `fallbacks` which nodes stock torch computes all the same,
    and why, `product_variants` per dot node which exact product is used.
    cross_check: stock, with other product variants than usual and sums by the general kernels, before an accusation:
    the bits are the same, the instructions are not.
    memory: bytes that a run may take, instead of `footprint.limit()` (of a cross-check, any); the attribute is what one
    is expected to take.
    by_tiles: whether Triton's whole runs store no scores of attention, and compute their tiles anew for whoever reads
    them; None, where the GPU's memory does not hold them.
    check_every: in every so many-th run one product is checked.

    Raises:
        UserError: IllFormedProgram; ProgramTooLarge, before anything is allocated; NoNativeKernels or NoTritonKernels,
            when they are asked for and not there.
    """

    def __init__(
        self,
        program: Program,
        *,
        cross_check: bool = False,
        variant: KernelVariant | None = None,
        natives: Natives | None = None,
        memory: int | None = None,
        by_tiles: bool | None = None,
        check_every: int = 1,
    ) -> None:
        if variant is None and natives is None and not cross_check:
            variant = usual_variant()
        native, self.reason = here, _ = usable_natives() if natives is None else (natives, "")
        if variant is KernelVariant.FUSED and native is None:
            raise UserError(
                f"There are no native kernels here: {self.reason}.",
                code="NoNativeKernels",
                remedy="Run `make setup` where a C compiler is, or leave the kind open.",
            )
        if variant is KernelVariant.TRITON and (missing := backend.absence()):
            raise UserError(
                f"Programs cannot run by Triton here: {missing}.",
                code="NoTritonKernels",
                remedy=f"Install triton where a GPU is, set {backend.INTERPRETER}=1 for tests, or leave the kind open.",
            )
        if variant in (KernelVariant.STOCK, KernelVariant.TRITON) or cross_check:
            native, self.reason = None, "a cross-check" if cross_check else "asked for"
        self.variant = KernelVariant.STOCK if native is None else KernelVariant.FUSED
        if variant is KernelVariant.TRITON and not cross_check:
            self.variant = KernelVariant.TRITON
        found = violations(program)
        if found:
            raise UserError(
                f"The program is ill-formed: {'; '.join(str(v) for v in found[:3])}.",
                code="IllFormedProgram",
                remedy="Refuse the run that names it.",
            )
        if cross_check and memory is None:
            memory = footprint.UNBOUNDED  # the caller has something at stake already: it is tried
        # What runs on a GPU must fit the machine too: a dispute may have to be played here.
        by_natives = here if self.variant is KernelVariant.TRITON else native
        stock = footprint.left_to_stock(program) if by_natives else None
        self.memory = footprint.check(program, stock=stock, most=memory)
        self.program = program
        self._watch = ProductWatch(products(program), (program.root, self.variant, cross_check), every=check_every)
        self.kernels = KernelsByNode(
            program,
            self._watch,
            backend.device() if self.variant is KernelVariant.TRITON else torch.get_default_device(),
            by_triton=self.variant is KernelVariant.TRITON,
            cross_check=cross_check,
            products=native.products if native else None,
        )
        self.product_variants = self.kernels.product_variants
        self._plan = None if native is None else FusedPlan(program, native.nodes, self.kernels.of)
        self.fallbacks = dict(self._plan.reasons) if self._plan else {}
        if self._plan is not None:
            self.memory = footprint.check(program, stock=self.fallbacks, most=memory)
        if self.variant is KernelVariant.STOCK:
            self.kernels.make_all()
        self.whole: WholeRuns | None = None
        if self.variant is KernelVariant.TRITON:
            self.whole = whole_runs(program, self.kernels, by_tiles)

    @cached_property
    def _steps(self) -> list[_Step]:
        """Every node as an instrumented run takes it; not made before there is one."""
        nodes = self.program.nodes
        last_use: dict[int, int] = {}
        for k, node in enumerate(nodes):
            for j in reads(node):
                last_use[j] = k
        dead: dict[int, list[int]] = {}
        for j, node in enumerate(nodes):
            if not isinstance(node, Const | Output):
                dead.setdefault(max(last_use.get(j, j), j), []).append(j)
        plan = self._plan
        return [
            _Step(
                # A product by its kernel in Python, which checks it when it is due.
                plan.single(k)
                if plan is not None and k in plan.compiled and not isinstance(node, Dot)
                else self.kernels.of(k),
                exponents_of(node),
                node.spec.dims,
                TORCH[node.spec.dtype],
                tuple(dead.get(k, ())),
            )
            for k, node in enumerate(nodes)
        ]

    def run(
        self, inputs: Lists, hook: Hook | None = None, *, give: bool = False, store: bool = True
    ) -> list[list[Tensor]]:
        """The lists of Y for these lists of X; no input is changed unless given, outputs may alias inputs.

        A slot that is an input passed through is that input, bit for bit; what is computed is as a store writes it.

        hook: sees the value of every node in order and returns what later nodes read. give: the caller needs the inputs
        no more, whatever comes of the run; slots of Y are written over those of X where that is possible. store: False
        for a Y that is nothing but the X of a next step by this executor: computed slots that it does not pass on keep
        whatever NaNs they have, which no reader tells apart; Triton's lie where the next run writes.

        Raises:
            UserError: the inputs do not fit the program.
            InvariantError: FlushToZero, a thread flushes subnormal numbers, before or after; HardwareFault, the product
                that this run checks is wrong.
        """
        which = self._computed if store else self._passed_later
        with nullcontext() if self.whole is None else self.whole.turn:
            ends = [canonical(t) if k in which else t for k, t in enumerate(self._once(inputs, hook, give, store))]
        found = iter(ends)
        return [[next(found) for _ in range(size)] for size in self.program.outputs]

    def repeat(self, inputs: Lists, steps: int, on_step: Callable[[int], None] | None = None) -> list[list[Tensor]]:
        """The state after several steps of a program whose Y is its X, as `run` gives it.

        on_step: told the number of steps done after each. Raises what `run` raises.
        """
        state: Lists = inputs
        with nullcontext() if self.whole is None else self.whole.turn:
            for t in range(1, steps + 1):
                # A slot that is ever written over is computed in every step: after the first it is not the caller's.
                state = self.run(state, give=t > 1, store=t == steps)
                if on_step is not None:
                    on_step(t)
        return [list(part) for part in state]

    def _once(self, inputs: Lists, hook: Hook | None, give: bool, store: bool) -> list[Tensor]:
        """The slots of Y; a computed one may hold NaNs that no store writes."""
        check_inputs(self.program, inputs)
        check_float_environment()
        self._watch.begin()
        checks, home = self.kernels.checks, torch.get_default_device()
        if hook is None and self.whole is not None:
            with backend.named_memory("memory left for what runs of a program take beside its values"):
                if checks is not None:
                    checks.begin()
                ends = self.whole.run([t for part in inputs for t in part], store=store, home=home)
                if checks is not None:
                    checks.verify()
            check_float_environment_held()
            return ends
        slots = [own_memory(t) for part in inputs for t in part]
        seen = None if hook is None else SeenOnce(hook)
        if self._beside is not None:
            return self._on_the_cpu(slots, seen, store)
        try:
            if checks is not None:
                checks.begin()
            # A reader of a bool takes every byte but 0 for true, and torch takes bytes of 0 and 1 only.
            flat = [(canonical(t) if t.dtype is torch.bool else t).to(self.kernels.device) for t in slots]
            if hook is None and self._plan is not None:
                ends = self._plan.run(flat, self._watch.due, give=give)
            else:
                ends = self._instrumented(flat, seen)
            if checks is not None:
                checks.verify()
        except Exception as error:
            # A GPU whose memory others hold, or that is lost: whoever is challenged must go on all the same.
            if self.whole is None or not backend.is_of_the_gpu(error):
                raise
            warnings.warn(f"A run goes on by the CPU ({backend.in_one_line(error)}).", RuntimeWarning, stacklevel=2)
            self._beside = cpu_executor(self.program)
            return self._on_the_cpu(slots, seen, store)
        check_float_environment_held()
        passed = zip(ends, self._sources, strict=True)
        return [slots[j] if j < len(slots) and t is flat[j] else t.to(home) for t, j in passed]

    def _on_the_cpu(self, slots: list[Tensor], hook: Hook | None, store: bool) -> list[Tensor]:
        """The slots of Y by the executor beside this one, which runs on a GPU."""
        assert self._beside is not None
        near = [t.cpu() for t in slots]
        rest = iter(near)
        with torch.device("cpu"):
            ends = self._beside._once([[next(rest) for _ in range(n)] for n in self.program.inputs], hook, False, store)
        passed, home = zip(ends, self._sources, strict=True), torch.get_default_device()
        return [slots[j] if j < len(slots) and t is near[j] else t.to(home) for t, j in passed]

    @cached_property
    def _beside(self) -> Executor | None:
        """The CPU's kernels, for runs with a hook that the GPU's memory does not hold beside whole ones, or once did
        not: a dispute must be played all the same, and the bits are the same.
        """
        most = None if self.whole is None else backend.memory()
        if most is None or self.whole.nbytes + footprint.needed(self.program, frozenset())[0] <= most:  # type: ignore[union-attr]
            return None
        return cpu_executor(self.program)

    @cached_property
    def _sources(self) -> list[int]:
        """The node that each slot of Y is the value of, slots in list order."""
        return [node.node for node in self.program.nodes if isinstance(node, Output)]

    @cached_property
    def _computed(self) -> frozenset[int]:
        """Slots of Y that are no inputs."""
        return frozenset(k for k, j in enumerate(self._sources) if not isinstance(self.program.nodes[j], Input))

    @cached_property
    def _passed_later(self) -> frozenset[int]:
        """Slots of Y that are computed, and that the next step passes through: there they are taken as they are."""
        return self._computed.intersection(self._sources)

    def _instrumented(self, flat: list[Tensor], hook: Hook | None) -> list[Tensor]:
        """The outputs, node by node; every value is a tensor of its own that the hook may keep."""
        values: list[Tensor | None] = [None] * len(self.program.nodes)
        values[: len(flat)] = flat
        altered: set[int] = set()
        first_output = len(values) - sum(self.program.outputs)
        for k, step in enumerate(self._steps):
            if k >= len(flat):
                kernel = self.kernels.untrusting(k) if altered.intersection(step.exponents) else step.kernel
                values[k] = own_memory(kernel(values))  # type: ignore[arg-type]
            if hook is not None:
                shown = values[k].cpu()  # type: ignore[union-attr]
                seen = hook(k, shown)
                if seen is not shown:
                    altered.add(k)
                    kept = own_memory(self._checked(k, step, seen)).to(self.kernels.device)
                    values[k] = canonical(kept) if kept.dtype is torch.bool else kept
            for j in step.dead:
                values[j] = None
        return values[first_output:]  # type: ignore[return-value]

    @staticmethod
    def _checked(k: int, step: _Step, value: Tensor) -> Tensor:
        if value.dtype is not step.dtype or tuple(value.shape) != step.dims:
            raise InvariantError(f"A hook returned {value.dtype} {list(value.shape)} for node {k}.")
        return value


@cache
def usable_natives() -> tuple[Natives | None, str]:
    """This machine's kernels, or None and why: they are not built, or fail their self-test against stock torch."""
    nodes, reason = layout.kernels()
    if nodes is None:
        return None, reason
    with torch.device("cpu"):
        found = Natives(nodes, native_dot.kernels())
        wrong = selftest.failure(
            lambda program, lists: Executor(program, variant=KernelVariant.STOCK, natives=found).run(lists),
            lambda program, lists: Executor(program, variant=KernelVariant.FUSED, natives=found).run(lists),
        )
    if wrong:
        return None, f"the native kernels ({nodes.instruction_set}) fail their self-test: {wrong}"
    return found, ""


def usable_triton() -> str:
    """Why programs should not run by Triton's kernels here: none are there, or they fail their self-test."""
    return backend.absence() or _wrong_by_triton()


@cache
def _wrong_by_triton() -> str:
    """What Triton's kernels get wrong against stock torch on the CPU."""
    try:
        with torch.device("cpu"):  # whatever device is the caller's default
            wrong = selftest.failure(
                lambda program, lists: Executor(program, variant=KernelVariant.STOCK).run(lists),
                lambda program, lists: Executor(program, variant=KernelVariant.TRITON).run(lists),
            )
    except Exception as error:  # a compiler that is missing, a device that it does not know: whatever it is, it is said
        wrong = backend.in_one_line(error)
    return f"Triton's kernels ({backend.device_name()}) fail their self-test: {wrong}" if wrong else ""


def usual_variant() -> KernelVariant | None:
    """Triton's kernels where a GPU is asked for, or left open and there and right; None for what the CPU has best.

    A GPU that is asked for may be Triton's interpreter, for tests; nobody gets that unasked, nor kernels that were
    never seen on a GPU: who computes something else than others loses what it staked.

    Raises:
        ConfigError: NoDevice, a GPU is asked for and not usable: none, no Triton, a failed self-test.
    """
    wanted = devices.asked()
    unasked = wanted is Device.AUTO
    if wanted is Device.CPU or (unasked and (backend.is_interpreted() or not backend.SEEN_ON_A_GPU)):
        return None
    reason = usable_triton()
    if reason and wanted is Device.CUDA:
        raise ConfigError(
            f"Programs cannot run on a GPU here: {reason}.",
            code="NoDevice",
            remedy="Use --device cpu, or a machine with a GPU, its driver, Triton and a torch that is built for it.",
        )
    return None if reason else KernelVariant.TRITON


def cpu_variant() -> KernelVariant:
    """What the CPU has best, whichever device is asked for."""
    return KernelVariant.STOCK if usable_natives()[0] is None else KernelVariant.FUSED


def cpu_executor(program: Program) -> Executor:
    """By what the CPU has best, with whatever memory it takes: for what must be computed though a GPU lacks room."""
    with torch.device("cpu"):
        return Executor(program, variant=cpu_variant(), memory=footprint.UNBOUNDED)


def how_programs_run() -> str:
    """One line to print at a start: by which executor programs run, and why not by faster kernels."""
    if usual_variant() is KernelVariant.TRITON:
        return f"Programs run by Triton's kernels ({backend.device_name()})."
    natives, reason = usable_natives()
    if natives is None:
        return f"Programs run by stock torch, several times slower than by native kernels: {reason}."
    sentence = f"Programs run by native kernels ({natives.nodes.instruction_set})"
    if natives.products is None:
        return f"{sentence}, products by stock torch: {library.native(native_dot.UNIT).reason}."
    return f"{sentence}."
