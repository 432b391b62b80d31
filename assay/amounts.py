"""Amounts of tokens as people type and read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.protocol.errors import UsageError
from assay.protocol.types import Wei

if TYPE_CHECKING:
    pass


WEI = 10**18


def parse_amount(text: str) -> Wei:
    """An amount of tokens as typed, in wei, exactly. Raises UsageError (AmountInvalid)."""
    from decimal import Decimal, InvalidOperation

    try:
        value = Decimal(text) * WEI
        if value != value.to_integral_value() or value <= 0:
            raise InvalidOperation
    except InvalidOperation:
        raise UsageError(
            f"{text!r} is no amount of tokens.",
            code="AmountInvalid",
            remedy="Give a positive number with at most 18 decimals, such as 12.5.",
        ) from None
    return Wei(int(value))


def tokens(wei: int) -> str:
    """An amount in tokens, exactly, without trailing zeros."""
    sign, wei = ("-", -wei) if wei < 0 else ("", wei)
    whole, part = divmod(wei, WEI)
    return f"{sign}{whole}" + (f".{part:018d}".rstrip("0") if part else "")
