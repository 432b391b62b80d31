"""Amounts of tokens as people type and read them."""

from __future__ import annotations

from assay.protocol.errors import UsageError
from assay.protocol.types import Wei

WEI = 10**18
DIGITS = 78
"""Of the largest amount that a contract can hold, in wei."""

SHOWN = 40
"""Characters of a wrong amount that are repeated."""


def parse_amount(text: str) -> Wei:
    """An amount of tokens as typed, in wei, exactly. Raises UsageError (AmountInvalid)."""
    from decimal import Context, Decimal, DecimalException, Inexact, Overflow

    # No digit is rounded away, and no exponent makes an integer that fills the memory.
    exact = Context(prec=DIGITS, Emax=DIGITS, Emin=-DIGITS, traps=[Inexact, Overflow])
    try:
        value = exact.multiply(exact.create_decimal(text.strip().replace("_", "")), Decimal(WEI))
        if not value.is_finite() or value != value.to_integral_value() or not 0 < value < 1 << 256:
            raise DecimalException
    except (DecimalException, ValueError):
        raise UsageError(
            f"{text[:SHOWN]!r} is no amount of tokens.",
            code="AmountInvalid",
            remedy="Give a positive number below 2^256 wei with at most 18 decimals, such as 12.5.",
        ) from None
    return Wei(int(value))


def tokens(wei: int) -> str:
    """An amount in tokens, exactly, without trailing zeros."""
    sign, wei = ("-", -wei) if wei < 0 else ("", wei)
    whole, part = divmod(wei, WEI)
    return f"{sign}{whole}" + (f".{part:018d}".rstrip("0") if part else "")
