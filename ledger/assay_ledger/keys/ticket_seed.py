"""The seed of an owner's tickets, from its account: whoever restores the account restores every secret of a ticket.

One way (HKDF, RFC 5869): secrets are shown by the thousand, and tell nothing of the account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

TAG: Final = b"assay ticket seed v1"


def ticket_seed(account: LocalAccount) -> bytes:
    """32 bytes that all chains of secrets of this account's tickets follow from. As secret as the account's key."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=TAG).derive(bytes(account.key))
