"""How an actor computes what is published of a run, and what a run is refused for before anything is staked in it.

An actor never asks the audited party for anything: whatever a replay needs is in the store under a root that the chain
names. Source: docs/adr/0007-actors.md; docs/protocol.md, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from assay.protocol.errors import MismatchError, UnavailableError, UserError
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, SlotTamper, Tamper, Trace
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.state import ListBytes
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.store.blobs import StoreDenied, StoreUnreachable
from assay_ledger.store.canonical import check_canonical
from assay_ledger.store.objects import Objects


class Compute(Protocol):
    """Runs programs on bytes; `training.rounds.TorchCompute` is the one that actors use."""

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int,
        tamper: Tamper | None = None,
        on_step: OnStep | None = None,
    ) -> ListBytes:
        """Y after some steps from X; `tamper` makes it a lie that is consistent from there on."""
        ...

    def recheck(self, program: Program, lists: ListBytes, steps: int, on_step: OnStep | None = None) -> ListBytes:
        """The same by other kernel variants, before an accusation."""
        ...

    def trace(
        self,
        program: Program,
        lists: ListBytes,
        steps: int,
        tamper: Tamper | None = None,
        tamper_slot: SlotTamper | None = None,
    ) -> Trace:
        """The same run with everything that a game may ask about."""
        ...


class RecheckMismatch(MismatchError):
    """A second calculation does not confirm what somebody was about to be accused of."""

    remedy = "This machine's arithmetic or memory is at fault: stop the actor and test the hardware."


class StateMismatch(MismatchError):
    """ListBytes that were fetched do not make up the state that they were fetched for."""

    remedy = "Do not sign for the commitment: what it names is not what was published."


class GenesisMissing(UnavailableError):
    """What a run starts from is not in the store, or is laid out otherwise than the step program reads it."""

    remedy = "Stake nothing in the run until its sponsor has published it; check that the store is the run's."


@dataclass(frozen=True, slots=True)
class Computation:
    """A claim as it is computed: program, X, steps."""

    program: Program
    lists: ListBytes
    steps: int


@contextmanager
def as_genesis(what: str) -> Iterator[None]:
    """Names what a run starts from where it is not to be had. Raises GenesisMissing, StoreUnreachable, StoreDenied."""
    try:
        yield
    except (StoreUnreachable, StoreDenied):
        raise
    except UnavailableError as error:
        raise GenesisMissing(f"The store does not hold {what} as the step program reads it: {error.message}") from error


def check_sound(programs: Mapping[str, Program]) -> None:
    """Whether programs can be run, and on this machine. Raises UserError (IllFormedProgram, ProgramTooLarge)."""
    from assay.engine.runtime.room import check_memory  # torch is for those who compute

    for name, program in programs.items():
        if found := violations(program):
            raise UserError(
                f"The run's {name} program is ill-formed: {'; '.join(str(v) for v in found[:3])}.",
                code="IllFormedProgram",
                remedy="Refuse the run that names it.",
            )
        check_memory(program)


def check_first_lists(objects: Objects, wanted: Iterable[tuple[str, Digest, Sequence[TensorSpec]]]) -> None:
    """Whether lists that a run starts from are there as its programs read them, each by name, root and layout.

    Raises NotCanonical, GenesisMissing, UnavailableError.
    """
    for what, root, specs in wanted:
        with as_genesis(what):
            tensors = objects.list(root, specs)
        check_canonical(what, specs, tensors)
