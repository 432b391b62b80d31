"""Actors as processes: how they are made, what they bring, and what they say that they do, earn and are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.amounts import is_in_wei
from assay.cli.common import talk
from assay.cli.live_role import LiveRole
from assay.cli.noted_decimals import noted_decimals
from assay.cli.seeing import EVENTS_FILE
from assay.cli.terms_checks import check_before_staking
from assay.demo.lines import RunLines, parties
from assay.protocol.errors import AssayError, ConfigError, FundsError, RejectedError, UnavailableError
from assay.protocol.types import Round, Seat, Wei
from assay.sponsor.launching import deposit, stake_of
from assay.sponsor.vault_stakes import VaultStake, stake_in_vault, with_unlisted
from assay.sponsor.work_losses import WorkLosses
from assay_ledger.agents.waiting import IN_VAIN, waits
from assay_ledger.bindings import commitments, escrow, generations, payments
from assay_ledger.chain.client import address_of
from assay_ledger.contract import Event, Logged
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.nodes import opener_of
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView

if TYPE_CHECKING:
    from assay_ledger.agents.agent import Agent
    from assay_ledger.agents.journal import Journal
    from assay_ledger.agents.loop import RunStore
    from assay_ledger.index.computing import Compute
    from assay_ledger.store.blobs import BlobStore

OF_ALL: Final = (
    *(commitments.RoundBegan, generations.Merged, generations.Finalized, generations.Cut, escrow.PhaseChanged),
)
"""Events that concern everybody who takes part."""

TRIES: Final = 3
"""To bring what is missing, while other processes of the key send something between each look and its deposit."""

MakeAgent = Callable[..., "Agent"]
"""An actor's class, with the options of its role."""


class StoreForeign(ConfigError):
    """The store has nothing of the run: an actor could take no part, and what it publishes would reach nobody."""

    remedy = "Name the run's store (--store, ASSAY_STORE); a folder is looked for from where the command is typed."


def load_solver(cheat: str, *, again: bool = False) -> MakeAgent:
    """A solver's class; see `assay_solver.seats`. Loading it takes seconds. Raises UsageError (UnknownCheat)."""
    from functools import partial

    if cheat != "none":
        from assay_solver.cheats import CheatingSolver, solver_cheat_named

        return partial(CheatingSolver, cheat=solver_cheat_named(cheat), again=again)
    from assay_solver.agent import Solver

    return partial(Solver, again=again)


def load_auditor(cheat: str, tickets: int, *, reports: bool) -> MakeAgent:
    """An auditor's class. Raises UsageError (UnknownCheat)."""
    from functools import partial

    if cheat != "none":
        from assay_verifier.cheats import audit_cheat_named
        from assay_whistleblower.cheating import CheatingAuditor

        return partial(CheatingAuditor, cheat=audit_cheat_named(cheat), tickets=tickets, reports=reports)
    from assay_whistleblower.agent import AuditorAgent

    return partial(AuditorAgent, tickets=tickets, reports=reports)


def check_store(run: Run, keys: ActorKeys, store: BlobStore) -> None:
    """Raises StoreForeign where the store answers and has no program of the run, and nothing is at stake yet.

    Whoever stakes first has stake that waits for its exit, in front of a folder that a slip of the finger made. A store
    that is away, or one that lost what it had, keeps nobody from what is at stake.
    """
    name = f"programs/{run.charter.step.root.hex()}"
    with suppress(UnavailableError):
        if next(store.candidates(name), None) is not None:
            return
        if not stake_in_vault(run, keys.address).total and not run.chain.ask(run.escrow.phase()).has_ended:
            raise StoreForeign(f"The store at {store.location} holds no program of this run.")


