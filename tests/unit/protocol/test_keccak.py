"""keccak-256 in plain Python is keccak-256, and what the protocol hashes with is the faster one of the same digests."""

import sys
from importlib.util import find_spec

import pytest
from eth_hash.auto import keccak as library

from assay.protocol.keccak import RATE, fastest, keccak256, plain_keccak256


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_published_digests_are_met(data: bytes, digest: str) -> None:
    assert plain_keccak256(data).hex() == digest


def test_every_length_around_a_block_gives_the_digest_of_the_library() -> None:
    for length in (*range(40), *range(RATE - 2, RATE + 3), *range(2 * RATE - 2, 2 * RATE + 3), 1000):
        data = bytes((k * 37 + length) % 256 for k in range(length))
        assert plain_keccak256(data) == library(data), length


def test_the_fastest_library_that_is_installed_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    has_sha3, takers = find_spec("sha3") is not None, [fastest()]
    for name in ("sha3", "eth_hash.auto"):
        monkeypatch.setitem(sys.modules, name, None)
        takers.append(fastest())
    assert takers[1:] == [library, plain_keccak256]
    assert (takers[0] is library) == (not has_sha3)
    for length in (0, 32, RATE - 1, RATE, 500):
        assert {take(bytes(length)) for take in takers} == {library(bytes(length))}
    assert takers[0](bytes(32)) == keccak256(bytes(32))
