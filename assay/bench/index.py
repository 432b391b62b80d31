"""How fast an index takes what a node answers, and how soon it stands again: `assay bench index`.

A server in a process of its own sends answers that were made before; everything from HTTP to committed rows is the
product's. Beside it the same answers are folded in memory alone, by the same code.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from assay.bench.index_events import ADDRESS, BLOCK_S, CHAIN, START, facts, hash_of, log_of, placed
from assay.protocol.run.run_charter import RunModules
from assay.protocol.types import Address
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Contract
from assay_ledger.index.games import BLOCKS_PER_QUERY
from assay_ledger.index.kept_events import SETTLED
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.run import Run

READER: Final = "bench"
BARS: Final = {"events_per_second": 5_000, "restart_seconds": 2.0}
GOAL: Final = 20_000


class AnsweredRun(Run):
    """A run whose charter nobody is asked for: the modules have made-up addresses."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.address, self.first_block = chain, ADDRESS, 1
        self.modules = RunModules(*(Address(bytes([k + 1]) * 20) for k in range(len(fields(RunModules)))))
        self.facts = facts()

    def contracts(self) -> dict[str, Contract]:
        """See Run; at one level of seats."""
        names = ("tickets", "tenures", "commitments", "generations", "duties", "attestations", "escrow", "payments")
        return {name: getattr(self, name) for name in (*names, "bounties", "grants", "game", "beacon")}


class _AnsweredIndex(RunIndex):
    """Its run has no contracts that could count anything."""

    def left_out(self) -> str:
        """See Follower."""
        return ""


class _Answers:
    """Answers of a node by what is asked, made before anybody asks."""

    def __init__(self, events: int, contracts: dict[str, Contract]) -> None:
        self._logs: dict[int, list[bytes]] = {}
        for block, made in groupby(placed(events), lambda e: e.block):
            logs = [json.dumps(log_of(e, contracts[e.contract], hash_of(block))).encode() for e in made]
            self._logs[block] = logs
        # Nothing happens in the newest blocks: all that did lies deep.
        self.head = max(self._logs) + SETTLED + 8
        self._ready = {
            first: self._joined(first, first + BLOCKS_PER_QUERY - 1) for first in range(1, self.head, BLOCKS_PER_QUERY)
        }

    def _joined(self, first: int, last: int) -> bytes:
        return b"[" + b",".join(log for n in range(first, last + 1) for log in self._logs.get(n, ())) + b"]"

    def of(self, method: str, params: list[Any]) -> bytes:
        """The result of a call."""
        if method == "eth_chainId":
            return json.dumps(hex(CHAIN)).encode()
        if method == "eth_getLogs":
            if "blockHash" in params[0]:
                return b"[]"
            first, last = int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16)
            is_whole = first in self._ready and (last - first == BLOCKS_PER_QUERY - 1 or last > max(self._logs))
            return self._ready[first] if is_whole else self._joined(first, last)
        numbers = {hash_of(n): n for n in range(self.head - 8, self.head + 1)}
        number = params[0]
        if number == "latest":
            return self._block(self.head)
        if method == "eth_getBlockByNumber":
            return self._block(int(number, 16))
        return self._block(numbers[bytes.fromhex(number[2:])])

    def _block(self, number: int) -> bytes:
        hash_, parent = "0x" + hash_of(number).hex(), "0x" + hash_of(number - 1).hex()
        said = {"number": hex(number), "hash": hash_, "parentHash": parent, "timestamp": hex(START + BLOCK_S * number)}
        return json.dumps(said).encode()


def _serve(events: int, ready: Connection) -> None:
    # Only names and addresses of contracts are asked of the run here.
    run = AnsweredRun.__new__(AnsweredRun)
    run.modules = RunModules(*(Address(bytes([k + 1]) * 20) for k in range(len(fields(RunModules)))))
    answers = _Answers(events, run.contracts())

    class AnswersHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = answers.of(call["method"], call["params"])
            body = b'{"jsonrpc":"2.0","id":%d,"result":' % call["id"] + result + b"}"
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A bench is quiet."""

    gc.freeze()
    server = ThreadingHTTPServer(("127.0.0.1", 0), AnswersHandler)
    ready.send(server.server_port)
    server.serve_forever()


@contextmanager
def _node(events: int) -> Iterator[str]:
    """The URL of a node that has these events."""
    context = multiprocessing.get_context("spawn")
    mine, other = context.Pipe()
    process = context.Process(target=_serve, args=(events, other), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{mine.recv()}"
    finally:
        process.terminate()
        process.join()


def measure(events: int, folder: Path, url: str | None = None) -> dict[str, Any]:
    """The document that the command prints; the database is made in `folder` unless `url` names one."""
    file = folder / "events.sqlite"
    place = url or f"sqlite:///{file}"
    with _node(events) as node:
        chain = Chain(node)
        rows_s, rows_cpu_s, _ = _timed(AnsweredRun(chain), KeepsEvents(place, READER))
        gc.collect()
        restart_s, restart_cpu_s, again = _timed(AnsweredRun(chain), KeepsEvents(place, READER))
        gc.collect()
        memory_s, memory_cpu_s, alone = _timed(AnsweredRun(chain), None)
        same = (
            [s.works for s in (again, alone)],
            [s.money for s in (again, alone)],
            [s.books.now for s in (again, alone)],
        )
    size = sum(path.stat().st_size for path in folder.glob("events.sqlite*")) if url is None else None
    return {
        "events": events,
        "events_per_second": round(events / rows_s),
        "events_per_cpu_second": round(events / rows_cpu_s),
        "in_memory_events_per_second": round(events / memory_s),
        "in_memory_events_per_cpu_second": round(events / memory_cpu_s),
        "restart_seconds": round(restart_s, 2),
        "restart_cpu_seconds": round(restart_cpu_s, 2),
        "restart_in_memory_seconds": round(memory_s, 2),
        "bytes_per_event": None if size is None else round(size / events),
        "same_state": all(a == b for a, b in same),
        "database": place.partition(":")[0],
        "bars": BARS,
        "goal_events_per_second": GOAL,
    }


def _timed(run: AnsweredRun, keeps: KeepsEvents | None) -> tuple[float, float, Any]:
    """Seconds until an index stands at the head, this process' seconds on a processor, and the state then."""
    start, cpu = time.perf_counter(), time.process_time()
    index = _AnsweredIndex(run, keeps=keeps)
    state = index.sync()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    index.close()
    return seconds, cpu_seconds, state
