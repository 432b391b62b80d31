"""One actor's programs over several ranks: the leader acts and says what to compute, the others compute it with it.

    torchrun --nproc-per-node 2 --no-python -- assay solver start ...

Rank 0 has the key, the chain and the store; the others have nothing but processors, and know nothing but programs and
their lists. What comes out has the bits of one rank, so that nobody can tell from a claim how it was computed.
Source: docs/adr/0012-parallel-execution.md.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from assay.engine.compiler.cache import source_digest
from assay.engine.runtime import devices
from assay.engine.runtime.devices import Device
from assay.engine.runtime.executor import KernelVariant, usual_variant
from assay.engine.runtime.memory_bound import named_memory
from assay.engine.runtime.parallel.executor import ParallelExecutor
from assay.engine.runtime.parallel.group import Distributed, RankGroup
from assay.engine.runtime.parallel.layout import Division, micro_batch_sums
from assay.engine.runtime.parallel.witness import with_witness
from assay.engine.runtime.triton import backend as triton_backend
from assay.engine.runtime.values.state_io import check_mapped, from_lists_of_bytes, input_specs, mappings_of, passed_on
from assay.mapped_files import MappedFile, mapping_of
from assay.protocol.errors import ConfigError, InvariantError
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program
from assay.protocol.program.trace import OnStep, Tamper
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest
from assay.training.rounds import TorchCompute

LEADER: Final = 0
NCCL, GLOO = "nccl", "gloo"

PATIENCE: Final = timedelta(days=365)
"""How long a rank waits for the next work: rounds end when the chain says so. A rank that dies is noticed at once."""

SILENCE: Final = timedelta(minutes=5)
"""How long one that is at work waits for the others: half of the shortest turn of a game. Longer, and a rank that is
stopped, or whose machine is gone without a word, costs an actor the game in which it is challenged meanwhile."""

PIECE: Final = 1 << 26
"""Bytes that a leader sends at once: SILENCE is for each of them, over any link."""


class RanksLost(InvariantError):
    """Ranks that compute together no longer do: one ended or failed, and the others cannot go on without it."""

    remedy = "Start all of them again with the same command (torchrun does so by itself with --max-restarts)."


def divided(program: Program, size: int) -> Division:
    """How a program is shared: by its micro-batches; one without any is not."""
    sums = micro_batch_sums(program)
    return with_witness(Division(sums), program, size) if sums else Division()


class Channel:
    """How the leader tells the other ranks what to compute; every rank makes one at the same moment."""

    def __init__(self) -> None:
        # Ranks wait here for hours between rounds: over Gloo, which waits without a processor, NCCL does not. The
        # leader waits for nothing but that they take what it sends.
        timeout = SILENCE if dist.get_rank() == LEADER else PATIENCE
        self._group = dist.new_group(backend="gloo", timeout=timeout)

    def send(self, message: bytes | memoryview) -> None:
        """The leader's message to all others. Raises RuntimeError where one is lost, or takes nothing."""
        dist.broadcast(torch.tensor([len(message)]), LEADER, group=self._group)
        for start in range(0, len(message), PIECE):
            piece = bytearray(message[start : start + PIECE])
            dist.broadcast(torch.frombuffer(piece, dtype=torch.uint8), LEADER, group=self._group)

    def receive(self) -> memoryview:
        """The next one, in memory of its own. Raises RuntimeError where the leader is lost."""
        length = torch.zeros(1, dtype=torch.int64)
        dist.broadcast(length, LEADER, group=self._group)
        data = torch.empty(int(length), dtype=torch.uint8)
        for piece in torch.split(data, PIECE) if len(data) else ():
            dist.broadcast(piece, LEADER, group=self._group)
        return data.numpy().data

    def close(self) -> None:
        """Ends this rank's connections, to whatever ranks, and waits for their threads; nothing is exchanged any more.

        A thread of Gloo's lets go of a message only after it was exchanged. Where the interpreter is torn down by then,
        that aborts a process that has ended well, and torchrun calls all of them failed.
        """
        dist.destroy_process_group()
        del self._group  # with its last reference a group waits for its threads


