"""What solvers and auditors compute in a round: programs run on bytes, honestly or with a lie that is consistent.

Training, update and merge are all the same here: a program, the lists of X, a number of steps. Bytes go in and
come out, so that no machine's tensors, devices or libraries leak into what is claimed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import torch

from assay.engine.runtime import footprint
from assay.engine.runtime.executor import Executor, KernelVariant, cpu_executor
from assay.engine.runtime.memory_bound import named_memory
from assay.engine.runtime.second_kernels import second_executor
from assay.engine.runtime.trace import TorchTrace
from assay.engine.runtime.triton import backend
from assay.engine.runtime.values.state_io import check_mapped, from_lists_of_bytes, input_specs, mappings_of, passed_on
from assay.protocol.errors import ConfigError
from assay.protocol.program.program import Program
from assay.protocol.program.trace import SlotTamper, Tamper, Trace
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest

T = TypeVar("T")


class TorchCompute:
    """Runs programs as is usual on this machine, or by one variant; executors are built once per program and kept, on a
    GPU with the memory of its runs, as long as that holds them all.
    """

    def __init__(self, variant: KernelVariant | None = None) -> None:
        self._variant = variant
        self._executors: dict[Digest, Executor] = {}

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> ListBytes:
        """Y after `steps` steps from X: the bytes of every slot per list, those passed through as they were.

        tamper: alters a node's value, and everything after is computed from the altered one; one that has a method
        `touches(step, node)` is asked for the nodes that it names only.

        Raises:
            UserError: the program is ill-formed, or the lists do not fit it.
            InvariantError: DataChanged, the file of a mapped slot was written to meanwhile.
        """
        executor = self._executor(program, lists)
        if tamper is None:
            return self._with_room(program, lambda: _run(executor, lists, steps, on_step))
        trace, state = TorchTrace(executor, lists, steps, tamper), lists
        for t in range(1, steps + 1):
            state = trace.state_bytes(t)
            if on_step is not None:
                on_step(t)
        return state

    def recheck(
        self, program: Program, lists: ListBytes, steps: int = 1, on_step: Callable[[int], None] | None = None
    ) -> ListBytes:
        """The same from the beginning by other kernels (`second_kernels`) and another number of threads.

        Before an accusation: a defect of this machine must not look like another's fraud. Raises MemoryExceeded: it is
        tried again later, since an actor that ended would open no call and answer no game.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(threads - 1 or 2)
        try:
            with named_memory():
                return _run(second_executor(program), lists, steps, on_step)
        finally:
            torch.set_num_threads(threads)

    def trace(
        self,
        program: Program,
        lists: ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        tamper_slot: SlotTamper | None = None,
    ) -> Trace:
        """The same run with everything that a game may ask about; `tamper_slot` alters slots of the states after."""
        try:
            executor = self._executor(program, lists)
        except Exception as error:  # a game must be played, whoever holds the GPU's memory, and if it is lost
            if not backend.is_of_the_gpu(error):
                raise
            executor = cpu_executor(program)
        return TorchTrace(executor, lists, steps, tamper, tamper_slot)

    def _executor(self, program: Program, lists: ListBytes) -> Executor:
        if program.root not in self._executors:
            # What lies in files takes no memory that the machine cannot have back.
            mapped = sum(map(len, mappings_of(lists)))
            memory = footprint.limit() + mapped
            made = self._with_room(program, lambda: Executor(program, variant=self._variant, memory=memory))
            self._executors[program.root] = made
        return self._executors[program.root]

    def _with_room(self, program: Program, call: Callable[[], T]) -> T:
        """The call's result; where a GPU has no memory for its beginning, without what other programs' executors hold.

        Each of a run's programs fits the GPU, which is looked at before the stake; all of them need not at once.
        """
        try:
            return call()
        except (RuntimeError, ConfigError) as error:
            others = self._executors.keys() - {program.root}
            is_full = getattr(error, "code", None) == "MemoryExceeded" or backend.lacks_memory(error)
            if not is_full or not others:
                raise
        for root in others:
            del self._executors[root]
        gc.collect()  # executors are rings
        backend.give_back()
        return call()


def _run(executor: Executor, lists: ListBytes, steps: int, on_step: Callable[[int], None] | None = None) -> ListBytes:
    inputs = from_lists_of_bytes(input_specs(executor.program), lists)
    mappings = mappings_of(lists)

    def after(step: int) -> None:
        for mapping in mappings:
            mapping.let_go()  # or the pages of all rows that were ever drawn would add up to the data
        if on_step is not None:
            on_step(step)

    results = executor.repeat(inputs, steps, after if mappings else on_step)
    check_mapped(lists)
    return passed_on(lists, inputs, results)
