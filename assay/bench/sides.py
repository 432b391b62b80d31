"""The sides of `assay bench step`: a model's step by an exact program, by eager PyTorch, by torch.compile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench.models import LARGE, SHORT, recipe_of
from assay.bench.tried_small import TriedSmall
from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.runtime.devices import Device
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives, usable_triton
from assay.engine.runtime.triton import backend
from assay.engine.runtime.values import state_io
from assay.programs.capture import tier_of
from assay.protocol.errors import ConfigError
from assay.protocol.program.program import Program
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.training.recipes.recipe import RecipeStep
from assay.training.state import TensorLists

CPU: Final = torch.device("cpu")

EAGER: Final = "eager"
DETERMINISTIC: Final = "deterministic"
"""Eager with `torch.use_deterministic_algorithms`."""
COMPILE: Final = "compile"
"""Forward and backward by torch.compile; on a GPU products of f32 may round to TF32, as its users let them."""


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured: a tier by an executor (fused or stock), plain or witnessed, or PyTorch in f32 or bf16."""

    tier: str
    executor: str
    is_witnessed: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether it runs a program."""
        return self.executor not in (EAGER, DETERMINISTIC, COMPILE)


YARDSTICK: Final = Contender("f32", EAGER)
PEERS: Final = (Contender("f32", COMPILE), Contender("bf16", COMPILE))
"""What torch.compile makes of the same step, in f32 and with autocast to bf16."""


def device_of(name: Device) -> torch.device:
    """The device of this name; auto is the GPU where torch has one. Raises ConfigError (NoDevice)."""
    if name is Device.AUTO:
        return torch.device("cpu" if backend.no_gpu() else "cuda")
    if name is Device.CUDA and (missing := backend.no_gpu()):
        raise ConfigError(
            f"{missing[0].upper()}{missing[1:]}.",
            code="NoDevice",
            remedy="Use --device cpu, or a machine with an NVIDIA GPU, its driver and a torch with CUDA.",
        )
    return torch.device(name.value)


def there(device: torch.device) -> AbstractContextManager[object]:
    """Makes new tensors lie on the device; on the CPU they do, and being asked costs time."""
    return nullcontext() if device.type == "cpu" else device


def why_not_compiled(device: torch.device) -> str:
    """What torch.compile lacks here to make code for a device; nothing where it lacks nothing."""
    if device.type == "cuda":
        if find_spec("triton") is None:
            return "torch.compile makes its kernels by Triton, which is not installed"
        return "" if _found("CC", "gcc", "clang", "cc") else "torch.compile needs a C compiler, and there is none"
    return "" if _found("CXX", "g++", "clang++") else "torch.compile needs a C++ compiler, and there is none"


def _found(variable: str, *usual: str) -> bool:
    named = os.environ.get(variable)
    return any(map(shutil.which, (named,) if named else usual))


def program_of(model: str, tier: str) -> Program:
    """The program of one step, captured without calibration, from the cache where it has been captured before."""
    step = _step_of(model)
    described = {"kind": "bench step", "model": model, "tier": tier, "shapes": _shapes(step.state())}
    return cached_program(described, lambda: capture(step, step.state(), tier_of(tier)).program)


@lru_cache(maxsize=1)
def _step_of(model: str) -> RecipeStep:
    """The step of a model, kept for its other tiers: making one tries it."""
    return TriedSmall(recipe_of(model)) if model in LARGE | SHORT else RecipeStep(recipe_of(model))


def _shapes(state: TensorLists) -> list[list[str]]:
    return [[f"{t.dtype} {list(t.shape)}" for t in part] for part in state]


def start_of(model: str, tier: str, *, is_witnessed: bool = False) -> tuple[Program, TensorLists]:
    """The program of one step and the state before the first: what a participant of a run is given."""
    plain, state = program_of(model, tier), _step_of(model).state(key=(1, 2))
    if not is_witnessed:
        return plain, state
    program = witnessed_program(plain)
    specs = state_io.input_specs(program)[len(state) :]
    return program, (*state, *state_io.from_lists_of_bytes(specs, witness_lists((3, 4))))


class Exact:
    """A side that runs a program, state after state, as `Executor.repeat` does; it takes the first one over."""

    def __init__(self, program: Program, state: TensorLists, variant: str, device: torch.device = CPU) -> None:
        self.program, self.device = program, device
        self.state: Any = tuple([t.to(device) for t in part] for part in state)
        with there(device):
            self.executor = Executor(program, variant=KernelVariant(variant))

    def __call__(self) -> None:
        """One step."""
        with there(self.device):
            self.state = tuple(self.executor.run(self.state, give=True, store=False))


def indexed_there(t: Tensor, device: torch.device) -> Tensor:
    """The same numbers on the device, in a type that it indexes: torch indexes no u16 on a GPU."""
    return (t.to(torch.int32) if t.dtype is torch.uint16 and device.type != "cpu" else t).to(device)


class Eager:
    """A side that trains the recipe's module as a PyTorch user would."""

    def __init__(self, model: str, device: torch.device = CPU, *, is_deterministic: bool = False) -> None:
        self.recipe = recipe_of(model)
        self.recipe.module.to(device)
        self._device, self._is_deterministic = device, is_deterministic
        self._data = [indexed_there(t, device) for t in self.recipe.data]

    def __call__(self) -> None:
        """One step: batch, forward, backward, optimizer."""
        torch.use_deterministic_algorithms(self._is_deterministic)
        try:
            self._step()
        finally:
            torch.use_deterministic_algorithms(False)

    def _step(self) -> None:
        recipe, optimizer = self.recipe, self.recipe.optimizer
        assert isinstance(optimizer, torch.optim.Optimizer)
        width = recipe.window or 1
        rows = torch.randint(self._data[0].shape[0] - width + 1, (recipe.batch_size,), device=self._device)
        if recipe.window is not None:
            rows = rows[:, None] + torch.arange(width, device=self._device)
        optimizer.zero_grad(set_to_none=True)
        self._loss(*(t[rows] for t in self._data)).backward()
        optimizer.step()

    def _loss(self, *batch: Tensor) -> Any:
        return self.recipe.loss(self.recipe.module, *batch)


