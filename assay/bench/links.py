"""What of a worker's time is training over slow links: real updates, sent through links of so many bits a second.

A round is so many steps of the preset, the worker's update up and those of the others down, one after the other. Steps
are timed here, and transfers through a relay in user space; sockets and files are real, the latency of a long way is
not there.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from torch import Tensor

from assay.bench.compare import ComparedRun, Training
from assay.bench.limited_link import LimitedLink
from assay.bench.methods.trained import TrainedModel
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import spec_of
from assay_ledger.store import listfile
from assay_ledger.store.packing import packed

STEPS: Final = (1, 8, 32, 128)
"""Of a worker in a round."""

TIMED: Final = 5
"""Steps that are timed, after one that is not."""


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A rule over a link. bytes: of an update as it lies in a store. step_s: of one step. up_s: a worker's update up;
    down_s: those of the others down. used: by steps in a round, the share of its time that is training.
    """

    method: str
    mbps: float
    workers: int
    bytes: int
    step_s: float
    up_s: float
    down_s: float
    used: dict[int, float]


def link_rows(
    methods: Sequence[str], rates: Sequence[float], model: TrainedModel, *, workers: int, seed: int = 1
) -> Iterator[LinkRow]:
    """Every rule over every link. rates: megabits a second each way."""
    step_s = None
    for method in methods:
        training = Training(ComparedRun(method, model.name, workers, seed, 1, 1), model)
        step_s = _step_s(training) if step_s is None else step_s
        training.round(0)
        file = _file(training.newest)
        for mbps in rates:
            up, down = _transfers(file, workers - 1, 1e6 * mbps)
            used = {steps: share(steps * step_s, up + down) for steps in STEPS}
            yield LinkRow(method, mbps, workers, len(file), round(step_s, 6), round(up, 6), round(down, 6), used)


def share(trained_s: float, sent_s: float) -> float:
    """Of a round, what is training."""
    return round(trained_s / (trained_s + sent_s), 4)


def _step_s(training: Training) -> float:
    """Of one worker, the median of a few."""
    times = []
    for _ in range(TIMED + 1):
        begun = time.perf_counter()
        training.step()
        times.append(time.perf_counter() - begun)
    return median(times[1:])


def _file(tensors: Sequence[Tensor]) -> bytes:
    """An update as it lies in a store."""
    specs = [spec_of(t) for t in tensors]
    file = listfile.pack(specs, [to_bytes(t) for t in tensors])
    kept = packed(file, listfile.runs(specs))
    return file if kept is None else kept


def _transfers(file: bytes, others: int, rate: float) -> tuple[float, float]:
    """Seconds for a file up, and for as many as there are others down."""
    store = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        near, _ = store.accept()
        with near:
            _read(near, len(file))
            near.sendall(b"\1")
            for _ in range(others):
                near.sendall(file)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with store, LimitedLink(store.getsockname()[1], rate) as link, socket.socket() as worker:
        worker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        worker.connect(("127.0.0.1", link.port))
        begun = time.perf_counter()
        worker.sendall(file)
        _read(worker, 1)
        between = time.perf_counter()
        _read(worker, others * len(file))
        ended = time.perf_counter()
    thread.join()
    return between - begun, ended - between


def _read(source: socket.socket, size: int) -> None:
    """Raises EOFError where it ends before."""
    while size:
        got = len(source.recv(min(size, 1 << 16)))
        if not got:
            raise EOFError
        size -= got
