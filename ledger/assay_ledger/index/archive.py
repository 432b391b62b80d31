"""The published work of a run: states, updates and outer steps, fetched by root, put together and checked.

An actor never asks the audited party for anything: whatever a replay needs is in the store under a root that the chain
names. Scalars lists are never published; everybody computes them from round, seat and step.
Source: docs/adr/0007-actors.md; docs/protocol.md, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError, MismatchError, UnavailableError, UserError
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, SlotTamper, Tamper, Trace
from assay.protocol.program.wellformed import violations
from assay.protocol.run.charter import ProgramRef
from assay.protocol.run.layouts import check_layouts
from assay.protocol.trees.state import SCALAR_SPECS, ListBytes, Scalar, TrainingList, list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import SEATS, Digest, DType, Round, Seat
from assay_ledger.index.publications import Publications
from assay_ledger.index.records import CommitmentRecord, RoundRecord
from assay_ledger.index.view import Duty, Facts, OuterStep, RunView
from assay_ledger.store.blobs import StoreDenied, StoreUnreachable
from assay_ledger.store.canonical import check_canonical
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Objects, Tensors, root_of_list


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

    def recheck(self, program: Program, lists: ListBytes, steps: int) -> ListBytes:
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
    from assay.engine.runtime.executor import check_memory  # torch is for those who compute

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


class Archive:
    """The programs of one run and what was published under its roots. Reads raise UnavailableError."""

    def __init__(self, facts: Facts, objects: Objects, publications: Publications) -> None:
        self.facts = facts
        self.objects = objects
        self._publications = publications

    # --- where things lie

    def told_of(self, commitment: CommitmentRecord) -> AbstractContextManager[None]:
        """In this block objects are looked for where the solver of a commitment said that they are."""
        return self.objects.told(self._publications.told([commitment.tx_hash]))

    def told_of_base(self, view: RunView, generation: Round, base: Digest) -> AbstractContextManager[None]:
        """In this block objects are looked for where those who posted an outer root, or began there, said they are."""
        record = view.state.rounds[generation]
        began = [c.tx_hash for _, c in sorted(record.commitments.items()) if c.base == base]
        return self.objects.told(self._publications.told([*view.posted_in(generation, base), *began]))

    # --- programs and layouts

    @cached_property
    def step(self) -> Program:
        """One training step."""
        return self._program(self.facts.charter.step)

    @cached_property
    def update(self) -> Program:
        """start - end."""
        return self._program(self.facts.charter.update)

    @cached_property
    def outer(self) -> Program:
        """The outer step."""
        return self._program(self.facts.charter.outer)

    def check_programs(self) -> None:
        """Before anything is put at stake: a sponsor may name programs that cannot be run, or not on this machine.

        Or such as do not fit each other. Raises UserError (IllFormedProgram, ProgramTooLarge), WrongLayout,
        UnavailableError.
        """
        check_sound({"step": self.step, "update": self.update, "outer": self.outer})
        check_layouts(self.step, self.update, self.outer, self.facts.charter.training)

    def check_genesis(self) -> None:
        """Before anything is put at stake: a sponsor may start a run from elements that no store writes.

        Or from lists that are laid out otherwise than its step program reads them, so that they are never found.

        Raises NotCanonical, GenesisMissing, UnavailableError.
        """
        training = self.facts.charter.training
        parameters, optimizer = self.specs(TrainingList.PARAMETERS), self.specs(TrainingList.OPTIMIZER)
        check_first_lists(
            self.objects,
            (
                ("the first parameters", training.parameters, parameters),
                ("the first outer momentum", training.momentum, parameters),
                ("the zero optimizer", training.zero_optimizer, optimizer),
                ("the zero update", training.zero_update, parameters),
            ),
        )
        with as_genesis("the data"):
            # Read once here and kept: every state holds it.
            assert self.data is not None

    def _program(self, ref: ProgramRef) -> Program:
        program = self.objects.program(ref.root)
        if program.header != ref.header:
            raise InvariantError("A program's root fits and its header does not.", code="ProgramMismatch")
        return program

    def specs(self, number: int) -> tuple[TensorSpec, ...]:
        """Types and dims of a list of the training state."""
        return tuple(self.step.specs[k] for k in self.step.input_nodes[number])

    @cached_property
    def data(self) -> bytes:
        """The data tensor."""
        return self.objects.tensor(self.facts.charter.training.data, self.specs(TrainingList.SCALARS)[Scalar.DATA])

    # --- states

    def scalars(self, round_: Round, seat: Seat, done: int) -> Tensors:
        """The scalars list of a seat's state after `done` steps of a round."""
        return (*self._scalar_values(round_, seat, done), self.data)

    def scalars_root(self, round_: Round, seat: Seat, done: int) -> Digest:
        """The list root of the same."""
        values = self._scalar_values(round_, seat, done)
        roots = [tensor_root(SCALAR_SPECS[s], data) for s, data in zip(sorted(SCALAR_SPECS), values, strict=True)]
        return list_root([*roots, self.facts.charter.training.data])

    def _scalar_values(self, round_: Round, seat: Seat, done: int) -> tuple[bytes, ...]:
        start = self.facts.charter.round_scalars(round_, seat)
        values = start.values()
        step = start.first_step + done
        values[Scalar.STEP] = to_bytes(DType.I32, from_ints(DType.I32, (step, step >> 32)))
        return tuple(values[s] for s in sorted(values))

    def state(self, round_: Round, seat: Seat, interval: int, root: Digest) -> ListBytes:
        """The state with this root, at the start of an interval (or the end, at n). Raises StateMismatch."""
        done = interval * self.facts.charter.training.steps_per_interval
        parameters, optimizer = self._list_roots(round_, seat, done, root)[:2]
        return self.assemble(round_, seat, done, parameters, optimizer)

    def assemble(self, round_: Round, seat: Seat, done: int, parameters: Digest, optimizer: Digest) -> ListBytes:
        """A state from two published lists and the computed scalars."""
        return (
            self.objects.list(parameters, self.specs(TrainingList.PARAMETERS)),
            self.objects.list(optimizer, self.specs(TrainingList.OPTIMIZER)),
            self.scalars(round_, seat, done),
        )

    def _list_roots(self, round_: Round, seat: Seat, done: int, root: Digest) -> tuple[Digest, ...]:
        roots = self.objects.state(root)
        if len(roots) != len(TrainingList) or roots[TrainingList.SCALARS] != self.scalars_root(round_, seat, done):
            raise StateMismatch(f"A state of seat {seat} in round {round_} has other scalars than it must have.")
        return roots

    def publish_state(self, round_: Round, seat: Seat, done: int, lists: ListBytes) -> tuple[Digest, ...]:
        """Publishes the parameters and optimizer lists of a state and which lists it is made of; returns list roots."""
        roots = (
            self.objects.put_list(self.specs(TrainingList.PARAMETERS), lists[TrainingList.PARAMETERS]),
            self.objects.put_list(self.specs(TrainingList.OPTIMIZER), lists[TrainingList.OPTIMIZER]),
            self.root_of_scalars(lists[TrainingList.SCALARS], round_, seat, done),
        )
        self.objects.put_state(roots)
        return roots

    def root_of_scalars(self, scalars: Sequence[bytes], round_: Round, seat: Seat, done: int) -> Digest:
        """The list root of a scalars list; the data tensor, which no step changes, is not hashed again."""
        if tuple(scalars) == self.scalars(round_, seat, done):
            return self.scalars_root(round_, seat, done)
        return root_of_list(self.specs(TrainingList.SCALARS), scalars)

    def publish_update(self, update: Tensors) -> Digest:
        """Publishes an update list."""
        return self.objects.put_list(self.specs(TrainingList.PARAMETERS), update)

    # --- commitments and claims

    def check_commitment(self, view: RunView, record: RoundRecord, commitment: CommitmentRecord) -> None:
        """Fetches and hashes every object that a commitment names, and looks whether a store would write it so.

        Raises UnavailableError for what is missing, StateMismatch for what does not belong together, NotCanonical for
        lists that hold what no program makes of a canonical genesis: one of the commitment's claims is false.
        """
        training = self.facts.charter.training
        specs = self.specs(TrainingList.PARAMETERS)
        with self.told_of(commitment):
            for j, root in enumerate(commitment.roots):
                done = j * training.steps_per_interval
                roots = self._list_roots(record.number, commitment.seat, done, root)
                lists = self.assemble(record.number, commitment.seat, done, *roots[:2])
                for number in (TrainingList.PARAMETERS, TrainingList.OPTIMIZER):
                    check_canonical(f"list {number} after {done} steps", self.specs(number), lists[number])
            if tuple(commitment.end_lists) != roots:
                raise StateMismatch(f"Seat {commitment.seat} commits to other end lists than its last state has.")
            check_canonical("the update", specs, self.objects.list(commitment.update, specs))
        with self.told_of_base(view, record.number, commitment.base):
            self.objects.list(view.outer_lists(record.number, commitment.base).parameters, specs)

    def job(self, view: RunView, duty: Duty) -> Computation:
        """Program, X and steps of an interval, an update, or an attestation of one."""
        training = self.facts.charter.training
        commitment = view.state.rounds[duty.round].commitments[duty.seat]
        if duty.number < training.intervals:
            with self.told_of(commitment):
                lists = self.state(duty.round, duty.seat, duty.number, duty.x)
            return Computation(self.step, lists, training.steps_per_interval)
        specs = self.specs(TrainingList.PARAMETERS)
        start = view.outer_lists(duty.round, commitment.base).parameters
        with self.told_of_base(view, duty.round, commitment.base):
            first = self.objects.list(start, specs)
        with self.told_of(commitment):
            last = self.objects.list(commitment.end_lists[0], specs)
        return Computation(self.update, (first, last), 1)

    def end_root(self, duty: Duty, lists: ListBytes) -> Digest:
        """The root of the state that a duty's computation ended in; its lists are published for those who need them."""
        training = self.facts.charter.training
        if duty.number == training.intervals:
            return state_digest((root_of_list(self.specs(TrainingList.PARAMETERS), lists[0]),))
        done = (duty.number + 1) * training.steps_per_interval
        roots = [root_of_list(self.specs(n), lists[n]) for n in (TrainingList.PARAMETERS, TrainingList.OPTIMIZER)]
        return state_digest(
            (*roots, self.root_of_scalars(lists[TrainingList.SCALARS], duty.round, duty.seat, done)),
        )

    def claimed_end(self, view: RunView, duty: Duty) -> ListBytes:
        """The published lists that a duty claims to end in, without scalars."""
        commitment = view.state.rounds[duty.round].commitments[duty.seat]
        with self.told_of(commitment):
            if duty.number == self.facts.charter.training.intervals:
                return (self.objects.list(commitment.update, self.specs(TrainingList.PARAMETERS)),)
            return self.state(duty.round, duty.seat, duty.number + 1, duty.y)[: TrainingList.SCALARS]

    # --- outer steps

    def outer_job(self, view: RunView, round_: Round, base: Digest, mask: int, x: Digest) -> Computation:
        """The outer step of a round from a base with this inclusion. Raises StateMismatch when X is not that."""
        specs = self.specs(TrainingList.PARAMETERS)
        start = view.outer_lists(round_, base)
        with self.told_of_base(view, round_, base):
            lists = [self.objects.list(start.parameters, specs), self.objects.list(start.momentum, specs)]
        roots = [start.parameters, start.momentum]
        commitments = view.state.rounds[round_].commitments
        for seat in range(SEATS):
            included = bool(mask >> seat & 1)
            if not included:
                roots.append(self.facts.charter.training.zero_update)
                lists.append(self.objects.list(roots[-1], specs))
                continue
            roots.append(commitments[Seat(seat)].update)
            with self.told_of(commitments[Seat(seat)]):
                lists.append(self.objects.list(roots[-1], specs))
        weights = to_bytes(DType.F32, [0x3F800000 if mask >> seat & 1 else 0 for seat in range(SEATS)])
        roots.append(root_of_list([TensorSpec(DType.F32, (SEATS,))], [weights]))
        if state_digest(roots) != x:
            raise StateMismatch(f"The inclusion of round {round_} is not what its X is made of.")
        return Computation(self.outer, (*lists, (weights,)), 1)

    def root_of_parameters(self, tensors: Tensors) -> Digest:
        """The root of a list of the parameters' layout: parameters, an update, or the outer momentum."""
        return root_of_list(self.specs(TrainingList.PARAMETERS), tensors)

    def outer_manifest(self, step: OuterStep) -> Digest | None:
        """Publishes where the lists of an outer step lie; returns the digest of that, None where nothing has them."""
        specs = self.specs(TrainingList.PARAMETERS)
        try:
            with self.objects.own_copies_first():
                digests = {root: self.objects.list_digest(root, specs) for root in (step.parameters, step.momentum)}
        except UnavailableError:
            return None
        return self.objects.put_manifest(Manifest(digests))

    def publish_outer(self, lists: ListBytes) -> OuterStep:
        """Publishes where an outer step ends; a store that fails holds up no post, since all can recompute it."""
        specs = self.specs(TrainingList.PARAMETERS)
        return OuterStep(*(self.objects.put_list(specs, tensors, is_vital=False) for tensors in lists))
