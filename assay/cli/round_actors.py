"""Actors of the second round as processes: how they are made, and what they say that they do and earn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.amounts import parse_amount, tokens
from assay.cli.common import talk
from assay.demo.lines import RunLines, parties
from assay.protocol.errors import FundsError
from assay.sponsor.round_launching import deposit, stake_of
from assay_ledger.chain.client import address_of
from assay_ledger.contract import Event, Logged
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import RoundRun

if TYPE_CHECKING:
    from assay_ledger.agents.loop import RunStore
    from assay_ledger.agents.round_agent import RoundAgent

MakeRoundAgent = Callable[..., "RoundAgent"]
"""An actor's class, with the options of its role."""


def load_solver(cheat: str) -> MakeRoundAgent:
    """A solver's class. Loading it takes seconds. Raises UsageError (UnknownCheat)."""
    from functools import partial

    if cheat != "none":
        from assay_solver.round_cheats import CheatingRoundSolver, round_cheat_named

        return partial(CheatingRoundSolver, cheat=round_cheat_named(cheat))
    from assay_solver.round_agent import RoundSolver

    return RoundSolver


def load_auditor(cheat: str, tickets: int, *, reports: bool) -> MakeRoundAgent:
    """An auditor's class. Raises UsageError (UnknownCheat)."""
    from functools import partial

    if cheat != "none":
        from assay_verifier.round_cheats import audit_cheat_named
        from assay_whistleblower.cheating import CheatingAuditor

        return partial(CheatingAuditor, cheat=audit_cheat_named(cheat), tickets=tickets, reports=reports)
    from assay_whistleblower.round_agent import AuditorAgent

    return partial(AuditorAgent, tickets=tickets, reports=reports)


def put_in(run: RoundRun, keys: ActorKeys, amount: str | None, *, seats: int = 0, tickets: int = 0) -> None:
    """Deposits what was asked for, and says what is missing. Raises FundsError (TokensShort)."""
    if amount is not None:
        wei, held = parse_amount(amount), run.chain.ask(run.token.balance_of(keys.address))
        if held < wei:
            raise FundsError(
                f"{keys.account.address} holds {tokens(held)} tokens, {tokens(wei)} are to be deposited.",
                code="TokensShort",
                remedy="Deposit less, or get tokens first (`assay ledger faucet` on a demo).",
            )
        deposit(run.chain, keys.account, run, wei)
        talk.print(f"deposited {tokens(wei)} tokens")
    free, needed = run.chain.ask(run.vault.free(keys.address)), stake_of(run.charter, seats=seats, tickets=tickets)
    talk.print(f"free stake {tokens(free)} tokens; {_what(seats, tickets)} locks {tokens(needed)}")


def make(kind: MakeRoundAgent, run: RoundRun, keys: ActorKeys, store: RunStore, folder: Path) -> RoundAgent:
    """The actor, which tells on stderr what concerns it from now on."""
    _tell_refusals()
    me, since = address_of(keys.account), run.chain.head().number
    lines = RunLines({me: keys.name})
    made: list[RoundAgent] = []

    def tell(_contract: str, found: Logged[Event]) -> None:
        state = made[0].state
        if found.block > since and me in parties(found.event, state):
            text = lines.line(found.event, state)
            if text is not None:
                talk.print(text, markup=False, soft_wrap=True)

    options: dict[str, Any] = {"listeners": [tell]}
    made.append(kind(run, keys, store, folder, **options))
    return made[0]


def _what(seats: int, tickets: int) -> str:
    return "a seat" if seats else "a ticket" if tickets == 1 else f"{tickets} tickets"


class _Refusals(logging.Handler):
    """Prints what the chain or a store refused."""

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        talk.print(record.getMessage(), markup=False, soft_wrap=True)


def _tell_refusals() -> None:
    log = logging.getLogger("assay.agent")
    log.setLevel(logging.INFO)
    if not log.handlers:
        log.addHandler(_Refusals())
        log.propagate = False