def use_cpu_where_gpu_is_gone(run: Run, keys: ActorKeys) -> bool:
    """Whoever has something locked answers for it by the CPU, where the GPU that it asks for is usable no more.

    Bad luck: a GPU fell off its bus, and the service that started again was refused until somebody came: its games
    were lost by silence. Returns whether it does. Raises ConfigError (NoDevice) where nothing is locked.
    """
    from assay.engine.runtime.devices import Device, ask_for
    from assay.engine.runtime.executor import usual_variant

    try:
        usual_variant()
    except ConfigError as error:
        if not stake_in_vault(run, keys.address).locked:
            raise
        ask_for(Device.CPU)
        talk.print(
            f"{error.message} This key has something locked, so the CPU answers for it: games and audits go on, and "
            "training as far as its time reaches; no other seat or ticket is taken. Mend the GPU and start again, or "
            "leave.",
            soft_wrap=True,
            markup=False,
        )
        return True
    return False


def bring(run: Run, keys: ActorKeys, folder: Path, amount: str | None, *, seats: int = 0, tickets: int = 0) -> None:
    """Deposits what is missing of `amount` tokens in the vault, locked ones counted, and says what the role locks.

    An actor is started many times and brings its stake once, and none where the run has ended: a service that is
    started again would put in what its owner took out. Who has something at stake goes on with it, whatever its wallet
    lacks: a fine must not end in a second one, for silence. `folder` is its own. Raises FundsError (TokensShort),
    UserError (TokenUnreadable), UnfitTerms where it has nothing at stake yet.
    """
    phase = run.chain.ask(run.escrow.phase())
    if phase.has_ended:
        talk.print(f"deposits nothing: the run is {phase.words}")
        bring_nothing(run, keys, folder)
        return
    e, seen, money = run.charter.economics, run.chain.head().number, run.currency
    has = stake_in_vault(run, keys.address)
    if not has.total:
        check_before_staking(run)
    wanted = None if amount is None else _typed(run, folder, amount, has)
    if wanted is not None:
        has = _fill_up(run, keys, amount or "", wanted, has, seen)
    needed = stake_of(run.charter, seats=seats, tickets=tickets)
    game = e.challenge_bond + e.challenge_deposit
    verb = "locks" if seats + tickets == 1 else "lock"
    talk.print(
        f"in the vault: {money.show(has.free)} tokens free, {money.show(has.locked)} locked; {_what(seats, tickets)} "
        f"{verb} {money.show(needed)}, a challenge {money.show(game)} while it lasts"
    )
    # What an old seat still locks is not free for the next one: a solver says itself what that lacks.
    if has.total < needed and not (seats and has.locked):
        short = money.show(needed - has.total)
        talk.print(
            f"{short} tokens are missing: it waits until they are there "
            f"(`assay ledger stake {short}`, or --deposit {money.show(needed)} at the next start)"
        )


def _fill_up(run: Run, keys: ActorKeys, amount: str, wanted: Wei, has: VaultStake, seen: int) -> VaultStake:
    """Deposits what is missing of what was typed, `amount`; what there is then. Who has something at stake goes on,
    whatever becomes of it. `seen`: a block in which `has` was there.

    Raises FundsError (TokensShort, GasShort), RejectedError, UnavailableError where it has nothing at stake yet.
    """
    for left in reversed(range(TRIES)):
        try:
            return _filled_up(run, keys, amount, wanted, has, seen)
        except AssayError as error:
            # Attack on oneself: two processes of one key that both see that all is missing bring it twice.
            if error.code == "AccountMoved" and left:
                seen, has = run.chain.head().number, stake_in_vault(run, keys.address)
                continue
            # Attack: a token that is paused, coins that ran out, or a deposit behind a transaction that is stuck keep
            # an actor from its game, which is lost meanwhile.
            if not has.total:
                raise
            talk.print(f"deposits nothing and goes on with what is there: {error.message}", markup=False)
            break
    return has


