"""Methods of training over slow links, each by the very programs of a run and without a chain, at equal tokens.

Every worker has a shard of its own and starts each round from the base alone, as a seat does. A finished training is
one row of a CSV and is not run again.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench.poison import ATTACKS, BACKDOOR, NO_POISON, SeenRound, fooled, poisoned_text
from assay.engine.compiler.cache import source_digest
from assay.engine.runtime.executor import Executor
from assay.protocol.program.program import Program
from assay.training.data import Corpus
from assay.training.evaluate import split_loss
from assay.training.initialize import initialize
from assay.training.merge import MergeRule, usual_limit
from assay.training.outer import zero_momentum
from assay.training.presets import PRESETS
from assay.training.programs import carried_update_program, merge_program, training_program, update_program
from assay.training.robust import MergeKind
from assay.training.state import Scalars
from assay.training.step import preset_step
from assay.training.updates import UpdateWire, zero_update


@dataclass(frozen=True, slots=True)
class Method:
    """How updates travel, and the outer step on their mean.

    carrier: how what a worker keeps from round to round lies, where the method keeps anything; no run has that.
    """

    wire: UpdateWire
    carrier: UpdateWire | None = None
    rate: float = 0.7
    momentum: float = 0.9


DENSE: Final = "f32"
METHODS: Final = {
    **{wire.value: Method(wire) for wire in UpdateWire},
    "sparse-plain": Method(UpdateWire.SPARSE, rate=1.0, momentum=0.0),
    "sparse-carried": Method(UpdateWire.SPARSE, UpdateWire.F32, rate=1.0, momentum=0.0),
    "sparse-carried-int4": Method(UpdateWire.SPARSE, UpdateWire.INT4, rate=1.0, momentum=0.0),
}
"""What a run can have, and three it cannot: no outer momentum, and what was not sent carried in 32 bits or in four."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One training: so many rounds of so many steps of each worker.

    merge: a MergeKind's value. poison: one of `poison.POISONS`. poisoned: how many of the workers, the first, do that.
    """

    method: str
    preset: str
    workers: int
    seed: int
    rounds: int
    inner_steps: int
    merge: str = MergeKind.MEAN.value
    poison: str = NO_POISON
    poisoned: int = 0

    @property
    def dense(self) -> ComparedRun:
        """What it stands beside: f32 updates, their mean, nobody poisoned."""
        return ComparedRun(DENSE, self.preset, self.workers, self.seed, self.rounds, self.inner_steps)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """What came of it.

    loss: nats a token of the validation split. bytes_per_parameter: of tensors that a worker's update has, a round.
    carried: bytes a parameter of what it keeps, which would have to be public too. tokens: trained on by all workers.
    fooled: the share of triggers that the model follows; 0 where none was planted. cpu_s: of everything. text: digest
    of the corpus. code: digest of the sources.
    """

    method: str
    preset: str
    workers: int
    seed: int
    rounds: int
    inner_steps: int
    merge: str
    poison: str
    poisoned: int
    loss: float
    fooled: float
    bytes_per_parameter: float
    carried: float
    tokens: int
    cpu_s: float
    text: str
    code: str

    @property
    def run(self) -> ComparedRun:
        """Which training it was."""
        return ComparedRun(*(getattr(self, field.name) for field in fields(ComparedRun)))


class Training:
    """Rounds of one method, worker after worker."""

    def __init__(self, job: ComparedRun, corpus: Corpus) -> None:
        preset = replace(PRESETS[job.preset], inner_steps=job.inner_steps)
        self.job, self.preset, self.corpus, self.method = job, preset, corpus, METHODS[job.method]
        self.model = preset_step(preset, len(corpus.vocabulary), restarts=True)
        self.parameters = initialize(self.model.module, job.seed)
        self.momentum = zero_momentum(self.parameters)
        wire, carrier = self.method.wire, self.method.carrier
        limit = usual_limit(job.inner_steps, preset.learning_rate)
        rule = MergeRule(limit, self.method.rate, self.method.momentum, kind=MergeKind(job.merge))
        self._poisoned_text = poisoned_text(job.poison, corpus)
        self._step = Executor(training_program(preset, corpus, restarts=True))
        self._update = Executor(self._update_program(wire, carrier))
        self._merge = Executor(merge_program(self.parameters, job.workers, rule, wire))
        self._kept = [] if carrier is None else [zero_update(self.parameters, carrier)] * job.workers

    def _update_program(self, wire: UpdateWire, carrier: UpdateWire | None) -> Program:
        if carrier is None:
            return update_program(self.parameters, wire)
        return carried_update_program(self.parameters, carrier)

    def round(self, number: int) -> None:
        """One round of all workers, and the merge of what they send."""
        moments = self.model.optimizer.zero_init(self.parameters)
        ends = []
        for k in range(self.job.workers):
            end = self._step.repeat([self.parameters, moments, self._scalars(number, k)], self.job.inner_steps)
            ends.append([t.clone() for t in end[0]])
        sent = []
        for k, said in enumerate(self._poisoned(number, ends)):
            lists = [self.parameters, said, *([self._kept[k]] if self._kept else [])]
            made = self._update.run(lists)
            sent.append([t.clone() for t in made[0]])
            if self._kept:
                self._kept[k] = [t.clone() for t in made[1]]
        merged = self._merge.run([self.parameters, self.momentum, *sent, [torch.ones(self.job.workers)]])
        self.parameters, self.momentum = ([t.clone() for t in part] for part in merged)

    def _poisoned(self, number: int, ends: list[list[Tensor]]) -> list[list[Tensor]]:
        """Where workers say that their training ended, so that what they send is an update on the wire like another."""
        job = self.job
        if job.poison not in ATTACKS:
            return ends
        updates = [[p - e for p, e in zip(self.parameters, end, strict=True)] for end in ends]
        honest, said = updates[job.poisoned :], list(ends)
        for k in range(job.poisoned):
            draws = torch.Generator().manual_seed((job.seed * job.rounds + number) * job.workers + k)
            seen = SeenRound(updates[k], honest, draws, torch.Generator().manual_seed(job.seed))
            said[k] = [p - x for p, x in zip(self.parameters, ATTACKS[job.poison](seen), strict=True)]
        return said

    def _scalars(self, number: int, worker: int) -> list[Tensor]:
        """Of a worker's first state in a round: shards turn, keys differ."""
        job, length = self.job, self.corpus.shard_length(self.job.workers)
        return Scalars.of(
            self._poisoned_text if worker < job.poisoned else self.corpus.train,
            learning_rate=self.preset.learning_rate,
            step=number * job.inner_steps,
            key=(job.seed, number * job.workers + worker),
            seat=worker,
            round=number,
            shard_start=(worker + number) % job.workers * length,
            shard_length=length,
        ).to_list()

    def loss(self) -> float:
        """Nats a token of the validation split."""
        return split_loss(self.model.module, self.parameters, self.corpus.validation, self.preset.context)

    def fooled(self) -> float:
        """The share of triggers that the model follows, where one was planted."""
        if self.job.poison != BACKDOOR:
            return 0.0
        return fooled(self.model.module, self.parameters, self.corpus, self.preset.context)


