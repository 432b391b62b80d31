"""Who brought, got and lost what, by the movements of the vault alone. Amounts are wei."""

from __future__ import annotations

from collections import Counter

from web3 import Web3

from tools.recompute.chain import Page, RecordedRun


def money(ledger: RecordedRun, asked: Page) -> Page:
    """`deposited`, `earned` (pay, wages, bounties), `lost`, `stake` (what is left, locked or not) of those asked for.

    What somebody paid into the escrow is no loss, and what came back of it nothing earned.
    """
    deposited, leaving = _sums(ledger, "vault", "Deposited"), _sums(ledger, "vault", "ExitRequested")
    funded, refunded = _sums(ledger, "escrow", "Funded"), _sums(ledger, "escrow", "Refunded")
    owners = {bytes(e["lock"]): e["who"] for e in ledger.events("vault", "Locked")}
    taken: Counter[str] = Counter()
    for name in ("Seized", "Burned"):
        for event in ledger.events("vault", name):
            taken[_checksum(owners[bytes(event["lock"])])] += event["amount"]
    given = _sums(ledger, "vault", "Seized")
    found: dict[str, Page] = {"deposited": {}, "earned": {}, "lost": {}, "stake": {}}
    for who in asked:
        found["deposited"][who] = deposited[who]
        found["earned"][who] = given[who] - refunded[who]
        found["lost"][who] = taken[who] - funded[who]
        found["stake"][who] = deposited[who] + given[who] - taken[who] - leaving[who]
    return found


def fines(ledger: RecordedRun) -> Page:
    """What was taken of each owner's tickets for duties left undone."""
    owners = {e["ticket"]: e["owner"] for e in ledger.events("tickets", "TicketRegistered")}
    found: Counter[str] = Counter()
    for event in ledger.events("tickets", "TicketFined"):
        found[_checksum(owners[event["ticket"]])] += event["amount"]
    return dict(found)


def _sums(ledger: RecordedRun, contract: str, name: str) -> Counter[str]:
    """The amounts of an event by whom it is about."""
    found: Counter[str] = Counter()
    for event in ledger.events(contract, name):
        found[_checksum(event["who"])] += event["amount"]
    return found


def _checksum(address: str) -> str:
    return str(Web3.to_checksum_address(address))
