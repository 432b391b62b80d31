"""The validation of a run, as its card names it: a program that gives the loss of weights on held-out examples.

What it measures is the sponsor's word; that weights have this loss by that program is exact.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.objects import Objects

if TYPE_CHECKING:
    from assay.protocol.program.program import Program
    from assay.training.recipes.evaluation import Validation

MOST_BYTES: Final = 1 << 33
"""Of all values of a validation program together: whoever only reads a run's pages computes it."""

MOST_EXAMPLES: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class CardValidation:
    """Roots of the program and of its examples, and how many these are."""

    program: Digest
    examples: Digest
    count: int

    def document(self) -> dict[str, object]:
        """The part of a card's JSON."""
        return {"program": self.program.hex(), "examples": self.examples.hex(), "count": self.count}

    @classmethod
    def of_document(cls, document: Any) -> CardValidation | None:
        """The same from hostile JSON. Raises KeyError, TypeError, ValueError."""
        if document is None:
            return None
        roots = [Digest(bytes.fromhex(document[name])) for name in ("program", "examples")]
        count = int(document["count"])
        if any(len(root) != 32 for root in roots) or not 0 < count <= MOST_EXAMPLES:
            raise ValueError("no validation")
        return cls(roots[0], roots[1], count)


def put_validation(objects: Objects, validation: Validation) -> CardValidation:
    """Puts program and examples into the store."""
    from assay.engine.runtime.values.dtypes import raw_bytes
    from assay.engine.runtime.values.state_io import spec_of

    objects.put_program(validation.program)
    root = objects.put_tensor(spec_of(validation.examples), raw_bytes(validation.examples))
    return CardValidation(validation.program.root, root, validation.examples.shape[0])


def validation_of(
    objects: Objects, card: CardValidation, parameters: Sequence[TensorSpec]
) -> Callable[[Sequence[bytes]], float]:
    """A function from the tensors of a generation, laid out as `parameters`, to their validation loss.

    Raises UnavailableError (CardWrong, and what the store raises).
    """
    program = objects.program(card.program)
    found = CapturedLoss(program, chunk_of(program, parameters))
    examples = held_out(objects, card, found.chunk)
    pieces = [examples[at : at + found.chunk.nbytes] for at in range(0, len(examples), found.chunk.nbytes)]
    return lambda tensors: math.fsum(found.of(tensors, piece) for piece in pieces) / len(pieces)


class CapturedLoss:
    """A program that gives a loss, with what runs it. chunk: type and dims of the examples that it takes at once."""

    def __init__(self, program: Program, chunk: TensorSpec) -> None:
        from assay.training.rounds import TorchCompute

        self.program, self.chunk = program, chunk
        self._compute = TorchCompute()

    def of(self, parameters: Sequence[bytes], examples: bytes) -> float:
        """The loss of parameters on examples laid out as `chunk`."""
        ((loss,),) = self._compute.run(self.program, (tuple(parameters), (examples,)))
        return float(struct.unpack("<f", loss)[0])


def held_out(objects: Objects, card: CardValidation, chunk: TensorSpec) -> bytes:
    """All held-out examples, whole chunks of them. Raises UnavailableError (CardWrong, and what the store raises)."""
    if card.count % chunk.dims[0]:
        raise _no_loss()
    return objects.tensor(card.examples, TensorSpec(chunk.dtype, (card.count, *chunk.dims[1:])))


def chunk_of(program: Program, parameters: Sequence[TensorSpec]) -> TensorSpec:
    """Type and dims of the examples that the program of a loss takes at once.

    Attack: a program that is no loss of this model, or that asks for more memory than its reader has.
    Raises UnavailableError (CardWrong).
    """
    x, y = (
        [[program.specs[k] for k in part] for part in nodes] for nodes in (program.input_nodes, program.output_nodes)
    )
    chunk = x[1][0] if len(x) == 2 and len(x[1]) == 1 else None
    fits = (
        chunk is not None
        and x[0] == list(parameters)
        and y == [[TensorSpec(DType.F32, ())]]
        and len(chunk.dims) > 0
        and chunk.nbytes > 0
        and sum(spec.nbytes for spec in program.specs) <= MOST_BYTES
    )
    if not fits or chunk is None:
        raise _no_loss()
    return chunk


def _no_loss() -> UnavailableError:
    return UnavailableError(
        "The run's card names a validation that does not fit the run's model.",
        code="CardWrong",
        remedy="Ask the sponsor for the right card, or evaluate the weights yourself: `assay model pull`.",
    )
