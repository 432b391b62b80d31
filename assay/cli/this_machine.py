"""What `assay run can-join` says of this machine, and of what a role earns a day here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import platformdirs

from assay.amounts import COIN, FEES, SHARES, Currency
from assay.cli.common import archive_of, open_blobs
from assay.cli.progress import moved, told_steps
from assay.planning.expected import DailyIncome, auditor_day, solver_day
from assay.planning.spans import spans_of
from assay.protocol.errors import AssayError
from assay.protocol.rounds.terms import NEVER
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.planning.measured import MachineVerdict
    from assay_ledger.chain.fees import Market
    from assay_ledger.rounds.run import Run
    from assay_ledger.rounds.view import RunView


def this_machine(run: Run, settings: Settings, role: str) -> tuple[MachineVerdict | None, list[str]]:
    """What was measured here, and why it is not enough for a role."""
    from assay.planning.measured import measure

    folder = settings.data_dir or platformdirs.user_data_path("assay")
    try:
        store = open_blobs(settings)
        with told_steps(moved(store)) as say:
            found = measure(archive_of(run, store), run.chain, role, folder, say=say)
    except AssayError as error:
        return None, [f"this machine cannot do the work: {error.message.rstrip('.')}"]
    return found, found.reasons


def income_of(view: RunView, role: str, tickets: int) -> DailyIncome:
    """A seat's mean day, or that of so many tickets beside those that count now."""
    charter, registry, launch = view.charter, view.books.registry, view.charter.launch
    begun = [round_.t0 for round_ in view.books.commitments.rounds]
    is_over = view.is_over or view.state.money.is_ended
    left = 0 if is_over else charter.rounds - len(begun)
    live = sum(1 for held in registry.tickets.values() if not (held.until or held.convicted_at))
    seated = sum(1 for tenure in view.books.tenures.tenures.values() if tenure.until == NEVER)
    solvers = max(seated, launch.seats, 1)
    if role == "solver":
        spans = spans_of(charter, begun, max(live, launch.tickets), solvers)
        return solver_day(charter, spans, left, view.books.price_ppm)
    others = max(live, launch.tickets - tickets)
    return auditor_day(charter, tickets, others, solvers, spans_of(charter, begun, tickets + others, solvers), left)


def income_lines(income: DailyIncome, money: Currency, fees: Market) -> Iterator[str]:
    """The same in sentences, and what its gas costs now."""
    merges = f", {money.brief(income.merges)} of them for merges," if income.merges else ""
    yield (
        f"A day brings {money.brief(income.mean)} tokens{merges} and {SHARES.brief(income.shares)} shares in the mean, "
        f"between {money.brief(income.low)} and {money.brief(income.high)} tokens. Assumed are {income.assumes}."
    )
    yield (
        f"Gas of a mean day, {income.gas:,}, costs {COIN.about(income.gas * fees.price, 6)} coins at the fees of now: "
        f"{FEES.about(fees.base, 3)} gwei, and a tip of {FEES.about(fees.tip, 3)}."
    )
    yield (
        f"At the worst {money.show(income.loses_stake)} tokens of stake are lost, and up to "
        f"{money.brief(income.loses_pay)} that are not settled: a claim of its own was refuted, or it fell silent in "
        "its own game."
    )


def machine_lines(found: MachineVerdict | None) -> Iterator[str]:
    """What was measured, in sentences; nothing where nothing was."""
    if found is None:
        return
    read = found.reading
    yield (
        f"This machine, measured in {read.took_seconds:.0f} s: a step takes {read.step_seconds * 1e3:.1f} ms, a merge "
        f"{read.merge_seconds:.2f} s; the store gives {read.store_bytes_per_second / 1e6:.1f} MB/s, the node answers "
        f"in {read.node_seconds * 1e3:.0f} ms."
    )
    yield (
        f"Memory: {read.memory_needed / 2**30:.2f} GiB are needed, {read.memory_free / 2**30:.2f} free. Disk: "
        f"{read.disk_needed / 2**30:.2f} GiB over the whole run, {read.disk_free / 2**30:.2f} free."
    )
    for need in found.needs:
        word = "enough" if need.fits else "TOO SLOW"
        yield f"{need.what.capitalize()} takes {need.seconds:.1f} s of a window of {need.window:.0f} s: {word}."
