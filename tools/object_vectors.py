"""Objects of a store, good ones and passed over ones, for tests/vectors/rules.json."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from hashlib import sha256

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
    yield from _packed()


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


def _packed() -> Iterator[dict[str, object]]:
    """Of the 24 bytes of six floats. Streams are made of zeros, which any zlib packs to the same bytes."""
    data, limit = bytes(range(24)), 24
    planes = [_plane(0, data[k::4]) for k in range(4)]
    words = [int.from_bytes(data[k : k + 4], "little") for k in range(0, 24, 4)]
    low = b"".join(((x << 1 | x >> 31) & 0xFFFFFFFF).to_bytes(4, "little") for x in words)
    zeros, stream = bytes(24), zlib.compress(bytes(24))

    def case(rule: str | None, what: str, packed: bytes, of: bytes = data, most: int = limit) -> dict[str, object]:
        digest = sha256(of).hexdigest()
        return {"kind": "packed", "rule": rule, "what": what, "digest": digest, "limit": most, "bytes": packed.hex()}

    yield case(None, "a run of one byte", _head(24, _run(1, 24, _plane(0, data))))
    yield case(None, "a run of four bytes", _head(24, _run(4, 6, *planes)))
    yield case(None, "the same, turned", _head(24, _run(4, 6, *(_plane(0, low[k::4]) for k in range(4)), turned=1)))
    long, short = (_plane(0, data[k:16:8]) for k in range(8)), (_plane(0, data[k::2]) for k in (16, 17))
    yield case(None, "two runs", _head(24, _run(8, 2, *long), _run(2, 4, *short)))
    yield case(None, "a stream", _head(24, _run(1, 24, _plane(1, stream))), zeros)
    yield case(None, "the bytes themselves", data)
    yield case("STO-2", "another object's", _head(24, _run(1, 24, _plane(0, data))), zeros)
    yield case("STO-2", "another version", b"packed-2" + _head(24, _run(1, 24, _plane(0, data)))[8:])
    for what, packed in (
        ("no length", b"packed-1" + bytes(7)),
        ("no run", _head(24)),
        ("a width of 3", _head(24, _run(3, 8, *(_plane(0, data[k::3]) for k in range(3))))),
        ("turned is 2", _head(24, _run(4, 6, *planes, turned=2))),
        ("an empty run", _head(24, _run(1, 0, _plane(0, b"")), _run(4, 6, *planes))),
        ("a run beyond the object", _head(24, _run(1, 25, _plane(0, data + b"x")))),
        ("a method of 2", _head(24, _run(1, 24, _plane(2, data)))),
        ("a plane that is too short", _head(24, _run(1, 24, _plane(0, data[:-1])))),
        ("a plane that ends beyond the bytes", _head(24, _run(1, 24, _plane(0, data)[:-1]))),
        ("no stream", _head(24, _run(1, 24, _plane(1, data)))),
        ("a stream that is cut off", _head(24, _run(1, 24, _plane(1, stream[:-1])))),
        ("a stream of a byte less", _head(24, _run(1, 24, _plane(1, zlib.compress(bytes(23)))))),
        ("a stream of a byte more", _head(24, _run(1, 24, _plane(1, zlib.compress(bytes(25)))))),
        ("a byte behind a stream", _head(24, _run(1, 24, _plane(1, stream + b"x")))),
        ("a byte behind it all", _head(24, _run(1, 24, _plane(0, data)), b"x")),
    ):
        yield case("STO-20", what, packed, zeros if "stream" in what else data)
    size = 8 * len(_head(0, _run(1, 0, _plane(1, zlib.compress(bytes(300))))))
    assert len(zlib.compress(bytes(size))) == len(zlib.compress(bytes(300)))
    good = _head(size, _run(1, size, _plane(1, zlib.compress(bytes(size)))))
    more = _head(size + 1, _run(1, size + 1, _plane(1, zlib.compress(bytes(size + 1)))))
    yield case(None, "eight times its bytes", good, bytes(size), size)
    yield case("STO-21", "a byte more than eight times its bytes", more, bytes(size + 1), size + 1)
    yield case("STO-21", "a byte more than its place allows", good, bytes(size), size - 1)


def _head(size: int, *runs: bytes) -> bytes:
    return b"".join([b"packed-1", size.to_bytes(8, "big"), *runs])


def _run(width: int, count: int, *planes: bytes, turned: int = 0) -> bytes:
    return b"".join([bytes([width, turned]), count.to_bytes(8, "big"), *planes])


def _plane(method: int, data: bytes) -> bytes:
    return bytes([method]) + len(data).to_bytes(8, "big") + data
