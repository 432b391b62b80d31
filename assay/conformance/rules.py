"""Known answers about what is refused, and by which rule; and about elements of nodes that are ill-formed.

The files rules.json and elements.json of tests/vectors; their fields are explained in the README beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from assay.protocol.digests import digest_list_hash
from assay.protocol.game import openings
from assay.protocol.game.errors import GameError
from assay.protocol.game.header import parse_head
from assay.protocol.game.openings import Opening
from assay.protocol.program import leaf
from assay.protocol.program.encoding import MalformedError, decode_header, decode_node
from assay.protocol.program.leaf import Read
from assay.protocol.program.programfile import decode_program
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile
from assay_ledger.store.errors import ObjectMismatch
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.packing import unpacked

Case = tuple[str, object, object]
"""Name, what came out, what is known."""


def rules(document: Any) -> Iterator[Case]:
    """Whatever the file has that is refused or valid: the rule that is broken, or None."""
    for case in document["descriptors"]:
        data = bytes.fromhex(case["bytes"])
        yield case["what"], _broken(decode_node, data), case["rule"]
        yield f"{case['what']}: head", head_document(data), case["head"]
    for case in document["headers"]:
        yield case["what"], _broken(decode_header, bytes.fromhex(case["bytes"])), case["rule"]
    for case in document["files"]:
        data = bytes.fromhex(case["bytes"]) + bytes(case.get("zeros", 0))
        yield case["what"], _broken(decode_program, data), case.get("cites", case["rule"])
    for case in document["programs"]:
        found = {v.number for v in violations(decode_program(bytes.fromhex(case["bytes"])))}
        yield case["what"], sorted(found), [case["rule"]] if case["rule"] else []
    for case in document["openings"]:
        yield case["what"], _opened(case), case["words"] if case["rule"] is None else case["error"]
    for case in document["objects"]:
        yield f"{case['kind']}: {case['what']}", TAKES[case["kind"]](case), case["rule"] is None


def elements(document: Any) -> Iterator[Case]:
    """Single elements, from the words that their reads load; malformed descriptors have none."""
    for entry in document["elements"]:
        node = decode_node(bytes.fromhex(entry["descriptor"]))
        reads = [*entry["heads"], *(r for term in entry["terms"] for r in term["reads"])]
        words = {_read(r): int(r["word"], 16) for r in reads}
        value = leaf.element(node, int(entry["element"]), words.__getitem__)
        yield f"element {entry['element']} of {entry['descriptor'][:40]}", f"0x{value:x}", entry["value"]
    for entry in document["posted"]:
        node, heads = decode_node(bytes.fromhex(entry["descriptor"])), [int(h, 16) for h in entry["heads"]]
        parts = [int(p) for p in entry["parts"]]
        stood_for = str(leaf.combine(node, parts)), f"0x{leaf.fold(node, heads, parts):x}"
        yield entry["what"], stood_for, (entry["part"], entry["value"])
    for entry in document["malformed"]:
        yield entry["what"], _broken(decode_node, bytes.fromhex(entry["descriptor"])) is not None, True


def head_document(data: bytes) -> dict[str, object]:
    """What the game reads of any descriptor (EL-16)."""
    head = parse_head(data)
    dims = [str(d) for d in head.dims]
    return {"family": head.family, "type": head.dtype, "dims": dims, "numel": str(head.numel)}


def _broken(decode: Callable[[bytes], object], data: bytes) -> str | None:
    """The rule that an error cites; None without one."""
    try:
        decode(data)
    except MalformedError as error:
        return error.rule
    return None


def _opened(case: Any) -> object:
    """The words of reads, or the error's name."""
    reads, opened = [_read(r) for r in case["reads"]], [opening_of(o) for o in case["openings"]]
    try:
        words = openings.load(reads, opened, Digest(bytes.fromhex(case["root"])), case["k"])
    except GameError as error:
        return error.code
    return [f"0x{word:x}" for word in words]


def opening_of(document: Any) -> Opening:
    """An opening that a file has."""
    path, prefix_path = (tuple(Digest(bytes.fromhex(d)) for d in document[name]) for name in ("path", "prefixPath"))
    dims = tuple(int(d) for d in document["dims"])
    return Opening(document["dtype"], dims, bytes.fromhex(document["leaf"]), path, prefix_path)


def _read(document: Any) -> Read:
    if "fill" in document:
        return Read(document["node"], 0, True, int(document["fill"]))
    return Read(document["node"], int(document["address"]))


def _is_marks(case: Any) -> bool:
    data = bytes.fromhex(case["bytes"])
    marks = [Digest(data[i : i + 32]) for i in range(0, len(data), 32)]
    return (
        len(marks) == case["units"]
        and len(data) % 32 == 0
        and digest_list_hash(marks) == Digest(bytes.fromhex(case["digest"]))
    )


def _is_list(case: Any) -> bool:
    specs = [TensorSpec(DType(dtype), tuple(dims)) for dtype, dims in case["specs"]]
    return listfile.unpack(specs, bytes.fromhex(case["bytes"])) is not None


def _is_manifest(case: Any) -> bool:
    data = bytes.fromhex(case["bytes"])
    found = len(Manifest.decode(data).digests)
    return found == case["entries"] and (found > 0 or not data)


def _is_packed(case: Any) -> bool:
    """Whether bytes are an object of at most so many bytes with this digest, as they are or packed."""
    stored, limit = bytes.fromhex(case["bytes"]), int(case["limit"])
    if sha256(stored).hexdigest() == case["digest"]:
        return len(stored) <= limit
    try:
        data = unpacked(stored, limit)
    except ObjectMismatch:
        return False
    return data is not None and sha256(data).hexdigest() == str(case["digest"])


TAKES: dict[str, Callable[[Any], bool]] = {
    "marks": _is_marks,
    "list": _is_list,
    "manifest": _is_manifest,
    "packed": _is_packed,
}
