"""Events of a run as lines that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from eth_utils.address import to_checksum_address

from assay.amounts import SHARES, Currency
from assay.counts import count
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.ids import generation_of
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address
from assay_ledger.bindings import (
    attestations,
    bounties,
    commitments,
    duties,
    escrow,
    game,
    generations,
    grants,
    payments,
    revenue,
    tenures,
    tickets,
)
from assay_ledger.contract import Event
from assay_ledger.rounds.records import RunState

Names = Mapping[Address, str]
"""Names of actors by address."""

PHASES = {
    RunPhase.RUNNING: "the run is open",
    RunPhase.CANCELLED: "the run is cancelled",
    RunPhase.WOUND_DOWN: "the run stood still for too long and is wound down",
    RunPhase.OVER: "the run is over: everything is settled, and what is left in the escrow goes back",
}


class RunLines:
    """Says what happened in a run; `state` is what its events have said so far, the one in question included."""

    def __init__(self, names: Names, currency_of: Callable[[Address], Currency], token: Address) -> None:
        """`currency_of`: how amounts of the run's `token`, and of its revenue tokens, are written."""
        self._names = names
        self._currency_of, self._money = currency_of, currency_of(token)

    def who(self, address: Address) -> str:
        """An actor's name, or how its address begins."""
        return self._names.get(address, to_checksum_address(address)[:10] + "…")

    def line(self, event: Event, state: RunState) -> str | None:
        """What to say about an event; None for those that only machines need."""
        return (
            self._of_rounds(event, state)
            or self._of_audits(event, state)
            or self._of_games(event)
            or self._of_money(event, state)
        )

    def _of_rounds(self, event: Event, state: RunState) -> str | None:
        match event:
            case tenures.TenureBegan():
                return f"{self.who(event.holder)} takes seat {event.seat} from round {event.from_} on"
            case tenures.TenureEnded():
                held = state.books.tenures.tenures[event.tenure]
                how = "is convicted and loses" if event.convicted else "leaves"
                return f"{self.who(held.holder)} {how} seat {held.seat}"
            case tenures.Evicted():
                held = state.books.tenures.tenures[event.tenure]
                return f"{self.who(held.holder)} stayed away and loses seat {held.seat}"
            case commitments.RoundBegan():
                return f"round {event.round} opens on generation {event.parent}, with {count(event.seated, 'seat')}"
            case commitments.WorkCommitted():
                holder = self.who(state.books.tenures.tenures[event.tenure].holder)
                late = ", too late to count" if event.late else ""
                return f"{holder} commits {count(event.work.units, 'unit')} to round {event.round}{late}"
            case generations.Merged():
                return f"generation {event.generation} has its majority: root 0x{event.root.hex()[:8]}…"
            case generations.Finalized() if event.node < 1 << 32:
                return f"generation {event.node} is final"
            case generations.Cut():
                return f"generation {event.generation} is cut: what was trained on it does not count"
            case generations.ClaimFell() if event.node < 1 << 32:
                return f"a claim behind generation {event.node} falls"
        return None

    def _of_audits(self, event: Event, state: RunState) -> str | None:
        match event:
            case tickets.TicketRegistered():
                return f"{self.who(event.owner)} registers ticket {event.ticket}"
            case tickets.TicketReclaimed():
                owner = self._owner(event.ticket, state)
                return f"{owner} takes {self._about(event.amount)} tokens of ticket {event.ticket} back"
            case tickets.TicketConvictedNow():
                return f"ticket {event.ticket} of {self._owner(event.ticket, state)} is convicted"
            case duties.EpochBegan() if event.on_call:
                return f"epoch {event.epoch} of the audits calls shift {event.shift}: {count(event.on_call, 'ticket')}"
            case attestations.Attested():
                owner = self._owner(event.ticket, state)
                what = f"the work of seat {event.seat} in round {event.round}"
                if state.attestations[event.attestation].kind in (DutyKind.REAUDIT, DutyKind.REAUDIT_AGAIN):
                    return f"{owner} replayed {what} to check what another auditor found"
                return f"{owner} replayed {what} and shows what it found"
            case attestations.Accused():
                by = state.attestations[event.attestation]
                what = "the work" if event.is_work else "a finding about the work"
                return (
                    f"{self._owner(by.ticket, state)} accuses {what} of seat {by.seat} in round {by.round}: "
                    "its own replay ended otherwise"
                )
            case duties.DutyLeftOut():
                return f"ticket {event.ticket} of {self._owner(event.ticket, state)} leaves out one of its duties"
            case duties.DutyFined():
                return f"ticket {event.ticket} of {self._owner(event.ticket, state)} is fined {self._about(event.fine)}"
        return None

    def _of_games(self, event: Event) -> str | None:
        match event:
            case game.GameOpened():
                challenger, defender = self.who(event.challenger), self.who(event.defender)
                return f"game {event.game_id}: {challenger} challenges {claim_words(event.ref)} by {defender}"
            case game.Verdict():
                return self._verdict(event)
            case game.LockTaken():
                bounty, burned = self._about(event.bounty), self._about(event.burned)
                return f"game {event.game_id}: slashed; bounty {bounty} tokens, burned {burned}"
        return None

    def _of_money(self, event: Event, state: RunState) -> str | None:
        match event:
            case escrow.Funded():
                return f"{self.who(event.funder)} funds the run with {self._about(event.amount)} tokens"
            case escrow.PhaseChanged():
                return PHASES.get(event.phase)
            case escrow.Refunded():
                return f"{self.who(event.funder)} gets {self._about(event.amount)} tokens back from the escrow"
            case payments.WorkPaid():
                holder = self.who(state.books.tenures.tenures[event.tenure].holder)
                if event.status is not WorkStatus.FINAL:
                    return f"{holder} earns nothing for round {event.round}: its work is {event.status.name.lower()}"
                earned = self._earned(event.pay, event.shares)
                return f"{holder} earns {earned} for round {event.round}"
            case payments.FindingPaid():
                owner = self._owner(event.ticket, state)
                found = state.attestations[event.attestation]
                earned = self._earned(event.pay, event.shares)
                return f"{owner} earns {earned} for its finding about seat {found.seat} in round {found.round}"
            case payments.OpeningPaid() if event.pay:
                return f"the merge of round {generation_of(event.node) - 1} brings {self._about(event.pay)} tokens"
            case bounties.PartPaid():
                return f"{self.who(event.to)} gets {self._about(event.amount)} tokens of a bounty"
            case grants.Cancelled():
                return f"{self.who(event.owner)} loses {SHARES.brief(event.amount)} shares that had not vested"
            case revenue.Deposited():
                return f"{self.who(event.from_)} pays {self._revenue(event)} of revenue"
            case revenue.Claimed():
                to = "" if event.to == event.owner else f", paid to {self.who(event.to)}"
                return f"{self.who(event.owner)} claims {self._revenue(event)} of revenue{to}"
        return None

    def _about(self, wei: int) -> str:
        return self._money.brief(wei)

    def _revenue(self, event: revenue.Deposited | revenue.Claimed) -> str:
        return self._currency_of(event.token).brief(event.amount)

    def _earned(self, pay: int, shares: int) -> str:
        parts = [f"{SHARES.brief(shares)} shares"] if shares else []
        return " and ".join([*parts, f"{self._about(pay)} tokens"] if pay else parts) or "nothing"

    def _owner(self, ticket: int, state: RunState) -> str:
        owner = owner_of(ticket, state)
        return "somebody" if owner is None else self.who(owner)

    def _verdict(self, event: game.Verdict) -> str:
        loser = self.who(event.loser)
        if event.outcome is Outcome.DEFAULT:
            return f"game {event.game_id}: {loser} let its clock run out and loses (DEFAULT)"
        family = Family(event.family).name.lower() if event.family in set(Family) else "slot"
        return (
            f"game {event.game_id}: the contract computed {family} node {event.node}, element {event.element}: "
            f"expected {event.expected}, claimed {event.claimed}; {loser} loses (LEAF)"
        )


