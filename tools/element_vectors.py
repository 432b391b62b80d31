"""Write tests/vectors/elements.json: elements of single nodes, ill-formed and malformed ones among them, step by step.

The file's fields are explained in tests/vectors/README.md. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from assay.protocol.program import leaf
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Map
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.contracts.leaf_cases import CONTRACTS, LeafCase, draw
from tools.element_cases import PostedParts, crafted, posted
from tools.opening_vectors import read_document
from tools.rule_vectors import descriptors

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "elements.json"
PER_TYPE = 2
MAX_TERMS = 8
MAX_DESCRIPTOR = 900


def _suits(case: LeafCase) -> bool:
    """Whether a case is small, and not a map without a value."""
    heads = [case.value_of(r) for r in leaf.head_reads(case.node, case.element)]
    few = leaf.start(case.node, case.element, heads).terms <= MAX_TERMS
    return few and len(case.descriptor) <= MAX_DESCRIPTOR and not (isinstance(case.node, Map) and not case.node.code)


def _with_type(case: LeafCase, dtype: DType) -> LeafCase:
    node = replace(case.node, spec=TensorSpec(dtype, case.node.spec.dims))
    return replace(case, node=node, descriptor=encode_node(node))


def drawn() -> Iterator[LeafCase]:
    """Cases of every computed family with every result type."""
    for family in CONTRACTS:
        for dtype in DType:
            rng = Random(f"elements {family.name} {dtype.name}")
            found = 0
            while found < PER_TYPE:
                case = _with_type(draw(family, rng), dtype)
                if _suits(case):
                    found += 1
                    yield case


def _reads(reads: Sequence[Read], words: Sequence[int]) -> list[dict[str, object]]:
    return [read_document(r) | {"word": f"0x{w:x}"} for r, w in zip(reads, words, strict=True)]


def entry(case: LeafCase) -> dict[str, object]:
    """One element, step by step."""
    node, element = case.node, case.element
    reads = leaf.head_reads(node, element)
    heads = [case.value_of(r) for r in reads]
    begun = leaf.start(node, element, heads)
    terms, parts = [], []
    for k in range(begun.terms):
        named = leaf.term_reads(node, element, k, heads)
        values = [case.value_of(r) for r in named]
        parts.append(leaf.term(node, element, k, heads, values))
        terms.append({"reads": _reads(named, values), "part": str(parts[-1])})
    value = begun.value if begun.done else leaf.fold(node, heads, parts)
    return {
        "descriptor": case.descriptor.hex(),
        "element": str(element),
        "heads": _reads(reads, heads),
        "done": begun.done,
        "terms": terms,
        "value": f"0x{value:x}",
    }


def malformed() -> Iterator[dict[str, object]]:
    """Descriptors that mean nothing: the families that compute have elements of 0 (EL-15)."""
    for rule, what, data in descriptors():
        if rule is not None and data and data[0] in CONTRACTS and len(data) < MAX_DESCRIPTOR:
            yield {"descriptor": data.hex(), "what": f"{rule}: {what}"}


def posted_entry(case: PostedParts) -> dict[str, object]:
    """What posted parts are combined to, and the element that they stand for."""
    return {
        "what": case.what,
        "descriptor": encode_node(case.node).hex(),
        "heads": [f"0x{h:x}" for h in case.heads],
        "parts": [str(p) for p in case.parts],
        "part": str(leaf.combine(case.node, case.parts)),
        "value": f"0x{leaf.fold(case.node, case.heads, case.parts):x}",
    }


def text() -> str:
    """The document as it stands in the file: one line per case."""
    groups = {
        "elements": [entry(case) for cases in (drawn(), crafted()) for case in cases],
        "posted": [posted_entry(case) for case in posted()],
        "malformed": list(malformed()),
    }
    lines = (f'"{k}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]" for k, cases in groups.items())
    return "{" + ",\n".join(lines) + "}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.element_vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
