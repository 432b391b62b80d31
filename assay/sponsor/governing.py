"""Governance of a run: the usual terms, and what was proposed, as its owners and its guardian see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from assay.durations import duration
from assay.protocol.economics.governance_bounds import LEAST_PERIOD, rest_of
from assay.protocol.economics.limits import MIN_WINDOW, PPM
from assay.protocol.errors import RejectedError, UserError
from assay.protocol.rounds.decisions import Decision, ProposalState, Verb, decoded, proposal_id, proposal_name
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.governor import GRACE
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.run_charter import RunCharter, RunGovernance
from assay.protocol.types import Address, Round
from assay_ledger.bindings.governor import ProposalCreated
from assay_ledger.rounds.run import Run

DAY: Final = 86_400
NOBODY: Final = Address(bytes(20))

PAUSE: Final = 14 * DAY
"""Seconds of the longest pause by a vote."""

GUARDIAN_PAUSE: Final = 3 * DAY
GUARDIAN_PAUSES: Final = 4
QUORUM_PPM: Final = 200_000
LEAST_PRICE_PPM: Final = 500_000
AFTER_THE_END: Final = frozenset({Verb.SUNSET, Verb.LIST, Verb.SUCCESSOR})
"""What a vote still moves once a run has ended: deposits for gateways, and who follows. All else is about rounds."""

TENTH: Final = 10
"""Of the rounds, which are final before anybody proposes."""


def governed(charter: RunCharter, guardian: Address | None = None) -> RunCharter:
    """The same run with the usual governance, and a stall that no pause reaches."""
    c, t = charter.chain, charter.timing
    terms = RunGovernance(
        guardian=guardian or NOBODY,
        voting_delay=max(DAY, rest_of(c)),
        voting_period=max(3 * DAY, c.inclusion_delay + c.reorg_depth + LEAST_PERIOD),
        timelock=max(2 * DAY, t.commit + 2 * c.inclusion_delay + c.reorg_depth + MIN_WINDOW),
        longest_pause=PAUSE,
        guardian_pause=GUARDIAN_PAUSE if guardian else 0,
        guardian_pauses=GUARDIAN_PAUSES if guardian else 0,
        quorum_ppm=QUORUM_PPM,
        least_rounds=-(-charter.rounds // TENTH),
        least_price_ppm=LEAST_PRICE_PPM,
    )
    stall = t.stall + terms.longest_pause + terms.guardian_pause
    return replace(charter, timing=replace(t, stall=stall), governance=terms)


@dataclass(frozen=True, slots=True)
class ProposalMade:
    """A proposal with what the governor says of it; weights in wei of shares, times in seconds of chain time."""

    number: int
    proposer: Address
    decision: Decision
    description: str
    state: ProposalState
    snapshot: int
    deadline: int
    eta: int
    against: int
    in_favour: int
    abstained: int
    quorum: int
    """0 until the snapshot is over."""


def next_of(
    state: ProposalState, number: int, times: tuple[int, int, int], now: int, *, in_vain: bool
) -> tuple[str, int | None]:
    """What can be done about a proposal, and until when in seconds of chain time; nothing of one that has ended.

    times: its snapshot, deadline, and from when it can be carried out (0: it is not queued); in_vain: see `is_in_vain`.
    """
    (snapshot, deadline, eta), name = times, proposal_name(number)[2:14]
    match state:
        case ProposalState.PENDING | ProposalState.ACTIVE | ProposalState.SUCCEEDED | ProposalState.QUEUED if in_vain:
            return "Nothing is left to do about it: the run has ended, and no round opens that it could change.", None
        case ProposalState.PENDING:
            return f"Its vote begins then; until then its proposer may `assay govern cancel {name}`.", snapshot
        case ProposalState.ACTIVE:
            return f"Until then owners vote: `assay govern vote {name} for`, `against` or `abstain`.", deadline
        case ProposalState.SUCCEEDED:
            return f"Until then anybody may queue it, or it expires: `assay govern queue {name}`.", deadline + GRACE
        case ProposalState.QUEUED if now < eta:
            return f"From then on anybody may carry it out: `assay govern execute {name}`.", eta
        case ProposalState.QUEUED:
            return f"Until then anybody may carry it out, or it expires: `assay govern execute {name}`.", eta + GRACE
    return "", None


def check_governed(run: Run) -> None:
    """Raises RejectedError (NotGoverned) for a run whose charter names no governance."""
    if not run.charter.governance.is_named:
        raise RejectedError(
            "The charter of this run names no governance: nobody can ever pause, end or change it.",
            code="NotGoverned",
            remedy="None: a charter is fixed. `assay run post --governed` posts a run whose owners vote.",
        )


def check_admitted(decision: Decision, terms: RunGovernance) -> None:
    """Raises RejectedError (PauseOutOfBounds, PriceOutOfBounds) for what the governor carries out for no vote.

    It takes such a proposal all the same: owners would vote for days about what is refused in the end.
    """
    match decision.verb, decision.arguments:
        case Verb.PAUSE, (int(length),) if not 0 < length <= terms.longest_pause:
            raise RejectedError(
                f"No vote can {decision.words}: the charter's longest pause is {duration(terms.longest_pause)}.",
                code="PauseOutOfBounds",
                remedy=f"Propose a pause of 1 to {terms.longest_pause} seconds.",
            )
        case Verb.PRICE, (int(ppm),) if not terms.least_price_ppm <= ppm <= PPM:
            raise RejectedError(
                f"No vote can {decision.words}.",
                code="PriceOutOfBounds",
                remedy=f"Propose {terms.least_price_ppm / 10_000:g} to 100, in percent of the charter's price.",
            )


def is_in_vain(verb: Verb, phase: RunPhase) -> bool:
    """Whether a decision moves nothing any more, since it is about rounds and the run has ended."""
    return phase.has_ended and verb not in AFTER_THE_END


def check_in_time(verb: Verb, phase: RunPhase) -> None:
    """Raises RejectedError (DecisionInVain) for what moves nothing any more in a run that has ended.

    The governor takes it all the same: owners would vote for days about rounds that nobody opens.
    """
    if is_in_vain(verb, phase):
        raise RejectedError(
            f"The run is {phase.words}: no round opens any more that it could change.",
            code="DecisionInVain",
            remedy="Propose what matters after an end: sunset, delist, relist (deposits of users), or successor.",
        )


def check_new(run: Run, decision: Decision, description: str) -> int:
    """The number of a proposal that is to be made.

    Raises RejectedError (GovernorUnexpectedProposalState) where it was made before: the governor takes it once.
    """
    number = proposal_id(run.modules.governor, decision, description)
    if run.chain.ask(run.governor.proposal_snapshot(number)):
        state = run.chain.ask(run.governor.state(number)).name.lower()
        raise RejectedError(
            f"You have proposed this before, in the same words: {proposal_name(number)} is {state}.",
            code="GovernorUnexpectedProposalState",
            remedy="Say what is new about it with --why: the same decision for another reason is another proposal.",
        )
    return number


def check_state(made: ProposalMade, wanted: ProposalState, now: int) -> None:
    """Raises RejectedError (GovernorUnexpectedProposalState) with what a proposal waits for at a chain time.

    The governor's own refusal has the states by their numbers, and no time.
    """
    if made.state is wanted:
        return
    match made.state:
        case ProposalState.PENDING:
            stands = f"The vote begins in {duration(max(made.snapshot - now, 1))} of chain time."
        case ProposalState.ACTIVE:
            stands = f"The vote ends in {duration(max(made.deadline - now, 1))} of chain time."
        case ProposalState.SUCCEEDED:
            stands = "The proposal was carried; it is to be queued (`assay govern queue`)."
        case ProposalState.QUEUED:
            stands = "The proposal is queued; it is to be executed (`assay govern execute`)."
        case _:
            stands = f"The proposal is over: it is {made.state.name.lower()}."
    raise RejectedError(
        stands, code="GovernorUnexpectedProposalState", remedy="`assay govern status` says how far each proposal is."
    )


def proposals_of(run: Run) -> Iterator[ProposalMade]:
    """Every proposal of a run, the oldest first."""
    ask, governor, now = run.chain.ask, run.governor, run.chain.head().timestamp
    for found in run.chain.events(ProposalCreated.search(governor.address), run.first_block):
        event = found.event
        number = event.proposal_id
        against, in_favour, abstained = ask(governor.proposal_votes(number))
        yield ProposalMade(
            number=number,
            proposer=event.proposer,
            decision=decoded(event.calldatas[0]),
            description=event.description,
            state=ask(governor.state(number)),
            snapshot=event.vote_start,
            deadline=event.vote_end,
            eta=ask(governor.proposal_eta(number)),
            against=against,
            in_favour=in_favour,
            abstained=abstained,
            quorum=ask(governor.quorum(event.vote_start)) if now > event.vote_start else 0,
        )


def proposal_named(run: Run, name: str) -> ProposalMade:
    """The proposal whose number, in hex, begins so. Raises UserError (ProposalUnknown, ProposalAmbiguous)."""
    wanted = name.lower().removeprefix("0x")
    found = [made for made in proposals_of(run) if wanted and proposal_name(made.number)[2:].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    code = "ProposalAmbiguous" if found else "ProposalUnknown"
    said = "begin" if found else "none begins"
    raise UserError(
        f"{len(found) or 'Of the proposals'} {said} with {name!r}.",
        code=code,
        remedy="`assay govern status` lists them; name the first digits of one.",
    )


def shown_final(run: Run) -> Round:
    """The first final generation of at least the charter's number; 0 where there is none yet."""
    ask = run.chain.ask
    least, opened = run.charter.governance.least_rounds, ask(run.commitments.opened())
    for generation in map(Round, range(least, opened + 1)):
        if ask(run.generations.status_of(generation)) is GenerationStatus.FINAL:
            return generation
    return Round(0)
