"""Chain events as lines that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.amounts import tokens
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Fate, Role
from assay_ledger.index.games import ref_from_chain

Names = Mapping[str, str]
"""Names of actors by address as the chain writes it, in lower case."""


def line(contract: str, event: str, args: Mapping[str, Any], names: Names) -> str | None:
    """What to say about an event; None for those that only machines need."""
    make = _LINES.get((contract, event))
    return None if make is None else make(args, lambda who: names.get(str(who).lower(), str(who)[:10] + "…"))


Who = Callable[[Any], str]


def _claim(args: Mapping[str, Any]) -> str:
    ref = ref_from_chain(args["ref"])
    if ref.kind is ClaimKind.OUTER:
        return f"the outer step of round {ref.round}"
    if ref.kind is ClaimKind.UPDATE:
        return f"the update of seat {ref.seat} in round {ref.round}"
    about = f"interval {ref.duty} of seat {ref.seat} in round {ref.round}"
    return f"an attestation of {about}" if ref.kind is ClaimKind.ATTESTATION else about


def _verdict(a: Mapping[str, Any], who: Who) -> str:
    outcome = Outcome(a["outcome"])
    if outcome is Outcome.DEFAULT:
        return f"game {a['gameId']}: {who(a['loser'])} let its clock run out and loses (DEFAULT)"
    family = Family(a["family"]).name.lower() if a["family"] in set(Family) else "slot"
    return (
        f"game {a['gameId']}: the contract computed {family} node {a['node']}, element {a['element']}: "
        f"expected {a['expected']}, claimed {a['claimed']}; {who(a['loser'])} loses (LEAF)"
    )


_LINES: dict[tuple[str, str], Callable[[Mapping[str, Any], Who], str]] = {
    ("rounds", "Joined"): lambda a, who: f"{who(a['solver'])} takes seat {a['seat']}",
    ("rounds", "RoundOpened"): lambda a, who: f"round {a['round']} opens",
    ("rounds", "Committed"): lambda a, who: f"{who(a['solver'])} commits to round {a['round']} (seat {a['seat']})",
    ("rounds", "Completed"): lambda a, who: (
        f"seat {a['seat']} of round {a['round']} is complete: everything is published"
    ),
    ("rounds", "Excluded"): lambda a, who: (
        f"seat {a['seat']} of round {a['round']} is left out: {who(a['accuser'])} got another end root"
    ),
    ("rounds", "Closed"): lambda a, who: f"round {a['round']} seat {a['seat']} is {Fate(a['fate']).name.lower()}",
    ("audit", "Registered"): lambda a, who: (
        f"{who(a['who'])} registers as {Role(a['role']).name.lower()} with {tokens(a['stake'])}"
    ),
    ("audit", "SeedDrawn"): lambda a, who: f"audit seed of round {a['round']} is drawn",
    ("audit", "Attested"): lambda a, who: f"{who(a['who'])} binds its results of round {a['round']}",
    ("audit", "DrawRevealed"): lambda a, who: f"{who(a['who'])} shows its draw of round {a['round']}",
    ("outers", "OuterPosted"): lambda a, who: f"{who(a['poster'])} posts the outer step of round {a['round']}",
    ("outers", "RescueBegan"): lambda a, who: (
        f"an outer root of round {a['round']} lost a poster; others may stand up for it"
    ),
    ("outers", "RootFell"): lambda a, who: f"an outer root of round {a['round']} fell",
    ("game", "GameOpened"): lambda a, who: (
        f"game {a['gameId']}: {who(a['challenger'])} challenges {_claim(a)} by {who(a['defender'])}"
    ),
    ("game", "Verdict"): _verdict,
    ("game", "LockTaken"): lambda a, who: (
        f"game {a['gameId']}: slashed; bounty {tokens(a['bounty'])}, burned {tokens(a['burned'])}"
    ),
    ("settlement", "WorkSettled"): lambda a, who: (
        f"{who(a['solver'])} earns {tokens(a['shares'])} shares and {tokens(a['pay'])} tokens for round {a['round']}"
    ),
    ("settlement", "DutiesSettled"): lambda a, who: (
        f"{who(a['attester'])} earns {tokens(a['wages'])} tokens and {tokens(a['shares'])} shares "
        f"for {a['duties']} duties in round {a['round']}"
    ),
    ("revenue", "Deposited"): lambda a, who: f"{who(a['from'])} pays {tokens(a['amount'])} of revenue",
    ("revenue", "Claimed"): lambda a, who: f"{who(a['owner'])} claims {tokens(a['amount'])} of revenue",
}
