"""What a dispute costs: real games about GPTs, and GPT-2 small computed from its captured program.

    python -m bench.dispute [--only demo] [--only gpt-10m] [--only gpt2-small] [--json]     (as `assay bench dispute`)

Measured rows are transactions of real games on a local node, played by the agents' code. Estimated rows count moves by
the game's own bounds for the worst node of the real program and price each move at the most expensive measured of its
kind; their seconds come from rates measured on this machine, and are marked as estimates.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench import gpt2
from assay.bench.arena import Dispute, play
from assay.engine.runtime.executor import Executor
from assay.protocol.game.clock import bisections, openings
from assay.protocol.game.table import Move, Side
from assay.protocol.program.nodes import Family, Gather, Map, Node, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.state import TrainingList
from assay.sponsor.charters import ARITY
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import DEMO, Preset
from assay.training.programs import training_program
from assay.training.state import Scalars
from assay.training.step import initial_state, preset_step

BLOCK_S: Final = 2
CHALLENGE: Final = "challenge"
GPT2_STEPS: Final = 80_000
MODELS: Final = ("demo", "gpt-10m", "gpt2-small")
GPT_10M: Final = Preset("gpt-10m", layers=6, width=384, heads=6, context=64, batch=4, inner_steps=25)
"""nanoGPT's character model, 10.7 M parameters, on shorter rows: a commitment is 25 steps."""

RATES: Final = Preset("rates", layers=1, width=256, heads=4, context=128, batch=4, inner_steps=5)
"""Large enough that nodes, not calls, take the time."""

MOST_EXPENSIVE: Final[dict[str, tuple[int, int]]] = {
    "challenge": (502_428, 196),
    "postDigests": (266_190, 2_148),
    "bisectDigests": (149_931, 2_180),
    "openNode": (280_985, 3_524),
    "selectSubtree": (76_223, 1_412),
    "openSubtree": (115_172, 356),
    "openLeaf": (121_567, 1_124),
    "selectElement": (861_179, 20_548),
    "postParts": (198_628, 2_468),
    "selectPart": (83_761, 2_052),
    "proveTerm": (354_574, 4_708),
    "proveRoot": (234_170, 900),
    "openState": (106_850, 196),
    "selectList": (69_610, 228),
}
"""Gas and calldata bytes of the largest transaction per move that tests/integration/contracts/test_game_gas.py
measures, arity 64.

docs/game.md has the table; a test compares the two.
"""

PUBLISHED: Final[tuple[dict[str, str], ...]] = (
    {
        "system": "Optimism fault dispute game (Cannon)",
        "figure": "depth 73, split at 30, binary: at most one claim per level and one VM step; 302,400 s per clock",
        "source": "specs.optimism.io, fault-proof/stage-one/fault-dispute-game; faultGameMaxDepth in its deploy-config",
    },
    {
        "system": "opML",
        "figure": "the whole challenge within 2 minutes for an MNIST network on a local test network",
        "source": "ethresear.ch/t/opml-optimistic-machine-learning-on-blockchain/16234",
    },
    {
        "system": "BoLD",
        "figure": "a claim confirms after about 6.4 days",
        "source": "Arbitrum documentation, BoLD: a technical deep dive; arXiv 2404.10491",
    },
)


@dataclass(frozen=True, slots=True)
class DisputeRow:
    """One line of the report. Gas per whole transaction; bytes; seconds_at_2s_blocks: one move a block, no side waits.

    gas_leaf: the transaction in which the contract computes. retrace_seconds: one step executed again with every
    digest, processor time of one thread. bytes_kept: what the defender holds to answer. `estimated` names the columns
    that were not measured.
    """

    model: str
    kind: str
    parameters: int
    steps: int
    nodes: int
    levels: int
    transactions: int
    gas_total: int
    gas_leaf: int
    gas_max_move: int
    calldata: int
    seconds_at_2s_blocks: int
    bytes_kept: int
    retrace_seconds: float
    estimated: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"estimated": list(self.estimated)}


# --- counting moves


def moves_of(node: Node, leaves: int, steps: int, nodes: int, arity: int = ARITY) -> Counter[Move]:
    """The most moves of each kind in a game that ends in this node; the opening of the game not among them."""
    descent = bisections(steps, arity) + bisections(nodes + 1, arity)
    counts = Counter({Move.POST_DIGESTS: descent, Move.BISECT_DIGESTS: descent, Move.OPEN_NODE: 1})
    if node.family in (Family.INPUT, Family.CONST, Family.OUTPUT):
        return counts + Counter({Move.PROVE_ROOT: 1})
    opened = openings(leaves, arity)
    counts += Counter(
        {Move.OPEN_SUBTREE: opened - 1, Move.SELECT_SUBTREE: opened, Move.OPEN_LEAF: 1, Move.SELECT_ELEMENT: 1}
    )
    terms = getattr(node, "terms", 1 if isinstance(node, Gather) else 0)
    if terms:
        parts = bisections(terms, arity)
        counts += Counter({Move.POST_PARTS: parts, Move.SELECT_PART: parts, Move.PROVE_TERM: 1})
    return +counts


