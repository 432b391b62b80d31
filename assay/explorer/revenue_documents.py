"""What shares earned, and what gateways were paid, as JSON documents. Units as in `documents`.

`per_share_atto` is what one whole share earned: 10^-18 of the token's smallest unit, rounded down, since of a token of
few decimals a share may earn less than a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from assay.amounts import SHARES
from assay.explorer.bond_documents import bond_document
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.gateways import GatewayTill, PaidBy, PayerAccount
from assay.explorer.price_documents import prices_of
from assay.explorer.reader import RunReader
from assay.explorer.words import ATTO_DECIMALS
from assay.protocol.payments.share_earnings import SCALE, WEEK, EarnedPart, EarnedWeek, RevenueStream
from assay.protocol.types import Address
from assay_ledger.bindings.token import TokenContract

ATTO: Final = 10**ATTO_DECIMALS
ONE_SHARE: Final = 10 ** (SHARES.decimals or 0)
MOST_PAYERS: Final = 1_000
"""Payers of each list of a document, those who paid most; `more` counts the others."""

ASKED_EVERY_S: Final = 3_600
"""Of chain time."""

K = TypeVar("K", bound=Address | None)

# --- shares


def revenue_document(reader: RunReader) -> Document:
    """What one share earned in each week, in every revenue token, and of whose payments in all."""
    now = reader.state.head.timestamp
    return {
        "now": now,
        "shares": wei(next((stream.supply for stream in reader.earnings.streams.values()), 0)),
        "tokens": [_token_document(token, stream, now) for token, stream in reader.earnings.streams.items()],
    }


def week_document(reader: RunReader, week: int) -> Document | None:
    """One week: of whose payments it was; None where nothing streamed in it."""
    now = reader.state.head.timestamp
    tokens = []
    for token, stream in reader.earnings.streams.items():
        for earned in stream.weeks(now, week, week):
            tokens.append({"token": hexed(token), **_earned(earned.whole), **_by_whom(earned.by)})
    return {**_span(week, now), "now": now, "tokens": tokens} if tokens else None


def _token_document(token: Address, stream: RevenueStream[PaidBy], now: int) -> Document:
    weeks = stream.weeks(now)
    by: dict[PaidBy, EarnedPart] = {}
    for week in weeks:
        for whose, part in week.by.items():
            by.setdefault(whose, EarnedPart()).add(part.amount, part.per_share)
    return {
        "token": hexed(token),
        "deposited": wei(stream.deposited),
        **_earned(_sum(week.whole for week in weeks)),
        "coming": wei(stream.coming(now)),
        "waiting": wei(sum(stream.waiting(now).values())),
        "weeks": [_week(week, now) for week in reversed(weeks)],
        **_by_whom(by),
    }


def _week(earned: EarnedWeek[PaidBy], now: int) -> Document:
    return {**_span(earned.week, now), **_earned(earned.whole)}


def _span(week: int, now: int) -> Document:
    return {"week": week, "begins": week * WEEK, "ends": (week + 1) * WEEK, "is_over": now >= (week + 1) * WEEK}


def _by_whom(by: Mapping[PaidBy, EarnedPart]) -> Document:
    """The same by payer, by gateway, and by both."""
    payers, gateways = _grouped(by, lambda whose: whose[0]), _grouped(by, lambda whose: whose[1])
    both = sorted(by.items(), key=lambda entry: (-entry[1].amount, entry[0][0], entry[0][1] or b""))
    return {
        "payers": [{"payer": hexed(who), **_earned(part)} for who, part in payers[:MOST_PAYERS]],
        "gateways": [{"gateway": _named(at), **_earned(part)} for at, part in gateways[:MOST_PAYERS]],
        "paid": [{"payer": hexed(who), "gateway": _named(at), **_earned(p)} for (who, at), p in both[:MOST_PAYERS]],
        "more": {
            "payers": max(0, len(payers) - MOST_PAYERS),
            "gateways": max(0, len(gateways) - MOST_PAYERS),
            "paid": max(0, len(both) - MOST_PAYERS),
        },
    }


def _grouped(by: Mapping[PaidBy, EarnedPart], key: Callable[[PaidBy], K]) -> list[tuple[K, EarnedPart]]:
    found: dict[K, EarnedPart] = {}
    for whose, part in by.items():
        found.setdefault(key(whose), EarnedPart()).add(part.amount, part.per_share)
    return sorted(found.items(), key=lambda entry: (-entry[1].amount, entry[0] or b""))


def _sum(parts: Iterable[EarnedPart]) -> EarnedPart:
    found = EarnedPart()
    for part in parts:
        found.add(part.amount, part.per_share)
    return found


def _earned(part: EarnedPart) -> Document:
    return {"earned": wei(part.amount), "per_share_atto": wei(part.per_share * ONE_SHARE * ATTO // SCALE)}


def _named(gateway: Address | None) -> str | None:
    """None: paid straight into the revenue."""
    return None if gateway is None else hexed(gateway)


# --- gateways


def till_document(till: GatewayTill) -> Document:
    """A gateway's payments in one token. What it is asked back it may redeem until `asked_until`, the earliest."""
    asked = till.asked
    return {
        "gateway": hexed(till.gateway),
        "token": hexed(till.token),
        "payers": len(till.accounts),
        "deposited": wei(till.deposited),
        "redeemed": wei(till.redeemed),
        "kept": wei(till.kept),
        "to_owners": wei(till.to_owners),
        "refunded": wei(till.refunded),
        "balance": wei(till.balance),
        "asked": wei(sum(account.asked for account in asked)),
        "asked_until": asked[0].not_before if asked else None,
        "redemptions": till.redemptions,
        "last_redeemed": till.last_redeemed,
    }


