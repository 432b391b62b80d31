"""Captured training programs with a state each, and hostile values for their nodes to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.native.sha256 import tensor_root
from assay.engine.runtime.values.dtypes import from_bytes, to_bytes
from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs
from assay.protocol.program.nodes import Const, Family, Gather, Input, Output
from assay.protocol.program.program import Program
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.state import SCALAR_SPECS
from assay.protocol.types import Digest, DType
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import DEMO
from assay.training.programs import outer_program, training_program, zero_parameters
from assay.training.recipes.recipe import RecipeStep
from assay.training.state import Scalars, TensorLists
from assay.training.step import initial_state, preset_step
from assay.training.updates import UpdateWire
from tests.harness.actors.sparse import sparse_work
from tests.harness.actors.world import TrainedWork
from tests.harness.contracts.captured_rules import MERGES, ROBUST, RULES, UPDATES, Subject
from tests.harness.contracts.leaf_cases import NON_FINITE, SPECIALS
from tests.harness.engine.models import MODELS

NAN = 0x7FC00000
TEXT_LENGTH = 20_000


def _gpt() -> Subject:
    """The step of the demo's GPT."""
    corpus = corpus_from_text(pydoc_text()[:TEXT_LENGTH])
    step = preset_step(DEMO, len(corpus.vocabulary))
    scalars = Scalars.of(corpus.train, learning_rate=3e-3, key=(3, 4))
    return training_program(DEMO, corpus), initial_state(step, initialize(step.module, 1), scalars)


def _outer() -> Subject:
    """The outer step over the demo's GPT: eight updates, some of them left out."""
    step = preset_step(DEMO, len(corpus_from_text(pydoc_text()[:TEXT_LENGTH]).vocabulary))
    program = outer_program(zero_parameters(step))
    draw = torch.Generator().manual_seed(1)
    lists = [[torch.randn(spec.dims, generator=draw) for spec in part] for part in input_specs(program)]
    lists[-1][0] = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    return program, tuple(lists)


def _model(name: str) -> Subject:
    """The step of one of the models that a user might write."""
    torch.manual_seed(4)
    step = RecipeStep(MODELS[name]())
    state = step.state(key=(7, 8))
    return capture(step, state).program, state


def _sparse() -> Subject:
    """The step that ranks its gradients."""
    work: TrainedWork = sparse_work()
    scalars = [SCALAR_SPECS[s].zeros() for s in sorted(SCALAR_SPECS)]
    lists = (work.parameters, work.optimizer, (*scalars, work.data))
    return work.step, from_lists_of_bytes(input_specs(work.step), lists)


FIRST_WIRES = (UpdateWire.F32, UpdateWire.BF16, UpdateWire.INT8, UpdateWire.INT4, UpdateWire.SPARSE)
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "demo gpt": _gpt,
    "demo outer step": _outer,
    "sparse": _sparse,
    **{f"{wire.value} update": UPDATES[f"{wire.value} update"] for wire in FIRST_WIRES},
    **{f"{wire.value} merge": MERGES[f"{wire.value} merge"] for wire in FIRST_WIRES},
    **{f"{kind.value} of updates": MERGES[f"{kind.value} of updates"] for kind in ROBUST},
    **{name: (lambda name=name: _model(name)) for name in ("llama", "experts", "mlp", "cnn", "gru", "muon")},
}

LONG_SUBJECTS = {name: make for name, make in RULES.items() if name not in SUBJECTS}
"""Whose leaves are tried at length alone: their nodes are of families that others have."""


@cache
def subject(name: str) -> Subject:
    """A captured program by name, with a state; captured once."""
    return (SUBJECTS | LONG_SUBJECTS)[name]()


@cache
def executor_of(name: str, variant: KernelVariant) -> Executor:
    """An executor of that program."""
    return Executor(subject(name)[0], variant=variant)