def parties(event: Event, state: RunState) -> Iterator[Address]:
    """Whom an event is about."""
    for name in ("holder", "owner", "funder", "to", "by", "from_", "challenger", "defender", "loser"):
        value = getattr(event, name, None)
        if isinstance(value, bytes):
            yield Address(value)
    tenure, ticket = getattr(event, "tenure", None), getattr(event, "ticket", None)
    if isinstance(event, attestations.Accused):
        ticket = state.attestations[event.attestation].ticket
    if tenure is not None and tenure in state.books.tenures.tenures:
        yield state.books.tenures.tenures[tenure].holder
    owner = None if ticket is None else owner_of(ticket, state)
    if owner is not None:
        yield owner


def owner_of(ticket: int, state: RunState) -> Address | None:
    """Who registered a ticket, whether its stake is there or went back."""
    registry, number = state.books.registry, TicketId(ticket)
    held = registry.tickets.get(number)
    return registry.left.get(number) if held is None else held.owner


def claim_words(ref: ClaimRef) -> str:
    """What a claim is about."""
    match ref.kind:
        case ClaimKind.OUTER:
            return f"a root of the merge of round {ref.round}"
        case ClaimKind.UPDATE:
            return f"the update of seat {ref.seat} in round {ref.round}"
        case ClaimKind.ATTESTATION:
            return f"a finding about seat {ref.seat} in round {ref.round}"
        case _:
            return f"the work of seat {ref.seat} in round {ref.round}"
