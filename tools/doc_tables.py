"""Tables that documents print from the rules: `tools/check_docs.py` writes each between its marks and compares it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from assay.protocol.economics import audit_prices, committees
from assay.protocol.economics.chain_profile import PPM
from assay.protocol.types import Wei

UNIT = 10**18
OPEN_DUTIES = (1, 2, 5, 10)
UNSETTLED = (1, 4, 8, 16)
COMMITTEES = (5, 9, 15, 21, 31, 63)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(str(cell) for cell in row) for row in [head, ["---"] * len(head), *rows]]
    return "".join(f"| {line} |\n" for line in lines)


def default_terms() -> audit_prices.AuditTerms:
    """p = 10 %, q = 20 %, v = 1/3, w = 1.3 W, W = 1."""
    shares = (100_000, 200_000, 333_333, 970_000, 500_000)
    return audit_prices.AuditTerms(Wei(UNIT), Wei(13 * UNIT // 10), *shares, open_duties=1, unsettled=1)


def in_prices(amount: Wei | Fraction) -> str:
    """An amount in W with one decimal."""
    return f"{float(Fraction(amount) / UNIT):.1f}"


def audit_stakes() -> str:
    """B in W by unsettled rounds (rows) and open duties (columns)."""
    rows = []
    for unsettled in UNSETTLED:
        cells = []
        for m in OPEN_DUTIES:
            t = replace(default_terms(), unsettled=unsettled, open_duties=m)
            cells.append(in_prices(audit_prices.min_ticket_stake(t, audit_prices.min_tenure_lock(t))))
        rows.append([unsettled, *cells])
    return table(["U \\ m", *(str(m) for m in OPEN_DUTIES)], rows)


def audit_rates() -> str:
    """S, B and what follows for several rates of audit."""
    rows = []
    for audit, reaudit in ((0.05, 0.20), (0.10, 0.20), (0.20, 0.20), (0.10, 0.40)):
        t = replace(
            default_terms(),
            audit_ppm=round(audit * PPM),
            reaudit_ppm=round(reaudit * PPM),
            unsettled=4,
            open_duties=5,
        )
        lock = audit_prices.min_tenure_lock(t)
        cost = audit_prices.audit_overhead(Fraction(t.audit_ppm, PPM), Fraction(t.reaudit_ppm, PPM))
        shared = 1 - t.lost_to_drawn
        reaudited = audit_prices.stake_if_reauditor_bribed(t, lock)
        stake = "none" if reaudited is None else in_prices(audit_prices.min_ticket_stake(t, lock))
        update = in_prices(audit_prices.update_price_net(t, lock, shared))
        rows.append([f"{audit:.0%}", f"{reaudit:.0%}", in_prices(lock), stake, f"{float(cost):.3f}", update])
    return table(["p", "q", "S", "B at U = 4, m = 5", "cost of a run over its training", "one arbitrary update"], rows)


def committee_chances() -> str:
    """Capture and censorship of committees by exact binomials."""
    shares = {"10 %": Fraction(1, 10), "20 %": Fraction(1, 5), "1/3": Fraction(1, 3)}
    rows = []
    for k in COMMITTEES:
        captured = [f"{float(committees.capture(k, v)):.1e}" for v in shares.values()]
        two_thirds = [f"{float(committees.capture_of_speakers(k, v)):.1e}" for v in shares.values()]
        censored = [f"{float(committees.censorship(k, v)):.1e}" for v in list(shares.values())[1:]]
        rows.append([k, *captured, *two_thirds, *censored])
    head = ["k", *(f"majority, v = {v}" for v in shares), *(f"two thirds of speakers, {v}" for v in shares)]
    return table([*head, *(f"kept from a majority, {v}" for v in list(shares)[1:])], rows)


TABLES: dict[str, Callable[[], str]] = {
    "audit-stakes": audit_stakes,
    "audit-rates": audit_rates,
    "committees": committee_chances,
}
"""What stands between `<!-- table: NAME -->` and `<!-- /table -->`."""
