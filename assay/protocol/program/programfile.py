"""Program files: one deterministic byte string per program, and a parser safe against hostile ones.

    file = "assay-program-1\\n" ‖ header ‖ (length u16 ‖ descriptor)[nodes] ‖ const bytes

The bytes of a constant stand in the order of the first `const` node with that root, once per root; their lengths follow
from dtype and dims. Nothing is allocated that the file does not hold.
"""

from __future__ import annotations

from hashlib import sha256

from assay.protocol.program.encoding import MalformedError, decode_node, read_header
from assay.protocol.program.nodes import Const, Node
from assay.protocol.program.program import Program
from assay.protocol.program.reader import Reader
from assay.protocol.trees.tensors import tensor_root
from assay.protocol.types import Digest

MAGIC = b"assay-program-1\n"
MAX_FILE = 1 << 28


def encode_program(program: Program) -> bytes:
    """The file of a program whose constants are all there."""
    parts = [MAGIC, program.header]
    for descriptor in program.descriptors:
        parts.append(len(descriptor).to_bytes(2, "big") + descriptor)
    seen = set()
    for node in program.nodes:
        if isinstance(node, Const) and node.root not in seen:
            seen.add(node.root)
            parts.append(program.consts[node.root])
    return b"".join(parts)


def decode_program(data: bytes, max_bytes: int = MAX_FILE) -> Program:
    """The program in a file; well-formedness is not checked here (`wellformed.violations`).

    Raises:
        MalformedError: the bytes are no program file, too many, or not those that a const node names.
    """
    if len(data) > max_bytes:
        raise MalformedError("FILE-1", f"A program file of {len(data)} bytes is above {max_bytes}.")
    reader = Reader(bytes(data), "FILE-6", "FILE-6")
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise MalformedError("FILE-2", "The bytes are no program file.")
    reader.take(len(MAGIC))
    count, inputs, outputs = read_header(reader)
    nodes = tuple(_node(reader) for _ in range(count))
    consts: dict[Digest, bytes] = {}
    for node in nodes:
        if isinstance(node, Const) and node.root not in consts:
            blob = reader.take(node.spec.nbytes)
            if tensor_root(node.spec, blob) != node.root:
                raise MalformedError("FILE-5", f"The constant {node.root.hex()} has other bytes.")
            consts[node.root] = blob
    reader.end()
    return Program(nodes, inputs, outputs, consts)


def file_digest(data: bytes) -> Digest:
    """SHA-256 of a program file, by which a store names it."""
    return Digest(sha256(data).digest())


def _node(reader: Reader) -> Node:
    """One descriptor with its length in front."""
    return decode_node(reader.take(reader.uint(2)))
