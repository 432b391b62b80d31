"""S, B and what follows from several rates of audit, in units of W: the table of docs/economics.md and of the command.

Exact fractions of the bounds in audit_prices.py, at the usual terms: w = 1.3 W, v = 1/3, and the usual bounties.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from assay.protocol.economics import audit_prices
from assay.protocol.economics.audit_prices import MERGE_SHARE, AuditTerms
from assay.protocol.economics.limits import PPM
from assay.protocol.types import Wei

UNIT: Final = 10**18
"""W of the table, in wei."""

RATES: Final = ((50_000, 200_000), (100_000, 200_000), (200_000, 200_000), (100_000, 400_000))
"""p and q of the rows, in parts per million."""

UNSETTLED: Final = 4
"""U of the rows."""
OPEN_DUTIES: Final = 5
"""m of the rows."""


@dataclass(frozen=True, slots=True)
class PriceRow:
    """What two rates of audit come to; amounts in W. `stake` is None where none suffices.

    overhead: cost of a run over its training. update: price of one arbitrary update, net of the pay that it earns
    undetected, for a cartel with share v.
    """

    audit_ppm: int
    reaudit_ppm: int
    lock: Fraction
    stake: Fraction | None
    overhead: Fraction
    update: Fraction


def usual_terms() -> AuditTerms:
    """p = 10 %, q = 20 %, v = 1/3, w = 1.3 W, W = 1; one round unsettled and one duty open."""
    shares = (100_000, 200_000, 333_333, audit_prices.DRAWN_BOUNTY_PPM, audit_prices.THIRD_BOUNTY_PPM)
    return AuditTerms(
        Wei(UNIT), Wei(13 * UNIT // 10), *shares, open_duties=1, unsettled=1, merge_pay=Wei(UNIT // MERGE_SHARE)
    )


def price_row(audit_ppm: int, reaudit_ppm: int) -> PriceRow:
    """The row of two rates."""
    t = replace(
        usual_terms(), audit_ppm=audit_ppm, reaudit_ppm=reaudit_ppm, unsettled=UNSETTLED, open_duties=OPEN_DUTIES
    )
    lock = audit_prices.min_tenure_lock(t)
    suffices = audit_prices.stake_if_reauditor_bribed(t, lock) is not None
    return PriceRow(
        audit_ppm=audit_ppm,
        reaudit_ppm=reaudit_ppm,
        lock=Fraction(lock, UNIT),
        stake=Fraction(audit_prices.min_ticket_stake(t, lock), UNIT) if suffices else None,
        overhead=audit_prices.audit_overhead(Fraction(audit_ppm, PPM), Fraction(reaudit_ppm, PPM)),
        update=audit_prices.update_price_net(t, lock, 1 - t.lost) / UNIT,
    )


def price_rows() -> tuple[PriceRow, ...]:
    """The rows of RATES."""
    return tuple(price_row(*rates) for rates in RATES)
