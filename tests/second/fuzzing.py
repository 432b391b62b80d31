"""Damaged descriptors, headers, files, openings and objects, and what each implementation says of them.

A case is drawn from a seed: something valid at or near a limit, then some of its bytes or fields changed. `answers_of`
gives Python's answer, `contract_answers` the contract's, `Second` asks the one in JavaScript.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from eth_abi import decode as abi_decode

from assay.conformance.fuzz.programs import FuzzCase as ProgramCase
from assay.conformance.fuzz.programs import draw as draw_program
from assay.protocol.digests import keccak, leaf_digest
from assay.protocol.game import openings
from assay.protocol.game.errors import GameError
from assay.protocol.game.header import Header, parse_head
from assay.protocol.game.openings import Opening
from assay.protocol.program import leaf
from assay.protocol.program.encoding import MalformedError, decode_header, decode_node, encode_node
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Family, Node
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.wellformed import violations
from assay.protocol.trees import merkle, prefix
from assay.protocol.types import Digest, DType
from tests.harness.contracts.harness import EvmContract, Reverted
from tests.harness.contracts.leaf_cases import CONTRACTS, draw
from tests.harness.contracts.leaf_cases import LeafCase as ElementCase
from tools import rule_vectors
from tools.opening_vectors import opening_document, read_document

SECOND = Path(__file__).resolve().parent
EDGES = (0, 1, 2, 7, 8, 9, 255, 1 << 20, 1 << 21, 1 << 31, 1 << 32, (1 << 40) - 1, 1 << 40, (1 << 40) + 1, 1 << 63,
         (1 << 63) - 1, (1 << 64) - 1)  # fmt: skip
BYTES = (0, 1, 2, 6, 7, 8, 9, 11, 12, 31, 32, 64, 65, 127, 128, 255)

Json = Any


class Second:
    """The implementation in JavaScript, in a process of its own."""

    def __init__(self) -> None:
        command = ["node", str(SECOND / "serve.mjs")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)

    def ask(self, kind: str, items: Sequence[Json]) -> list[Json]:
        """Its answers, in order."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, "items": list(items)}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the second implementation ended with {self._process.wait()}"
        return list(json.loads(line)["answers"])


# --- damage


def damaged(data: bytes, rng: Random) -> bytes:
    """Bytes with one thing changed."""
    altered = bytearray(data)
    at = rng.randrange(len(altered) + 1)
    match rng.randrange(8):
        case 0 if altered:
            altered[at % len(altered)] ^= 1 << rng.randrange(8)
        case 1 if altered:
            altered[at % len(altered)] = rng.choice(BYTES)
        case 2:
            altered[at : at + 8] = rng.choice(EDGES).to_bytes(8, "big")
        case 3:
            del altered[at:]
        case 4:
            altered += rng.randbytes(rng.choice((1, 2, 8, 40)))
        case 5:
            del altered[at : at + rng.choice((1, 8, 24))]
        case 6:
            altered[at:at] = rng.choice((b"\0", bytes(8), bytes(24), rng.randbytes(3)))
        case _:
            other = rng.randrange(len(altered) + 1)
            altered = altered[:at] + altered[other:]
    return bytes(altered)


def with_head_damaged(data: bytes, rng: Random) -> bytes:
    """A descriptor with its family, type, rank or one of its sizes changed."""
    altered = bytearray(data.ljust(3, b"\0"))
    rank = min(altered[2], 8)
    match rng.randrange(4):
        case 0:
            altered[0] = rng.choice((*range(14), 255))
        case 1:
            altered[1] = rng.choice((*range(9), 255))
        case 2:
            altered[2] = rng.choice((0, 1, 2, 7, 8, 9, 255))
        case _:
            if rank:
                at = 3 + 8 * rng.randrange(rank)
                altered[at : at + 8] = rng.choice(EDGES).to_bytes(8, "big")
    return bytes(altered)


@cache
def _known_descriptors() -> tuple[bytes, ...]:
    return tuple(data for _, _, data in rule_vectors.descriptors())


def some_program(rng: Random) -> Program:
    """One of a few hundred random well-formed programs."""
    return _program(rng.randrange(200))


@cache
def _program(seed: int) -> Program:
    return draw_program(seed).program


def descriptor(rng: Random) -> bytes:
    """A descriptor, good or damaged."""
    kind = rng.random()
    if kind < 0.4:
        data = draw(rng.choice(list(CONTRACTS)), rng).descriptor
    elif kind < 0.7:
        data = rng.choice(_known_descriptors())
    else:
        data = rng.choice(some_program(rng).descriptors)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        data = with_head_damaged(data, rng) if rng.random() < 0.25 else damaged(data, rng)
    return data


