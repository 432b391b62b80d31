"""Private, unique, provable sortition: what a drawing key signs, and which duties the signature draws.

A key signs the round's seed with BLS12-381 (public key in G1, signature in G2). The signature `y` is unique, so it is a
ticket that its holder can neither choose nor guess before the seed is out; revealed later, it is checked by one pairing
and decides every duty of that key by hashing. Points are EIP-2537 uncompressed encodings: 128 bytes for a key, 256 for
a signature. `contracts/libraries/Draws.sol` computes the same; curve arithmetic lives in
`ledger/assay_ledger/keys/bls.py`.

Source: rules DR, docs/adr/0003-draws.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from fractions import Fraction
from typing import Final

from eth_hash.auto import keccak

from assay.protocol import abi
from assay.protocol.errors import InvariantError
from assay.protocol.types import Address, Digest, Round, Wei

DRAW_TAG: Final = b"ASSAY-V1-DRAW-BLS12381G2_XMD:SHA-256_SSWU_RO_"
POSSESSION_TAG: Final = b"ASSAY-V1-POP-BLS12381G2_XMD:SHA-256_SSWU_RO_"

KEY_LENGTH: Final = 128
SIGNATURE_LENGTH: Final = 256
PPM: Final = 1_000_000
ALWAYS: Final = 1 << 128
"""The threshold that every ticket is below: a ticket has 128 bits."""


class Purpose(IntEnum):
    """What a draw is for; a signature made for one purpose is worthless for another."""

    AUDIT = 1
    WHISTLE = 2
    TRAP = 3


def draw_message(chain_id: int, contract: Address, run: Digest, round_: Round, purpose: Purpose, seed: Digest) -> bytes:
    """What a key signs to draw: abi.encode(uint256, address, bytes32, uint64, uint8, bytes32), 192 bytes.

    Raises InvariantError for a field that does not fit its type.
    """
    return (
        abi.uint(chain_id)
        + abi.address(contract)
        + abi.bytes32(run)
        + abi.uint(round_, 64)
        + abi.uint(Purpose(purpose), 8)
        + abi.bytes32(seed)
    )


def possession_message(chain_id: int, contract: Address, owner: Address, public_key: bytes) -> bytes:
    """What a key signs to be registered: abi.encode(uint256, address, address, bytes), 288 bytes.

    It names the owner, so that a proof seen in the mempool registers nothing for anybody else.
    Raises InvariantError for a field that does not fit its type.
    """
    return (
        abi.uint(chain_id)
        + abi.address(contract)
        + abi.address(owner)
        + abi.uint(128)
        + abi.uint(KEY_LENGTH)
        + _fixed(public_key, KEY_LENGTH, "public key")
    )


def ticket(signature: bytes, claim_id: Digest, duty: int) -> int:
    """The 128-bit number drawn for a duty: the low half of keccak256(abi.encode(bytes, bytes32, uint256)).

    Raises InvariantError for a field that does not fit its type.
    """
    encoded = (
        abi.uint(96)
        + abi.bytes32(claim_id)
        + abi.uint(duty)
        + abi.uint(SIGNATURE_LENGTH)
        + _fixed(signature, SIGNATURE_LENGTH, "signature")
    )
    return int.from_bytes(keccak(encoded)[16:], "big")


def threshold(ppm: int, stake: Wei, total: Wei) -> int:
    """floor(2^128 * min(1, ppm / 10^6 * stake / total)); zero when nothing is staked.

    `ppm` is the expected number of replays per duty over all keys, in parts per million, and may exceed 10^6; `stake`
    and `total` are Wei of one snapshot. Raises InvariantError for a value that does not fit uint32 or uint128.
    """
    _check_range(ppm, 32, "ppm")
    _check_range(stake, 128, "stake")
    _check_range(total, 128, "total")
    if total == 0:
        return 0
    numerator, denominator = ppm * stake, PPM * total
    return ALWAYS if numerator >= denominator else (ALWAYS * numerator) // denominator


def is_drawn(signature: bytes, claim_id: Digest, duty: int, ppm: int, stake: Wei, total: Wei) -> bool:
    """Is the holder of this ticket on duty? Whether the signature is genuine is checked elsewhere, once."""
    return ticket(signature, claim_id, duty) < threshold(ppm, stake, total)


def compute_duties(signature: bytes, claim_id: Digest, count: int, ppm: int, stake: Wei, total: Wei) -> tuple[int, ...]:
    """The duties 0..count-1 of one claim that this ticket draws, ascending."""
    bound = threshold(ppm, stake, total)
    return tuple(j for j in range(count) if ticket(signature, claim_id, j) < bound)


def expected_replays(ppm: int, stakes: Iterable[Wei]) -> Fraction:
    """The exact expected number of keys drawn for one duty, over all keys of a snapshot.

    At most ppm / 10^6; less by the flooring of thresholds (under 2^-128 per key) and where a stake is so large that its
    probability is capped at one.
    """
    stakes = tuple(stakes)
    total = Wei(sum(stakes))
    return sum((Fraction(threshold(ppm, stake, total), ALWAYS) for stake in stakes), Fraction(0))


def coverage(ppm: int, stakes: Iterable[Wei]) -> Fraction:
    """The exact probability that at least one key is drawn for one duty."""
    stakes = tuple(stakes)
    total = Wei(sum(stakes))
    missed = Fraction(1)
    for stake in stakes:
        missed *= 1 - Fraction(threshold(ppm, stake, total), ALWAYS)
    return 1 - missed


def is_split_neutral(ppm: int, stake: Wei, total: Wei) -> bool:
    """Does dividing this stake over several keys leave its expected duties unchanged (no cap is reached)?"""
    return ppm * stake <= PPM * total


def _check_range(value: int, bits: int, name: str) -> None:
    if not 0 <= value < 1 << bits:
        raise InvariantError(f"A draw's {name} is out of range: {value}.")


def _fixed(value: bytes, length: int, name: str) -> bytes:
    if len(value) != length:
        raise InvariantError(f"A draw's {name} has {len(value)} bytes instead of {length}.")
    return bytes(value)
