"""The books of a run as its games see them: what is claimed, by whom, and what stands behind it.

INTERVAL and UPDATE are what a seat committed (Commitments.sol), OUTER is an opened root (MergeClaims.sol), ATTESTATION
a part of a finding (Attestations.sol). A reference's `outer_root` names an accusation where its accuser challenges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import refuse
from assay.protocol.game.book import NO_CLAIM, Beneficiary, ClaimBook, ClaimView
from assay.protocol.game.state import DisputedClaim
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.run_ledger import RunLedger
from assay.protocol.rounds.terms import NEVER
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef, claim_id
from assay.protocol.types import Address, Digest, Wei

ALWAYS: Final = 2**64 - 1
"""No last second: what is not settled can be challenged."""


@dataclass(frozen=True, slots=True)
class _RunIdentity:
    """What the id of a claim binds: chain, charter and run."""

    chain_id: int
    charter: Address
    run: Digest

    def disputed(
        self, kind: ClaimKind, claimant: Address, x: Digest, y: Digest, program: Digest, steps: int, lock: Digest
    ) -> DisputedClaim:
        name = claim_id(self.chain_id, self.charter, self.run, kind, claimant, x, y)
        return DisputedClaim(name, claimant, x, y, program, steps, lock)


class ClaimBooks:
    """The three books of one run; `now` is chain time in seconds, which the verdicts are written down at."""

    def __init__(self, run: RunLedger, chain_id: int, charter: Address) -> None:
        place = _RunIdentity(chain_id, charter, run.charter.run)
        self.now = 0
        self._merges = MergeClaims(run, place, self)
        self._works = WorkClaims(run, place, self)
        self._findings = FindingClaims(run, place, self)

    def book_of(self, ref: ClaimRef) -> ClaimBook:
        """Raises KeyError for kind NONE."""
        works, merges, findings = self._works, self._merges, self._findings
        return {
            ClaimKind.INTERVAL: works,
            ClaimKind.UPDATE: works,
            ClaimKind.OUTER: merges,
            ClaimKind.ATTESTATION: findings,
        }[ref.kind]


class _Book(ClaimBook):
    """A run, and where its claims stand."""

    def __init__(self, run: RunLedger, place: _RunIdentity, books: ClaimBooks) -> None:
        self.run, self.place, self.books = run, place, books
        self.terms = run.rounds.terms
        self.attestations = run.duties.attestations

    def bounty_of(self, is_work: bool, accused: int) -> tuple[int, Beneficiary | None]:
        """Share of a lock that a conviction pays now, and whose it is; None: the winner's.

        Attack: convict oneself by a puppet when a drawn auditor has found the lie, and take its bounty.
        """
        tenures, terms = self.run.rounds.tenures.tenures, self.terms
        if is_work:
            alive = tenures[accused].accusations if accused in tenures else 0
        else:
            alive = self.attestations.against[accused]
        return (terms.drawn_bounty_ppm, self.run.bounties) if alive else (terms.third_bounty_ppm, None)


class WorkClaims(_Book):
    """What seats committed."""

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        commitments = self.run.rounds.commitments
        claim = commitments.claims.get((ref.kind, ref.round, ref.seat))
        if claim is None:
            return NO_CLAIM
        work = commitments.works[ref.round, ref.seat]
        tenure = self.run.rounds.tenures.existing(work.tenure)
        program = self.terms.update_program if ref.kind is ClaimKind.UPDATE else self.terms.step_program
        x, y, steps = claim
        accused = ref.outer_root != ZERO
        is_open = not work.settled and (accused or commitments.is_disputable(ref.round, ref.seat))
        return ClaimView(
            self.place.disputed(ref.kind, tenure.holder, x, y, program, steps, ids.tenure_lock(work.tenure)),
            commitments.rounds[ref.round].mask_at + 1,
            ALWAYS if is_open else 0,
            self.terms.seat_lock,
            tenure.convicted_at != 0,
            *self.bounty_of(True, work.tenure),
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        commitments = self.run.rounds.commitments
        if (ref.kind, ref.round, ref.seat) not in commitments.claims:
            return False
        return self.attestations.may_try(ref.outer_root, commitments.works[ref.round, ref.seat].digest, who)

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises ClaimNotFound, ClaimSettled, WrongAccusation, NotYourAccusation."""
        commitments, accused = self.run.rounds.commitments, ref.outer_root != ZERO
        commitments.check_open(ref.kind, ref.round, ref.seat, accused)
        if accused:
            digest = commitments.works[ref.round, ref.seat].digest
            self.attestations.on_tried(ref.outer_root, digest, challenger)
        commitments.on_opened(ref.round, ref.seat)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        first = self.run.rounds.commitments.on_closed(ref.round, ref.seat, convicted, self.books.now)
        if ref.outer_root != ZERO:
            self.attestations.on_judged(ref.outer_root, convicted, self.books.now)
        return first