def header(rng: Random) -> bytes:
    """A header, good or damaged."""
    known = [data for _, _, data in rule_vectors.headers()]
    data = rng.choice(known) if rng.random() < 0.5 else some_program(rng).header
    for _ in range(rng.choice((0, 1, 1, 2))):
        data = damaged(data, rng)
    return data


def file(rng: Random) -> bytes:
    """A program file: good, a node changed, or bytes damaged."""
    if rng.random() < 0.3:
        data = rng.choice([c for c in _known_programs() if len(c) < 4096])
    else:
        program = some_program(rng)
        if rng.random() < 0.7:
            program = _with_node_changed(program, rng)
        try:
            data = encode_program(program)
        except (OverflowError, ValueError, KeyError):
            return b""
    for _ in range(rng.choice((0, 0, 1, 2))):
        data = damaged(data, rng)
    return data


@cache
def _known_programs() -> tuple[bytes, ...]:
    return tuple(data for _, _, data in rule_vectors.programs())


def _with_node_changed(program: Program, rng: Random) -> Program:
    """A program with bytes of one descriptor damaged in place, where that still is one; else two nodes swapped."""
    k = rng.randrange(len(program.nodes))
    for _ in range(8):
        changed = _changed_in_place(program.nodes[k], rng)
        if changed is not None:
            return replace(program, nodes=(*program.nodes[:k], changed, *program.nodes[k + 1 :]))
    nodes = list(program.nodes)
    other = rng.randrange(len(nodes))
    nodes[k], nodes[other] = nodes[other], nodes[k]
    return replace(program, nodes=tuple(nodes))


def _changed_in_place(node: Node, rng: Random) -> Node | None:
    data = bytearray(encode_node(node))
    at = rng.randrange(len(data))
    if rng.random() < 0.5:
        data[at] = rng.choice((*BYTES, data[at] ^ 1))
    else:
        data[at : at + 8] = rng.choice(EDGES).to_bytes(8, "big")[: len(data) - at]
    try:
        return decode_node(bytes(data))
    except MalformedError:
        return None


@dataclass(frozen=True, slots=True)
class Opened:
    """A read with its opening."""

    read: Read
    opening: Opening
    root: Digest


K = 5


def opened(rng: Random) -> Opened:
    """An opening of any type and dims under a root that it fits, or damaged."""
    dtype = rng.choice((*DType, *DType, 7, 255))
    dims = tuple(rng.choice((0, 1, 2, 3, 300, 1 << 20, *EDGES)) for _ in range(rng.choice((0, 1, 1, 2, 3, 8))))
    head = Header(Family.MAP, dtype, dims, 0)
    highest = min(head.numel + 2, (1 << 64) - 1)
    addresses = (0, head.numel - 1, head.numel, highest, rng.randrange(highest + 1), (1 << 64) - 1)
    read = Read(rng.randrange(K), min(max(rng.choice(addresses), 0), (1 << 64) - 1))
    siblings = tuple(Digest(rng.randbytes(32)) for _ in range(prefix.DEPTH))
    index = read.address * head.width // 1024
    if read.address < head.numel:
        leaf = rng.randbytes(min(1024, head.nbytes - 1024 * index))
        path = tuple(Digest(rng.randbytes(32)) for _ in range(merkle.path_length(head.leaf_count, index)))
        tree = merkle.root_from_path(leaf_digest(leaf), head.leaf_count, index, path)
    else:
        leaf, path = b"", (Digest(rng.randbytes(32)),)
        tree = path[0]
    assert tree is not None
    root = prefix.root_from_path(head.tensor_root(tree), read.node, siblings)
    assert root is not None
    case = Opened(read, Opening(dtype, dims, leaf, path, siblings), root)
    for _ in range(rng.choice((0, 1, 1, 2))):
        case = _damaged_opening(case, rng)
    return case


def _damaged_opening(case: Opened, rng: Random) -> Opened:
    o, read = case.opening, case.read
    match rng.randrange(8):
        case 0:
            return replace(case, read=replace(read, address=rng.choice(EDGES)))
        case 1:
            node = rng.choice((0, 4, 5, 6, 1 << 20, (1 << 32) - 1))
            return replace(
                case, read=Read(node, 0, True, rng.choice(EDGES)) if rng.random() < 0.3 else replace(read, node=node)
            )
        case 2:
            return replace(case, opening=replace(o, dtype=rng.choice((*range(9), 255))))
        case 3:
            dims = rng.choice(((*o.dims, 1), o.dims[:-1], o.dims[::-1], (1,) * 9, (*o.dims[:-1], rng.choice(EDGES))))
            return replace(case, opening=replace(o, dims=dims))
        case 4:
            return replace(case, opening=replace(o, leaf=damaged(o.leaf, rng)))
        case 5:
            return replace(case, opening=replace(o, path=_damaged_path(o.path, rng)))
        case 6:
            return replace(case, opening=replace(o, prefix_path=_damaged_path(o.prefix_path, rng)))
        case _:
            return replace(case, root=Digest(rng.randbytes(32)))


