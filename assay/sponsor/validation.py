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
    from assay.training.rounds import TorchCompute

    program = objects.program(card.program)
    chunk = _chunk_of(program, card, parameters)
    examples = objects.tensor(card.examples, TensorSpec(chunk.dtype, (card.count, *chunk.dims[1:])))
    pieces = [examples[at : at + chunk.nbytes] for at in range(0, len(examples), chunk.nbytes)]
    compute = TorchCompute()

    def loss(tensors: Sequence[bytes]) -> float:
        given = tuple(tensors)
        found = [compute.run(program, (given, (piece,)))[0][0] for piece in pieces]
        return math.fsum(struct.unpack("<f", one)[0] for one in found) / len(found)

    return loss


def _chunk_of(program: Program, card: CardValidation, parameters: Sequence[TensorSpec]) -> TensorSpec:
    """Type and dims of the examples that the program takes at once.

    Attack: a program that is no validation of this model, or that asks for more memory than its reader has.
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
        and 0 < chunk.dims[0] <= card.count
        and card.count % chunk.dims[0] == 0
        and chunk.nbytes > 0
        and sum(spec.nbytes for spec in program.specs) <= MOST_BYTES
    )
    if not fits or chunk is None:
        raise UnavailableError(
            "The run's card names a validation that does not fit the run's model.",
            code="CardWrong",
            remedy="Ask the sponsor for the right card, or evaluate the weights yourself: `assay model pull`.",
        )
    return chunk