class MergeClaims(_Book):
    """Roots that positions opened. A merge needs no draw: everybody who trains computes it."""

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        node, party, x = self._claimed(ref)
        if x is None:
            return NO_CLAIM
        generations = self.run.rounds.generations
        opening = generations.openings[node, party]
        if opening.opener:
            tenure = self.run.rounds.tenures.existing(opening.opener)
            claimant, lock, gone = tenure.holder, ids.tenure_lock(opening.opener), tenure.convicted_at != 0
        else:
            claimant, lock, gone = opening.backer, ids.back_lock(node, party), False
        return ClaimView(
            self.place.disputed(ClaimKind.OUTER, claimant, x, opening.root, self.terms.outer_program, 1, lock),
            opening.at,
            0 if opening.closed else opening.at + self.terms.challenge,
            self.terms.seat_lock,
            opening.fallen or gone,
            *self.bounty_of(True, opening.opener),
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        trains = any(t.holder == who and t.until == NEVER for t in self.run.rounds.tenures.tenures.values())
        return self._claimed(ref)[2] is not None and trains

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises ClaimNotFound, ClaimSettled."""
        node, party, x = self._claimed(ref)
        if x is None:
            raise refuse("ClaimNotFound", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        if self.run.rounds.generations.openings[node, party].closed:
            raise refuse("ClaimSettled", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        self.run.rounds.generations.on_opened(node, party)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        node, party, _ = self._claimed(ref)
        return self.run.rounds.generations.on_closed(node, party, convicted, self.books.now)

    def _claimed(self, ref: ClaimRef) -> tuple[Node, Digest, Digest | None]:
        """Node and party of an opening, and X of its merge; None: there is no such claim, or nobody prepared it."""
        generations = self.run.rounds.generations
        node = ids.node_of(ref.round + 1, ref.duty - 1) if ref.duty else Node(ref.round + 1)
        backed = ref.party != NO_ADDRESS
        party = ids.backer_party(ref.outer_root, ref.party) if backed else ids.seat_party(ref.seat)
        opening = generations.openings.get((node, party))
        if opening is None or opening.root != ref.outer_root:
            return node, party, None
        return node, party, generations.inputs.get(node)


class FindingClaims(_Book):
    """Parts of findings; `duty` of a reference is the part, `outer_root` the attestation or an accusation of it."""

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        name = self._claimed(ref)
        if name is None:
            return NO_CLAIM
        made, claim = self.attestations.attestations[name], self.attestations.claims[name, ref.duty]
        ticket = self.run.tickets.tickets.get(TicketId(made.ticket))
        if ticket is None:  # who reclaimed it answers for nothing any more
            return NO_CLAIM
        lock = ticket_lock(TicketId(made.ticket))
        program = self.terms.witness_program if ref.duty < made.keys else self.terms.update_program
        return ClaimView(
            self.place.disputed(ref.kind, ticket.owner, claim.x, claim.y, program, claim.steps, lock),
            0,
            ALWAYS if ref.outer_root != name or not self.run.over_since(made.epoch + 1) else 0,
            Wei(self.run.vault.lock_amount(lock)),
            ticket.convicted_at != 0,
            *self.bounty_of(False, made.ticket),
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        name = self._claimed(ref)
        return name is not None and self.attestations.may_try(ref.outer_root, name, who)

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises what `Attestations.on_opened` raises."""
        self.attestations.on_opened(ref.outer_root, ref.duty, challenger)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        return self.attestations.on_closed(ref.outer_root, convicted, self.books.now)

    def _claimed(self, ref: ClaimRef) -> Digest | None:
        """The attestation that a reference names, if the part was prepared."""
        name = self.attestations.named(ref.outer_root)
        made = self.attestations.attestations.get(name)
        named = made is not None and (made.round, made.seat) == (ref.round, ref.seat)
        return name if named and (name, ref.duty) in self.attestations.claims else None
