"""What an address owns of a run's model: shares, those that vest, and revenue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_utils.address import to_checksum_address

from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Digest, Wei

if TYPE_CHECKING:
    from assay_ledger.rounds.run import Run


class NobodyOwns(RejectedError):
    """A run that has ended without a share: what is paid to its owners could never be claimed."""

    remedy = "Keep it: nobody has earned a share of this model, and nobody can any more."


def shares_of(run: Run, who: Address) -> dict[str, Any]:
    """Shares, pending credits, free stake and claimable revenue of an address, in wei."""
    ask = run.chain.ask
    return {
        "address": to_checksum_address(who),
        "shares": ask(run.shares.balance_of(who)),
        "pending": pending_of(run, who),
        "supply": ask(run.shares.total_supply()),
        "free_stake": ask(run.vault.free(who)),
        "claimable": {"0x" + t.hex(): ask(run.revenue.claimable(t, who)) for t in run.charter.revenue_tokens},
    }


def pending_of(run: Run, who: Address) -> Wei:
    """Shares that are still to vest, in wei: the contract counts among them what a conviction cancelled, until somebody
    strikes it out."""
    counted = run.chain.ask(run.grants.pending_of(who))
    if not counted:
        return counted
    return Wei(counted - sum(grant.amount for grant in _open_grants(run, who) if grant.is_cancelled))


@dataclass(frozen=True, slots=True)
class OpenGrant:
    """Shares that were credited, in wei, under the name of their grant; cancelled ones are nobody's."""

    name: Digest
    amount: Wei
    vests_at: int
    is_cancelled: bool


def ripe_grants(run: Run, owner: Address) -> list[OpenGrant]:
    """Grants of an owner whose time has come and that are not released."""
    now = run.chain.head().timestamp
    return [grant for grant in _open_grants(run, owner) if grant.vests_at <= now]


def _open_grants(run: Run, owner: Address) -> Iterator[OpenGrant]:
    """Grants of an owner that are not released."""
    from assay_ledger.bindings.grants import Credited

    for credited in run.chain.events(Credited.search(run.grants.address, owner=owner), run.first_block):
        name = credited.event.id
        grant = run.chain.ask(run.grants.grant_of(name))
        if not grant.done and grant.owner == owner:
            if grant.tenure:
                convicted_at = run.chain.ask(run.tenures.tenure_of(grant.tenure)).convicted_at
            else:
                convicted_at = run.chain.ask(run.tickets.ticket_of(grant.ticket)).convicted_at
            yield OpenGrant(name, Wei(grant.amount), grant.vests_at, 0 < convicted_at < grant.vests_at)


def check_owned(run: Run) -> None:
    """Raises NobodyOwns where a run has ended, and neither has a share nor has credited one that is still to vest."""
    from assay_ledger.bindings.grants import Credited

    ask = run.chain.ask
    phase = ask(run.escrow.phase())
    if not phase.has_ended or ask(run.shares.total_supply()):
        return
    credited = (found.event for found in run.chain.events(Credited.search(run.grants.address), run.first_block))
    if not any(pending_of(run, owner) for owner in sorted({grant.owner for grant in credited})):
        raise NobodyOwns(f"The run is {phase.words}, and its model has no owner: what is paid in would stay there.")
