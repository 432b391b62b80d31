"""The seed of an owner's tickets, from its account: whoever restores the account restores every secret of a ticket.

One way: secrets are shown by the thousand, and tell nothing of the account.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

TAG: Final = b"assay ticket seed v1"


def ticket_seed(account: LocalAccount) -> bytes:
    """32 bytes that all chains of secrets of this account's tickets follow from. As secret as the account's key."""
    return hmac.new(bytes(account.key), TAG, sha256).digest()
