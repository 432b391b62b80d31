"""How large the games on a program's claims can become."""

from __future__ import annotations

from assay.protocol.game.clock import Shape
from assay.protocol.program.program import Program


def shape_of(program: Program, steps: int) -> Shape:
    """What bounds the number of moves of a game on a claim of `steps` steps of this program."""
    terms = max((getattr(node, "terms", 1) for node in program.nodes), default=1)
    leaves = max((spec.leaf_count for spec in program.specs), default=1)
    return Shape(steps, len(program.nodes), leaves, terms, max(program.outputs))
