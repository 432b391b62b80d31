"""Work, findings and openings of final roots, each paid once nothing can refute it (contracts/money/Payments.sol)."""

from __future__ import annotations

from typing import Final

from assay.protocol import abi
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import refuse
from assay.protocol.rounds.attestations import Attestations
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.escrow import Escrow
from assay.protocol.rounds.grants import Grants
from assay.protocol.rounds.ids import Node, generation_of
from assay.protocol.rounds.ledger import GroupedLedger, RoundLedger
from assay.protocol.rounds.terms import GenerationStatus, Votes, WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat

EPOCHS_TO_CLAIM: Final = 5
"""Epochs after a round's own that must be over before its reserve is free: findings of it are made in its own and the
three that follow, the next one re-audits the last of them, and whoever earned wages has one more to settle."""


def work_grant(round_: Round, seat: Seat) -> Digest:
    """The name of the shares of a commitment."""
    return keccak(abi.encode(["string", "uint64", "uint32"], ["assay.work", round_, seat]))


class Payments:
    """The books of what was paid; `now` is chain time in seconds. Methods raise before they change anything."""

    def __init__(self, escrow: Escrow, rounds: RoundLedger | GroupedLedger, duties: Duties, grants: Grants) -> None:
        self.escrow, self.rounds, self.duties, self.grants = escrow, rounds, duties, grants
        self.attestations: Attestations = duties.attestations
        self.economics = escrow.charter.economics
        self.works: dict[Round, int] = {}
        self.findings: set[Digest] = set()
        self.openings: dict[Node, set[Digest]] = {}
        self.settled: set[Round] = set()

    def settle_work(self, round_: Round, seat: Seat, epoch: int, now: int) -> WorkStatus:
        """Raises RunStopped, CommitmentNotFound, AlreadySettled, StillDisputed, ParentOpen, NotAudited, EscrowShort."""
        self._check_running()
        work, status = self.rounds.commitments.check_settle(round_, seat)
        pay = shares = 0
        if status is WorkStatus.FINAL:
            # Attack: be paid before what nobody opened, or somebody missed, was drawn again.
            if not self.duties.is_audited(round_, epoch):
                raise refuse("NotAudited", round=round_, epoch=epoch)
            pay = self.escrow.work_pay_of(round_, work.units * self.economics.unit_price if self.economics.pays else 0)
            shares = work.units * self.economics.shares_per_unit
        holder = self.rounds.tenures.existing(work.tenure).holder
        if pay:
            self.escrow.pay(round_, holder, pay)
        self.rounds.commitments.settle(round_, seat)
        self.works[round_] = self.works.get(round_, 0) + 1
        if shares:
            self.grants.credit(work_grant(round_, seat), holder, shares, work.tenure, 0, now)
        return status

    def settle_duty(self, name: Digest, now: int) -> int:
        """What a finding is paid. Raises RunStopped, FindingNotFound, AlreadySettled, FindingOpen, EscrowShort."""
        self._check_running()
        made = self.attestations.attestations.get(name)
        if made is None:
            raise refuse("FindingNotFound", attestation=name)
        if name in self.findings:
            raise refuse("AlreadySettled", id=name)
        round_ = Round(made.round)
        base = self.rounds.generations.status_of(self.rounds.commitments.round_of(round_).parent)
        payee = self.attestations.tickets.payee_of(made.ticket)
        pay = shares = 0
        # Attack: invented findings about work on a hidden base, which nobody can replay, so that nobody refutes them.
        if payee is not None and base is not GenerationStatus.CUT:
            # Attack: attest falsely for nothing while the game goes on that takes the stake.
            is_open = self.attestations.against[made.ticket] or not self.attestations.window_of(name)
            if is_open or base is not GenerationStatus.FINAL:
                raise refuse("FindingOpen", attestation=name)
            pay, shares = (
                self.escrow.pay(round_, payee, self.economics.wage, is_wage=True),
                self.economics.shares_per_duty,
            )
            if shares:
                self.grants.credit(name, payee, shares, 0, made.ticket, now)
        self.findings.add(name)
        return pay

    def settle_opening(self, node: Node, party: Digest, now: int) -> int:
        """What an opening is paid. Raises RunStopped, OpeningOpen, NotPayable, AlreadySettled, EscrowShort."""
        self._check_running()
        books, generation = self.rounds.generations, generation_of(node)
        opening, votes = books.openings.get((node, party)), books.votes.get(node, Votes())
        # A sum of a group that did not count is of no final generation.
        is_final = votes.is_final and books.status_of(generation) is GenerationStatus.FINAL
        if opening is None or not opening.closed or not is_final:
            raise refuse("OpeningOpen", node=node, party=party)
        # Attack: rescue one's own root by a thousand names, and be paid for each.
        if opening.root != votes.root or not opening.opener:
            raise refuse("NotPayable", node=node, party=party)
        round_, by_seats = Round(generation - 1), self.rounds.terms.by_seats
        holder, accusations, convicted_at = self._opener_of(opening.opener)
        # Above 64 seats nodes are counted whose openings are all settled: none may be opened any more.
        may_come = not by_seats and now <= self.rounds.commitments.merge_until(round_)
        if accusations or may_come:
            raise refuse("OpeningOpen", node=node, party=party)
        paid = self.openings.setdefault(node, set())
        if party in paid:
            raise refuse("AlreadySettled", id=party)
        pay = 0 if opening.fallen or convicted_at or holder is None else self.economics.merge_pay
        if pay and holder is not None:
            self.escrow.pay(round_, holder, pay)
        paid.add(party)
        return pay

    def settle_round(self, round_: Round, epoch: int, now: int) -> None:
        """Raises RunStopped, AlreadySettled, RoundNotOpen, NotAudited, RoundUnsettled."""
        self._check_running()
        if round_ in self.settled:
            raise refuse("AlreadySettled", id=round_)
        if not self.duties.is_audited(round_, epoch):
            raise refuse("NotAudited", round=round_, epoch=epoch)
        over = bool(self.duties.over_since(epoch + EPOCHS_TO_CLAIM)) and self._are_openings_over(round_, now)
        if not over or self.works.get(round_, 0) != self.rounds.commitments.round_of(round_).committed:
            raise refuse("RoundUnsettled", round=round_)
        self.escrow.free(round_)
        self.settled.add(round_)

    # --- inside

    def _are_openings_over(self, round_: Round, now: int) -> bool:
        """Was every opening of the round's root paid that can be?"""
        books, generation = self.rounds.generations, round_ + 1
        status = books.status_of(generation)
        if status is GenerationStatus.OPEN:
            return now > self.rounds.commitments.merge_until(round_)
        if status is not GenerationStatus.FINAL:
            return status is GenerationStatus.CUT
        # Attack: a game about a true sum, kept open until the run is over, so that who opened it is never paid.
        nodes = [node for node, votes in books.votes.items() if generation_of(node) == generation and votes.is_final]
        return all(
            len(self.openings.get(node, ())) == books.nodes[node, books.votes[node].root or ZERO].openings
            for node in nodes
        )

    def _opener_of(self, opener: int) -> tuple[Address | None, int, int]:
        """Holder, accusations and conviction of whose lock stands behind an opening: a tenure, or a ticket."""
        if self.rounds.terms.by_seats:
            tenure = self.rounds.tenures.existing(opener)
            return tenure.holder, tenure.accusations, tenure.convicted_at
        return self.attestations.tickets.payee_of(TicketId(opener)), self.attestations.against[opener], 0

    def _check_running(self) -> None:
        if self.escrow.is_stopped():
            raise refuse("RunStopped")
