"""Tensor roots where the tensors lie: SHA-256 of leaves and trees by Triton, a lane each (rules TR-1, TR-5).

All leaves of all tensors are hashed by one launch, and every level of all their trees by one more, so that what moves
to the host is a digest per tensor. Which bytes a leaf has and which entries a level joins are tables, made once.

Shapes: digests are i32 [count, 8], their words as SHA-256 counts them, the first byte highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.elementwise import text_of
from assay.engine.runtime.values.state_io import spec_of
from assay.protocol.digests import TAG_LEAF, TAG_NODE, ZERO
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSpec, leaf_digests
from assay.protocol.types import Digest, DType

_STATE = "abcdefgh"


@dataclass(frozen=True, slots=True)
class Tables:
    """What is hashed, for spans of one piece of memory. offsets i64, sizes i32 [leaves]: of every leaf, in bytes.

    levels: per level the entries below that each entry joins, i32 [2, count]; -1 for none, which promotes the other.
    ends: where a span's root is in the last level; None for a span of nothing. most: blocks of 64 bytes of a leaf.
    """

    offsets: Tensor
    sizes: Tensor
    levels: tuple[Tensor, ...]
    ends: tuple[int | None, ...]
    most: int


def tables(spans: Sequence[tuple[int, int]]) -> Tables:
    """The tables for spans (offset, size) of bytes."""
    counts = [-(-size // LEAF_SIZE) for _, size in spans]
    offsets = [o + LEAF_SIZE * torch.arange(n) for (o, _), n in zip(spans, counts, strict=True)]
    sizes = [(s - LEAF_SIZE * torch.arange(n)).clamp(max=LEAF_SIZE) for (_, s), n in zip(spans, counts, strict=True)]
    levels = []
    while max(counts, default=0) > 1:
        joined, first = [torch.empty(2, 0, dtype=torch.int64)], 0
        for n in counts:
            left = first + torch.arange(0, n, 2)
            joined.append(torch.stack([left, torch.where(left + 1 < first + n, left + 1, -1)]))
            first += n
        levels.append(torch.cat(joined, 1).to(torch.int32).to(backend.device()))
        counts = [-(-n // 2) for n in counts]
    first, ends = 0, list[int | None]()
    for n in counts:
        ends.append(first if n else None)
        first += n
    empty = [torch.empty(0, dtype=torch.int64)]
    place = backend.device()
    return Tables(
        torch.cat(empty + offsets).to(place),
        torch.cat(empty + sizes).to(torch.int32).to(place),
        tuple(levels),
        tuple(ends),
        (min(max((size for _, size in spans), default=0), LEAF_SIZE) + 73) // 64,
    )


def tree_roots(memory: Tensor, made: Tables) -> list[Digest]:
    """The root of the tree over each span's leaves. memory: u8 [bytes], where kernels reach it."""
    level = _digests(made.sizes.shape[0])
    _launch(_leaf_kernel(), [memory, made.offsets, made.sizes, made.most, _rounds(), level], level.shape[0])
    for joined in made.levels:
        below, level = level, _digests(joined.shape[1])
        _launch(_node_kernel(), [below, joined[0], joined[1], _rounds(), level], level.shape[0])
    raw = level.cpu().reshape(-1, 8).tolist()
    words = [[word & 0xFFFFFFFF for word in row] for row in raw]
    return [ZERO if k is None else Digest(b"".join(w.to_bytes(4, "big") for w in words[k])) for k in made.ends]


def _digests(count: int) -> Tensor:
    return torch.empty(count, 8, dtype=torch.int32, device=backend.device())


