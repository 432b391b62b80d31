"""What the owners of a run's shares decided, and what they vote about: folded from the governor's events.

Weights are wei of shares, times seconds of chain time. The state of a proposal is what the model of the governor says
of these books at a time, so nobody has to be asked.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from assay.protocol.economics.governance_bounds import least_vested
from assay.protocol.economics.limits import PPM
from assay.protocol.rounds.decisions import VOTED, ProposalState, decoded, reason_of
from assay.protocol.rounds.governor import Proposal, proposal_state, quorum_of
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address
from assay_ledger.bindings import governor, shares
from assay_ledger.contract import Event

NOBODY = Address(bytes(20))


@dataclass(frozen=True, slots=True)
class ShownVote:
    """A vote that was cast. support: a place in VOTED."""

    number: int
    voter: Address
    support: int
    weight: int
    reason: str
    time: int


@dataclass(slots=True)
class ShownProposal:
    """A proposal, its votes in order, and when it came to be executed or taken back; 0: not yet."""

    number: int
    made: Proposal
    why: str
    time: int
    votes: list[ShownVote] = field(default_factory=list)
    ended: int = 0


class RunVotes:
    """Books of one run's governor. `on_event` is told every event of the run in order."""

    def __init__(self, charter: RunCharter) -> None:
        self.terms, self.least_vested = charter.governance, least_vested(charter)
        self.proposals: dict[int, ShownProposal] = {}
        """By number, in the order in which they were made."""
        self.made: list[ShownProposal] = []
        """The same as a list."""
        self.votes: list[ShownVote] = []
        """All of them, in the order in which they were cast."""
        self.guardian, self.pauses_left = self.terms.guardian, self.terms.guardian_pauses
        self.price_ppm = PPM
        self.is_mature = self.is_sunset = False
        self.paused_until = 0
        self.is_guarded = False
        """Whether the newest pause is the guardian's."""
        self.delisted: dict[Address, None] = {}
        self.successors: list[Address] = []
        self._vested_at: list[int] = []
        self._vested: list[int] = []

    @property
    def vested(self) -> int:
        """Shares that there are."""
        return self._vested[-1] if self._vested else 0

    def quorum(self, snapshot: int) -> int:
        """Shares that must vote for or abstain; known once the snapshot's second is over."""
        at = bisect_right(self._vested_at, snapshot)
        vested = self._vested[at - 1] if at else 0
        return quorum_of(vested, self.least_vested, self.terms.quorum_ppm)

    def state(self, proposal: ShownProposal, now: int) -> ProposalState:
        """How far a proposal is."""
        return proposal_state(proposal.made, lambda: self.quorum(proposal.made.snapshot), now)

    def on_event(self, event: Event, time: int) -> None:
        """Books one event of a block at this chain time. Raises LookupError for one of a proposal nobody made."""
        match event:
            case shares.Transfer(from_=source, to=to, value=value) if NOBODY in (source, to):
                self._vested_at.append(time)
                self._vested.append(self.vested + (value if source == NOBODY else -value))
            case governor.ProposalCreated():
                made = Proposal(event.proposer, decoded(event.calldatas[0]), event.vote_start, event.vote_end)
                shown = ShownProposal(event.proposal_id, made, reason_of(event.description), time)
                self.proposals[event.proposal_id] = shown
                self.made.append(shown)
            case governor.VoteCast() | governor.VoteCastWithParams():
                self._voted(event, time)
            case governor.ProposalQueued():
                self.proposals[event.proposal_id].made.eta = event.eta_seconds
            case governor.ProposalExecuted():
                self.proposals[event.proposal_id].made.executed = True
                self.proposals[event.proposal_id].ended = time
            case governor.ProposalCanceled():
                self.proposals[event.proposal_id].made.cancelled = True
                self.proposals[event.proposal_id].ended = time
            case _:
                self._decided(event, time)

    def _voted(self, event: governor.VoteCast | governor.VoteCastWithParams, time: int) -> None:
        proposal = self.proposals[event.proposal_id]
        vote = ShownVote(event.proposal_id, event.voter, event.support, event.weight, event.reason, time)
        assert event.support < len(VOTED)  # the governor takes no other
        proposal.made.weights[event.support] += event.weight
        proposal.made.voted.add(event.voter)
        proposal.votes.append(vote)
        self.votes.append(vote)

    def _decided(self, event: Event, time: int) -> None:
        match event:
            case governor.RoundsPaused():
                # One within another changes nothing but how many are left.
                if event.until > self.paused_until:
                    self.paused_until, self.is_guarded = event.until, event.by_guardian
                self.pauses_left -= event.by_guardian
            case governor.RoundsResumed():
                self.paused_until = time
            case governor.SunsetDecided():
                self.is_sunset = True
            case governor.PriceChanged():
                self.price_ppm = event.ppm
            case governor.GatewayListed():
                self.delisted.pop(event.gateway, None)
                if event.is_delisted:
                    self.delisted[event.gateway] = None
            case governor.GuardianDismissed():
                self.guardian = NOBODY
            case governor.Matured():
                self.is_mature = True
            case governor.SuccessorNamed():
                self.successors.append(event.charter)
