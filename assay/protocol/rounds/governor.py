"""What the owners of a run's shares decide together (contracts/run/RunGovernor.sol).

A vote reaches nothing but what `is_paused`, `is_sunset`, `price_ppm` and `delisted` answer. Time is chain time in
seconds, shares are wei of shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from assay.protocol.economics.governance_bounds import PROPOSERS, least_vested, rest_of
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import refuse
from assay.protocol.rounds.decisions import Decision, ProposalState, Verb, named_proposer, proposal_id
from assay.protocol.rounds.escrow import Escrow, RunPhase
from assay.protocol.rounds.shares import NOBODY, Shares
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address

GRACE: Final = 14 * 86_400
"""Seconds for which a decision can be queued, and once its time lock is over, executed."""


@dataclass(slots=True)
class Proposal:
    """A decision that is voted about. Weights by what the vote says: against, for, abstain."""

    proposer: Address
    decision: Decision
    snapshot: int
    """Its second must be over before anybody votes."""
    deadline: int
    """Last second of the vote."""
    weights: list[int] = field(default_factory=lambda: [0, 0, 0])
    voted: set[Address] = field(default_factory=set)
    eta: int = 0
    executed: bool = False
    cancelled: bool = False


def proposal_state(proposal: Proposal, quorum: Callable[[], int], now: int) -> ProposalState:
    """How far a proposal is. quorum: shares that must vote for or abstain, asked for once the vote is over."""
    if proposal.executed or proposal.cancelled:
        return ProposalState.EXECUTED if proposal.executed else ProposalState.CANCELLED
    if now <= proposal.deadline:
        return ProposalState.PENDING if now <= proposal.snapshot else ProposalState.ACTIVE
    against, in_favour, abstained = proposal.weights
    if in_favour + abstained < quorum() or in_favour <= against:
        return ProposalState.DEFEATED
    # Attack: a majority of long ago, carried out when nobody looks any more.
    if now > (proposal.eta or proposal.deadline) + GRACE:
        return ProposalState.EXPIRED
    return ProposalState.QUEUED if proposal.eta else ProposalState.SUCCEEDED


def quorum_of(vested: int, least: int, quorum_ppm: int) -> int:
    """Shares that must vote for or abstain: of those vested, at least of the least that governs."""
    return -(-max(vested, least) * quorum_ppm // PPM)


class Governor:
    """The books of a run's governance. Methods raise before they change anything."""

    def __init__(
        self, charter: RunCharter, place: Address, shares: Shares, escrow: Escrow, is_final: Callable[[int], bool]
    ) -> None:
        self.charter, self.terms, self.place = charter, charter.governance, place
        self.shares, self.escrow, self.is_final = shares, escrow, is_final
        self.rest, self.least_vested = rest_of(charter.chain), least_vested(charter)
        self.proposals: dict[int, Proposal] = {}
        self.guardian = self.terms.guardian
        self.pauses_left = self.terms.guardian_pauses
        self.is_mature = self.is_sunset = False
        self.paused_until = self.voted_until = 0
        """First second after the newest pause, and after the newest by a vote; 0: there was none."""
        self.price_ppm = PPM
        self.delisted: set[Address] = set()
        self.successors: list[Address] = []

    # --- without a vote

    def mature(self, generation: int) -> None:
        """Show that the charter's number of rounds is final. Raises NotMature."""
        if generation < self.terms.least_rounds or not self.is_final(generation):
            raise refuse("NotMature", generation=generation, least=self.terms.least_rounds)
        self.is_mature = True

    def guardian_pause(self, who: Address, now: int) -> None:
        """Raises NotTheGuardian, NoPausesLeft, PauseTooSoon."""
        if who != self.guardian:
            raise refuse("NotTheGuardian", caller=who)
        # Attack: a guardian that pauses for ever.
        if not self.pauses_left:
            raise refuse("NoPausesLeft")
        # Attack: pauses in a row, until the run stood still for so long that anybody can wind it down.
        self._check_rested(self.paused_until, self.rest + self.terms.guardian_pause, now)
        self.pauses_left -= 1
        self.paused_until = max(self.paused_until, now + self.terms.guardian_pause)

    # --- votes

    def propose(self, who: Address, decision: Decision, description: str, now: int) -> int:
        """The proposal's id. Raises GovernorRestrictedProposer, GovernorInsufficientProposerVotes, TooEarlyToGovern,
        GovernorUnexpectedProposalState."""
        # Attack: a proposal copied from the pool, made first and taken back.
        if named_proposer(description) not in (None, who):
            raise refuse("GovernorRestrictedProposer", proposer=who)
        votes, wanted = self.weight(who, now - 1), -(-self.least_vested // PROPOSERS)
        if votes < wanted:
            raise refuse("GovernorInsufficientProposerVotes", proposer=who, votes=votes, threshold=wanted)
        vested = self.shares.past_supply(now - 1)
        # Attack: the first owner of a few shares decides for everybody who works for the rest.
        if not self.is_mature or vested < self.least_vested:
            raise refuse("TooEarlyToGovern", vested=vested, least_vested=self.least_vested)
        number = proposal_id(self.place, decision, description)
        if number in self.proposals:
            raise refuse("GovernorUnexpectedProposalState", proposal=number)
        snapshot = now + self.terms.voting_delay
        self.proposals[number] = Proposal(who, decision, snapshot, snapshot + self.terms.voting_period)
        return number

    def cast(self, who: Address, number: int, support: int, now: int) -> int:
        """The weight of the vote. Raises GovernorNonexistentProposal, GovernorUnexpectedProposalState,
        GovernorAlreadyCastVote, GovernorInvalidVoteType."""
        proposal = self._in_state(number, ProposalState.ACTIVE, now)
        if who in proposal.voted:
            raise refuse("GovernorAlreadyCastVote", voter=who)
        if support > 2:
            raise refuse("GovernorInvalidVoteType")
        proposal.voted.add(who)
        weight = self.weight(who, proposal.snapshot)
        proposal.weights[support] += weight
        return weight

    def queue(self, number: int, now: int) -> None:
        """Raises GovernorNonexistentProposal, GovernorUnexpectedProposalState."""
        self._in_state(number, ProposalState.SUCCEEDED, now).eta = now + self.terms.timelock

    def execute(self, number: int, now: int) -> None:
        """Raises GovernorNonexistentProposal, GovernorUnexpectedProposalState, TimelockRuns, and what the decision
        raises: PauseOutOfBounds, PauseTooSoon, NotPaused, AlreadySunset, PriceOutOfBounds, RunNotFinished."""
        proposal = self._in_state(number, ProposalState.QUEUED, now)
        # Attack: a decision carried out in front of those who leave because of it.
        if now < proposal.eta:
            raise refuse("TimelockRuns", now=now, not_before=proposal.eta)
        self._carry_out(proposal.decision, now)
        proposal.executed = True

    def cancel(self, who: Address, number: int, now: int) -> None:
        """By the proposer, before the vote. Raises GovernorNonexistentProposal, GovernorUnableToCancel."""
        if self.state(number, now) is not ProposalState.PENDING or who != self.proposals[number].proposer:
            raise refuse("GovernorUnableToCancel", proposal=number, account=who)
        self.proposals[number].cancelled = True

    # --- views

    def is_paused(self, now: int) -> bool:
        """Whether no round opens now, by a pause."""
        return now < self.paused_until

    def weight(self, who: Address, snapshot: int) -> int:
        """What an account votes with: the smaller of what it had at the snapshot and one voting delay earlier."""
        # Attack: shares borrowed for a block, or moved from account to account while a vote is on.
        earlier = self.shares.past_votes(who, snapshot - self.terms.voting_delay)
        return min(self.shares.past_votes(who, snapshot), earlier)

    def quorum(self, snapshot: int) -> int:
        """Shares that must vote for or abstain."""
        return quorum_of(self.shares.past_supply(snapshot), self.least_vested, self.terms.quorum_ppm)

    def state(self, number: int, now: int) -> ProposalState:
        """Raises GovernorNonexistentProposal."""
        if (proposal := self.proposals.get(number)) is None:
            raise refuse("GovernorNonexistentProposal", proposal=number)
        return proposal_state(proposal, lambda: self.quorum(proposal.snapshot), now)

    # --- inside

    def _in_state(self, number: int, wanted: ProposalState, now: int) -> Proposal:
        if (found := self.state(number, now)) is not wanted:
            raise refuse("GovernorUnexpectedProposalState", proposal=number, state=found)
        return self.proposals[number]

    def _carry_out(self, decision: Decision, now: int) -> None:
        verb, arguments = decision.verb, decision.arguments
        if verb is Verb.PAUSE:
            length = int(arguments[0])
            if not 0 < length <= self.terms.longest_pause:
                raise refuse("PauseOutOfBounds", length=length, most=self.terms.longest_pause)
            self._check_rested(self.voted_until, self.rest, now)
            self.voted_until = now + length
            self.paused_until = max(self.paused_until, self.voted_until)
        elif verb is Verb.RESUME:
            if not self.is_paused(now):
                raise refuse("NotPaused")
            self.paused_until, self.voted_until = now, min(self.voted_until, now)
        elif verb is Verb.SUNSET:
            if self.is_sunset:
                raise refuse("AlreadySunset")
            self.is_sunset = True
        elif verb is Verb.PRICE:
            ppm = int(arguments[0])
            # Attack: pay above the price that stakes follow from; or work for nothing where pay was promised.
            if not self.terms.least_price_ppm <= ppm <= PPM:
                raise refuse("PriceOutOfBounds", ppm=ppm, least=self.terms.least_price_ppm, most=PPM)
            self.price_ppm = ppm
        elif verb is Verb.LIST:
            gateway, is_delisted = arguments
            (self.delisted.add if is_delisted else self.delisted.discard)(gateway)  # type: ignore[arg-type]
        elif verb is Verb.DISMISS:
            self.guardian = NOBODY
        else:
            # Attack: owners of few early shares who send a run's people elsewhere while it trains.
            if self.escrow.phase < RunPhase.WOUND_DOWN:
                raise refuse("RunNotFinished")
            self.successors.append(arguments[0])  # type: ignore[arg-type]

    def _check_rested(self, until: int, wait: int, now: int) -> None:
        if until and now < until + wait:
            raise refuse("PauseTooSoon", now=now, not_before=until + wait)
