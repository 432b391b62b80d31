"""The published work of a run: programs, bases and updates, fetched by root and checked.

A solver publishes its update and nothing else. Where a commitment starts follows from its round's base, zeros, and the
scalars that everybody computes, so whoever holds a base replays any commitment. A base that nobody published is merged
again from the one before it and the updates that counted.
Source: docs/adr/0033-second-round.md; docs/adr/0034-second-round-wired.md, off chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import InvariantError, UnavailableError
from assay.protocol.program.program import Program
from assay.protocol.program.witness import check_witness
from assay.protocol.rounds.ids import Node, generation_of, group_of, is_group, node_of
from assay.protocol.run.layouts import check_round_layouts
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.state import SCALAR_SPECS, ListBytes, Scalar, TrainingList, list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType, Round, Seat
from assay_ledger.index.computing import (
    Computation,
    Compute,
    StateMismatch,
    as_genesis,
    check_first_lists,
    check_sound,
)
from assay_ledger.index.publications import Publications
from assay_ledger.rounds import nodes
from assay_ledger.rounds.facts import RunFacts
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.view import BaseLists, RunView
from assay_ledger.store.errors import StorePartlySilent, StoreUnreachable
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Objects, Tensors, root_of_list


class Archive:
    """The programs of one run and what was published under its roots. Reads raise UnavailableError."""

    def __init__(self, charter: RunCharter, facts: RunFacts, objects: Objects, publications: Publications) -> None:
        self.charter = charter
        self.facts = facts
        self.objects = objects
        self.publications = publications

    # --- programs and layouts

    @cached_property
    def step(self) -> Program:
        """One training step."""
        return self._program(self.charter.step)

    @cached_property
    def update(self) -> Program:
        """From the parameters before and after to what travels."""
        return self._program(self.charter.update)

    @cached_property
    def merge(self) -> Program:
        """Parameters, momentum, the update of each seat and the mask, to the next parameters and momentum.

        Above 64 seats the sum of each group, and how many updates each stands for, instead of updates and mask.
        """
        return self._program(self.charter.merge)

    @cached_property
    def partial(self) -> Program:
        """The update of each place of a group, to their sum; there is none up to 64 seats."""
        return self._program(self.charter.partial_sum)

    @cached_property
    def witness(self) -> Program:
        """One witnessed step."""
        return self._program(self.charter.witness)

    def _program(self, ref: ProgramRef) -> Program:
        program = self.objects.program(ref.root)
        if program.header != ref.header:
            raise InvariantError("A program's root fits and its header does not.", code="ProgramMismatch")
        return program

    def specs(self, number: TrainingList) -> tuple[TensorSpec, ...]:
        """Types and dims of a list of the training state."""
        return tuple(self.step.specs[k] for k in self.step.input_nodes[number])

    @cached_property
    def update_specs(self) -> tuple[TensorSpec, ...]:
        """Types and dims of an update list, as it travels."""
        return tuple(self.update.specs[k] for k in self.update.output_nodes[0])

    @cached_property
    def data(self) -> bytes:
        """The data tensor; a large one lies in a mapped file."""
        return self.objects.mapped(self.facts.rounds.data, self.specs(TrainingList.SCALARS)[Scalar.DATA])

    # --- before anything is put at stake

    def check(self) -> None:
        """Whether the run can be trained and audited: its programs are sound, fit each other, and its start is there.

        Attack: a sponsor posts what does not fit, so that the run stands still with everybody's stake in it, or starts
        it from elements that no store writes. Raises UserError (IllFormedProgram, ProgramTooLarge), WrongLayout,
        NoWitness, WrongWitness, NotCanonical, GenesisMissing, UnavailableError.
        """
        programs = {"step": self.step, "update": self.update, "merge": self.merge, "witness": self.witness}
        start = self.facts.rounds
        if not start.by_seats:
            programs["partial sum"] = self.partial
        check_sound(programs)
        check_round_layouts(self.step, self.update, self.merge, start, programs.get("partial sum"))
        check_witness(self.step, self.witness)
        parameters = self.specs(TrainingList.PARAMETERS)
        check_first_lists(
            self.objects,
            (
                ("the first parameters", start.parameters, parameters),
                ("the first momentum", start.momentum, parameters),
                ("the zero optimizer", start.zero_optimizer, self.specs(TrainingList.OPTIMIZER)),
                ("the zero update", start.zero_update, self.update_specs),
            ),
        )
        with as_genesis("the data"):
            assert self.data

    # --- where a commitment starts

    def scalars(self, round_: Round, seat: Seat, done: int = 0) -> Tensors:
        """The scalars list of a seat's state after `done` steps of a round."""
        return (*self._scalar_values(round_, seat, done), self.data)

    def scalars_root(self, round_: Round, seat: Seat, done: int = 0) -> Digest:
        """The list root of the same."""
        values = self._scalar_values(round_, seat, done)
        roots = [tensor_root(SCALAR_SPECS[s], data) for s, data in zip(sorted(SCALAR_SPECS), values, strict=True)]
        return list_root([*roots, self.facts.rounds.data])

    def _scalar_values(self, round_: Round, seat: Seat, done: int) -> tuple[bytes, ...]:
        start = self.facts.round_scalars(round_, seat)
        values = start.values()
        step = start.first_step + done
        values[Scalar.STEP] = to_bytes(DType.I32, from_ints(DType.I32, (step, step >> 32)))
        return tuple(values[s] for s in sorted(values))

    def start(self, round_: Round, seat: Seat, parameters: Tensors) -> ListBytes:
        """Where a seat's work in a round starts from these parameters: zero moments, its own scalars."""
        optimizer = self.objects.list(self.facts.rounds.zero_optimizer, self.specs(TrainingList.OPTIMIZER))
        return parameters, optimizer, self.scalars(round_, seat)

    # --- updates

    def told_of(self, work: WorkRecord) -> AbstractContextManager[None]:
        """In this block objects are looked for where the solver of a commitment said that they are."""
        return self.objects.told(self.publications.told([work.tx_hash]))

    def fetch_update(self, work: WorkRecord) -> Tensors:
        """The update of a commitment, whose root is checked."""
        with self.told_of(work):
            return self.objects.list(work.work.update, self.update_specs)

    def update_job(self, before: Tensors, after: Tensors) -> Computation:
        """The update of work between two lists of parameters."""
        return Computation(self.update, (before, after), 1)

    # --- bases

    def publish_base(self, lists: ListBytes) -> None:
        """Publishes a generation. A store that fails holds nothing up: a base can be merged again."""
        for tensors in lists:
            self.objects.put_list(self.specs(TrainingList.PARAMETERS), tensors, is_vital=False)

    def serve_base(self, lists: ListBytes) -> None:
        """Publishes what the store lacks of a generation. Raises UnavailableError."""
        specs = self.specs(TrainingList.PARAMETERS)
        for tensors in lists:
            # The momentum of a run's start everybody has.
            is_zero = all(tensor == bytes(len(tensor)) for tensor in tensors)
            # Bad luck: a disk that was full kept no copy, and whose turn it was looked in vain for one to compare.
            if not (is_zero or self.objects.has_list(root_of_list(specs, tensors), specs, tensors)):
                self.objects.put_list(specs, tensors)

    def is_base_known_served(self, view: RunView, generation: int) -> bool:
        """Whether the store has a generation that was looked for before; no copy of it is read for that.

        Raises UnavailableError.
        """
        wanted, specs = view.lists(generation), self.specs(TrainingList.PARAMETERS)
        if wanted is None:
            return False
        return all(self.objects.has_known_list(root, specs) for root in (wanted.parameters, wanted.momentum))

    def keep_base(self, lists: ListBytes) -> tuple[BaseLists, Digest]:
        """Keeps a generation in the local cache; its roots, and the manifest that names where it lies once it is
        published: a list has one file, whoever publishes it."""
        with self.objects.noting() as digests:
            roots = [self.objects.keep_list(self.specs(TrainingList.PARAMETERS), tensors) for tensors in lists]
        return BaseLists(*roots), self.objects.put_manifest(Manifest(dict(digests)))

    def base_roots(self, lists: ListBytes) -> BaseLists:
        """The roots of a generation's parameters and momentum."""
        specs = self.specs(TrainingList.PARAMETERS)
        return BaseLists(*(root_of_list(specs, tensors) for tensors in lists))

    def fetch_base(self, view: RunView, generation: int) -> ListBytes:
        """Parameters and momentum of a generation as somebody published them, whose roots are checked."""
        wanted, specs = view.lists(generation), self.specs(TrainingList.PARAMETERS)
        if wanted is None:
            raise UnavailableError(f"Generation {generation} has no root yet.", code="NoBase")
        openers = [opening.tx_hash for opening in view.openings(generation) if opening.root == wanted.root]
        with self.objects.told(self.publications.told(openers)):
            return tuple(self.objects.list(root, specs) for root in (wanted.parameters, wanted.momentum))

    def fetch_parameters(self, view: RunView, generation: int) -> Tensors:
        """The parameters of a generation alone: what a commitment starts from."""
        wanted = view.lists(generation)
        if wanted is None:
            raise UnavailableError(f"Generation {generation} has no root yet.", code="NoBase")
        openers = [opening.tx_hash for opening in view.openings(generation) if opening.root == wanted.root]
        with self.objects.told(self.publications.told(openers)):
            return self.objects.list(wanted.parameters, self.specs(TrainingList.PARAMETERS))

    def base(self, view: RunView, generation: int, compute: Compute, *, publish: bool = True) -> ListBytes:
        """Parameters and momentum of a generation: published, or merged again from the newest that is, and published.

        Where the store does not answer, from own copies alone: else one that hangs is asked for every generation there
        ever was, one call's seconds each.

        Raises StoreUnreachable where it does not and these are too few: that says nothing about what it has;
        UnavailableError where an update that counted is gone too, StateMismatch where the merge of what counted is not
        the root that has the majority.
        """
        try:
            return self._merged_base(view, generation, compute, publish=publish)
        except StoreUnreachable as silent:
            try:
                with self.objects.own_copies_only():
                    lists = self._merged_base(view, generation, compute, publish=False)
            except UnavailableError:
                raise silent from None
        if publish:
            self.publish_base(lists)
        return lists

    def _merged_base(self, view: RunView, generation: int, compute: Compute, *, publish: bool) -> ListBytes:
        missing: list[int] = []
        lists: ListBytes | None = None
        while lists is None:
            try:
                lists = self.fetch_base(view, generation)
            except UnavailableError as error:
                # What is not answered is not gone; with another store that answers it is made from what that one has.
                is_silent = isinstance(error, StoreUnreachable) and not isinstance(error, StorePartlySilent)
                if is_silent or not generation:
                    raise
                missing.append(generation)
                generation = view.round_of(Round(generation - 1)).parent
        for wanted in reversed(missing):
            job = self.node_job(view, wanted, lists, compute)
            lists = compute.run(job.program, job.lists, job.steps)
            if self.base_roots(lists) != view.lists(wanted):
                raise StateMismatch(f"Generation {wanted} is not the merge of what counted.", generation=wanted)
            if publish:
                self.publish_base(lists)
        return lists

    # --- merges

    def node_job(self, view: RunView, node: Node, base: ListBytes, compute: Compute) -> Computation:
        """The merge of any node; `base`: what its round starts from, of no account for a sum.

        Raises UnavailableError, and StateMismatch where X is not what the contract would build or a sum is false.
        """
        round_, rules = Round(generation_of(node) - 1), self.facts.rounds
        if rules.by_seats:
            return self.merge_job(view, round_, base)
        prepared = view.books.generations.inputs.get(node, ZERO)
        if prepared not in (ZERO, nodes.input_of(view, node)):
            raise StateMismatch(f"A merge of round {round_} is not what its X is made of.", round=round_)
        if is_group(node):
            return Computation(self.partial, tuple(self._group_updates(view, round_, group_of(node))), 1)
        counted = nodes.counted_groups(view, round_)
        absent = tuple(spec.zeros() for spec in self.sum_specs)
        sums = [self.fetch_sum(view, round_, g, compute) if g in counted else absent for g in range(rules.groups)]
        weights = to_bytes(DType.F32, [f32.from_int(weight) for weight in nodes.weights(view, round_)])
        return Computation(self.merge, (*base, *sums, (weights,)), 1)

    def fetch_sum(self, view: RunView, round_: Round, group: int, compute: Compute) -> Tensors:
        """The sum of a group that counts: as somebody published it, else added up again."""
        node, root, specs = node_of(round_ + 1, group), nodes.sum_root(view, round_, group), self.sum_specs
        leading = view.votes(node).root
        openers = [opening.tx_hash for opening in view.openings(node) if opening.root == leading]
        try:
            with self.objects.told(self.publications.told(openers)):
                return self.objects.list(root, specs)
        except UnavailableError:
            job = Computation(self.partial, tuple(self._group_updates(view, round_, group)), 1)
            (added,) = compute.run(job.program, job.lists, job.steps)
        if root_of_list(specs, added) != root:
            raise StateMismatch(
                f"The sum of group {group} in round {round_} is not that of what counted.", round=round_
            )
        return added

    def publish_node(self, node: Node, lists: ListBytes) -> tuple[Digest, Digest, bytes]:
        """Publishes the lists of a merge; their roots, zero where a sum has no second, and a tail that says where."""
        with self.objects.noting() as digests:
            specs = self.sum_specs if is_group(node) else self.specs(TrainingList.PARAMETERS)
            roots = [self.objects.put_list(specs, tensors, is_vital=False) for tensors in lists]
        return roots[0], (*roots, ZERO)[1], self.objects.put_manifest(Manifest(digests))

    def keep_list(self, node: Node, tensors: Tensors) -> None:
        """Keeps a list of a merge on this machine."""
        specs = self.sum_specs if is_group(node) else self.specs(TrainingList.PARAMETERS)
        self.objects.keep_list(specs, tensors)

    def node_roots(self, node: Node, lists: ListBytes) -> tuple[Digest, Digest]:
        """The list roots of a merge, zero where a sum has no second."""
        specs = self.sum_specs if is_group(node) else self.specs(TrainingList.PARAMETERS)
        roots = [root_of_list(specs, tensors) for tensors in lists]
        return roots[0], (*roots, ZERO)[1]

    @property
    def sum_specs(self) -> tuple[TensorSpec, ...]:
        """Types and dims of the sum of a group's updates."""
        return tuple(self.partial.specs[k] for k in self.partial.output_nodes[0])

    def _group_updates(self, view: RunView, round_: Round, group: int) -> Iterator[Tensors]:
        zero = self.objects.list(self.facts.rounds.zero_update, self.update_specs)
        counted = view.counted(round_, group)[0]
        for place in range(self.facts.rounds.group_size):
            work = view.work(round_, view.seat_at(group, place))
            yield self.fetch_update(work) if work is not None and work.seat in counted else zero

    def merge_job(self, view: RunView, round_: Round, base: ListBytes) -> Computation:
        """The merge of a round of one level whose mask is closed, over the lists of its base.

        Raises StateMismatch where X is not what the contract would build.
        """
        counted, _ = view.counted(round_)
        parameters, momentum = base
        lists: list[Tensors] = [parameters, momentum, *self._updates(view, round_, counted)]
        mask = self._mask(counted)
        specs = (self.merge.specs[self.merge.input_nodes[-1][0]],)
        roots = [*self._roots_of(self.base_roots(base)), *self._update_roots(view, round_, counted)]
        prepared = view.books.generations.inputs.get(round_ + 1, ZERO)
        if prepared != ZERO and prepared != state_digest([*roots, root_of_list(specs, (mask,))]):
            raise StateMismatch(f"The merge of round {round_} is not what its X is made of.", round=round_)
        return Computation(self.merge, (*lists, (mask,)), 1)

    def lone_merge_job(self, work: WorkRecord, base: ListBytes) -> Computation:
        """The merge of one seat's update alone over some base, in a run of one level: nobody claims it."""
        zero = self.objects.list(self.facts.rounds.zero_update, self.update_specs)
        updates = [self.fetch_update(work) if seat == work.seat else zero for seat in range(self.facts.rounds.seats)]
        return Computation(self.merge, (*base, *updates, (self._mask(frozenset({work.seat})),)), 1)

    def _updates(self, view: RunView, round_: Round, counted: frozenset[Seat]) -> Iterator[Tensors]:
        zero = self.objects.list(self.facts.rounds.zero_update, self.update_specs)
        for seat in range(self.facts.rounds.seats):
            work = view.work(round_, Seat(seat))
            yield self.fetch_update(work) if work is not None and seat in counted else zero

    def _update_roots(self, view: RunView, round_: Round, counted: frozenset[Seat]) -> Iterator[Digest]:
        for seat in range(self.facts.rounds.seats):
            work = view.work(round_, Seat(seat))
            yield work.work.update if work is not None and seat in counted else self.facts.rounds.zero_update

    def _mask(self, counted: frozenset[Seat]) -> bytes:
        return to_bytes(DType.F32, [f32.ONE if seat in counted else 0 for seat in range(self.facts.rounds.seats)])

    @staticmethod
    def _roots_of(base: BaseLists) -> tuple[Digest, Digest]:
        return base.parameters, base.momentum
