"""How pages write amounts, digests, times: filters of the templates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from assay.amounts import tokens
from assay.protocol.types import Address


def amount(wei: str | int, places: int = 2) -> str:
    """An amount of tokens for reading: thousands apart, rounded; `exact` is the one for reckoning."""
    return f"{int(wei) / 10**18:,.{places}f}".replace(",", " ")


def exact(wei: str | int) -> str:
    """An amount of tokens to the last unit."""
    return tokens(int(wei))


def short(value: str) -> str:
    """The ends of a digest or address, for tables; its own page shows all of it."""
    return value if len(value) <= 14 else f"{value[:8]}…{value[-4:]}"


def number(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def counted(value: int | None) -> str:
    """A whole number that may not be known yet."""
    return "not known yet" if value is None else number(value)


def when(timestamp: int) -> str:
    """Chain time as a date, in UTC."""
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: int) -> str:
    """A length of time in its two largest units."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (rest // 60, "min"), (rest % 60, "s")) if n]
    return sign + (" ".join(parts[:2]) or "0 s")


AMOUNTS: Final = frozenset({"amount", "bounty", "burned", "fine", "funded", "left", "pay", "reserved", "unearned"})
TIMES: Final = frozenset({"deadline", "from", "maskAt", "notBefore", "rescueUntil", "until", "vestsAt"})
EARLIEST: Final = 10**9
"""Below it a number is no time: terms of seats begin and end with rounds."""


def argument(value: str | int, name: str, contract: str) -> str:
    """An event's argument: amounts with their unit, times as dates, anything else as it is."""
    if name in AMOUNTS:
        return f"{exact(value)} {'shares' if contract == 'grants' else 'tokens'}"
    if name == "shares":
        return exact(value)
    if name in TIMES and isinstance(value, int) and value >= EARLIEST:
        return when(value)
    return str(value)


def namer(names: Mapping[Address, str]) -> Mapping[str, str]:
    """Names by address as documents write it."""
    return {"0x" + who.hex(): name for who, name in names.items()}
