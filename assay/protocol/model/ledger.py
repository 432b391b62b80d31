"""A run of the executable model: its books put together."""

from __future__ import annotations

from assay.protocol.model.audit import Audit
from assay.protocol.model.outers import Outers
from assay.protocol.model.rounds import Rounds
from assay.protocol.model.settlement import Settlement
from assay.protocol.model.vault import Vault
from assay.protocol.run.charter import Charter
from assay.protocol.run.claims import ClaimKind, ClaimRef, claim_id
from assay.protocol.types import Address, Digest


class Ledger:
    """A run: charter, vault, rounds, outer steps, audit and settlement."""

    def __init__(self, charter: Charter, chain_id: int, address: Address, audit_address: Address) -> None:
        self.charter = charter
        self.chain_id = chain_id
        self.address = address
        self.audit_address = audit_address
        self.vault = Vault(charter.windows.exit)
        self.rounds = Rounds(self)
        self.outers = Outers(self)
        self.audit = Audit(self)
        self.settlement = Settlement(self)

    def claim_id(self, kind: ClaimKind, claimant: Address, x: Digest, y: Digest) -> Digest:
        """The id of a claim of this run."""
        return claim_id(self.chain_id, self.address, self.charter.run, kind, claimant, x, y)

    def book_of(self, ref: ClaimRef) -> Rounds | Outers | Audit:
        """The book in which a claim stands. Raises KeyError for kind NONE."""
        books: dict[ClaimKind, Rounds | Outers | Audit] = {
            ClaimKind.INTERVAL: self.rounds,
            ClaimKind.UPDATE: self.rounds,
            ClaimKind.OUTER: self.outers,
            ClaimKind.ATTESTATION: self.audit,
        }
        return books[ref.kind]

    def on_closed(self, ref: ClaimRef, convicted: bool, now: int) -> bool:
        """A game on the claim ended; whether the claim falls by it for the first time."""
        book = self.book_of(ref)
        if isinstance(book, Rounds):
            return book.on_closed(ref, convicted)
        return book.on_closed(ref, convicted, now)