def moves_to_a_slot(slots: int, steps: int, nodes: int, arity: int = ARITY) -> Counter[Move]:
    """The same for a game that ends in a slot of the state after a step."""
    descent, opened = bisections(steps, arity) + bisections(nodes + 1, arity), openings(slots, arity)
    return Counter(
        {
            Move.POST_DIGESTS: descent,
            Move.BISECT_DIGESTS: descent,
            Move.OPEN_STATE: 1,
            Move.SELECT_LIST: 1,
            Move.OPEN_SUBTREE: opened,
            Move.SELECT_SUBTREE: opened,
            Move.PROVE_ROOT: 1,
        }
    )


def worst(program: Program, steps: int, prices: dict[str, tuple[int, int]]) -> tuple[Counter[Move], str]:
    """The longest game on a claim of this program, the most expensive of equally long ones, and where it ends."""
    n = len(program.nodes)
    found = [
        (moves_of(node, program.specs[k].leaf_count, steps, n), f"{node.family.name.lower()}, node {k}")
        for k, node in enumerate(program.nodes)
    ]
    found.append((moves_to_a_slot(max(program.outputs), steps, n), "a slot of the state"))
    return max(found, key=lambda f: (f[0].total(), sum(prices[m.function][0] * c for m, c in f[0].items()), f[1]))


# --- rows


def measured_row(model: str, parameters: int, dispute: Dispute) -> DisputeRow:
    """A game that was played."""
    sent = dispute.transactions
    return DisputeRow(
        model=model,
        kind=f"played to a {Family(dispute.verdict.family).name.lower()} node",
        parameters=parameters,
        steps=dispute.steps,
        nodes=len(dispute.program.nodes),
        levels=dispute.levels,
        transactions=len(sent),
        gas_total=sum(s.gas for s in sent),
        gas_leaf=sent[-1].gas,
        gas_max_move=max(s.gas for s in sent),
        calldata=sum(s.calldata for s in sent),
        seconds_at_2s_blocks=BLOCK_S * len(sent),
        bytes_kept=dispute.bytes_kept,
        retrace_seconds=round(dispute.retrace_s, 3),
    )


def computed_row(
    model: str, parameters: int, program: Program, steps: int, rates: Rates, played: Iterable[Dispute] = ()
) -> DisputeRow:
    """The longest game on a claim of this program, every move at the highest price measured of its kind."""
    prices = dict(MOST_EXPENSIVE)
    for dispute in played:
        for s in dispute.transactions:
            gas, calldata = prices.get(s.function, (0, 0))
            prices[s.function] = max(gas, s.gas), max(calldata, s.calldata)
    counts, where = worst(program, steps, prices)
    each = [(CHALLENGE, 1), *((m.function, c) for m, c in sorted(counts.items()))]
    transactions = sum(c for _, c in each)
    last = max((m for m in counts if m in (Move.PROVE_ROOT, Move.PROVE_TERM, Move.SELECT_ELEMENT)), key=_LAST.index)
    return DisputeRow(
        model=model,
        kind=f"longest game: {where}",
        parameters=parameters,
        steps=steps,
        nodes=len(program.nodes),
        levels=sum(c for m, c in counts.items() if m.side is Side.CHALLENGER),
        transactions=transactions,
        gas_total=sum(prices[name][0] * c for name, c in each),
        gas_leaf=prices[last.function][0],
        gas_max_move=max(prices[name][0] for name, _ in each),
        calldata=sum(prices[name][1] * c for name, c in each),
        seconds_at_2s_blocks=BLOCK_S * transactions,
        bytes_kept=bytes_kept(program),
        retrace_seconds=round(rates.seconds(program), 1),
        estimated=("gas_total", "gas_leaf", "gas_max_move", "calldata", "bytes_kept", "retrace_seconds"),
    )


_LAST: Final = (Move.SELECT_ELEMENT, Move.PROVE_TERM, Move.PROVE_ROOT)


def bytes_kept(program: Program) -> int:
    """What a defender needs at once: X, the state before the step, the node with what it reads, all node roots."""
    inputs = sum(program.specs[k].nbytes for nodes in program.input_nodes for k in nodes)
    widest = max(
        program.specs[k].nbytes + sum(program.specs[j].nbytes for j in {*reads(node)})
        for k, node in enumerate(program.nodes)
    )
    return 2 * inputs + widest + 32 * len(program.nodes)


