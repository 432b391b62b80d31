"""A program's whole runs on a device: inputs in places of their own, values in one arena, Y over X, one captured graph.

The arena is planned and made at the first run, and kept. On a GPU all kernels are compiled before the first run, side
by side (`ahead`); the second is captured (`torch.cuda.CUDAGraph`) and later ones replay it. The interpreter takes the
same steps over the same places, one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from threading import Lock, RLock

import torch
from torch import Tensor

from assay.engine.runtime.triton import ahead, arena, backend
from assay.engine.runtime.triton.donation import Plan, plan_of
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.values.dtypes import TORCH, canonical
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Output
from assay.protocol.program.program import Program

_one_at_a_time = Lock()
"""Of captures, whichever program's."""


class WholeRuns:
    """Runs of one program, by one thread at a time: whoever runs several after another holds `turn`."""

    def __init__(self, program: Program, groups: MapGroups, beside: int = 0) -> None:
        """beside: bytes of what runs read that lies elsewhere: constants, what checks keep."""
        self._program, self.groups, self._beside = program, groups, beside
        self.turn = RLock()
        self._inputs = [k for part in program.input_nodes for k in part]
        outputs = [program.nodes[k] for part in program.output_nodes for k in part]
        self._sources = [node.node for node in outputs if isinstance(node, Output)]
        self._is_iterable = program.is_iterable()
        self._held: list[tuple[Tensor, int] | None] = [None] * len(self._inputs)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._runs = 0
        self._ends: list[Tensor] = []

    @cached_property
    def plan(self) -> Plan:
        """What kernels ask for and where it lies; nothing is computed or allocated for it."""
        return plan_of(self._program, self.groups)

    @property
    def nbytes(self) -> int:
        """Of all memory that runs take."""
        return self.plan.size + self._beside

    @cached_property
    def _arena(self) -> arena.Arena:
        made = arena.Arena(self.plan.size)
        made.give([made.tensor(o, dims, dtype) for o, (dims, dtype) in self.plan.requests])
        return made

    @cached_property
    def _slots(self) -> list[Tensor]:
        """Where the kernels read X."""
        return [self._slot(k, offset) for k, offset in enumerate(self.plan.inputs)]

    @cached_property
    def _staged(self) -> dict[int, Tensor]:
        """Copies of the slots of X that other slots of Y are, made before any of these is written over."""
        return {k: self._slot(k, offset) for k, offset in sorted(self.plan.staged.items())}

    def _slot(self, k: int, offset: int) -> Tensor:
        spec = self._program.specs[k]
        return self._arena.tensor(offset, spec.dims, TORCH[spec.dtype])

    def run(self, slots: Sequence[Tensor], *, store: bool, home: torch.device) -> list[Tensor]:
        """The slots of Y for those of X, wherever these lie; one that is an input passed through is that very tensor,
        unless that is the arena's.

        store: computed ones are tensors of their own, on `home`. Else, where Y is an X, they are the arena's: for the
        next run, and for nothing else.

        Raises:
            InvariantError: StaleState, a slot of X lies in the arena and is not what the last run gave.
        """
        with self.turn:
            if not self._runs:
                ahead.compile_ahead(self.launches)
            self._load(slots)
            self._held = [None] * len(self._inputs)
            self._launch()
            ends = self._slots if self._is_iterable else self._ends
            is_kept = self._is_iterable and not store
            found = [
                slots[j] if j < len(slots) and slots[j] is not self._slots[j] else end if is_kept else _copy(end, home)
                for end, j in zip(ends, self._sources, strict=True)
            ]
            if is_kept:
                self._held = [(t, t._version) for t in found]
            return found

    def _load(self, slots: Sequence[Tensor]) -> None:
        """Puts X where the kernels read it; what lies there already stays."""
        own = self._arena.whole.untyped_storage().data_ptr()
        # All are looked at before any is copied: tensors of one memory have one count of changes.
        changed = [
            k
            for k, (t, held) in enumerate(zip(slots, self._held, strict=True))
            if held is None or held[0] is not t or held[1] != t._version
        ]
        for k in changed:
            if slots[k].numel() and slots[k].untyped_storage().data_ptr() == own:
                raise InvariantError(
                    f"Slot {k} was the X of the next run alone, and another run came between.", code="StaleState"
                )
        for k in changed:
            # A reader of a bool takes every byte but 0 for true.
            self._slots[k].copy_(canonical(slots[k]) if slots[k].dtype is torch.bool else slots[k])

    def _launch(self) -> None:
        if self._runs == 1 and not backend.is_interpreted():
            # By now every kernel has been compiled, and every library has made what it keeps.
            self._runs = 2
            self._graph = self._captured()
        if self._graph is None:
            self._steps()
        else:
            self._graph.replay()
        self._runs = max(self._runs, 1)  # the first that came to its end

    def _captured(self) -> torch.cuda.CUDAGraph | None:
        """A run as one launch; None, with a warning, where none can be made of it: then it is launched kernel by
        kernel, this time too, since who asked for it may have a deadline. Nothing was computed for it meanwhile.
        """
        graph, own = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            # Calls of other threads are none of the graph's: NCCL looks at its events, another executor allocates. But
            # a second capture would begin by waiting for the device, which ends the first.
            with _one_at_a_time, torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._steps()
        except RuntimeError as error:
            said = f"A program is launched kernel by kernel: no graph can be made of it ({backend.in_one_line(error)})."
            warnings.warn(said, RuntimeWarning, stacklevel=2)
            # torch leaves the stream of a capture that did not end in force, which waits for no other and none for it.
            torch.cuda.set_stream(own)
            return None
        return graph

    def launches(self) -> Sequence[backend.Launch]:
        """What a run launches, over the places where it will; what it computes without kernels comes of nothing."""
        self._arena.begin()
        with backend.recorded() as seen, arena.within(self._arena):
            self.groups.run(self._slots)
        return seen

    def _steps(self) -> None:
        """All of a run, over places that never move."""
        self._arena.begin()
        with arena.within(self._arena):
            self._ends = self.groups.run(self._slots)
        if not self._is_iterable:
            return
        for k, place in self._staged.items():
            place.copy_(self._slots[k])
        for slot, (end, j) in enumerate(zip(self._ends, self._sources, strict=True)):
            if j != slot and slot not in self.plan.donated:
                self._slots[slot].copy_(self._staged.get(j, end))


def _copy(t: Tensor, home: torch.device) -> Tensor:
    """A tensor of its own."""
    return t.to(home, copy=True)
