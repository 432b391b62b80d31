"""What a chain needs of an account: who it is, and signatures under its transactions, wherever its key may be.

Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from eth_account.datastructures import SignedTransaction
    from eth_account.types import TransactionDictType
    from eth_typing import ChecksumAddress


class TransactionSigner(Protocol):
    """An account as far as its transactions go: its address, and a signature under a transaction of it.

    Raises UnavailableError (SignerUnreachable, SignerRefused), FraudError (SignerAltered) where the key is elsewhere.
    """

    @property
    def address(self) -> ChecksumAddress: ...

    def sign_transaction(self, transaction_dict: TransactionDictType) -> SignedTransaction: ...
