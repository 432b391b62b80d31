"""Web3 Secret Storage, version 3: one secp256k1 secret under a password, as JSON.

`eth_account` does the cryptography. A document may come from anywhere, so its fields are checked, the work it asks
for is bounded before any of it is done, and its address, which the checksum does not cover, must be its secret's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assay_ledger.keys.kdf import Kdf, WrongPassword, check_pbkdf2_work, check_scrypt_work, corrupt

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount


def encrypt_account(secret: bytes, password: str, kdf: Kdf) -> dict[str, Any]:
    """A fresh document for a 32-byte secret; KeystoreCorrupt if it is no secp256k1 key."""
    from eth_account import Account

    account_of(secret)
    function: Any = kdf.function
    return dict(Account.encrypt(secret, password, kdf=function, iterations=kdf.work))


def decrypt_account(document: dict[str, Any], password: str) -> LocalAccount:
    """Unlock a document; one without an address (foundry writes such) is accepted.

    Raises KeystoreCorrupt for a document that is malformed, asks for unreasonable work or shows another key's address,
    WrongPassword when the checksum does not fit.
    """
    from eth_account import Account

    _check_v3(document)
    try:
        secret = bytes(Account.decrypt(document, password))
    except ValueError as error:
        if "MAC" in str(error):
            raise WrongPassword("The password does not open this keystore.") from None
        raise corrupt("a field of its version 3 document is malformed") from None
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise corrupt("a field of its version 3 document is missing or of the wrong type") from None
    # The address is not covered by the MAC: a swapped one would show another account than the file controls.
    account = account_of(secret)
    if "address" in document and shown_address(document) != account.address:
        raise corrupt("its secret belongs to another address than it shows")
    return account


def _check_v3(document: dict[str, Any]) -> None:
    """Bound the work that a version 3 document asks for before any of it is done."""
    crypto = document.get("crypto", document.get("Crypto"))
    if document.get("version") != 3 or not isinstance(crypto, dict):
        raise corrupt("it is no version 3 keystore")
    params = crypto.get("kdfparams")
    if not isinstance(params, dict):
        raise corrupt("it has no key derivation parameters")
    names = {"scrypt": ("n", "r", "p"), "pbkdf2": ("c",)}.get(str(crypto.get("kdf")))
    if names is None:
        raise corrupt("its key derivation is neither scrypt nor pbkdf2")
    work = [params.get(name) for name in names]
    if params.get("dklen") != 32 or not all(type(number) is int for number in work):
        raise corrupt("its key derivation parameters are malformed")
    check: Callable[..., None] = check_scrypt_work if len(names) == 3 else check_pbkdf2_work
    check(*work)


def account_of(secret: bytes) -> LocalAccount:
    """The account of a 32-byte secret; KeystoreCorrupt if it is no secp256k1 key."""
    from eth_account import Account
    from eth_utils.exceptions import ValidationError

    try:
        account: LocalAccount = Account.from_key(secret)
    except (ValueError, ValidationError):
        raise corrupt("its secret is not a secp256k1 key") from None
    return account


def shown_address(document: dict[str, Any]) -> str:
    """The address, with checksum, that a document shows without a password. Raises KeystoreCorrupt if it shows none."""
    from eth_utils.address import to_checksum_address

    shown = document.get("address")
    if not isinstance(shown, str) or not re.fullmatch(r"(0x)?[0-9a-fA-F]{40}", shown):
        raise corrupt("it shows no address")
    return str(to_checksum_address("0x" + shown[-40:]))