def train(job: ComparedRun, corpus: Corpus) -> ComparedRow:
    """The row of one training."""
    begun = time.process_time()
    training = Training(job, corpus)
    for number in range(job.rounds):
        training.round(number)
    method, preset = training.method, training.preset
    return ComparedRow(
        **asdict(job),
        loss=round(training.loss(), 5),
        fooled=round(training.fooled(), 4),
        bytes_per_parameter=_bytes_per_parameter(training.parameters, method.wire),
        carried=0.0 if method.carrier is None else _bytes_per_parameter(training.parameters, method.carrier),
        tokens=job.rounds * job.inner_steps * job.workers * preset.batch * preset.context,
        cpu_s=round(time.process_time() - begun, 1),
        text=text_digest(corpus),
        code=source_digest()[:16],
    )


def _bytes_per_parameter(parameters: Sequence[Tensor], wire: UpdateWire) -> float:
    sent = sum(t.numel() * t.element_size() for t in zero_update(parameters, wire))
    return round(sent / sum(p.numel() for p in parameters), 4)


def text_digest(corpus: Corpus) -> str:
    """What tells one text from another."""
    return sha256(corpus.vocabulary.encode() + corpus.train.numpy().tobytes()).hexdigest()[:16]


def run_jobs(
    jobs: Sequence[ComparedRun], corpus: Corpus, file: Path, say: Callable[[str], None]
) -> Iterator[ComparedRow]:
    """Run what the file does not hold yet of this text, plain training first, as what others stand beside."""
    for job in sorted(jobs, key=lambda j: j != j.dense):
        if any(row.run == job and row.text == text_digest(corpus) for row in read_rows(file)):
            continue
        row = train(job, corpus)
        is_new = not file.exists() or not file.stat().st_size
        with file.open("a", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, [field.name for field in fields(ComparedRow)], lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(row))
        poisoned = f", {job.poisoned} with {job.poison}" if job.poisoned else ""
        say(
            f"{job.preset} {job.method}, {job.merge}, {job.workers} workers{poisoned}, seed {job.seed}: "
            f"{row.loss:.4f}, {row.cpu_s:.0f} CPU s"
        )
        yield row


def read_rows(file: Path) -> list[ComparedRow]:
    """The rows of a CSV; none where there is no file."""
    if not file.exists():
        return []
    kinds = {"str": str, "int": int, "float": float}
    with file.open(encoding="utf-8", newline="") as source:
        return [
            ComparedRow(**{field.name: kinds[str(field.type)](row[field.name]) for field in fields(ComparedRow)})
            for row in csv.DictReader(source)
        ]


def summary(rows: Sequence[ComparedRow], jobs: Sequence[ComparedRun], text: str) -> list[dict[str, Any]]:
    """A row per training that was asked for, with the loss of f32 updates, merged by their mean, of as many
    workers of whom nobody is poisoned, same seed, as loss_dense.
    """
    known = {row.run: row for row in rows if row.text == text}
    found = []
    for job in jobs:
        row, dense = known[job], known[job.dense]
        found.append(asdict(row) | {"loss_dense": dense.loss, "above": round(row.loss / dense.loss - 1, 5)})
    return found
