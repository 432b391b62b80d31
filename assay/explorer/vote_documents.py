"""Decisions of a run's owners, and votes about them, as JSON documents. Units as in `documents`."""

from __future__ import annotations

from typing import Final

from assay.explorer.documents import Document, hexed, said, wei
from assay.explorer.reader import RunReader
from assay.explorer.votes import NOBODY, ShownProposal, ShownVote
from assay.protocol.rounds.decisions import VOTED, ProposalState, proposal_name
from assay.sponsor.governing import is_in_vain, next_of

MOST_PROPOSALS: Final = 100
"""Of the document of governance, the newest; the list has all."""

OPEN: Final = (ProposalState.PENDING, ProposalState.ACTIVE, ProposalState.SUCCEEDED, ProposalState.QUEUED)
"""Of what may still be decided."""


def governance_document(reader: RunReader) -> Document:
    """What was decided and what is voted about; of a run whose charter names no governance that alone."""
    votes, now, terms = reader.votes, reader.state.head.timestamp, reader.run.charter.governance
    document: Document = {"governed": terms.is_named, "now": now}
    if not terms.is_named:
        return document
    made = votes.made
    return document | {
        "paused_until": votes.paused_until if now < votes.paused_until else None,
        "paused_by": ("guardian" if votes.is_guarded else "vote") if now < votes.paused_until else None,
        "sunset": votes.is_sunset,
        "price_ppm": votes.price_ppm,
        "guardian": None if votes.guardian == NOBODY else hexed(votes.guardian),
        "guardian_pauses_left": votes.pauses_left,
        "delisted": [hexed(gateway) for gateway in votes.delisted],
        "successors": [hexed(charter) for charter in votes.successors],
        "mature": votes.is_mature,
        "vested": wei(votes.vested),
        "least_vested": wei(votes.least_vested),
        "terms": {
            "voting_delay": terms.voting_delay,
            "voting_period": terms.voting_period,
            "timelock": terms.timelock,
            "longest_pause": terms.longest_pause,
            "quorum_ppm": terms.quorum_ppm,
            "least_rounds": terms.least_rounds,
            "least_price_ppm": terms.least_price_ppm,
        },
        "open": sum(votes.state(proposal, now) in OPEN for proposal in made),
        "proposals": [proposal_document(reader, proposal) for proposal in made[-MOST_PROPOSALS:][::-1]],
        "more": max(0, len(made) - MOST_PROPOSALS),
    }


def proposal_document(reader: RunReader, proposal: ShownProposal) -> Document:
    """One proposal without its votes. `quorum`: null until it is known; `next`: what can be done about it, `until` a
    time, null where it has ended."""
    made, now = proposal.made, reader.state.head.timestamp
    state = reader.votes.state(proposal, now)
    in_vain = is_in_vain(made.decision.verb, reader.state.money.phase)
    times = made.snapshot, made.deadline, made.eta
    text, until = next_of(state, proposal.number, times, now, in_vain=in_vain)
    against, in_favour, abstained = made.weights
    return {
        "proposal": proposal_name(proposal.number),
        "decision": made.decision.words,
        "verb": made.decision.verb.name.lower(),
        "proposer": hexed(made.proposer),
        "why": said(proposal.why),
        "state": state.name.lower(),
        "next": text or None,
        "until": until,
        "proposed_at": proposal.time,
        "snapshot": made.snapshot,
        "deadline": made.deadline,
        "eta": made.eta or None,
        "ended_at": proposal.ended or None,
        "for": wei(in_favour),
        "against": wei(against),
        "abstained": wei(abstained),
        "quorum": wei(reader.votes.quorum(made.snapshot)) if now > made.snapshot else None,
        "voters": len(made.voted),
    }


def vote_document(vote: ShownVote) -> Document:
    """One vote."""
    return {
        "proposal": proposal_name(vote.number),
        "voter": hexed(vote.voter),
        "vote": VOTED[vote.support],
        "weight": wei(vote.weight),
        "reason": said(vote.reason),
        "time": vote.time,
    }