class Ranks:
    """The executors of one rank, by program, and the channel to the others."""

    def __init__(self, group: RankGroup, channel: Channel) -> None:
        self.group, self.channel = group, channel
        self.held: list[memoryview] = []
        """What lies in the leader's mapped files, in the order in which it came: data, which every run takes."""
        self._layouts: dict[Digest, Division] = {}
        self._executors: dict[Digest, ParallelExecutor] = {}

    def layout(self, program: Program) -> Division:
        """How these ranks share a program."""
        if program.root not in self._layouts:
            self._layouts[program.root] = divided(program, self.group.size)
        return self._layouts[program.root]

    def executor(self, program: Program) -> ParallelExecutor:
        """This rank's part of a program, made once. Raises UserError: it is ill-formed."""
        if program.root not in self._executors:
            self._executors[program.root] = ParallelExecutor(program, self.layout(program), self.group)
        return self._executors[program.root]

    def let_go(self) -> None:
        """Frees what programs were shared by."""
        self._executors.clear()

    def known(self, root: Digest) -> Program:
        """A program that was run before."""
        return self._executors[root].program


@dataclass(frozen=True, slots=True)
class RankThreads:
    """Threads of a rank: of the leader by itself, while the others wait; of any beside the others of its machine."""

    alone: int
    beside_others: int

    @classmethod
    def named(cls) -> RankThreads:
        """As many as this process has, whatever it does."""
        return cls(torch.get_num_threads(), torch.get_num_threads())

    @classmethod
    def usual(cls, local: int, root: Path = Path("/")) -> RankThreads:
        """Those that OMP_NUM_THREADS names, else all of the machine's, shared by its `local` ranks.

        Where it names none torchrun sets it to one: rank 0 would merge, and play its games, by one thread, on a machine
        that was measured with all of them before anything was staked. root: the folder of the machine's /sys.
        """
        if os.environ.get("OMP_NUM_THREADS") != "1":
            return cls.named()
        whole = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with suppress(OSError, ValueError):  # no such file, or "max"
            # A container is given a part of the processors that it sees.
            quota, period = map(int, (root / "sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split())
            whole = max(min(whole, quota // period), 1)
        return cls(whole, max(whole // local, 1))


class RankedCompute(TorchCompute):
    """The leader's: shares programs that have micro-batches with the other ranks, and runs all else by itself.

    Once one of them is lost it runs everything by itself, and `on_lost` is told why.
    """

    def __init__(
        self, ranks: Ranks, threads: RankThreads | None = None, on_lost: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__()
        self.ranks = ranks
        self._on_lost = on_lost
        self._threads = threads or RankThreads.named()
        torch.set_num_threads(self._threads.alone)
        self.is_lost = False
        """Whether the others may be within a run that this rank has left: nothing is exchanged with them any more."""
        self._told: set[Digest] = set()
        self._sent: list[MappedFile] = []

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        on_step: OnStep | None = None,
    ) -> ListBytes:
        """See TorchCompute. What `on_step` raises is raised when all steps are done: the other ranks go on meanwhile.

        Where a rank is lost all steps are run again, and told of again.
        """
        if self.is_lost or tamper is not None or not self.ranks.layout(program).splits:
            return super().run(program, lists, steps, tamper, on_step)
        executor = self.ranks.executor(program)  # before anybody is told: who refuses a program refuses it alone
        inputs = from_lists_of_bytes(input_specs(program), lists)
        mapped = [m for m in mappings_of(lists) if all(m is not sent for sent in self._sent)]
        message = _message(program, lists, steps, [*self._sent, *mapped], is_known=program.root in self._told)
        listener = _Listener(on_step)
        # Until the last exchange is done: in a run that begins while others are within this one, their sums would meet.
        self.is_lost = True
        torch.set_num_threads(self._threads.beside_others)
        try:
            self.ranks.channel.send(message)
            for mapping in mapped:
                self.ranks.channel.send(mapping.view)
            state = executor.repeat(inputs, steps, listener)
            self.is_lost = False
        except RuntimeError as error:
            # It has the key: if it ended with them, no game would be answered and no call opened.
            self.ranks.let_go()
            self._on_lost(_first_line(error))
        finally:
            torch.set_num_threads(self._threads.alone)
        if self.is_lost:
            return super().run(program, lists, steps, tamper, on_step)
        self._told.add(program.root)
        self._sent += mapped
        listener.check()
        check_mapped(lists)
        return passed_on(lists, inputs, state)

    def end(self) -> None:
        """Lets the other ranks go, if they are still there; where they are lost, they end with this process."""
        if self.is_lost:
            return
        try:
            self.ranks.channel.send(b"")
        except RuntimeError:
            return
        self.ranks.channel.close()


class _Listener:
    """Tells of steps until that fails, and keeps why: an error between two exchanges would leave the others alone."""

    def __init__(self, on_step: OnStep | None) -> None:
        self._on_step = on_step
        self._error: Exception | None = None

    def __call__(self, step: int) -> None:
        if self._on_step is None or self._error is not None:
            return
        try:
            self._on_step(step)
        except Exception as error:  # whatever it is, it is raised by `check`
            self._error = error

    def check(self) -> None:
        """Raises what telling failed with."""
        if self._error is not None:
            raise self._error


def serve(ranks: Ranks) -> int:
    """Computes what the leader says until it ends; how many times. Raises RanksLost, MemoryExceeded."""
    count = 0
    try:
        with named_memory():  # what this rank has no memory for is no other rank's fault
            while len(message := ranks.channel.receive()):
                program, lists, steps = _read(message, ranks)
                executor = ranks.executor(program)
                executor.repeat(from_lists_of_bytes(input_specs(program), lists), steps)
                count += 1
    except RuntimeError as error:
        raise RanksLost(f"The leader, or a rank beside this one, is lost ({_first_line(error)}).") from error
    ranks.channel.close()
    return count


def join(backend: str | None = None) -> Ranks:
    """This process as a rank of torchrun's. backend: of the exchanges; `usual_backend`, if it is that of all ranks.

    Raises:
        RanksLost: the others cannot be reached.
        ConfigError: NoDevice, a GPU is asked for and not usable; RanksDiffer.
    """
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    wanted = backend or usual_backend(local)
    if local != int(os.environ.get("WORLD_SIZE", "1")):
        name_interface()
    try:
        # A leader that stands by for another process of its key joins hours after the others.
        timeout = SILENCE if os.environ.get("RANK") == str(LEADER) else PATIENCE
        store, rank, size = next(rendezvous("env://", timeout=timeout))
        if local == size:
            # torchrun keeps one store: ranks that it starts again would find the addresses of those that died.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            store = dist.PrefixStore(f"attempt_{attempt}", store)  # type: ignore[attr-defined]
        check_alike(store, rank, size)
        backend = agreed(store, rank, size, wanted)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=SILENCE)
        return Ranks(Distributed(), Channel())
    except (RuntimeError, ValueError) as error:
        raise RanksLost(f"The other ranks cannot be reached ({_first_line(error)}).") from error


def name_interface() -> None:
    """Has Gloo exchange by the interface over which machine 0 is reached, unless GLOO_SOCKET_IFNAME names another.

    By itself it tells the others the address of this machine's own name, which most systems keep as a loopback one.
    """
    import psutil  # which a bare checkout has not

    with suppress(OSError, KeyError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))  # nothing is sent
        address = probe.getsockname()[0]
        for name, seen in psutil.net_if_addrs().items():
            if any(one.address == address for one in seen):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", name)


def usual_backend(local: int) -> str:
    """NCCL where programs run on GPUs and each of this machine's ranks has one, which becomes this rank's; else Gloo.

    local: ranks on this machine. Raises ConfigError (NoDevice).
    """
    asked = devices.asked()
    is_left_out = asked is Device.CPU or (asked is Device.AUTO and not triton_backend.SEEN_ON_A_GPU)
    if is_left_out or not torch.cuda.is_available() or torch.cuda.device_count() < local:
        return GLOO
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))  # before anything is tried on it
    is_there = usual_variant() is KernelVariant.TRITON and not triton_backend.is_interpreted()
    return NCCL if is_there and dist.is_nccl_available() else GLOO


def agreed(store: dist.Store, rank: int, size: int, wanted: str) -> str:  # type: ignore[name-defined]
    """What all ranks exchange by: NCCL where every one of them wants it. One that has no GPU would wait for ever."""
    store.set(f"wants_{rank}", wanted)
    return NCCL if all(store.get(f"wants_{other}") == NCCL.encode() for other in range(size)) else GLOO


def check_alike(store: dist.Store, rank: int, size: int) -> None:  # type: ignore[name-defined]
    """That all ranks are the same code. Raises ConfigError (RanksDiffer)."""
    store.set(f"code_{rank}", source_digest())
    mine = source_digest().encode()
    # Attack on oneself: a machine that was updated beside one that was not; they divide a program otherwise, and what
    # comes out is committed to.
    if others := [str(other) for other in range(size) if store.get(f"code_{other}") != mine]:
        raise ConfigError(
            f"This rank runs another version of Assay, torch or Python than rank {', '.join(others)}.",
            code="RanksDiffer",
            remedy="Install the same release and the same versions of Python and torch on each machine.",
        )


def ignore_signals() -> None:
    """For ranks that do not lead: Ctrl-C reaches them all, and the leader says when the work is over."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _message(program: Program, lists: ListBytes, steps: int, held: Sequence[MappedFile], *, is_known: bool) -> bytes:
    """What the others need for a run: of what lies in mapped files the number alone, for it may be all of the data."""
    places = {id(mapping): k for k, mapping in enumerate(held)}
    slots = [[places.get(id(mapping_of(data)), -1 - len(data)) for data in part] for part in lists]
    file = b"" if is_known else encode_program(program)
    head = {"root": program.root.hex(), "file": len(file), "steps": steps, "held": len(held), "slots": slots}
    text = json.dumps(head).encode()
    sent = (data for part in lists for data in part if mapping_of(data) is None)
    return b"".join([len(text).to_bytes(8, "big"), text, file, *sent])


def _read(message: memoryview, ranks: Ranks) -> tuple[Program, ListBytes, int]:
    start = 8 + int.from_bytes(message[:8], "big")
    head = json.loads(bytes(message[8:start]))
    file, start = bytes(message[start : start + head["file"]]), start + head["file"]
    program = decode_program(file) if file else ranks.known(Digest(bytes.fromhex(head["root"])))
    while len(ranks.held) < head["held"]:
        ranks.held.append(ranks.channel.receive())
    lists: list[tuple[bytes, ...]] = []
    for slots in head["slots"]:
        part, start = _cut(message, start, slots, ranks.held)
        lists.append(part)
    return program, tuple(lists), head["steps"]


def _cut(
    message: memoryview, start: int, slots: Sequence[int], held: Sequence[memoryview]
) -> tuple[tuple[bytes, ...], int]:
    """The bytes of a list's slots: each is the number of what is held, or minus one less what stands in the message."""
    found: list[bytes] = []
    for slot in slots:
        size = 0 if slot >= 0 else -1 - slot
        # As mapped files are: a view, which those who compute only read.
        found.append(cast(bytes, held[slot]) if slot >= 0 else bytes(message[start : start + size]))
        start += size
    return tuple(found), start


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
