"""Objects of a store, good ones and passed over ones, for tests/vectors/rules.json."""

from __future__ import annotations

import json
from collections.abc import Iterator

from assay.protocol.digests import digest_list_hash
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.listfile import pack
from assay_ledger.store.manifest import Manifest

SPECS = (
    TensorSpec(DType.U8, (3,)),
    TensorSpec(DType.F32, (2, 1)),
    TensorSpec(DType.BOOL, ()),
    TensorSpec(DType.F32, (0,)),
)
TENSORS = (b"\1\2\3", bytes(range(8)), b"\1", b"")


def cases() -> Iterator[dict[str, object]]:
    """Every case: `kind`, what a reader knows beforehand, the bytes."""
    yield from _marks()
    yield from _lists()
    yield from _manifests()


def _marks() -> Iterator[dict[str, object]]:
    marks = [Digest(bytes([i]) * 32) for i in range(61)]
    for units in (1, 3, 60):
        yield _case(None, f"{units} units", units, digest_list_hash(marks[:units]), b"".join(marks[:units]))
    digest, data = digest_list_hash(marks[:3]), b"".join(marks[:3])
    yield _case("STO-17", "a byte is missing", 3, digest, data[:-1])
    yield _case("STO-17", "the marks of fewer units", 4, digest, data)
    yield _case("STO-17", "other marks", 3, digest, b"".join(marks[1:4]))
    yield _case("STO-17", "the same in another order", 3, digest, data[32:] + data[:32])
    yield _case("STO-4", "a byte is left over", 3, digest, data + b"\0")


def _case(rule: str | None, what: str, units: int, digest: Digest, data: bytes) -> dict[str, object]:
    return {
        "kind": "marks",
        "rule": rule,
        "what": what,
        "units": units,
        "digest": digest.hex(),
        "bytes": data.hex(),
    }


def _lists() -> Iterator[dict[str, object]]:
    good = pack(SPECS, TENSORS)
    size = int.from_bytes(good[:8], "little")
    header, data = good[8 : 8 + size], good[8 + size :]

    def case(rule: str | None, what: str, head: bytes, body: bytes = data) -> dict[str, object]:
        file = len(head).to_bytes(8, "little") + head + body
        specs = [[int(spec.dtype), list(spec.dims)] for spec in SPECS]
        return {"kind": "list", "rule": rule, "what": what, "specs": specs, "bytes": file.hex()}

    yield case(None, "tensors of three types, one empty", header)
    yield case("STO-8", "a byte of data is missing", header, data[:-1])
    yield case("STO-8", "a byte is left over", header, data + b"\0")
    yield case("STO-9", "padding of eight spaces more", header + b" " * 8)
    yield case("STO-9", "no padding", header.rstrip())
    yield case("STO-9", "spaces inside", header.rstrip().replace(b":", b": ").ljust(2 * size))
    yield case("STO-9", "another type of the same width", header.replace(b'"U8"', b'"I8"'))
    yield case("STO-9", "other dims", header.replace(b"[2,1]", b"[1,2]"))
    yield case("STO-9", "metadata", (b'{"__metadata__":{},' + header[1:].rstrip()).ljust(size + 24))
    later = json.loads(header)
    later["00002"]["data_offsets"] = [at + 8 for at in later["00002"]["data_offsets"]]
    wide = json.dumps(later, separators=(",", ":")).encode()
    wide = wide.ljust(-(-len(wide) // 8) * 8)
    yield case("STO-11", "a hole before the last tensor", wide, data[:-1] + bytes(8) + data[-1:])
    first, *others = json.loads(header).items()
    turned = json.dumps(dict([*others, first]), separators=(",", ":")).encode()
    yield case("STO-10", "the first tensor named last", turned.ljust(size))


def _manifests() -> Iterator[dict[str, object]]:
    digests = {Digest(bytes([i]) * 32): Digest(bytes([i + 100]) * 32) for i in (1, 2, 3)}
    good = Manifest(digests).encode()
    for entries, what, data in ((3, "three objects", good), (0, "none", b"")):
        yield {"kind": "manifest", "rule": None, "what": what, "entries": entries, "bytes": data.hex()}
    for what, data in (
        ("a byte is missing", good[:-1]),
        ("a byte is left over", good + b"\0"),
        ("roots out of order", good[64:128] + good[:64] + good[128:]),
        ("a root twice", good[:64] + good),
    ):
        yield {"kind": "manifest", "rule": "STO-16", "what": what, "entries": 0, "bytes": data.hex()}
