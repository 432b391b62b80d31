"""Tables that documents print from the rules: `tools/check_docs.py` writes each between its marks and compares it."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from assay.planning.inputs import PlanInputs
from assay.planning.plan import plan_run
from assay.protocol.economics import audit_prices, committees, price_table
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.price_table import UNIT, price_rows, usual_terms
from assay.protocol.run.beacon import prevrandao_bias
from assay.protocol.types import Wei
from tools.markdown import table
from tools.model_tables import MODEL_TABLES

OPEN_DUTIES = (1, 2, 5, 10)
UNSETTLED = (1, 4, 8, 16)
COMMITTEES = (5, 9, 15, 21, 31, 63)


def in_prices(amount: Wei | Fraction) -> str:
    """An amount in W with one decimal."""
    return f"{float(Fraction(amount) / UNIT):.1f}"


def audit_stakes() -> str:
    """B in W by unsettled rounds (rows) and open duties (columns)."""
    rows = []
    for unsettled in UNSETTLED:
        cells = []
        for m in OPEN_DUTIES:
            t = replace(usual_terms(), unsettled=unsettled, open_duties=m)
            cells.append(in_prices(audit_prices.min_ticket_stake(t, audit_prices.min_tenure_lock(t))))
        rows.append([unsettled, *cells])
    return table(["U \\ m", *(str(m) for m in OPEN_DUTIES)], rows)


def audit_rates() -> str:
    """S, B and what follows for several rates of audit."""
    rows = []
    for row in price_rows():
        stake = "none" if row.stake is None else f"{float(row.stake):.1f}"
        amounts = [f"{float(row.lock):.1f}", stake, f"{float(row.overhead):.3f}", f"{float(row.update):.1f}"]
        rows.append([f"{row.audit_ppm / PPM:.0%}", f"{row.reaudit_ppm / PPM:.0%}", *amounts])
    stakes = f"B at U = {price_table.UNSETTLED}, m = {price_table.OPEN_DUTIES}"
    return table(["p", "q", "S", stakes, "cost of a run over its training", "one arbitrary update"], rows)


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


BILLION = PlanInputs(
    parameters=1e9, tokens=1e11, solvers=100, up=1e8, down=5e8, flops=4e13, inner_steps=100, batch=262_144.0, chain="op"
)
"""A home computer with one large graphics card, and a home link."""
SEVENTY = replace(BILLION, parameters=70e9, tokens=1.4e12, up=1e9, down=1e9, flops=3e15, batch=1e6)
"""Eight data-centre cards in one machine, and a link of a gigabit."""
PLANS = {
    "1 B": (
        BILLION,
        replace(BILLION, inner_steps=500),
        replace(BILLION, inner_steps=500, update="int4", positions=1e9),
        replace(BILLION, solvers=1000, tokens=1e12),
        replace(BILLION, solvers=1000, tokens=1e12, inner_steps=500, update="int4", positions=1e10),
    ),
    "70 B": (
        SEVENTY,
        replace(SEVENTY, inner_steps=500, update="int4", positions=1e10),
        replace(SEVENTY, solvers=1000),
        replace(SEVENTY, solvers=1000, inner_steps=500, update="int4", positions=1e10),
    ),
}


def scale() -> str:
    """Time and goodput of the plans of docs/scale.md."""
    rows = []
    for model, plans in PLANS.items():
        for x in plans:
            plan = plan_run(x)
            t, path = plan.timing, plan.timing.path
            merging = f"{(path.fetch + path.merge) / path.seconds:.0%}"
            link = f"{(x.positions or x.down) / 1e9:g}"
            times = [f"{t.training / 3600:.1f}", f"{path.seconds / 60:.0f}", merging]
            shares = [f"{t.goodput:.2f}", f"{t.worst_goodput:.2f}", f"{t.wall / 86_400:.1f}"]
            rows.append([model, x.solvers, x.update, x.inner_steps, link, *times, *shares])
    head = ["model", "solvers", "update", "H", "positions' Gb/s", "training h", "path min", "of it merging"]
    return table([*head, "goodput", "worst", "days"], rows)


def scale_burdens() -> str:
    """Bytes, gas, stake and the multiplier of the first and last plan of each model."""
    rows = []
    for model, plans in PLANS.items():
        for x in (plans[0], plans[-1]):
            plan = plan_run(x)
            up = {b.role: b.up / 1e9 for b in plan.burdens}
            down = {b.role: b.down / 1e9 for b in plan.burdens}
            group, top = "position of a group", "position of the generation"
            moved = [f"{up['solver']:.1f}, {down['solver']:.1f}", *(f"{down[role]:,.0f}" for role in (group, top))]
            s = plan.security
            stake = "none" if s.stake is None else f"{s.stake:.0f}"
            security = [f"{s.lock:.0f}", stake, s.tickets, plan.timing.unsettled, f"{s.update_price:.2f}"]
            gas = f"{plan.gas_of_round / 1e6:.0f}"
            rows.append([model, x.solvers, x.update, *moved, gas, *security, f"{sum(plan.multiplier.values()):.2f}"])
    head = ["model", "solvers", "update", "solver up, down GB", "group's position GB", "generation's GB", "M gas"]
    return table([*head, "S", "B", "tickets", "U", "arbitrary update", "multiplier"], rows)


def mix_bias() -> str:
    """How often an event happens under prevrandao at a proposer's will, for nothing and by withholding blocks."""
    chances = (0.01, 0.1, 0.5)
    head = ["share of blocks", *(f"{q:.0%}: {how}" for q in chances for how in ("free", "withholding"))]
    rows = []
    for share in (0.01, 0.05, 0.1, 0.2, 1 / 3):
        rows.append([f"{share:.0%}", *(f"{value:.2%}" for q in chances for value in prevrandao_bias(share, q))])
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    **MODEL_TABLES,
    "audit-stakes": audit_stakes,
    "audit-rates": audit_rates,
    "committees": committee_chances,
    "scale": scale,
    "scale-burdens": scale_burdens,
    "prevrandao-bias": mix_bias,
}
"""What stands between `<!-- table: NAME -->` and `<!-- /table -->`."""
