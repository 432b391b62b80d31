"""Whether a run's terms are safe: what its contracts do not hold them to, and whoever stakes must know.

The run's contracts hold each term in its range. What the chain really delays and undoes, the charter only says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.common import check_money
from assay.protocol.economics.chain_profiles import CHAINS, MILDEST
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.escrow import RunPhase

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunChain
    from assay_ledger.rounds.run import Run


class UnfitTerms(RejectedError):
    """Terms by which an honest party can lose its stake."""

    remedy = "Put nothing into this run: its terms cannot change. `assay run can-join` says all that speaks against it."


class RunEnded(RejectedError):
    """A run in which nothing is trained any more."""

    remedy = "Stake in a run that goes on (`assay run list`): here it would only wait for its exit."


def check_before_staking(run: Run) -> None:
    """What is looked at before anything is staked. Raises RunEnded, UnfitTerms, UserError (TokenUnreadable).

    Who has something at stake is not held up by it, and goes on to defend it.
    """
    phase = run.chain.ask(run.escrow.phase())
    if phase.has_ended:
        raise RunEnded(f"The run is {phase.words}.")
    if phase is RunPhase.FUNDING and run.chain.ask(run.commitments.is_over()):
        raise RunEnded("Nobody opened the run while a round could begin.")
    check_money(run)
    faults = unfit_terms(run)
    if faults:
        raise UnfitTerms(f"The run's terms are not safe for who stakes: {'; '.join(faults)}.")


def unfit_terms(run: Run) -> list[str]:
    """Why an honest party could lose by terms that the run's contracts admit; empty where nobody knows better."""
    from assay.node.local import is_local

    charter, found = run.charter, list[str]()
    clocks = charter.clocks
    # Attack: a game about true work whose answer takes longer than its clock. Who did the work in C does it again in C.
    if clocks.replay < charter.timing.commit:
        found.append(
            f"a game leaves {clocks.replay} s to do again what a round has {charter.timing.commit} s for: true work is "
            "lost to a clock"
        )
    return found if is_local(run.chain) else found + _other_chain(charter.chain)


def _other_chain(said: RunChain) -> list[str]:
    """Why a public chain is none that a charter may say that it is."""
    # Attack: the terms of a local chain on a public one, where what is drawn is seen before it stands, and a clock runs
    # out while a transaction is kept out as long as anybody can.
    least = CHAINS[MILDEST]
    promised = (
        ("nothing is undone after", said.reorg_depth, least.reorg_depth),
        ("nothing is kept out for longer than", said.inclusion_delay, least.inclusion_delay),
        ("a game survives a censor of", said.least_budget, least.least_budget),
    )
    found = [
        f"its charter says that {what} {seconds} s on its chain; on any public one it takes {wanted} s at least"
        for what, seconds, wanted in promised
        if seconds < wanted
    ]
    # Attack: bonds of a wei, by which false challenges of true work cost their maker nothing but gas, and the answers
    # theirs, for nothing, until one is missed.
    return found if said.gas_price else [*found, "its charter pays nothing for the gas of a game's answers"]
