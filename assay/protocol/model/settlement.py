"""Escrow, pay, wages, and shares until they vest (Settlement.sol, Vesting.sol, balances of ModelShares.sol)."""

from __future__ import annotations

from assay.protocol.economics.formulas import round_reserve, vesting_delay
from assay.protocol.model import ids
from assay.protocol.model.books import RunBooks
from assay.protocol.model.errors import refuse
from assay.protocol.model.types import Grant
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status, Wei


class Settlement:
    """The books of what is earned. Prices per unit are fixed; what is not earned stays in escrow."""

    def __init__(self, ledger: RunBooks) -> None:
        self.ledger = ledger
        self.reserved: dict[Round, int] = {}
        self.settled: set[Round] = set()
        self.settled_work: dict[Round, int] = {}
        self.settled_attesters: dict[Round, int] = {}
        self.grants: dict[Digest, Grant] = {}
        self.shares: dict[Address, int] = {}

    # --- escrow

    def fund(self, who: Address, amount: Wei) -> None:
        """Raises NotTheSponsor, AmountZero, InsufficientFree."""
        if who != self.ledger.charter.sponsor:
            raise refuse("NotTheSponsor", caller=who)
        self.ledger.vault.lock(ids.escrow_lock(), who, amount)

    def on_round_opened(self, round_: Round, seats: int) -> None:
        """Raises EscrowShort."""
        charter, members = self.ledger.charter, self.ledger.audit.members
        verifiers, whistleblowers = members[Role.VERIFIER], members[Role.WHISTLEBLOWER]
        amount = round_reserve(charter.economics, charter.training, seats, verifiers, whistleblowers)
        if self.escrow < self.reserved_total + amount:
            raise refuse("EscrowShort", escrow=self.escrow, needed=self.reserved_total + amount)
        self.reserved[round_] = amount

    def settle_round(self, round_: Round, now: int) -> None:
        """Raises AlreadySettled, RoundNotOpen, RoundNotSettleable, RoundUnsettled."""
        if round_ in self.settled:
            raise refuse("AlreadySettled", round=round_)
        t7 = self.ledger.rounds.times(round_).t7
        if now < t7:
            raise refuse("RoundNotSettleable", round=round_, not_before=t7)
        commitments = sum(r == round_ for r, _ in self.ledger.rounds.commitments)
        work = commitments - self.settled_work.get(round_, 0)
        attesters = self.ledger.audit.revealers(round_) - self.settled_attesters.get(round_, 0)
        if work or attesters:
            raise refuse("RoundUnsettled", round=round_, commitments=work, attesters=attesters)
        self.settled.add(round_)
        self.reserved[round_] = 0

    def refund(self, now: int) -> None:
        """Raises RunNotOver, LockNotFound."""
        live = len(self.reserved) - len(self.settled)
        if not self.ledger.rounds.is_over(now) or live:
            raise refuse("RunNotOver", live_rounds=live)
        self.ledger.vault.release(ids.escrow_lock())

    @property
    def escrow(self) -> int:
        """What the sponsor has put in and what is not earned, in wei."""
        return self.ledger.vault.lock_amount(ids.escrow_lock())

    @property
    def reserved_total(self) -> int:
        """What open rounds can still cost."""
        return sum(self.reserved.values())

    # --- earnings

    def settle_work(self, round_: Round, seat: Seat, now: int) -> Status:
        """Raises what `Rounds.check_close` raises, and EscrowShort."""
        economics = self.ledger.charter.economics
        final = self.ledger.rounds.check_close(round_, seat, now) is Status.FINAL
        # Excluded but true work is paid like any other; what is void or convicted is paid to no other party.
        pay = economics.price if final and economics.pays else 0
        self._check_escrow(round_, pay)
        status, solver = self.ledger.rounds.close(round_, seat, now)
        self.settled_work[round_] = self.settled_work.get(round_, 0) + 1
        self._pay_out(round_, solver, pay)
        shares = Wei(economics.shares_per_unit * economics.units if final else 0)
        self._credit(ids.work_grant(round_, seat), solver, shares, round_, for_duties=False)
        return status

    def settle_duties(self, round_: Round, attester: Address, now: int) -> int:
        """Raises what `Audit.check_close` raises, and EscrowShort."""
        economics = self.ledger.charter.economics
        duties = self.ledger.audit.check_close(round_, attester, now)
        self._check_escrow(round_, duties * economics.wage)
        self.ledger.audit.close(round_, attester, now)
        self.settled_attesters[round_] = self.settled_attesters.get(round_, 0) + 1
        self._pay_out(round_, attester, duties * economics.wage)
        shares = Wei(duties * economics.shares_per_duty)
        self._credit(ids.duties_grant(round_, attester), attester, shares, round_, for_duties=True)
        return duties

    def vests_at(self, round_: Round) -> int:
        """When shares credited for a round vest."""
        charter = self.ledger.charter
        return self.ledger.rounds.times(round_).t7 + vesting_delay(charter.windows, charter.chain.inclusion_delay)

    def release(self, grant_id: Digest, now: int) -> bool:
        """Mint a vested grant; False if a conviction cancelled it. Raises GrantNotFound, NotVested."""
        grant = self.grants.get(grant_id)
        if grant is None or grant.done:
            raise refuse("GrantNotFound", id=grant_id)
        cancelled = self._is_cancelled(grant)
        if not cancelled and now < grant.vests_at:
            raise refuse("NotVested", id=grant_id, vests_at=grant.vests_at)
        grant.done = True
        if not cancelled:
            self.shares[grant.owner] = self.shares.get(grant.owner, 0) + grant.amount
        return not cancelled

    def pending_of(self, owner: Address) -> int:
        """Shares credited and neither vested nor struck out."""
        return sum(g.amount for g in self.grants.values() if g.owner == owner and not g.done)

    def _is_cancelled(self, grant: Grant) -> bool:
        if not grant.for_duties:
            return False
        attester = self.ledger.audit.attesters[grant.owner]
        return 0 < attester.convicted_at < grant.vests_at

    def _credit(self, grant_id: Digest, owner: Address, amount: Wei, round_: Round, *, for_duties: bool) -> None:
        if amount:
            self.grants[grant_id] = Grant(owner, amount, self.vests_at(round_), for_duties)

    def _check_escrow(self, round_: Round, amount: int) -> None:
        """A payment comes from the round's reserve, and beyond it from what no other round has reserved."""
        needed = self.reserved_total - min(amount, self.reserved[round_]) + amount
        if amount and self.escrow < needed:
            raise refuse("EscrowShort", escrow=self.escrow, needed=needed)

    def _pay_out(self, round_: Round, to: Address, amount: int) -> None:
        if amount:
            self.reserved[round_] -= min(amount, self.reserved[round_])
            self.ledger.vault.seize(ids.escrow_lock(), to, Wei(amount))