def _filled_up(run: Run, keys: ActorKeys, amount: str, wanted: Wei, has: VaultStake, seen: int) -> VaultStake:
    missing, money = max(0, wanted - has.total), run.currency
    held = run.chain.ask(run.token.balance_of(keys.address)) if missing else 0
    if has.total and 0 < missing <= held:
        found = with_unlisted(run, keys.address, has)
        if found is None:
            talk.print(
                "deposits nothing: the node does not find the events of all locks that the contracts name, and without "
                "them nobody knows what else is in the run's vault"
            )
            return has
        has, missing = found, max(0, wanted - found.total)
    if not missing:
        talk.print(f"deposits nothing: {money.show(has.total)} of {amount} tokens are in the run's vault already")
        return has
    if held < missing:
        raise FundsError(
            f"{keys.account.address} holds {money.show(held)} tokens; {money.show(missing)} are missing from the "
            f"{amount} that the vault shall hold.",
            code="TokensShort",
            remedy="Deposit less, or get tokens first (`assay node fund` on a local chain).",
        )
    talk.print(f"deposits {money.both(missing)} into the run's vault")
    deposit(run.chain, keys.account, run, Wei(missing), seen=seen)
    return replace(has, free=run.chain.ask(run.vault.free(keys.address)))


def _typed(run: Run, folder: Path, amount: str, has: VaultStake) -> Wei | None:
    """What was typed, in the smallest unit; None where that cannot be said any more, and something is at stake.

    An actor that defends a stake is held up by nothing that its token says of itself.

    Raises UsageError (AmountInvalid), RejectedError (TokenChanged).
    """
    money = run.currency
    if is_in_wei(amount):
        return money.parse(amount)
    first = money.decimals if money.decimals is None else noted_decimals(folder, run.charter.token, money.decimals)
    if first is not None and first == money.decimals:
        return money.parse(amount)
    text = f"The run's token says {money.decimals} decimals, and said {first} when this actor began."
    if money.decimals is None:
        text = "The run's token says no decimals any more."
    error = RejectedError(
        text, code="TokenChanged", remedy="Give --deposit in its smallest unit, as --json shows amounts: 12500000wei."
    )
    if not has.total:
        raise error
    talk.print(f"deposits nothing: {error.explain()}", markup=False)
    return None


def bring_nothing(run: Run, keys: ActorKeys, _folder: Path) -> None:
    """Who leaves brings nothing: says what is in the vault."""
    has, money = stake_in_vault(run, keys.address), run.currency
    talk.print(
        f"in the vault: {money.show(has.free)} tokens free, {money.show(has.locked)} locked; takes on nothing new"
    )


def make(
    kind: MakeAgent,
    run: Run,
    keys: ActorKeys,
    store: RunStore,
    folder: Path,
    relays: Sequence[str],
    compute: Compute | None = None,
    on_rest: Callable[[RunView], None] | None = None,
    index_url: str | None = None,
    journal: Journal | None = None,
) -> tuple[Agent, LiveRole]:
    """The actor, which tells on stderr what concerns it from now on, and the foot of its terminal.

    compute: what runs its programs, if not itself. on_rest: what it says where nothing is to be done; why the run
    stands still unless given. index_url: the database that keeps the run's events, if not a file in its folder.
    journal: the folder's, where whoever makes the actor holds the folder already.
    """
    from assay_solver.worker import Worker

    me, since = address_of(keys.account), run.chain.head().number
    lines = RunLines({me: keys.name}, run.currency_of, run.charter.token)
    made: list[Agent] = []

    def tell(_contract: str, found: Logged[Event]) -> None:
        state, event = made[0].state, found.event
        is_mine = me in parties(event, state)
        if isinstance(event, payments.OpeningPaid):
            opening = state.books.generations.openings[event.node, event.party]
            is_mine = opener_of(RunView(run.charter, run.facts, me, state), opening).who == me
        if is_mine:
            live.on_event(event, me)
        if found.block > since and (is_mine or isinstance(event, OF_ALL)):
            text = lines.line(event, state)
            if text is not None:
                talk.print(text, markup=False, soft_wrap=True)

    says = _Progress()

    def on_progress(doing: str, done: int, total: int) -> None:
        if says(doing, done, total):
            live.on_look(RunView(run.charter, run.facts, me, made[0].state))
        live.on_progress(doing, done, total)

    kept = index_url or f"sqlite:///{(folder / EVENTS_FILE).absolute()}"
    options: dict[str, Any] = {"listeners": [tell], "on_progress": on_progress, "relays": relays, "compute": compute}
    options |= {"index_url": kept, "told_from": since + 1, "journal": journal}
    live = LiveRole(lambda: made[0].doing if made else "", run.currency)
    made.append(kind(run, keys, store, folder, **options))
    standing = TellsStanding() if on_rest is None else on_rest

    def rest(view: RunView) -> None:
        live.on_look(view)
        standing(view)
        if isinstance(made[0], Worker) and not made[0].leaving:
            seatless(view, made[0].forgiven(view), made[0].free, lost_gpu=made[0].lost_gpu)

    seatless = TellsNoSeat()
    made[0].on_rest = rest
    if isinstance(made[0], Worker):
        made[0].on_commit = TellsLosses(WorkLosses(made[0].archive))
    return made[0], live


