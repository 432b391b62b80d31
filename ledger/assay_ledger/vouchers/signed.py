"""A voucher with its payer's signature: made, read, and held to what the contract will take."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import coincurve
from eth_typing import Hash32

from assay.protocol.digests import keccak
from assay.protocol.errors import ConfigError, RejectedError
from assay.protocol.payments.voucher import SIGNATURE_SIZE, Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.json_input import JsonRefused, parse_json

if TYPE_CHECKING:
    from assay_ledger.keys.keystore import ActorKeys

MAX_TEXT: Final = 1024
"""Bytes of a voucher as text: one takes some 400."""

HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Of secp256k1: the contract takes no signature whose s is above it."""

_HEX: Final = re.compile(r"0x[0-9a-fA-F]*")


@dataclass(frozen=True, slots=True)
class SignedVoucher:
    """A voucher as it travels and is redeemed; `signature`: r, s, v."""

    voucher: Voucher
    signature: bytes

    def to_text(self) -> str:
        """One line of ASCII, fit for a header of HTTP."""
        v = self.voucher
        fields = {"payer": v.payer, "gateway": v.gateway, "token": v.token, "signature": self.signature}
        named = {name: "0x" + value.hex() for name, value in fields.items()}
        return json.dumps({**named, "amount": str(v.amount)}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def of_text(text: str) -> SignedVoucher:
        """The voucher that a stranger sent. Raises RejectedError (VoucherUnreadable)."""
        try:
            document = parse_json(text.encode(), max_bytes=MAX_TEXT)
            payer, gateway, token = (_bytes_of(document, name, 20) for name in ("payer", "gateway", "token"))
            amount = _amount_of(document)
            signature = _bytes_of(document, "signature", SIGNATURE_SIZE)
        except (JsonRefused, KeyError, TypeError, ValueError, AttributeError):
            raise RejectedError(
                "What was sent is no voucher.",
                code="VoucherUnreadable",
                remedy="A voucher is a JSON object: payer, gateway, token, amount and signature.",
            ) from None
        return SignedVoucher(Voucher(Address(payer), Address(gateway), Address(token), amount), signature)


def sign_voucher(keys: ActorKeys, voucher: Voucher, domain: VoucherDomain) -> SignedVoucher:
    """A payer's signature under a voucher. Raises ConfigError (VoucherKeyElsewhere, PayerNotTheKey)."""
    if keys.beside is not None:
        raise ConfigError(
            "The key of this account is elsewhere, and its signer signs transactions alone.",
            code="VoucherKeyElsewhere",
            remedy="Deposit for a key of this machine (`assay gateway deposit --payer ADDRESS`) and sign by that.",
        )
    if voucher.payer != keys.address:
        raise ConfigError(
            f"0x{voucher.payer.hex()} is not the account of this key.", code="PayerNotTheKey", remedy="Name its key."
        )
    signature = keys.local.unsafe_sign_hash(Hash32(voucher.digest(domain))).signature
    return SignedVoucher(voucher, bytes(signature))


@lru_cache(maxsize=1024)
def signer_of(signed: SignedVoucher, domain: VoucherDomain) -> Address | None:
    """Whose key has signed, as the contract finds it out; None for what it does not take for a signature.

    Kept, since a gateway asks before it asks the chain anything, and again before it accepts.
    """
    signature = signed.signature
    if len(signature) != SIGNATURE_SIZE or signature[64] not in (27, 28):
        return None
    # Attack: a signature that other libraries take and the contract does not, so that the voucher is never paid.
    if int.from_bytes(signature[32:64], "big") > HALF_ORDER:
        return None
    recoverable = signature[:64] + bytes([signature[64] - 27])
    try:
        key = coincurve.PublicKey.from_signature_and_message(
            recoverable, signed.voucher.digest(domain), hasher=None
        ).format(compressed=False)
    except Exception:  # coincurve raises bare ones for numbers that are no point
        return None
    return Address(keccak(key[1:])[12:])


def check_signature(signed: SignedVoucher, domain: VoucherDomain, gateway: Address) -> None:
    """Whether a voucher is for this gateway, and its payer's own.

    A payer that is a contract has no key, and may deny tomorrow what it signs today: none is taken. Raises
    RejectedError (VoucherForeign, VoucherUnsigned).
    """
    voucher = signed.voucher
    if voucher.gateway != gateway:
        raise RejectedError(
            f"The voucher is for 0x{voucher.gateway.hex()}; this gateway is 0x{gateway.hex()}.",
            code="VoucherForeign",
            remedy="Sign one for this gateway.",
        )
    if signer_of(signed, domain) != voucher.payer:
        raise RejectedError(
            f"The voucher is not signed by the key of 0x{voucher.payer.hex()} for chain {domain.chain_id} and the "
            f"contract 0x{domain.contract.hex()}.",
            code="VoucherUnsigned",
            remedy="Sign it by the payer's key, for the chain and the contract that the gateway names.",
        )


def _bytes_of(document: Any, name: str, size: int) -> bytes:
    text = document[name]
    # Blanks among the digits would be left out, and the bytes be fewer.
    if not isinstance(text, str) or len(text) != 2 + 2 * size or _HEX.fullmatch(text) is None:
        raise ValueError(name)
    return bytes.fromhex(text[2:])


def _amount_of(document: Any) -> Wei:
    text = document["amount"]
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 78:
        raise ValueError(text)
    if (amount := int(text)) >= 1 << 256:
        raise ValueError(text)
    return Wei(amount)
