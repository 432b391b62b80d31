"""Amounts as people type and read them, by the decimals of what they are amounts of; programs count the smallest unit.

Every token says by itself how its amounts are written (`decimals`, `symbol`), and nothing that is computed depends on
it: contracts, actors and documents count smallest units. Source: IERC20Metadata; docs/adr/0065-amounts-of-any-token.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import UsageError
from assay.protocol.types import Wei

MOST_DECIMALS: Final = 36
"""Of a token: with more, what a run may promise at most (2^112 - 1) is less than a hundredth of one token."""

DIGITS: Final = 78
"""Of the largest amount that a contract can hold, in its smallest unit."""

SHOWN: Final = 40
"""Characters of a wrong amount that are repeated."""

SYMBOL_SHOWN: Final = 12
"""Characters of a symbol that are shown."""

SMALLEST: Final = "wei"
"""Behind a whole number: so many of the smallest unit, whatever the decimals."""

_IN_WEI: Final = re.compile(rf"\s*([0-9_]{{1,{2 * DIGITS}}})\s*{SMALLEST}\s*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Currency:
    """How amounts of a token, of shares or of the chain's coin are written.

    `decimals` is None where nobody knows: then amounts are shown, and taken, in the smallest unit alone. `symbol` is a
    stranger's word; make it by `shown_symbol`.
    """

    decimals: int | None
    symbol: str = ""

    @property
    def is_known(self) -> bool:
        """Whether amounts can be written in whole tokens."""
        return self.decimals is not None

    def parse(self, text: str) -> Wei:
        """An amount as typed, in the smallest unit, exactly: `12.5`, or `12500000wei` for so many smallest units.

        Raises UsageError (AmountInvalid, AmountUnclear).
        """
        found = _IN_WEI.fullmatch(text)
        if found is not None and found[1].strip("_"):
            return _bounded(text, int(found[1].replace("_", "")), self)
        if self.decimals is None:
            raise UsageError(
                f"How much {text[:SHOWN]!r} is cannot be said: the token does not say its decimals.",
                code="AmountUnclear",
                remedy=f"Give it in the token's smallest unit, as --json shows amounts: 12500000{SMALLEST}.",
            )
        return _bounded(text, _scaled(text, self.decimals), self)

    def show(self, wei: int) -> str:
        """An amount exactly, without trailing zeros, as `parse` takes it."""
        if self.decimals is None:
            return f"{wei}{SMALLEST}"
        sign, wei = ("-", -wei) if wei < 0 else ("", wei)
        whole, part = divmod(wei, 10**self.decimals)
        return f"{sign}{whole}" + (f".{part:0{self.decimals}d}".rstrip("0") if part else "")

    def both(self, wei: int) -> str:
        """An amount with its unit, and the same in the smallest one: what is asked before money moves.

        Attack: a token that says other decimals than it said before. The second number is what will move.
        """
        return self.show(wei) if self.decimals is None else f"{self.show(wei)} tokens ({wei}{SMALLEST})"

    def about(self, wei: int, places: int = 2) -> str:
        """An amount for reading, thousands apart, rounded half up to `places` digits, or to the second that is not 0.

        What is not nothing never reads as nothing: a hundredth of one token may be worth a month's wage.
        """
        if self.decimals is None:
            return f"{wei:,}{SMALLEST}"
        size, places = abs(wei), min(places, self.decimals)
        if 0 < size < 10 ** (self.decimals - places):
            places = min(self.decimals - len(str(size)) + 2, self.decimals)
        scaled = (2 * size * 10**places + 10**self.decimals) // (2 * 10**self.decimals)
        whole, part = divmod(scaled, 10**places)
        return ("-" if wei < 0 < scaled else "") + f"{whole:,}" + (f".{part:0{places}d}" if places else "")

    def brief(self, wei: int) -> str:
        """The same to two digits, without those that say nothing: for sentences."""
        return self.about(wei).removesuffix(".00")

    def at_least(self, wei: int) -> str:
        """A short amount that is no less, as typed: by at most a hundredth more, whole from a hundred tokens on."""
        if self.decimals is None:
            return self.show(wei)
        unit = 10 ** min(self.decimals, max(len(str(max(wei, 0))) - 3, 0))
        return self.show(-(-wei // unit) * unit)


COIN: Final = Currency(18)
"""The chain's own coin, which pays for gas."""

FEES: Final = Currency(9)
"""What a unit of gas costs, in gwei."""

SHARES: Final = Currency(18)
"""Shares of a model (ModelShares.sol)."""

TEST_MONEY: Final = Currency(18, "TEST")
"""The token of demonstrations, which everybody makes (TestToken.sol)."""

UNKNOWN_MONEY: Final = Currency(None)
"""A token that does not say how its amounts are written."""


def shown_symbol(text: str) -> str:
    """What of a token's symbol may be shown.

    Attack: a symbol is whatever its issuer wrote: control characters of terminals, markup, letters that look like
    others, or a text of megabytes. A symbol names no token: whoever shows it shows the address too.
    """
    return re.sub(r"[^A-Za-z0-9.$+-]", "", text[: 8 * SYMBOL_SHOWN])[:SYMBOL_SHOWN]


def is_in_wei(text: str) -> bool:
    """Whether an amount was typed in the smallest unit, so that it means the same at any decimals."""
    return _IN_WEI.fullmatch(text) is not None


def check_typed(text: str) -> None:
    """Whether a text may be an amount of any token, before its token is known. Raises UsageError (AmountInvalid)."""
    Currency(MOST_DECIMALS).parse(text)


def _scaled(text: str, decimals: int) -> int:
    """A decimal number times 10^decimals; -1 where that is no whole number."""
    from decimal import Context, Decimal, DecimalException, Inexact, Overflow

    # No digit is rounded away, and no exponent makes an integer that fills the memory.
    exact = Context(prec=DIGITS, Emax=DIGITS, Emin=-DIGITS, traps=[Inexact, Overflow])
    try:
        value = exact.multiply(exact.create_decimal(text.strip().replace("_", "")), Decimal(10**decimals))
        if value.is_finite() and value == value.to_integral_value():
            return int(value)
    except (DecimalException, ValueError):
        pass
    return -1


def _bounded(text: str, wei: int, currency: Currency) -> Wei:
    if 0 < wei < 1 << 256:
        return Wei(wei)
    most = currency.decimals
    fraction = {None: "", 0: ", whole, since this token has no decimals, such as 12"}.get(
        most, f" with at most {most} decimals, such as 12.5"
    )
    raise UsageError(
        f"{text[:SHOWN]!r} is no amount of tokens.",
        code="AmountInvalid",
        remedy=f"Give a positive number below 2^256 of the smallest unit{fraction}, or 12500000{SMALLEST}.",
    )