class TellsLosses:
    """Says what the work of each round came to, and once why nothing can be said of that."""

    def __init__(
        self,
        losses: WorkLosses,
        say: Callable[[str], None] = lambda text: talk.print(text, markup=False, soft_wrap=True),
    ) -> None:
        self._losses, self._say = losses, say
        self._refused = ""

    def __call__(self, round_: Round, seat: Seat, parameters: Sequence[bytes]) -> None:
        """Never raises what a store, a card or a program may be at fault for: the work is committed."""
        try:
            found = self._losses.after(round_, seat, parameters)
        except AssayError as error:
            if error.message != self._refused:
                self._refused = error.message
                self._say(f"no loss can be shown of round {round_}: {error.message}")
            return
        if found is not None:
            self._say(f"round {round_} ends with {found}")


class TellsStanding:
    """Says why a run stands still where only people bring it on, or why nobody trains; once until that changes."""

    def __init__(
        self, say: Callable[[str], None] = lambda text: talk.print(text, markup=False, soft_wrap=True)
    ) -> None:
        self._said: list[str] = []
        self._say = say

    def __call__(self, view: RunView) -> None:
        standing = [wait for wait in waits(view) if wait.stands and (wait.until is None or wait.code == IN_VAIN)]
        codes = [wait.code for wait in standing]
        if codes != self._said:
            self._said = codes
            for wait in standing:
                self._say(f"the run stands still: {wait.text} {wait.remedy}")


class TellsNoSeat:
    """Says why a solver takes no seat in a run that goes on, once until the reason changes."""

    def __init__(
        self, say: Callable[[str], None] = lambda text: talk.print(text, markup=False, soft_wrap=True)
    ) -> None:
        self._said = ""
        self._say = say

    def __call__(self, view: RunView, forgiven: int, free: int | None = None, *, lost_gpu: bool = False) -> None:
        from assay_solver.seats import why_no_seat

        goes_on = not (view.is_over or view.state.money.is_ended)
        takes = goes_on and view.tenure is None
        why = why_no_seat(view, forgiven, free, lost_gpu=lost_gpu) if takes else ""
        if why and why != self._said:
            self._say(f"takes no seat: {why}")
        self._said = why


def _what(seats: int, tickets: int) -> str:
    return "a seat" if seats else "a ticket" if tickets == 1 else f"{tickets} tickets"


class _Progress:
    """Says what long work it is at, once for each."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, doing: str, done: int, total: int) -> bool:
        """Whether it is something new."""
        if doing == self._said:
            return False
        self._said = doing
        talk.print(doing, markup=False, soft_wrap=True)
        return True
