"""How passwords become keys, and why a keystore is refused: the work that a document asks for is bounded before any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import ConfigError

MAX_SCRYPT_MEMORY: Final = 1 << 30
"""Bytes: four times what the default asks for."""
MAX_SCRYPT_WORK: Final = 1 << 25
"""n * r * p: sixteen times the default."""
MAX_PBKDF2_ROUNDS: Final = 1 << 25


class KeystoreCorrupt(ConfigError):
    """A keystore document is not what it claims to be."""

    remedy = "Restore the file from its backup, or import the key again."


class WrongPassword(ConfigError):
    """The checksum does not fit the password; a damaged ciphertext looks the same."""

    remedy = (
        "Use the password it was made with (ETH_PASSWORD names a file that holds it); if you are sure of it, the file "
        "is damaged: restore its backup."
    )


@dataclass(frozen=True, slots=True)
class Kdf:
    """How a password becomes a key: the function's name and its work (scrypt's n, or PBKDF2's rounds)."""

    function: str
    work: int


SCRYPT: Final = Kdf("scrypt", 1 << 18)
"""For people: 256 MiB and about 0.6 s per unlock."""
PBKDF2: Final = Kdf("pbkdf2", 1 << 18)
"""For machines that unlock many keys at once: no memory, about 50 ms."""


def check_scrypt_work(n: int, r: int, p: int) -> None:
    """Refuse parameters that would take the machine's memory or minutes (KeystoreCorrupt)."""
    if n < 2 or n & (n - 1) or r < 1 or p < 1 or 128 * n * r > MAX_SCRYPT_MEMORY or n * r * p > MAX_SCRYPT_WORK:
        raise corrupt(f"its scrypt parameters (n={n}, r={r}, p={p}) are out of bounds")


def check_pbkdf2_work(rounds: int) -> None:
    """Refuse a number of rounds that would take minutes (KeystoreCorrupt)."""
    if not 1 <= rounds <= MAX_PBKDF2_ROUNDS:
        raise corrupt(f"its pbkdf2 rounds ({rounds}) are out of bounds")


def corrupt(reason: str) -> KeystoreCorrupt:
    """The error for a document, with the reason in a few words."""
    return KeystoreCorrupt(f"The keystore cannot be used: {reason}.")