def _launch(kernel: Any, given: Sequence[Tensor | int], count: int) -> None:
    lanes = min(1 << max(count - 1, 0).bit_length(), 1 << 14) if backend.is_interpreted() else 128
    if count:
        backend.launch(kernel, (-(-count // lanes),), *given, count, LANES=lanes)


@cache
def _leaf_kernel() -> Any:
    """Digests of leaves: H(LEAF ‖ bytes). Blocks hold tag, bytes, a one and the length in bits (FIPS 180-4, 5.1.1)."""
    body = [
        *_lanes(),
        "at = tl.load(offsets + n, mask=live, other=0)",
        "size = tl.load(sizes + n, mask=live, other=0)",
        "blocks = (size + 73) // 64",
        *_begin("n"),
        "for block in range(0, most):",
    ]
    inner = []
    for t in range(16):
        for c in range(4):
            inner += [
                f"i = block * 64 + {4 * t + c - 1}",
                "x = tl.load(memory + at + i, mask=live & (i >= 0) & (i < size), other=0).to(tl.uint32)",
                "x = tl.where(i == size, x * 0 + 0x80, x)",
                f"w{t} = x << 24" if c == 0 else f"w{t} = w{t} | (x << {24 - 8 * c})",
            ]
    tag = TAG_LEAF[0]
    inner += [f"w0 = tl.where(block == 0, w0 | {tag << 24}, w0)"] if tag else []
    inner += [
        "last = block == blocks - 1",
        "w15 = tl.where(last, ((size + 1) * 8).to(tl.uint32), w15)",
        *_compressed(),
        *(f"s{v} = tl.where(block < blocks, s{v} + {v}, s{v})" for v in _STATE),
    ]
    return _kernel("memory, offsets, sizes, most", [*body, *(f"    {line}" for line in inner), *_stored()])


@cache
def _node_kernel() -> Any:
    """Entries of a level: H(NODE ‖ left ‖ right), or the left one where there is no right one."""
    words = [f"(d0 >> 8) | {TAG_NODE[0] << 24}", *(f"(d{t - 1} << 24) | (d{t} >> 8)" for t in range(1, 16))]
    ends = ["(d15 << 24) | 0x800000", *["d0 * 0"] * 14, f"d0 * 0 + {65 * 8}"]
    inner = [f"w{t} = tl.where(block == 0, {a}, {b})" for t, (a, b) in enumerate(zip(words, ends, strict=True))]
    inner += [*_compressed(), *(f"s{v} = s{v} + {v}" for v in _STATE)]
    body = [
        *_lanes(),
        "first = tl.load(left + n, mask=live, other=0).to(tl.int64)",
        "second = tl.load(right + n, mask=live, other=0).to(tl.int64)",
        "pair = live & (second >= 0)",
        *(f"d{k} = {_word(f'below + first * 8 + {k}', 'live')}" for k in range(8)),
        *(f"d{8 + k} = {_word(f'below + second * 8 + {k}', 'pair')}" for k in range(8)),
        *_begin("n"),
        "for block in range(0, 2):",
        *(f"    {line}" for line in inner),
        *(f"s{v} = tl.where(pair, s{v}, d{k})" for k, v in enumerate(_STATE)),
    ]
    return _kernel("below, left, right", [*body, *_stored()])


def _kernel(pointers: str, body: Sequence[str]) -> Any:
    return backend.kernel_of(text_of(f"{pointers}, rounds, out, count, LANES: tl.constexpr", body), "kernel", {})


def _lanes() -> list[str]:
    return ["n = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)", "live = n < count"]


def _word(address: str, mask: str = "") -> str:
    given = f", mask={mask}, other=0" if mask else ""
    return f"tl.load({address}{given}).to(tl.uint32, bitcast=True)"


def _begin(like: str) -> list[str]:
    """The state before the first block: the square roots of the first primes."""
    return [f"s{v} = ({like} * 0).to(tl.uint32) + {h}" for v, h in zip(_STATE, _fractions(8, 2), strict=True)]


def _stored() -> list[str]:
    return [f"tl.store(out + n * 8 + {k}, s{v}.to(tl.int32, bitcast=True), mask=live)" for k, v in enumerate(_STATE)]


def _compressed() -> list[str]:
    """64 rounds over w0 to w15, from the state s; leaves what is to be added to it in a to h (FIPS 180-4, 6.2.2).

    16 at a time in a loop, with their constants in memory: compilers take minutes for all of them in a row.
    """
    text = []
    for t in range(16):
        mixed = " ^ ".join(_turned("e", r) for r in (6, 11, 25))
        text += [
            f"k = {_word(f'rounds + part + {t}')}",
            f"t1 = h + ({mixed}) + (g ^ (e & (f ^ g))) + w{t} + k",
            f"t2 = ({' ^ '.join(_turned('a', r) for r in (2, 13, 22))}) + ((a & b) | (c & (a | b)))",
            *("h = g", "g = f", "f = e", "e = d + t1", "d = c", "c = b", "b = a", "a = t1 + t2"),
        ]
    for t in range(16):
        x, y = f"w{(t + 1) % 16}", f"w{(t + 14) % 16}"
        small = f"({_turned(x, 7)} ^ {_turned(x, 18)} ^ ({x} >> 3))"
        large = f"({_turned(y, 17)} ^ {_turned(y, 19)} ^ ({y} >> 10))"
        text.append(f"w{t} = w{t} + {small} + w{(t + 9) % 16} + {large}")
    return [*(f"{v} = s{v}" for v in _STATE), "for part in range(0, 64, 16):", *(f"    {line}" for line in text)]


@cache
def _rounds() -> Tensor:
    """The cube roots of the first primes, i32 [64]."""
    words = [k - (k >> 31 << 32) for k in _fractions(64, 3)]
    return torch.tensor(words, dtype=torch.int32, device=backend.device())


def _turned(x: str, r: int) -> str:
    return f"(({x} >> {r}) | ({x} << {32 - r}))"


def _fractions(count: int, degree: int) -> list[int]:
    """The first 32 bits behind the point of square (degree 2) or cube roots (3) of the first primes."""
    primes = [p for p in range(2, 400) if all(p % q for q in range(2, isqrt(p) + 1))][:count]
    return [_root(p << 32 * degree, degree) & 0xFFFFFFFF for p in primes]


def _root(x: int, degree: int) -> int:
    """The largest integer whose power is at most x."""
    low, high = 0, 1 << (x.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= x else (low, middle)
    return low


@cache
def failure() -> str:
    """What these kernels hash wrongly on this device; empty where they agree with hashlib."""
    try:
        with torch.device("cpu"):  # whatever device is the caller's default
            return _failure()
    except Exception as error:  # compilers have many: then states are hashed by the processor
        return f"Triton's SHA-256 ({backend.device_name()}) does not run: {backend.in_one_line(error)}"


def _failure() -> str:
    data = bytes(i * i * 31 >> 3 & 255 for i in range(4 * LEAF_SIZE + 17))
    sizes = (0, 1, 54, 55, 62, 63, 64, LEAF_SIZE - 1, LEAF_SIZE, LEAF_SIZE + 1, len(data))
    memory = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(backend.device())
    found = tree_roots(memory, tables([(0, size) for size in sizes]))
    for size, root in zip(sizes, found, strict=True):
        if root != merkle.root(leaf_digests(TensorSpec(DType.U8, (size,)), data[:size])):
            return f"Triton's SHA-256 ({backend.device_name()}) is wrong for {size} bytes"
    return ""


def tensor_roots(tensors: Sequence[Tensor]) -> list[Digest]:
    """The tensor root of each, of its bytes as they are; all are where kernels reach them.

    Raises:
        UserError: UnknownElementType, of a tensor that programs do not have.
    """
    held = [t.contiguous() for t in tensors]
    pieces: dict[int, list[int]] = {}
    for k, t in enumerate(held):
        pieces.setdefault(t.untyped_storage().data_ptr(), []).append(k)
    found: dict[int, Digest] = {}
    for address, members in sorted(pieces.items()):
        storage = held[members[0]].untyped_storage()
        memory = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        spans = tuple((held[k].data_ptr() - address, held[k].nbytes) if held[k].numel() else (0, 0) for k in members)
        found.update(zip(members, tree_roots(memory, _kept_tables(spans)), strict=True))
    return [spec_of(t).digest(found[k]) for k, t in enumerate(held)]


@lru_cache(maxsize=8)
def _kept_tables(spans: tuple[tuple[int, int], ...]) -> Tables:
    """A state lies where it lay when its root is asked for again."""
    return tables(spans)
