"""Chain events as lines that a person reads."""

from __future__ import annotations

from collections.abc import Mapping

from eth_utils.address import to_checksum_address

from assay.amounts import tokens
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address
from assay_ledger.bindings import audit, game, outers, revenue, rounds, settlement
from assay_ledger.contract import Event

Names = Mapping[Address, str]
"""Names of actors by address."""


def line(event: Event, names: Names) -> str | None:
    """What to say about an event; None for those that only machines need."""

    def who(address: Address) -> str:
        return names.get(address, to_checksum_address(address)[:10] + "…")

    match event:
        case rounds.Joined():
            return f"{who(event.solver)} takes seat {event.seat}"
        case rounds.RoundOpened():
            return f"round {event.round} opens"
        case rounds.Committed():
            return f"{who(event.solver)} commits to round {event.round} (seat {event.seat})"
        case rounds.Completed():
            return f"seat {event.seat} of round {event.round} is complete: everything is published"
        case rounds.Excluded():
            accuser = who(event.accuser)
            return f"seat {event.seat} of round {event.round} is left out: {accuser} got another end root"
        case rounds.Closed():
            return f"round {event.round} seat {event.seat} is {event.status.name.lower()}"
        case audit.Registered():
            return f"{who(event.who)} registers as {event.role.name.lower()} with {tokens(event.stake)}"
        case audit.SeedDrawn():
            return f"audit seed of round {event.round} is drawn"
        case audit.Attested():
            return f"{who(event.who)} binds its results of round {event.round}"
        case audit.DrawRevealed():
            return f"{who(event.who)} shows its draw of round {event.round}"
        case outers.OuterPosted():
            return f"{who(event.poster)} posts the outer step of round {event.round}"
        case outers.RescueBegan():
            return f"an outer root of round {event.round} lost a poster; others may back it"
        case outers.RootFell():
            return f"an outer root of round {event.round} fell"
        case game.GameOpened():
            return (
                f"game {event.game_id}: {who(event.challenger)} challenges {_claim(event.ref)} by {who(event.defender)}"
            )
        case game.Verdict():
            return _verdict(event, who(event.loser))
        case game.LockTaken():
            return f"game {event.game_id}: slashed; bounty {tokens(event.bounty)}, burned {tokens(event.burned)}"
        case settlement.WorkSettled():
            earned = f"{tokens(event.shares)} shares and {tokens(event.pay)} tokens"
            return f"{who(event.solver)} earns {earned} for round {event.round}"
        case settlement.DutiesSettled():
            earned = f"{tokens(event.wages)} tokens and {tokens(event.shares)} shares"
            return f"{who(event.attester)} earns {earned} for {event.duties} duties in round {event.round}"
        case revenue.Deposited():
            return f"{who(event.from_)} pays {tokens(event.amount)} of revenue"
        case revenue.Claimed():
            return f"{who(event.owner)} claims {tokens(event.amount)} of revenue"
    return None


def _claim(ref: ClaimRef) -> str:
    if ref.kind is ClaimKind.OUTER:
        return f"the outer step of round {ref.round}"
    if ref.kind is ClaimKind.UPDATE:
        return f"the update of seat {ref.seat} in round {ref.round}"
    about = f"interval {ref.duty} of seat {ref.seat} in round {ref.round}"
    return f"an attestation of {about}" if ref.kind is ClaimKind.ATTESTATION else about


def _verdict(event: game.Verdict, loser: str) -> str:
    if event.outcome is Outcome.DEFAULT:
        return f"game {event.game_id}: {loser} let its clock run out and loses (DEFAULT)"
    family = Family(event.family).name.lower() if event.family in set(Family) else "slot"
    return (
        f"game {event.game_id}: the contract computed {family} node {event.node}, element {event.element}: "
        f"expected {event.expected}, claimed {event.claimed}; {loser} loses (LEAF)"
    )
