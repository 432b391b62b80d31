"""Lies that begin in exactly one node of a family, and what a verdict about one has to say by the reference alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.protocol.arithmetic.words import canonical, from_bytes, signed
from assay.protocol.game.element import chunk
from assay.protocol.game.player_values import Position, defend_parts
from assay.protocol.program import leaf
from assay.protocol.program.nodes import Const, Dot, Family, Input, Output, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.trace import SlotTamper, Trace
from assay.protocol.trees.tensors import tensor_root
from assay_ledger.index.computing import Computation, Compute
from assay_solver.lies import Lie
from tests.harness.damage import flip

Words = tuple[int, int, int, int]
"""Element, term, expected and claimed word of a verdict."""


@dataclass(frozen=True)
class NodeLie:
    """One node of one step is claimed to have these bytes; all that follows is computed from them."""

    step: int
    node: int
    data: bytes

    @property
    def tamper(self) -> Lie:
        """The lie as executors take it."""
        return Lie({(self.step, self.node): lambda _: self.data})

    def in_slot(self, program: Program) -> SlotTamper:
        """The same lie behind an output node: the node is right, the state after it is not."""
        slot = slot_of(program, self.node)
        return lambda t, number, index, data: self.data if (t, number, index) == (self.step, *slot) else data


def lie_in(compute: Compute, job: Computation, family: Family, step: int) -> NodeLie:
    """The first single bit of a node of this family that changes where the job ends, and that parts can stand for."""
    truth = compute.trace(job.program, job.lists, job.steps)
    end = truth.state_root(job.steps)
    for node in (k for k, n in enumerate(job.program.nodes) if n.family is family):
        dtype, honest = job.program.specs[node].dtype, truth.node_bytes(step, node)
        for bit in range(min(8 * len(honest), 1024)):
            lie = NodeLie(step, node, flip(honest, bit))
            words = from_bytes(dtype, lie.data)
            if any(canonical(dtype, w) != w for w in words):
                continue
            if not has_parts(Position(truth, step, node), words, from_bytes(dtype, honest)):
                continue
            if compute.trace(job.program, job.lists, job.steps, lie.tamper).state_root(job.steps) != end:
                return lie
    raise AssertionError(f"no lie in a {family.name} reaches the end")


def has_parts(place: Position, words: Sequence[int], honest: Sequence[int]) -> bool:
    """Whether a liar finds a sum that rounds to its word; otherwise it has no reply, and no proof is needed."""
    if not isinstance(place.node, Dot | Sum | ScatterSum):
        return True
    element = next(k for k, (a, b) in enumerate(zip(words, honest, strict=True)) if a != b)
    heads, claimed = place.heads(element), signed(words[element])
    return defend_parts(place.node, heads, [0], claimed, whole=True) is not None


def predict(truth: Trace, lie: NodeLie, defended: bytes, disputed: bytes, arity: int) -> Words:
    """What the verdict on a node says, from the reference's values of everything that the node reads.

    defended, disputed: the node's bytes as the defender opens them, and as the challenger would have them.
    """
    place = Position(truth, lie.step, lie.node)
    node, spec = place.node, truth.program.specs[lie.node]
    if isinstance(node, Input | Const | Output):
        roots = truth.node_root(lie.step, lie.node), tensor_root(spec, defended)
        expected, claimed = (signed(int.from_bytes(root, "big")) for root in roots)
        return 0, 0, expected, claimed
    words, others = from_bytes(spec.dtype, defended), from_bytes(spec.dtype, disputed)
    element = next(k for k, (a, b) in enumerate(zip(words, others, strict=True)) if a != b)
    heads, claimed = place.heads(element), signed(words[element])
    start = leaf.start(node, element, heads)
    if start.done:
        return element, 0, signed(start.value), claimed
    lo, hi = 0, start.terms
    if hi == 1:
        return element, 0, signed(leaf.element(node, element, place.load)), claimed
    while hi - lo > 1:
        true = place.parts(element, lo, hi, heads, arity)
        posted = defend_parts(node, heads, true, claimed, whole=hi - lo == start.terms)
        assert posted is not None
        # A challenger of what is true finds no wrong part and selects the last.
        at = next((k for k, part in enumerate(posted) if part != true[k]), len(true) - 1)
        size = chunk(hi - lo, arity)
        lo, hi, claimed = lo + at * size, min(lo + (at + 1) * size, hi), posted[at]
    return element, lo, leaf.part_of(node, element, lo, heads, place.load), claimed


def slot_of(program: Program, node: int) -> tuple[int, int]:
    """List and index of the slot that an output node must equal."""
    return next((n, nodes.index(node)) for n, nodes in enumerate(program.output_nodes) if node in nodes)
