"""What a verdict says, computed again by the reference alone: no executor, no contract, no actor's word."""

from __future__ import annotations

from assay.protocol.arithmetic.words import Word, canonical, from_bytes, signed
from assay.protocol.program import leaf
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.types import Digest
from assay_ledger.agents.participant import Participant
from assay_ledger.index.games import Game
from assay_ledger.index.records import GameRecord
from assay_solver.cheating import CheatingSolver
from tests.harness.actors.world import ActorWorld


def recompute(world: ActorWorld, record: GameRecord, auditor: str) -> tuple[int, int]:
    """`expected` by the reference, and what the defender's own false run has in that place; for computed families.

    `auditor` names an honest actor through whose archive the published start is read.
    """
    assert record.verdict is not None
    participant, verdict = world.players[auditor].agent, record.verdict
    assert isinstance(participant, Participant) and verdict.family not in (Family.INPUT, Family.CONST, Family.OUTPUT)
    game: Game = world.run.games.game(record.game_id)
    view = participant.see()
    job = participant.archive.job(view, participant.duty_of(record.ref, view))
    before = participant.compute.run(job.program, job.lists, game.state.step - 1) if game.state.step > 1 else job.lists
    values = ReferenceExecutor(job.program).run(before)
    element = _word(job.program, values, verdict.node, verdict.element)
    node = job.program.nodes[verdict.node]

    def load(read: Read) -> Word:
        return read.fill if read.is_fill else _word(job.program, values, read.node, read.address)

    honest = element
    if not game.state.whole and verdict.family not in (Family.MAP, Family.RANDOM):
        heads = [load(read) for read in leaf.head_reads(node, verdict.element)]
        honest = leaf.part_of(node, verdict.element, verdict.term, heads, load)
        return signed(honest), verdict.claimed
    liar = next(p.agent for p in world.players.values() if p.agent.me == record.defender)
    assert isinstance(liar, CheatingSolver)
    lie = liar.lie(record.ref.round, record.ref.seat, record.ref.duty, job, liar.see())
    false = participant.compute.trace(job.program, job.lists, job.steps, lie)
    claimed = false.node_bytes(game.state.step, verdict.node)
    size = job.program.specs[verdict.node].dtype.size
    word = from_bytes(
        job.program.specs[verdict.node].dtype, claimed[verdict.element * size : (verdict.element + 1) * size]
    )[0]
    return signed(honest), signed(word)


def _word(program: Program, values: tuple[bytes, ...], node: int, element: int) -> Word:
    """The canonical word of an element of a node's value."""
    spec = program.specs[node]
    data = values[node][element * spec.dtype.size : (element + 1) * spec.dtype.size]
    return canonical(spec.dtype, from_bytes(spec.dtype, data)[0])


def digest_of(value: int) -> Digest:
    """A root that a verdict gives as a number."""
    return Digest((value % (1 << 256)).to_bytes(32, "big"))
