"""How pages write amounts, digests, times: filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from assay.amounts import SHARES, SMALLEST, Currency
from assay.protocol.types import Address


class AmountWords:
    """How pages write amounts of a run: of its own token, of shares, and of tokens that revenue is paid in."""

    def __init__(self, currency_of: Callable[[Address], Currency], token: Address) -> None:
        self._currency_of, self._money = currency_of, currency_of(token)

    def filters(self) -> dict[str, Callable[..., str]]:
        """By the names that templates call them."""
        return {
            "amount": self.amount,
            "exact": self.exact,
            "argument": self.argument,
            "money": self.money,
            "about_money": self.about_money,
            "per_share": self.per_share,
            "per_share_exactly": self.per_share_exactly,
            "shares": shares,
            "shares_exactly": shares_exactly,
        }

    def amount(self, wei: str | int, places: int = 2) -> str:
        """An amount of tokens for reading: thousands apart, rounded; `exact` is the one for reckoning."""
        return self._money.about(int(wei), places).replace(",", " ")

    def exact(self, wei: str | int) -> str:
        """An amount of tokens to the last unit."""
        return self._money.show(int(wei))

    def money(self, wei: str | int, token: str) -> str:
        """An amount of the token of an address, to the last unit."""
        return self._of(token).show(int(wei))

    def about_money(self, wei: str | int, token: str) -> str:
        """The same for reading."""
        return self._of(token).about(int(wei)).replace(",", " ")

    def per_share(self, atto: str | int, token: str) -> str:
        """What one share earned in a token, in 10^-18 of its smallest unit, for reading."""
        return self._atto(token).about(int(atto)).replace(",", " ") + self._smallest(token)

    def per_share_exactly(self, atto: str | int, token: str) -> str:
        """The same to the last digit."""
        return self._atto(token).show(int(atto)) + self._smallest(token)

    def _of(self, token: str) -> Currency:
        return self._currency_of(Address(bytes.fromhex(token[2:])))

    def _atto(self, token: str) -> Currency:
        # Of a token that does not say its decimals whole ones are its smallest units.
        return Currency((self._of(token).decimals or 0) + ATTO_DECIMALS)

    def _smallest(self, token: str) -> str:
        return "" if self._of(token).is_known else SMALLEST

    def argument(self, value: str | int, name: str, contract: str, token: str | None = None) -> str:
        """An event's argument: amounts with their unit, times as dates, anything else as it is.

        `token`: of which the event says that the amount is.
        """
        if isinstance(value, bool):
            return "yes" if value else "no"
        if (contract, name) in SHARE_AMOUNTS:
            return f"{shares_exactly(value)} shares"
        if name in AMOUNTS:
            money = self._money if token is None else self._of(token)
            return f"{money.show(int(value))} tokens"
        if name == "shares":
            return shares_exactly(value)
        if name in TIMES and isinstance(value, int) and value >= EARLIEST:
            return when(value)
        return str(value)


def shares(wei: str | int, places: int = 2) -> str:
    """An amount of shares for reading."""
    return SHARES.about(int(wei), places).replace(",", " ")


def shares_exactly(wei: str | int) -> str:
    """An amount of shares to the last unit."""
    return SHARES.show(int(wei))


def short(value: str) -> str:
    """The ends of a digest or address, for tables; its own page shows all of it."""
    return value if len(value) <= 14 else f"{value[:8]}…{value[-4:]}"


def number(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def ranges(values: Sequence[int]) -> str:
    """Whole numbers in order, three and more that follow each other as one: of 300 seats nobody reads each."""
    parts = list[str]()
    for _, run in groupby(enumerate(values), lambda pair: pair[1] - pair[0]):
        found = [value for _, value in run]
        parts += [f"{found[0]} to {found[-1]}"] if len(found) > 2 else map(str, found)
    return ", ".join(parts)


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


ATTO_DECIMALS: Final = 18
"""Of what a share earns, under the token's own."""

AMOUNTS: Final = frozenset(
    {"amount", "bounty", "burned", "fine", "funded", "paid", "pay", "redeemed", "reserved", "taken", "toOwners"}
    | {"unearned", "wages"}
)
SHARE_AMOUNTS: Final = frozenset({("grants", "amount"), ("shares", "value"), ("governor", "weight")})
"""By contract: of shares, and of votes, which are shares too."""
TIMES: Final = frozenset({"deadline", "from", "maskAt", "notBefore", "rescueUntil", "t0", "until", "vestsAt"})
EARLIEST: Final = 10**9
"""Below it a number is no time: terms of seats begin and end with rounds."""


def namer(names: Mapping[Address, str]) -> Mapping[str, str]:
    """Names by address as documents write it."""
    return {"0x" + who.hex(): name for who, name in names.items()}
