"""The published arithmetic vectors are what the reference computes, and cover every operation."""

import json

from assay.protocol.arithmetic.scalar import Op
from tools.vectors import PATH, text


def test_the_published_vectors_are_up_to_date() -> None:
    assert PATH.read_text() == text()


def test_every_operation_is_published() -> None:
    document = json.loads(PATH.read_text())
    assert set(document["operations"]) == {op.name for op in Op}
