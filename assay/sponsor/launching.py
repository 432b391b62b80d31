"""What a sponsor does after posting: fill the escrow, and open the run once enough take part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.durations import duration
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Round, Wei

if TYPE_CHECKING:
    from web3.types import TxReceipt

    from assay_ledger.bindings.token import TokenContract
    from assay_ledger.chain.client import Chain
    from assay_ledger.chain.transaction_signer import TransactionSigner
    from assay_ledger.contract import Call
    from assay_ledger.rounds.run import Run


NOTHING: Final = Wei(0)


@dataclass(frozen=True, slots=True)
class LaunchLacks:
    """What a run still lacks before its first round can open with all that its charter asks for."""

    tickets: int
    """Tickets that count; one counts after the charter's seasoning."""
    seats: int
    escrow: int
    """Wei for the first round of every seat that is held."""

    def __bool__(self) -> bool:
        return any((self.tickets, self.seats, self.escrow))


def escrow_of(charter: RunCharter) -> Wei:
    """What every round of a run with all its seats sets aside, in wei: with it no round waits for another's."""
    return Wei(charter.rounds * cost_of(charter, charter.training.seats))


def stake_of(charter: RunCharter, *, seats: int = 0, tickets: int = 0) -> Wei:
    """What an actor locks for so many seats, with their fees, and tickets, in wei."""
    e = charter.economics
    return Wei(seats * (e.seat_lock + e.seat_fee) + tickets * e.ticket_bond)


def free_for(run: Run, who: Address, amount: Wei) -> Wei:
    """How much of an amount an account has as free stake in the run's vault, in wei: for one, what a payment left there
    that was broken off between its deposit and the escrow."""
    return Wei(min(amount, run.chain.ask(run.vault.free(who))))


def fund_calls(run: Run, amount: Wei, free: Wei = NOTHING) -> list[Call]:
    """What puts an amount into the run's escrow, in this order: `free` of it is free stake of whoever sends them, the
    rest are tokens that it holds."""
    lacks = Wei(amount - free)
    # The exact amount is approved, never more: a stolen allowance is worth nothing.
    brought = [run.token.approve(run.vault.address, lacks), run.vault.deposit(lacks)] if lacks else []
    return [*brought, run.escrow.fund(amount)]


def deposit(chain: Chain, account: TransactionSigner, run: Run, amount: Wei, *, seen: int | None = None) -> TxReceipt:
    """Puts tokens that an account holds into the run's vault; the deposit's receipt. Raises RejectedError.

    seen: the block that the amount follows from; deposited only while the account has done nothing since
    (UnavailableError, AccountMoved), whoever else has its key.
    """
    # The exact amount is approved, never more: a stolen allowance is worth nothing.
    approved = chain.send(account, run.token.approve(run.vault.address, amount), seen=seen)
    return chain.send(account, run.vault.deposit(amount), seen=None if seen is None else int(approved["blockNumber"]))


def mint_tokens(chain: Chain, account: TransactionSigner, token: TokenContract, who: Address, amount: Wei) -> TxReceipt:
    """Makes test tokens for somebody, in as many parts as the token makes at a time; the last part's receipt.

    Raises RejectedError.
    """
    most = Wei(chain.ask(token.max_mint()))
    while amount > most:
        chain.send(account, token.mint(who, most))
        amount = Wei(amount - most)
    return chain.send(account, token.mint(who, amount))


def fund_run(chain: Chain, account: TransactionSigner, run: Run, amount: Wei, free: Wei = NOTHING) -> None:
    """Puts an amount into the run's escrow, `free` of it from the account's free stake, the rest from tokens that it
    holds. Raises RejectedError (WrongPhase once the run has ended)."""
    *calls, last = fund_calls(run, amount, free)
    for call in calls:
        chain.send(account, call)
    try:
        chain.send(account, last)
    except RejectedError as error:
        if error.code != "WrongPhase":
            raise
        raise RejectedError(
            f"The run ended before the tokens came into its escrow: {run.currency.both(amount)} are free stake of "
            f"{account.address} in the run's vault.",
            code="WrongPhase",
            remedy=f"`assay ledger unstake {run.currency.show(amount)}` asks for them back, and `assay ledger "
            f"withdraw` pays them out {duration(run.charter.timing.exit)} of chain time later.",
        ) from error


def refund_all(chain: Chain, account: TransactionSigner, run: Run) -> None:
    """Takes back what is left of every payment into the escrow of a run that has ended; one call gives one back.

    Anybody may send it for anybody, so that all may be back before. Raises RejectedError (WrongPhase; NothingToRefund
    to who never paid anything in).
    """
    from assay_ledger.bindings.escrow import Funded
    from assay_ledger.chain.client import address_of

    funder = address_of(account)
    try:
        chain.send(account, run.escrow.refund(funder))
        while chain.ask(run.escrow.funded_of(funder)):
            chain.send(account, run.escrow.refund(funder))
    except RejectedError as error:
        paid_in = Funded.search(run.escrow.address, funder=funder)
        if error.code != "NothingToRefund" or not chain.events(paid_in, run.first_block):
            raise


def launch_lacks(run: Run) -> LaunchLacks:
    """What the first round waits for at the newest block; nothing once a run can be launched."""
    ask, launch = run.chain.ask, run.charter.launch
    tickets, seated = ask(run.tickets.count_at(run.chain.head().timestamp)), ask(run.tenures.seated_at(Round(0)))
    seats = max(launch.seats - seated, 0)
    missing = cost_of(run.charter, max(seated, launch.seats)) - ask(run.escrow.balance())
    return LaunchLacks(max(launch.tickets - tickets, 0), seats, max(missing, 0))


def launch_run(chain: Chain, sponsor: TransactionSigner, run: Run) -> None:
    """Opens round 0, as its sponsor. Raises RejectedError (WrongPhase, Paused)."""
    chain.send(sponsor, run.escrow.launch())
