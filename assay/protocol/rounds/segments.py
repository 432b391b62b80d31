"""Which generations are cut, without a walk (Segments.sol).

A segment is a run of rounds of which each starts from the generation of the one before; a restart begins one. The
segments that are not cut whole form a stack, each beginning from a generation of the one below. A cut keeps its
segment's part below it and takes all segments above off.
"""

from __future__ import annotations

from assay.protocol.rounds.terms import Segment


class Segments:
    """The stack of segments, and the segment of every generation."""

    def __init__(self) -> None:
        self.stack: list[Segment] = []
        self.segment_of: dict[int, Segment] = {}

    def is_cut(self, generation: int) -> bool:
        """Whether the generation is cut, or built on one that is."""
        if generation == 0:
            return False
        segment = self.segment_of.get(generation)
        if segment is None or not any(segment is live for live in self.stack):
            return True
        return segment.lowest_cut != 0 and generation >= segment.lowest_cut

    def cut(self, generation: int) -> None:
        """Cut a generation that is not cut yet, and everything that builds on it."""
        segment = self.segment_of[generation]
        segment.lowest_cut = generation
        while self.stack[-1] is not segment:
            self.stack.pop()

    def newest(self, last: int) -> tuple[int, bool]:
        """The newest generation that is not cut, if `last` is the newest of the top segment when nothing of it is;
        whether nothing of that segment is left."""
        top = self.stack[-1]
        generation = top.lowest_cut - 1 if top.lowest_cut else last
        return (top.parent, True) if generation <= top.first else (generation, False)

    def go_on(self, round_: int, parent: int, is_empty: bool) -> None:
        """A round opens: the top segment goes on with it, or a new one begins."""
        if not self.stack or is_empty or parent != round_:
            if is_empty and self.stack:
                self.stack.pop()
            self.stack.append(Segment(round_, parent))
        self.segment_of[round_ + 1] = self.stack[-1]