def account_document(account: PayerAccount) -> Document:
    """What a payer has at a gateway in one token."""
    return {
        "payer": hexed(account.payer),
        "gateway": hexed(account.gateway),
        "token": hexed(account.token),
        "deposited": wei(account.deposited),
        "redeemed": wei(account.redeemed),
        "refunded": wei(account.refunded),
        "balance": wei(account.balance),
        "asked": wei(account.asked),
        "asked_until": account.not_before if account.asked else None,
    }


def gateway_document(reader: RunReader, gateway: Address) -> Document | None:
    """An address that payers deposited for, that bonded or that says a price; None for who is no gateway."""
    tills = reader.earnings.gateways.tills_of[gateway]
    bond = bond_document(reader, gateway)
    prices = prices_of(reader, gateway)
    if not tills and bond is None and not prices:
        return None
    accounts = [account for till in tills for account in till.accounts]
    accounts.sort(key=lambda one: (not one.asked, -one.redeemed, one.payer))
    return {
        "gateway": hexed(gateway),
        "name": reader.names.get(gateway),
        "delisted": gateway in reader.votes.delisted,
        "bond": bond,
        "prices": prices,
        "tokens": [till_document(till) for till in tills],
        "payers": [account_document(account) for account in accounts[:MOST_PAYERS]],
        "more": max(0, len(accounts) - MOST_PAYERS),
    }


def vouchers_document(reader: RunReader) -> Document:
    """The run's contract of vouchers: what it holds of each token, and what it owes."""
    books = reader.earnings.gateways
    return {
        "contract": None if reader.earnings.vouchers is None else hexed(reader.earnings.vouchers),
        "gateways": len(books.tills_of),
        "payers": len(books.accounts_of),
        "tokens": [_balance_document(reader, token) for token in books.balances],
    }


def _balance_document(reader: RunReader, token: Address) -> Document:
    """`holds`: what came in less what went out. `owes`: each payer's balance, and the owners' part. `held`: what the
    token itself says that the contract has, in a block; None while it is being asked, and so is `covered`."""
    books = reader.earnings.gateways
    balance, owes = books.balances[token], books.owes(token)
    asked = _asked_balance(reader, token)
    held, block = (None, None) if asked is None else asked
    return {
        "token": hexed(token),
        "deposited": wei(balance.deposited),
        "refunded": wei(balance.refunded),
        "kept": wei(balance.kept),
        "sent_on": wei(balance.sent_on),
        "owed": wei(balance.owed),
        "holds": wei(balance.holds),
        "owes": wei(owes),
        "held": None if held is None else wei(held),
        "held_at": block,
        # Nobody can be kept from sending it tokens past its deposits, which are nobody's: more is no fault, less is.
        "covered": False if balance.holds != owes else None if held is None else held >= owes,
    }


def _asked_balance(reader: RunReader, token: Address) -> tuple[int, int] | None:
    """What the token says, and in which block: asked for when the books have changed, in the block that they are of,
    and now and then, since a token can take without a word."""
    at, head = reader.earnings.vouchers, reader.state.head
    if at is None:
        return None
    key = ("vouchers hold", token, reader.earnings.gateways.events, head.timestamp // ASKED_EVERY_S)
    reader.node.forget(lambda other: isinstance(other, tuple) and other[:2] == key[:2] and other != key)
    chain, block = reader.run.chain, head.number
    return reader.node.find(key, lambda: (int(chain.ask(TokenContract(token).balance_of(at), at=block)), block))
