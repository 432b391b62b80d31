"""A governed run that goes on: rounds are trained and audited, shares credited, vested, and taken by convictions.

Every grant is booked a third time here, from what the charter promises for work and findings alone: model and contracts
that were wrong in the same way would still differ from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.protocol.digests import ZERO
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind
from assay.protocol.rounds.payments import work_grant
from assay.protocol.rounds.terms import NEVER
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.duty_rows import finding_tuple
from tests.harness.rounds.governed_money import EarningWorld
from tests.harness.rounds.governed_world import DEMOCRATIC
from tests.harness.rounds.samples import work_ref
from tests.harness.rounds.stage import text

LAST_EPOCH = 50
"""Chains of secrets have 60."""


@dataclass(slots=True)
class EarnedShares:
    """What work or a finding must have earned. `ended`: "", "vest" or "cancel"; `vests_at`: seconds of chain time."""

    owner: Address
    vests_at: int
    tenure: int
    ticket: int
    amount: int
    ended: str = ""


class GrantingWorld(EarningWorld):
    """The books of all grants beside both others'."""

    def __init__(self, charter: RunCharter = DEMOCRATIC, label: object = 0) -> None:
        super().__init__(charter, label)
        self.earned: dict[Digest, EarnedShares] = {}
        self.ended_shares: Counter[str] = Counter()
        """Shares that were credited, and how they ended, in wei."""
        self.convicted: dict[tuple[int, int], int] = {}
        """When tenures and tickets were, by (tenure, 0) and (0, ticket)."""
        self.changed: set[Digest] = set()
        """Grants that were credited or ended since they were last looked at."""

    # --- rounds

    def open_and_commit(self, people: list[Address]) -> None:
        """Anybody opens the next round, if it may open; these take seats again that they lost, and train."""
        for who in people:
            if self.model.tenures.tenures[self.tenures[who]].until != NEVER:
                self.join(who)
        if self.restart():
            return
        self.at(max(self.now, self.model.commitments.rounds[self.round].t0 + self.terms.commit))
        for who in people:
            self.commit(who)

    def named_duties(self) -> list[DrawnDuty]:
        """Here everybody answers its calls, so nothing was missed; what is settled is over."""
        works, settled = self.model.commitments.works, self.run.payments.findings
        named = [DrawnDuty(DutyKind.WORK, r, seat) for r, seat in self.works if not works[r, seat].settled]
        findings = self.run.duties.attestations.attestations
        return named + [DrawnDuty(DutyKind.REAUDIT, attestation=name) for name in findings if name not in settled]

    def audit(self, epochs: int) -> None:
        for _ in range(epochs):
            if self.epoch < LAST_EPOCH:
                self.play_epoch()

    def audit_all(self) -> None:
        """Until nothing about any work can be drawn any more."""
        newest = max(round_ for round_, _ in self.works)
        while self.epoch < LAST_EPOCH and not self.run.duties.is_audited(newest, self.own_epoch(newest)):
            self.play_epoch()

    # --- grants

    def settle_work(self, round_: int, seat: int, epoch: int) -> str:
        said = super().settle_work(round_, seat, epoch)
        if not said:
            work = self.model.commitments.works[Round(round_), Seat(seat)]
            holder = self.model.tenures.tenures[work.tenure].holder
            amount = self.works[Round(round_), Seat(seat)].units * self.charter.economics.shares_per_unit
            if (work.tenure, 0) not in self.convicted:
                self._credited(work_grant(Round(round_), Seat(seat)), holder, work.tenure, 0, amount)
        return said

    def settle_duty(self, name: Digest) -> str:
        said = super().settle_duty(name)
        if not said:
            ticket = self.run.duties.attestations.attestations[name].ticket
            owner = self.run.tickets.tickets[TicketId(ticket)].owner
            if (0, ticket) not in self.convicted:
                self._credited(name, owner, 0, ticket, self.charter.economics.shares_per_duty)
        return said

    def _credited(self, name: Digest, owner: Address, tenure: int, ticket: int, amount: int) -> None:
        # Attack: work that is credited again.
        assert name not in self.earned
        self.earned[name] = EarnedShares(owner, self.now + self.charter.timing.vesting, tenure, ticket, amount)
        self.ended_shares["credit"] += amount
        self.changed.add(name)

    def release_grant(self, name: Digest) -> str:
        grant = self.earned.get(name)
        convicted_at = self.convicted.get((grant.tenure, grant.ticket), 0) if grant else 0
        if grant is None or grant.ended:
            wanted = "GrantNotFound"
        elif 0 < convicted_at < grant.vests_at:
            wanted = "cancel"
        else:
            wanted = "vest" if self.now >= grant.vests_at else "NotVested"
        supply = self.run.grants.token.past_supply(self.now)
        said = self._earning_nothing(lambda: super(GrantingWorld, self).release_grant(name))
        assert said == ("" if wanted in ("cancel", "vest") else wanted)
        minted = self.call("ModelShares", "totalSupply") - supply
        assert minted == (grant.amount if grant and wanted == "vest" else 0)
        if grant and not said:
            grant.ended = wanted
            self.ended_shares[wanted] += grant.amount
            self.changed.add(name)
        return said

    def transfer(self, who: Address, to: Address, amount: int) -> str:
        return self._earning_nothing(lambda: super(GrantingWorld, self).transfer(who, to, amount))

    def _earning_nothing(self, call: Callable[[], str]) -> str:
        """Attack: vest late, move or split shares, and have what streamed before. In a moment nobody earns anything."""
        before = self._claimable()
        said = call()
        assert self._claimable() == before
        return said

    def _claimable(self) -> list[int]:
        return [int(self.call("Revenue", "claimable", text(self.earned_in), text(who))) for who in self.people]

    # --- convictions

    def judge(self, round_: Round, seat: Seat, convicted: bool, who: Address) -> str:
        """A game about a seat's work, from its opening to its verdict."""
        self.prepare_work(round_, seat)
        ref = work_ref(ClaimKind.INTERVAL, round_, seat)
        said = self.open_verdict(ref, who)
        if not said:
            self.end_verdict(ref, convicted, False, who)
        return said

    def judge_finding(self, name: Digest, convicted: bool, who: Address) -> str:
        """The same about the update that a finding says."""
        books = self.run.duties.attestations
        finding, made = books.findings[name], books.attestations[name]
        prepare = lambda: books.prepare(name, finding, made.keys)  # noqa: E731
        assert self.do(prepare, "Attestations", "prepare", name, finding_tuple(finding), made.keys) == ""
        ref = (int(ClaimKind.ATTESTATION), made.round, made.seat, made.keys, bytes(20), name)
        said = self.open_verdict(ref, who)
        if not said:
            self.end_verdict(ref, convicted, False, who)
        return said

    def end_verdict(self, ref: tuple[Any, ...], convicted: bool, to_pot: bool, who: Address) -> None:
        super().end_verdict(ref, convicted, to_pot, who)
        kind, round_, seat, _, _, name = ref
        if convicted and kind == ClaimKind.ATTESTATION:
            ticket = self.run.duties.attestations.attestations[name].ticket
            self.convicted.setdefault((0, ticket), self.now)
            # Nobody hears of it again.
            self.chains.pop(ticket, None)
        elif convicted:
            self.convicted.setdefault((self.model.commitments.works[round_, seat].tenure, 0), self.now)

    # --- what must be the same

    def check_grants(self, whole: bool = False) -> None:
        """Every grant that changed, or all; to the wei, what was credited is pending, vested or cancelled."""
        assert self.run.grants.grants.keys() == self.earned.keys()
        pending: Counter[Address] = Counter()
        for name, grant in self.earned.items():
            pending[grant.owner] += 0 if grant.ended else grant.amount
            if whole or name in self.changed:
                wanted = (text(grant.owner), grant.vests_at, grant.tenure, grant.ticket, grant.amount)
                assert self.call("Grants", "grantOf", name) == (*wanted, bool(grant.ended))
        self.changed.clear()
        held = {who: self.call("Grants", "pendingOf", text(who)) for who in self.people}
        assert held == {who: pending[who] for who in self.people}
        supply, ended_shares = self.call("ModelShares", "totalSupply"), self.ended_shares
        assert supply == ended_shares["vest"] == sum(self.run.grants.token.balances.values())
        assert sum(held.values()) + supply + ended_shares["cancel"] == ended_shares["credit"]
        assert self.call("Grants", "grantOf", ZERO)[0] == text(bytes(20))