# --- rates


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds of processor time: per unit of work of each family (see `work`), and per byte hashed."""

    per_unit: dict[Family, float]
    per_byte: float

    def seconds(self, program: Program) -> float:
        """An estimate of one step executed again with all its digests."""
        slowest = max(self.per_unit.values())
        running = sum(work(n) * self.per_unit.get(n.family, slowest) for n in program.nodes)
        free = (Family.INPUT, Family.OUTPUT, Family.CONST)
        return running + self.per_byte * sum(n.spec.nbytes for n in program.nodes if n.family not in free)


def work(node: Node) -> int:
    """Units of work of a node: terms of reductions, instructions of maps, elements of all else; nothing where none."""
    if node.family in (Family.INPUT, Family.OUTPUT, Family.CONST):
        return 0
    if isinstance(node, Map):
        return node.spec.numel * (len(node.code) // 8)
    return node.spec.numel * int(getattr(node, "terms", 1))


def measure_rates(runs: int = 3) -> Rates:
    """Rates of this machine on one thread, from a small program that has every family of a GPT."""
    corpus = corpus_from_text(pydoc_text(), min_tokens=RATES.context + 1)
    program = training_program(RATES, corpus)
    step = preset_step(RATES, len(corpus.vocabulary))
    scalars = Scalars.of(corpus.train, learning_rate=RATES.learning_rate, key=(1, 2))
    state = initial_state(step, initialize(step.module, 1), scalars)
    executor = Executor(program)
    units: dict[Family, int] = defaultdict(int)
    for node in program.nodes:
        units[node.family] += work(node)
    best: dict[Family, float] = {}
    for _ in range(runs):
        for family, seconds in _spent(executor, state).items():
            best[family] = min(best.get(family, seconds), seconds)
    data = bytes(1 << 20)
    hashing = min(_timed(lambda: [sha256(data[:1024]).digest() for _ in range(1024)]) for _ in range(3))
    return Rates({f: best[f] / units[f] for f in best if units[f]}, hashing / len(data))


def _spent(executor: Executor, state: Any) -> dict[Family, float]:
    """Seconds per family in one run, node by node."""
    spent: dict[Family, float] = defaultdict(float)
    nodes, last = executor.program.nodes, time.thread_time()

    def lap(k: int, value: Tensor) -> Tensor:
        nonlocal last
        spent[nodes[k].family] += time.thread_time() - last
        last = time.thread_time()
        return value

    executor.run(state, lap)
    return dict(spent)


def _timed(function: Callable[[], object]) -> float:
    start = time.thread_time()
    function()
    return time.thread_time() - start


# --- the report

PLAYED: Final = (
    ("demo", "demo GPT", DEMO, (Family.MAP, Family.DOT)),
    ("gpt-10m", "GPT, 6 layers of 384", GPT_10M, (Family.DOT,)),
)
"""Models whose disputes are played, their titles, and the families lied about."""


def parameters_of(program: Program) -> int:
    """The number of parameters that a training program trains."""
    return sum(program.specs[k].numel for k in program.input_nodes[TrainingList.PARAMETERS])


def report(only: Sequence[str] = (), talk: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The document that the command prints."""
    torch.set_num_threads(1)
    wanted = only or MODELS
    rows: list[DisputeRow] = []
    played: list[Dispute] = []
    for model, title, preset, families in PLAYED:
        for family in families if model in wanted else ():
            talk(f"{title}: a dispute about a {family.name.lower()} node")
            dispute = play(preset, pydoc_text(), family, talk)
            talk(
                f"the claim again {dispute.replay_s:.1f} CPU s, the step with all digests {dispute.retrace_s:.2f},"
                f" growing by {dispute.retrace_peak >> 20} MiB"
            )
            played.append(dispute)
            rows.append(measured_row(title, parameters_of(dispute.program), dispute))
    if "gpt2-small" in wanted:
        talk("GPT-2 small: capturing its program on fake tensors")
        module = gpt2.shapes_only()
        program = gpt2.program_of(module)
        talk("measuring rates of this machine")
        rates = measure_rates()
        name = f"GPT-2 small, {gpt2.BATCH * gpt2.CONTEXT:,} tokens a step"
        rows.append(computed_row(name, gpt2.parameters_of(module), program, GPT2_STEPS, rates, played))
    return {"rows": [row.document() for row in rows], "arity": ARITY, "published": list(PUBLISHED)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=MODELS, default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = report(options.only, lambda text: print(text, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps(found))
        return
    for row in found["rows"]:
        for name, value in row.items():
            print(f"{name:>20}  {value}")
        print()
    for entry in found["published"]:
        print(f"{entry['system']}: {entry['figure']} ({entry['source']})")


if __name__ == "__main__":
    main()
