"""A program as contracts know it."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.digests import program_digest
from assay.protocol.program.program import Program
from assay.protocol.types import Digest


@dataclass(frozen=True, slots=True)
class ProgramRef:
    """A program's root, the tree over its descriptors, and its header."""

    root: Digest
    tree: Digest
    header: bytes

    @staticmethod
    def of(program: Program) -> ProgramRef:
        """The reference of a program at hand."""
        return ProgramRef(program.root, program.tree.root, program.header)

    @property
    def is_consistent(self) -> bool:
        """Whether header and tree hash to the root."""
        return program_digest(self.header, self.tree) == self.root
