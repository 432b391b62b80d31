"""Methods of training over slow links, each by captured programs and without a chain, at equal tokens.

Every worker has a shard of its own and starts each round from the base alone, as a seat does, by the very programs of a
run; methods that no run can have say what is otherwise. A finished training is one row of a CSV and is not run again.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench.methods.between_ranks import BetweenRanks
from assay.bench.methods.late import Islands, LateUpdates
from assay.bench.methods.merging import GroupedMerge, PlainMerge
from assay.bench.methods.poison import ATTACKS, NO_POISON, SeenRound
from assay.bench.methods.setting import MeteredProgram, MethodSetting, MethodTraining, bytes_of
from assay.bench.methods.streaming import LoFi, Streaming
from assay.bench.methods.trained import TrainedModel
from assay.engine.compiler.cache import source_digest
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values.state_io import list_roots
from assay.protocol.digests import state_digest
from assay.protocol.errors import UsageError
from assay.protocol.program.program import Program
from assay.protocol.types import Digest
from assay.training.merge import MergeRule, usual_limit
from assay.training.outer import zero_momentum
from assay.training.programs import carried_update_program, update_program
from assay.training.robust import MergeKind
from assay.training.sparse import DECAY
from assay.training.updates import UpdateWire, zero_update
from assay_ledger.shared_file import held_alone, replace_whole


@dataclass(frozen=True, slots=True)
class Method:
    """How updates travel, and the outer step on their mean.

    carrier: how what a worker keeps from round to round lies, where the method keeps anything; no run has that.
    decay: what remains of that each round. muon: the optimizer inside. begin: a training that is not made of rounds of
    a run.
    """

    wire: UpdateWire
    carrier: UpdateWire | None = None
    rate: float = 0.7
    momentum: float = 0.9
    decay: float = DECAY
    muon: bool = False
    begin: Callable[[MethodSetting], MethodTraining] | None = None


DENSE: Final = "f32"
METHODS: Final = {
    **{wire.value: Method(wire) for wire in UpdateWire},
    "sparse-plain": Method(UpdateWire.SPARSE, rate=1.0, momentum=0.0),
    "sparse-carried": Method(UpdateWire.SPARSE, UpdateWire.F32, rate=1.0, momentum=0.0),
    "sparse-carried-int4": Method(UpdateWire.SPARSE, UpdateWire.INT4, rate=1.0, momentum=0.0),
    "sign-carried": Method(UpdateWire.SIGN, UpdateWire.F32, decay=1.0),
    "powersgd-carried": Method(UpdateWire.POWERSGD, UpdateWire.F32, decay=1.0),
    "cocktail-carried": Method(UpdateWire.COCKTAIL, UpdateWire.F32, rate=1.0, momentum=0.0, decay=1.0),
    "muloco": Method(UpdateWire.F32, muon=True),
    "muloco-int4": Method(UpdateWire.INT4, muon=True),
    "lofi": Method(UpdateWire.F32, begin=LoFi),
    "streaming": Method(UpdateWire.F32, begin=Streaming),
    "streaming-int4": Method(UpdateWire.INT4, begin=Streaming),
    "streaming-overlap": Method(UpdateWire.F32, begin=partial(Streaming, overlap=2, alpha=0.5)),
    "delayed": Method(UpdateWire.F32, begin=partial(LateUpdates, eager=False)),
    "eager": Method(UpdateWire.F32, begin=partial(LateUpdates, eager=True)),
    "delayed-plain": Method(UpdateWire.F32, rate=1.0, momentum=0.0, begin=partial(LateUpdates, eager=False)),
    "eager-plain": Method(UpdateWire.F32, rate=1.0, momentum=0.0, begin=partial(LateUpdates, eager=True)),
    "delayed-slow": Method(UpdateWire.F32, rate=0.2, begin=partial(LateUpdates, eager=False)),
    "eager-slow": Method(UpdateWire.F32, rate=0.2, begin=partial(LateUpdates, eager=True)),
    "islands": Method(UpdateWire.F32, begin=Islands),
    "demo-ranks": Method(UpdateWire.F32, begin=BetweenRanks),
}
"""What a run can have, by the names of its wires; and what it cannot: no outer momentum, what was not sent carried in
32 bits or in four, another optimizer inside a preset, and states of workers' own."""


