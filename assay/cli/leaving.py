"""What an actor says of what it has locked: while it leaves, when it is stopped, and when everything is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from assay.amounts import SHARES, Currency
from assay.cli.common import talk
from assay.durations import duration
from assay.planning.outlook import away_words
from assay.protocol.errors import ConfigError, UnavailableError
from assay.status.account import withdraw_at
from assay.status.locks import LockEnd, OwnLock, still_locked, when
from assay_ledger.agents.heartbeat import EVERY_S, Activity, read_heartbeats
from assay_ledger.agents.money_keeper import is_owed
from assay_ledger.rounds.view import RunView

if TYPE_CHECKING:
    from assay.protocol.types import Address, Digest
    from assay_ledger.agents.agent import Agent
    from assay_ledger.rounds.run import Run
    from assay_ledger.store.blobs import SlotStore

ALIVE_WITHIN_S: Final = 2 * EVERY_S
"""Whoever lives renews its heartbeat within this time."""

LOOK_S: Final = 0.25

OWED: Final = (
    "no stake is locked any more (`assay ledger unstake`); waits for wages or a part of a bounty that are still to be "
    "paid. Wages are paid without this process, too; a part of a bounty has to be asked for by it."
)

LATER_S: Final = 3600
"""A time is said again if it has moved so far: it moves a little with every epoch."""


class ActorRunning(ConfigError):
    """A process of this key works in this run."""

    remedy = "Stop it (Ctrl-C), then leave with its --data-dir."


def _say(text: str) -> None:
    talk.print(text, markup=False, soft_wrap=True)


def refuse_beside_another(
    slots: SlotStore,
    run: Address,
    me: Address,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until it is sure that no process of this key is at work. Raises ActorRunning.

    Attack: a store that is dark for good keeps stakes for good. Where it does not answer nobody is waited for: two
    processes would take and give back in turn, and lose nothing.

    Attack on oneself: one process takes tickets and seats as fast as the other gives them back, or answers for it from
    another folder. A folder's journal holds off only who works in the same one.
    """
    try:
        first = read_heartbeats(slots, run, [me]).get(me)
    except UnavailableError as error:
        _say(f"{error.message} Whether another process of this key is at work cannot be seen; leaving goes on.")
        return
    end = clock() + ALIVE_WITHIN_S
    # Only a counter that grows shows a process: one that was killed leaves its last word.
    while first is not None and first.activity is not Activity.DONE and clock() < end:
        sleep(LOOK_S)
        try:
            now = read_heartbeats(slots, run, [me]).get(me)
        except UnavailableError:
            continue  # it answered before: the time that a living process has is waited for all the same
        if now is not None and now.counter > first.counter and now.activity is not Activity.DONE:
            raise ActorRunning(
                f"A {now.role} of this key is at work in this run ({now.doing or now.activity.value}): it would take "
                "again what this one gives back."
            )


class TellsWaits:
    """Says of each lock what it waits for and until when, once until it waits for something else or much longer."""

    def __init__(self, say: Callable[[str], None] = _say) -> None:
        self._say = say
        self._said: dict[Digest, LockEnd] = {}
        self._says_owed = False

    def __call__(self, view: RunView) -> None:
        new = [lock for lock in still_locked(view) if self._is_news(lock)]
        for text, _ in lines(new, view.now, view.facts.currency):
            self._say(text)
        self._said |= {lock.id: lock.end for lock in new}
        # Whoever waits for its stake alone need not wait for this process.
        waits_for_pay = not still_locked(view) and is_owed(view)
        if waits_for_pay and not self._says_owed:
            self._say(OWED)
        self._says_owed = waits_for_pay

    def _is_news(self, lock: OwnLock) -> bool:
        said = self._said.get(lock.id, LockEnd())
        return lock.end.waits_for != said.waits_for or (lock.end.earliest or 0) > (said.earliest or 0) + LATER_S


def lines(locked: Iterable[OwnLock], now: int, money: Currency) -> list[tuple[str, OwnLock]]:
    """Locks in words, those that wait for the same together; each line with the first of its locks."""
    alike: dict[LockEnd, list[OwnLock]] = {}
    for lock in locked:
        alike.setdefault(lock.end, []).append(lock)
    found = []
    for end, those in alike.items():
        what, amount = ", ".join(lock.what for lock in those), money.show(sum(lock.amount for lock in those))
        found.append((f"{what} ({amount} tokens): {end.words(now)}", those[0]))
    return found


def say_what_is_left(agent: Agent, run: Run, role: str) -> dict[str, Any]:
    """Says what the vault holds of an actor that ends, and the commands that get it out; the same as a document.

    Never raises what a node is at fault for: the actor has ended.
    """
    try:
        view, free = agent.see(), run.chain.ask(run.vault.free(agent.me))
        leaving, after = run.chain.ask(run.vault.exiting(agent.me))
    except UnavailableError as error:
        _say(f"what is locked cannot be read now: {error.message} `assay {role} leave` gets it out.")
        return {"free": None, "locked": None}
    locked = still_locked(view)
    for text, lock in lines(locked, view.now, run.currency):
        _say(f"{text}: `assay {command(lock, role)} leave`")
    if any(not (held.until or held.convicted_at) for _, held in view.tickets_of(agent.me)):
        _say(away_words(view.charter))
    # Bad luck: whose stakes are back is told that nothing is locked, and never asks for its part of a bounty.
    if all(held.convicted_at for _, held in view.tickets_of(agent.me)) and is_owed(view):
        auditor = "verifier" if role == "solver" else role
        _say(f"wages or a part of a bounty are still to be paid; a part has to be asked for: `assay {auditor} leave`")
    # Who has left, or is stopped, takes no shares when they vest, and revenue comes to shares alone that were taken.
    if grants := [grant for grant in view.state.money.vesting.values() if grant.owner == agent.me]:
        shares, last = SHARES.show(sum(grant.amount for grant in grants)), max(grant.vests_at for grant in grants)
        _say(f"{shares} shares vest, the last of them {when(last, view.now)}: `assay ledger claim`, then")
    if leaving:
        due = when(withdraw_at(after), view.now)
        _say(f"{run.currency.show(leaving)} tokens were asked out: `assay ledger withdraw`, {due}")
    if not locked and (free or not leaving):
        _say(f"nothing is locked: {paid_out_by(free, run)}")
    elif free:
        _say(f"{run.currency.show(free)} tokens are free: {paid_out_by(free, run)}")
    return {
        "free": free,
        "locked": [
            {"what": k.what, "amount": k.amount, "waits_for": k.end.waits_for, "not_before": k.end.earliest}
            for k in locked
        ],
    }


def command(lock: OwnLock, role: str) -> str:
    """The role whose command gets a lock out: tickets are a whistleblower's where one says so."""
    if lock.kind in ("seat", "seat fee"):
        return "solver"
    return "verifier" if lock.kind == "ticket" and role == "solver" else role


def paid_out_by(free: int, run: Run) -> str:
    """How stake that nothing locks gets out of the vault."""
    if not free:
        return "nothing of yours is in the run's vault"
    later = duration(run.charter.timing.exit)
    return f"`assay ledger unstake {run.currency.show(free)}`, and {later} of chain time later `assay ledger withdraw`"