def _damaged_path(path: tuple[Digest, ...], rng: Random) -> tuple[Digest, ...]:
    other = Digest(rng.randbytes(32))
    return rng.choice((path[:-1], (*path, other), (*path[:-1], other), path[::-1], ()))


# --- what each says


def _or_rule(answer: Callable[[], Json]) -> Json:
    try:
        return answer()
    except MalformedError as error:
        return error.rule


def of_descriptor(data: bytes) -> Json:
    """The rule that is broken (None); family, type, rank, numel of the head; terms of a reduction that is valid."""
    head = parse_head(data)
    found = _or_rule(lambda: decode_node(data))
    terms = 0 if isinstance(found, str) else getattr(found, "terms", 0)
    rule = found if isinstance(found, str) else None
    return [rule, *map(str, (head.family, head.dtype, len(head.dims), head.numel, terms))]


def of_header(data: bytes) -> Json:
    """The number of nodes, or the rule that is broken."""
    return _or_rule(lambda: decode_header(data)[0])


def of_file(data: bytes) -> Json:
    """The rules of well-formedness that are broken, or the rule that makes it no file."""
    return _or_rule(lambda: sorted({v.number for v in violations(decode_program(data))}))


def of_run(case: ProgramCase) -> Json:
    """The beginning of the SHA-256 of every node's value."""
    values = ReferenceExecutor(case.program).run(case.state)
    return [sha256(data).hexdigest()[:16] for data in values]


def element_document(case: ElementCase) -> tuple[int, Json]:
    """An element's word, and the case with the words that its reads load as the second implementation takes it."""
    words: dict[str, str] = {}

    def value_of(read: Read) -> int:
        word = case.value_of(read)
        if not read.is_fill:
            words[f"{read.node} {read.address}"] = str(word)
        return word

    value = leaf.element(case.node, case.element, value_of)
    return value, {"descriptor": case.descriptor.hex(), "element": str(case.element), "words": words}


def run_document(case: ProgramCase) -> Json:
    """A program and its X as the second implementation takes them."""
    return {"file": encode_program(case.program).hex(), "x": [[data.hex() for data in slots] for slots in case.state]}


def of_opening(case: Opened) -> Json:
    """The word, or the error's name."""
    try:
        return [str(openings.load_one(case.read, case.opening, case.root, K))]
    except GameError as error:
        return error.code


def opened_document(case: Opened) -> Json:
    """A case as the second implementation takes it."""
    document = {"reads": [read_document(case.read)], "openings": [opening_document(case.opening)]}
    return document | {"root": case.root.hex(), "k": K}


def called(contract: EvmContract, function: str, *args: Json) -> Json:
    """What a contract answers, or the name of its error."""
    try:
        return contract.call(function, *args)
    except Reverted as error:
        assert error.name, error
        return error.name


def contract_descriptors(harness: EvmContract, cases: Sequence[bytes]) -> list[Json]:
    """As `of_descriptor`; of the rule only whether one is broken."""
    valid, heads = harness.call("descriptors", list(cases))
    return [[ok, *map(str, head)] for ok, head in zip(valid, heads, strict=True)]


def contract_openings(harness: EvmContract, cases: Sequence[Opened]) -> list[Json]:
    """As `of_opening`."""
    reads = [(c.read.node, c.read.address, c.read.is_fill, c.read.fill) for c in cases]
    opened_ = [(o.dtype, o.dims, o.leaf, o.path, o.prefix_path) for o in (c.opening for c in cases)]
    loaded, results = harness.call("openings", reads, opened_, [c.root for c in cases], K)
    return [
        [str(abi_decode(["uint256"], data)[0])] if ok else _NAMES.get(data[:4], data.hex())
        for ok, data in zip(loaded, results, strict=True)
    ]


_NAMES = {keccak(f"{name}({types})".encode())[:4]: name for name, types in (
    ("WrongCount", "uint256,uint256"), ("WrongDigest", "bytes32,bytes32"),
)}  # fmt: skip


def batches(count: int, size: int) -> Iterator[range]:
    """0..count-1 in pieces."""
    for first in range(0, count, size):
        yield range(first, min(first + size, count))