def is_a_runs(method: str) -> bool:
    """Whether `assay run post --update` takes this name."""
    return method in {wire.value for wire in UpdateWire}


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One training: so many rounds of so many steps of each worker.

    model: a preset's name, or a recipe's. merge: a MergeKind's value. poison: one of `poison.POISONS`. poisoned: how
    many of the workers, the first, do that. run_id: of a run whose batches it trains on, 64 hex digits; drawn by the
    seed where it is empty. guard: the share by which a merge may raise the loss on held-out text; None: no guard.
    group_size: workers whose updates are summed before all sums are merged, as above 64 seats; 0: all at once. sums: as
    what sums travel.
    """

    method: str
    model: str
    workers: int
    seed: int
    rounds: int
    inner_steps: int
    merge: str = MergeKind.MEAN.value
    poison: str = NO_POISON
    poisoned: int = 0
    run_id: str = ""
    guard: float | None = None
    group_size: int = 0
    sums: str = UpdateWire.F32.value

    @property
    def dense(self) -> ComparedRun:
        """What it stands beside: f32 updates, their mean, nobody poisoned."""
        plain = ComparedRun(DENSE, self.model, self.workers, self.seed, self.rounds, self.inner_steps)
        return replace(plain, run_id=self.run_id)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """What came of it.

    loss: nats a token of the validation split, or a recipe's own on its validation. fooled: the share of triggers that
    the model follows; 0 where none was planted. bytes_per_parameter: of tensors that a worker sends, a round.
    peak_bytes_per_parameter: of what it sends at once. carried: bytes a parameter of what it keeps, which would have to
    be public too. tokens: trained on by all workers, or a recipe's examples. cpu_s: of everything. rule_share: of that,
    in the programs of the method beside the training step; None where it was not measured. text, code: digests of the
    data and the sources. root: of the last base, by which a run names it; empty of a method that no run has. refused:
    merges that the guard did not take.
    """

    method: str
    model: str
    workers: int
    seed: int
    rounds: int
    inner_steps: int
    merge: str
    poison: str
    poisoned: int
    run_id: str
    guard: float | None
    group_size: int
    sums: str
    loss: float
    fooled: float
    bytes_per_parameter: float
    peak_bytes_per_parameter: float
    carried: float
    tokens: int
    cpu_s: float
    rule_share: float | None
    text: str
    code: str
    root: str
    refused: int

    @property
    def run(self) -> ComparedRun:
        """Which training it was."""
        return ComparedRun(*(getattr(self, field.name) for field in fields(ComparedRun)))


class Training:
    """Rounds of one method as a run has them, worker after worker. See MethodTraining."""

    def __init__(self, job: ComparedRun, model: TrainedModel) -> None:
        setting, method = setting_of(job, model), METHODS[job.method]
        self.job, self.setting = job, setting
        self._poisoned_setting = replace(setting, model=model.poisoned(job.poison))
        step = (model.with_muon if method.muon else model.restarting)(job.inner_steps)
        self._step, self._moments = Executor(step.program), step.moments
        self.parameters = setting.start()
        self.momentum = zero_momentum(self.parameters)
        self._update = MeteredProgram(self._update_program(method))
        self._merge = (GroupedMerge if setting.group_size else PlainMerge)(setting, self.parameters)
        self.refused = 0
        self.newest: list[Tensor] = []
        carrier = method.carrier
        self._kept = [] if carrier is None else [zero_update(self.parameters, carrier)] * setting.workers
        absent = zero_update(self.parameters, method.wire, statistics=model.statistics)
        self.sent, self.peak = 0.0, float(bytes_of(absent))
        self.carried = float(bytes_of(self._kept[0])) if self._kept else 0.0

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return self._update.seconds + self._merge.seconds

    def _update_program(self, method: Method) -> Program:
        if method.carrier is None:
            return update_program(self.parameters, method.wire, statistics=self.setting.model.statistics)
        return carried_update_program(self.parameters, method.carrier, method.wire, method.decay)

    def round(self, number: int) -> None:
        """One round of all workers, and the merge of what they send."""
        ends = []
        for k in range(self.setting.workers):
            setting = self._poisoned_setting if k < self.job.poisoned else self.setting
            state = [self.parameters, self._moments, setting.scalars(number, k)]
            end = self._step.repeat(state, self.setting.inner_steps)
            ends.append([t.clone() for t in end[0]])
        sent = []
        for k, said in enumerate(self._poisoned(number, ends)):
            made = self._update([self.parameters, said, *([self._kept[k]] if self._kept else [])])
            sent.append(made[0])
            if self._kept:
                self._kept[k] = made[1]
        self.newest = sent[-1]
        made = self._merge(self.parameters, self.momentum, sent)
        self.refused += all(torch.equal(p, q) for p, q in zip(self.parameters, made[0], strict=True))
        self.parameters, self.momentum = made
        self.sent += self.peak

    def step(self) -> list[Tensor]:
        """One step of the first worker from the base, and what its parameters are then; nothing of it is kept."""
        return self._step.repeat([self.parameters, self._moments, self.setting.scalars(0, 0)], 1)[0]

    def finish(self) -> None:
        """Nothing is on its way between rounds."""

    def loss(self) -> float:
        """On what is held out, nats."""
        return self.setting.model.loss(self.parameters)

    @property
    def root(self) -> Digest:
        """Of the base as it is: parameters and outer momentum."""
        return state_digest(tuple(list_roots([self.parameters, self.momentum])))

    def _poisoned(self, number: int, ends: list[list[Tensor]]) -> list[list[Tensor]]:
        """Where workers say that their training ended, so that what they send is an update on the wire like another."""
        job = self.job
        if job.poison not in ATTACKS:
            return ends
        # Running statistics are true: a merge takes their middle, which asks for other attacks.
        count = len(self.parameters) - self.setting.model.statistics
        updates = [[p - e for p, e in zip(self.parameters[:count], end[:count], strict=True)] for end in ends]
        honest, said = updates[job.poisoned :], list(ends)
        for k in range(job.poisoned):
            draws = torch.Generator().manual_seed((job.seed * job.rounds + number) * job.workers + k)
            seen = SeenRound(updates[k], honest, draws, torch.Generator().manual_seed(job.seed))
            false = [p - x for p, x in zip(self.parameters[:count], ATTACKS[job.poison](seen), strict=True)]
            said[k] = [*false, *ends[k][count:]]
        return said


def setting_of(job: ComparedRun, model: TrainedModel) -> MethodSetting:
    """The data, the sizes and the outer step of a training."""
    method = METHODS[job.method]
    limit = usual_limit(job.inner_steps, model.learning_rate)
    rule = MergeRule(limit, method.rate, method.momentum, model.statistics, MergeKind(job.merge))
    run_id = Digest(bytes.fromhex(job.run_id)) if job.run_id else None
    guard = None if job.guard is None else model.guard(job.guard)
    sizes = job.workers, job.seed, job.rounds, job.inner_steps
    return MethodSetting(model, *sizes, method.wire, rule, run_id, guard, job.group_size, UpdateWire(job.sums))


def check_job(job: ComparedRun, model: TrainedModel) -> None:
    """Whether this method is for what is asked. Raises UsageError (UnpoisonedMethod, MethodNotForRecipe)."""
    method = METHODS[job.method]
    is_plain = job.merge == MergeKind.MEAN.value and job.guard is None and not job.group_size
    if method.begin is not None and (job.poisoned or not is_plain):
        raise UsageError(
            f"{job.method} is not made of a run's rounds: it is compared with the mean, and nobody poisoned.",
            code="UnpoisonedMethod",
            remedy="Leave --merge, --guard, --group-size and --poison out, or name a method that they are for.",
        )
    if model.statistics and not is_a_runs(job.method):
        raise UsageError(
            f"{model.name} has running statistics, which {job.method} cannot merge.",
            code="MethodNotForRecipe",
            remedy=f"Choose from {', '.join(wire.value for wire in UpdateWire)}.",
        )
    model.check(has_muon=method.muon, has_ranks=method.begin is BetweenRanks)
    if job.guard is not None:
        model.guard(job.guard)
    if job.poison != NO_POISON:
        model.poisoned(job.poison)


def train(job: ComparedRun, model: TrainedModel) -> ComparedRow:
    """The row of one training. Raises what `check_job` and the model raise."""
    check_job(job, model)
    begun = time.process_time()
    method, setting = METHODS[job.method], setting_of(job, model)
    training: MethodTraining = Training(job, model) if method.begin is None else method.begin(setting)
    for number in range(job.rounds):
        training.round(number)
    training.finish()
    count = sum(p.numel() for p in training.parameters)
    loss, share = model.loss(training.parameters), model.fooled(training.parameters, job.poison)
    seconds = time.process_time() - begun
    return ComparedRow(
        **asdict(job),
        loss=round(loss, 5),
        fooled=round(share, 4),
        bytes_per_parameter=round(training.sent / job.rounds / count, 4),
        peak_bytes_per_parameter=round(training.peak / count, 4),
        carried=round(training.carried / count, 4),
        tokens=job.rounds * job.inner_steps * job.workers * model.examples,
        cpu_s=round(seconds, 1),
        rule_share=round(training.rule_s / seconds, 4),
        text=model.digest,
        code=source_digest()[:16],
        root=training.root.hex() if isinstance(training, Training) and is_a_runs(job.method) else "",
        refused=training.refused if isinstance(training, Training) and setting.guard is not None else 0,
    )


def run_jobs(
    jobs: Sequence[ComparedRun], model: TrainedModel, file: Path, say: Callable[[str], None]
) -> Iterator[ComparedRow]:
    """Run what the file does not hold yet of this text, plain training first, as what others stand beside."""
    for job in jobs:
        check_job(job, model)
    for job in sorted(jobs, key=lambda j: j != j.dense):
        if any(row.run == job and row.text == model.digest for row in read_rows(file)):
            continue
        row = train(job, model)
        add_row(row, file)
        poisoned = f", {job.poisoned} with {job.poison}" if job.poisoned else ""
        say(
            f"{job.model} {job.method}, {job.merge}, {job.workers} workers{poisoned}, seed {job.seed}: "
            f"{row.loss:.4f}, {row.cpu_s:.0f} CPU s"
        )
        yield row


def add_row(row: ComparedRow, file: Path) -> None:
    """A row more, whoever else adds to the file; where it lacks columns, all of it is written again with them."""
    names = [field.name for field in fields(ComparedRow)]
    # Two that begin at once would else each write again what they had read, without the other's row.
    with held_alone(file):
        rows, has_columns = [row], file.read_text(encoding="utf-8").split("\n", 1)[0].strip() == ",".join(names)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names, lineterminator="\n")
        if not has_columns:
            rows = [*read_rows(file), row]
            writer.writeheader()
        writer.writerows(asdict(r) for r in rows)
        if not has_columns:
            replace_whole(file, text.getvalue().encode())
            return
        with file.open("ab") as out:
            out.write(text.getvalue().encode())


def read_rows(file: Path) -> list[ComparedRow]:
    """The rows of a CSV; none where there is no file. A column that it lacks is younger than it: see `_older`."""
    if not file.exists():
        return []
    kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
    kinds["float | None"] = lambda word: float(word) if word else None
    with file.open(encoding="utf-8", newline="") as source:
        return [
            ComparedRow(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(ComparedRow)})
            for row in ({**_older(row), **row} for row in csv.DictReader(source))
        ]


def _older(row: Mapping[str, str]) -> dict[str, str]:
    """What columns would hold that came later than a row: then there was the mean alone, and nobody poisoned; all that
    a worker sent of a round went at once; the share of the rule was not measured, no root was kept; there was no guard.
    """
    peak = row["bytes_per_parameter"]
    plain = {"merge": MergeKind.MEAN.value, "poison": NO_POISON, "poisoned": "0", "fooled": "0"}
    # The column of the model had the name of what alone was trained then.
    plain |= {"group_size": "0", "sums": UpdateWire.F32.value}
    plain |= {"model": row.get("preset", ""), "run_id": "", "root": "", "guard": "", "refused": "0"}
    return plain | {"peak_bytes_per_parameter": peak, "rule_share": ""}


def summary(rows: Sequence[ComparedRow], jobs: Sequence[ComparedRun], text: str) -> list[dict[str, Any]]:
    """A row per training that was asked for, with the loss of f32 updates, merged by their mean, of as many
    workers of whom nobody is poisoned, same seed, as loss_dense.
    """
    known = {row.run: row for row in rows if row.text == text}
    found = []
    for job in jobs:
        row, dense = known[job], known[job.dense]
        # Beside a loss that is not above zero a ratio says nothing.
        above = round(row.loss / dense.loss - 1, 5) if dense.loss > 0.0 else None
        found.append(asdict(row) | {"loss_dense": dense.loss, "above": above})
    return found