class Noise:
    """What later nodes read in place of what a node wrote: the same for all executors, drawn from seed and node.

    rate: the share of nodes that are altered. wild: also non-finite values; else those arise by overflow alone.
    inputs_only: no computed node is altered. Constants stay, since the program binds them.
    """

    def __init__(self, program: Program, seed: int, *, rate: float, wild: bool, inputs_only: bool = False) -> None:
        self._program, self._seed = program, seed
        self._rate, self._wild, self._inputs_only = rate, wild, inputs_only
        self._tables: dict[int, list[int]] = {}
        for node in program.nodes:
            if isinstance(node, Gather):
                self._tables.setdefault(node.index.node, []).append(node.size)

    def __call__(self, k: int, value: Tensor) -> Tensor:
        """The value that is read; the very tensor where nothing is altered."""
        node, draw = self._program.nodes[k], np.random.default_rng((self._seed, k))
        if isinstance(node, Const | Output) or (self._inputs_only and not isinstance(node, Input)):
            return value
        spec, rate = node.spec, self._rate
        if node.family is Family.ROWEXP:
            # Exponents that are not their rows' own send products to the general kernels: seldom, to see others too.
            rate /= 8
        elif spec.dtype is not DType.F32:
            # Indices and tokens are few, and spread nothing but themselves.
            rate = 0.5 if k in self._tables else max(rate, 0.3)
        if not value.numel() or draw.random() >= rate:
            return value
        data = bytearray(to_bytes(value))
        if spec.dtype is DType.F32:
            _bend_floats(np.frombuffer(data, np.uint32), draw, wild=self._wild, payloads=isinstance(node, Input))
        else:
            x = np.frombuffer(data, np.dtype(f"<i{spec.dtype.size}"))
            _bend_integers(x, draw, spec.dtype, self._tables.get(k, ()))
        return from_bytes(spec.dtype, spec.dims, bytes(data))


def _bend_floats(x: np.ndarray, draw: np.random.Generator, *, wild: bool, payloads: bool) -> None:
    """Alters binary32 patterns in place; NaN payloads stay only where a state may hold them."""
    specials = np.array(SPECIALS + (NON_FINITE if wild else ()), np.uint32)
    match draw.integers(5):
        case 0:  # a few elements at the edges
            x[draw.integers(len(x), size=min(8, 1 + len(x) // 16))] = draw.choice(specials)
        case 1:  # all of it towards subnormals, or overflow
            with np.errstate(over="ignore"):
                x[:] = (
                    np.ldexp(x.view(np.float32).astype(np.float64), int(draw.integers(-160, 130)))
                    .astype(np.float32)
                    .view(np.uint32)
                )
        case 2:  # ties
            x[:] = draw.choice(np.append(draw.choice(specials, 3), x[0]), len(x))
        case 3:  # zeros of both signs
            x[:] = draw.integers(2, size=len(x)).astype(np.uint32) << 31
        case _:  # any pattern
            x[:] = draw.integers(1 << 32, size=len(x), dtype=np.uint32)
    if not wild:
        x[(x & 0x7F800000) == 0x7F800000] ^= 0x40000000
    if not payloads:
        x[(x & 0x7FFFFFFF) > 0x7F800000] = NAN


def _bend_integers(x: np.ndarray, draw: np.random.Generator, dtype: DType, tables: Sequence[int]) -> None:
    """Alters some elements in place: neighbours, extremes, the sentinel of exponents, the ends of tables read by it."""
    at = draw.integers(len(x), size=1 + len(x) // 2)
    if dtype is DType.BOOL:
        x[at] ^= 1
        return
    low, high = -(1 << (8 * dtype.size - 1)), (1 << (8 * dtype.size - 1)) - 1
    edges = [0, 1, -1, 128, 129, 130, -149, -150, low, high]
    ends = [n + d for n in tables for d in (-1, 0, 0, 1)]
    near = [int(x[at[0]]) + d for d in (-1, 1)]
    pools = [edges, ends or near, draw.integers(low, high, size=8, endpoint=True).tolist()]
    pool = np.array([((v - low) & (high - low)) + low for v in pools[int(draw.integers(3))]], x.dtype)
    x[at] = draw.choice(pool, len(at))


class Instrumented:
    """One run by one executor under noise: what every node wrote, and what later nodes read in its place.

    Answers as a trace of one step whose values are those that were read.
    """

    def __init__(self, executor: Executor, inputs: TensorLists, noise: Noise) -> None:
        self.program = executor.program
        self.wrote: list[bytes] = []
        self.read: list[bytes] = []

        def see(k: int, value: Tensor) -> Tensor:
            self.wrote.append(to_bytes(value))
            seen = noise(k, value)
            is_slot = isinstance(self.program.nodes[k], Input)  # a slot is taken as it came, canonical or not
            self.read.append(seen.numpy().tobytes() if is_slot else to_bytes(seen))
            return seen

        executor.run(inputs, see)

    @cached_property
    def _prefix(self) -> PrefixTree:
        return PrefixTree([tensor_root(s, d) for s, d in zip(self.program.specs, self.read, strict=True)])

    def node_bytes(self, t: int, k: int) -> bytes:
        """What later nodes read of node k."""
        return self.read[k]

    def prefix_root(self, t: int, k: int) -> Digest:
        """P_k over what was read."""
        return self._prefix.roots[k]

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]:
        """The siblings of leaf j under it."""
        return self._prefix.path(k, j)
