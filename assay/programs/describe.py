"""A program as people read it: slots, nodes, families, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from assay.protocol.arithmetic.scalar import IllFormedScalarProgramError, Instruction, Op, ScalarProgram
from assay.protocol.program.nodes import Const, Dot, Gather, Input, Map, Node, Output, Random, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec


def spec_text(spec: TensorSpec) -> str:
    """Type and dims, as in `f32 [64, 3]`."""
    return f"{spec.dtype.name.lower()} {list(spec.dims)}"


def node_document(program: Program, k: int, sources: Mapping[str, str]) -> dict[str, Any]:
    """One node: family, type, dims, what it reads, what it does, what it costs, the user's line."""
    node = program.nodes[k]
    return {
        "node": k,
        "family": node.family.name.lower(),
        "dtype": node.spec.dtype.name.lower(),
        "dims": list(node.spec.dims),
        "reduced": list(getattr(node, "red", ())),
        "reads": list(reads(node)),
        "what": _what(program, node),
        "work": work_of(program, node),
        "source": sources.get(str(k), ""),
    }


def work_of(program: Program, node: Node) -> int:
    """Elementary operations: products of a dot, terms of a reduction, instructions of a map, words drawn or moved."""
    numel = node.spec.numel
    match node:
        case Input() | Const() | Output():
            return 0
        case Map():
            return numel * len(_instructions(program, node))
        case Gather() | Random():
            return numel
        case _:
            return numel * prod(node.red)


def family_documents(program: Program) -> list[dict[str, Any]]:
    """Nodes, elements, bytes and work of each family, in the order in which they first occur."""
    counts: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    work: Counter[str] = Counter()
    for node in program.nodes:
        name = node.family.name.lower()
        counts[name] += 1
        # An output is its source's value; it stores nothing of its own.
        stored = 0 if isinstance(node, Output) else 1
        elements[name] += stored * node.spec.numel
        sizes[name] += stored * node.spec.nbytes
        work[name] += work_of(program, node)
    return [
        {"family": n, "nodes": counts[n], "elements": elements[n], "bytes": sizes[n], "work": work[n]} for n in counts
    ]


def slot_documents(program: Program, names: Sequence[Sequence[str]] | None) -> list[dict[str, Any]]:
    """The slots of X with their names, where they are known."""
    found = []
    for i, nodes in enumerate(program.input_nodes):
        for k, node in enumerate(nodes):
            spec = program.specs[node]
            name = str(names[i][k]) if names is not None else ""
            entry = {"list": i, "slot": k, "name": name, "dtype": spec.dtype.name.lower(), "dims": list(spec.dims)}
            found.append(entry)
    return found


def program_document(program: Program, report: Mapping[str, Any] | None, *, with_nodes: bool) -> dict[str, Any]:
    """Everything that `assay program show` says, as plain JSON."""
    sources = report["sources"] if report else {}
    document: dict[str, Any] = {
        "root": "0x" + program.root.hex(),
        "iterable": program.is_iterable(),
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "families": family_documents(program),
        "slots": slot_documents(program, report["slots"] if report else None),
        "tier": report.get("tier") if report else None,
        "rounding": report["rounding"] if report else None,
    }
    if with_nodes:
        document["nodes"] = [node_document(program, k, sources) for k in range(len(program.nodes))]
    return document


def _instructions(program: Program, node: Map) -> Sequence[Instruction]:
    types = [program.specs[o.node].dtype for o in node.operands]
    try:
        return ScalarProgram.decode(node.code, types).instructions
    except IllFormedScalarProgramError:
        return ()


def _what(program: Program, node: Node) -> str:
    """A few words on a node: instructions of a map, bits of a dot, slot of an input."""
    match node:
        case Map():
            names = [Op(i.op).name.lower() for i in _instructions(program, node)]
            plain = [n.removeprefix("f32_") for n in names if not n.startswith("const")]
            shown = " ".join(plain[:6]) + (" ..." if len(plain) > 6 else "")
            return f"{len(names)} instructions: {shown}" if names else "ill-formed"
        case Dot():
            return f"{node.precision_a} x {node.precision_b} bits"
        case Input() | Output():
            return f"list {node.list_index} slot {node.index}"
        case Const():
            return node.root.hex()[:16]
        case Gather():
            return f"from {node.size} rows"
        case Random():
            return f"stream {node.stream}"
        case _:
            return ""