class CompiledEager(Eager):
    """The same with loss and gradients by torch.compile; is_bf16: products and activations in bf16."""

    def __init__(self, model: str, device: torch.device = CPU, *, is_bf16: bool) -> None:
        super().__init__(model, device)
        self._is_bf16, self._compiled = is_bf16, torch.compile(super()._loss)

    def __call__(self) -> None:
        """One step."""
        usual = torch.get_float32_matmul_precision()
        if self._device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        try:
            self._step()
        finally:
            torch.set_float32_matmul_precision(usual)

    def _loss(self, *batch: Tensor) -> Any:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._is_bf16):
            return self._compiled(*batch)


def side_of(model: str, side: Contender, device: torch.device = CPU) -> Callable[[], None]:
    """The step of a side, ready to be called again and again."""
    if side.executor == COMPILE:
        return CompiledEager(model, device, is_bf16=side.tier == "bf16")
    if not side.is_exact:
        return Eager(model, device, is_deterministic=side.executor == DETERMINISTIC)
    return Exact(*start_of(model, side.tier, is_witnessed=side.is_witnessed), side.executor, device)


def default_variant(device: torch.device = CPU) -> str:
    """How programs run on a device unless asked otherwise. Raises ConfigError (NoDevice): none does on a GPU."""
    if device.type == "cpu":
        return KernelVariant.STOCK.value if usable_natives()[0] is None else KernelVariant.FUSED.value
    if why := usable_triton():
        raise ConfigError(
            f"Programs cannot run on a GPU here: {why}.",
            code="NoDevice",
            remedy="Use --device cpu, or install the Triton that torch was built with.",
        )
    return KernelVariant.TRITON.value
