"""A local key that speaks for an account whose own key is elsewhere, by a grant that the account signed once.

Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eth_account.datastructures import SignedMessage
    from eth_account.messages import SignableMessage
    from eth_account.signers.local import LocalAccount
    from eth_typing import ChecksumAddress


def grant_text(account: str, local: str) -> str:
    """What an account signs once, so that a local key speaks for it in heartbeats; addresses with checksum."""
    return f"assay: {local} writes heartbeats for {account}"


@dataclass(frozen=True, slots=True)
class GrantedSpeaker:
    """A local key that speaks for an account: `grant` is the account's signature under `grant_text`.

    Without one nobody believes what it says, which costs nothing on chain.
    """

    address: ChecksumAddress
    local: LocalAccount = field(repr=False)
    grant: bytes

    def sign_message(self, message: SignableMessage) -> SignedMessage:
        """The local key's signature."""
        return self.local.sign_message(message)
