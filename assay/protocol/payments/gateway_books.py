"""The books of Gateways.sol: bonds, pledges, and statements as claims that games are played on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import refuse
from assay.protocol.game.book import NO_CLAIM, ClaimView, GameVault
from assay.protocol.game.state import DisputedClaim
from assay.protocol.run.answers import (
    MAX_TOKENS,
    AnswerTerms,
    SaidAnswer,
    answer_claim,
    answer_inputs,
    answer_start,
    said_end,
)
from assay.protocol.run.claims import ClaimKind, ClaimRef, claim_id
from assay.protocol.types import Address, Digest, Round

MAX_PLEDGE: Final = 180 * 86_400
"""Seconds from now until a pledge ends, at most."""


@dataclass(frozen=True, slots=True)
class GatewayBond:
    """What a gateway has at stake; equal to `GatewayBond` in IGateways.sol. until: end of its last pledge."""

    is_bonded: bool = False
    is_convicted: bool = False
    disputes: int = 0
    until: int = 0


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A statement's token, as it was presented."""

    gateway: Address
    model: Digest
    x: Digest
    y: Digest


def gateway_lock(gateway: Address) -> Digest:
    """The lock of a gateway's bond: K("gateway", account)."""
    return keccak(abi.text(b"gateway") + abi.address(gateway))


def answer_ref(claim: Digest) -> ClaimRef:
    """The reference of a statement's token."""
    return ClaimRef(ClaimKind.ANSWER, Round(0), outer_root=claim)


@dataclass
class GatewayBooks:
    """The contract's books. Methods raise before they change anything; `now` is chain time in seconds.

    charter: of the gateways; run: the run's digest; challenge: seconds in which games open beyond a pledge.
    """

    chain_id: int
    charter: Address
    run: Digest
    terms: AnswerTerms
    challenge: int
    bounty_ppm: int
    vault: GameVault
    bonds: dict[Address, GatewayBond] = field(default_factory=dict)
    pledges: dict[tuple[Address, Digest], int] = field(default_factory=dict)
    claims: dict[Digest, AnswerClaim] = field(default_factory=dict)

    def bond_of(self, gateway: Address) -> GatewayBond:
        """What a gateway has at stake."""
        return self.bonds.get(gateway, GatewayBond())

    def pledge_of(self, gateway: Address, model: Digest) -> int:
        """End of a pledge, inclusive; 0 where there is none."""
        return self.pledges.get((gateway, model), 0)

    # --- gateways

    def bond(self, gateway: Address) -> None:
        """Raises GatewayConvicted, AlreadyBonded, and what the vault refuses."""
        found = self.bond_of(gateway)
        if found.is_convicted:
            raise refuse("GatewayConvicted", gateway=gateway)
        if found.is_bonded:
            raise refuse("AlreadyBonded", gateway=gateway)
        self.vault.lock(gateway_lock(gateway), gateway, self.terms.bond)
        self.bonds[gateway] = replace(found, is_bonded=True)

    def unbond(self, gateway: Address, now: int) -> None:
        """Raises NotBonded, BondInUse."""
        found = self.bond_of(gateway)
        if not found.is_bonded:
            raise refuse("NotBonded", gateway=gateway)
        not_before = found.until + self.challenge + 1 if found.until else 0
        if now < not_before or found.disputes:
            raise refuse("BondInUse", now=now, not_before=not_before, disputes=found.disputes)
        self.vault.release(gateway_lock(gateway))
        self.bonds[gateway] = replace(found, is_bonded=False)

    def pledge(self, gateway: Address, model: Digest, until: int, now: int) -> None:
        """Raises NotBonded, PledgeNotLonger, PledgeTooLong."""
        found = self.bond_of(gateway)
        if not found.is_bonded:
            raise refuse("NotBonded", gateway=gateway)
        if until <= (standing := self.pledge_of(gateway, model)):
            raise refuse("PledgeNotLonger", until=until, standing=standing)
        if until > now + MAX_PLEDGE:
            raise refuse("PledgeTooLong", until=until, latest=now + MAX_PLEDGE)
        self.pledges[gateway, model] = until
        self.bonds[gateway] = replace(found, until=max(found.until, until))

    # --- statements

    def accuse(self, digest: Digest, signer: Address | None, said: SaidAnswer, place: int, now: int) -> Digest:
        """What names the claim. digest: what was signed; signer: None for what is no signature.

        Raises TooManyTokens, NothingSaid, NotPledged, NotBonded.
        """
        if (tokens := len(said.prompt) + len(said.answer)) > MAX_TOKENS:
            raise refuse("TooManyTokens", tokens=tokens, maximum=MAX_TOKENS)
        y = said_end(said, place, self.terms.vocabulary)
        until = 0 if signer is None else self.pledge_of(signer, said.model)
        if signer is None or not until or now > until:
            raise refuse("NotPledged", signer=signer or bytes(20), model=said.model, until=until)
        if not self.bond_of(signer).is_bonded:
            raise refuse("NotBonded", gateway=signer)
        claim = answer_claim(digest, signer, place)
        if claim not in self.claims:
            window = self.terms.window
            x = answer_start(said.model, answer_inputs(said, place, window), window)
            self.claims[claim] = AnswerClaim(signer, said.model, x, y)
        return claim

    # --- claims

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        """See ClaimBook."""
        claim = self.claims.get(ref.outer_root)
        if claim is None:
            return NO_CLAIM
        lock = gateway_lock(claim.gateway)
        name = claim_id(self.chain_id, self.charter, self.run, ClaimKind.ANSWER, claim.gateway, claim.x, claim.y)
        disputed = DisputedClaim(name, claim.gateway, claim.x, claim.y, self.terms.answer.root, 1, lock)
        until = self.pledge_of(claim.gateway, claim.model) + self.challenge
        fallen = not self.bond_of(claim.gateway).is_bonded
        return ClaimView(disputed, 0, until, self.vault.lock_amount(lock), fallen, self.bounty_ppm)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        """See ClaimBook: whoever accuses has committed to it before the statement was public."""
        return False

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """See ClaimBook."""
        gateway = self.claims[ref.outer_root].gateway
        found = self.bond_of(gateway)
        self.bonds[gateway] = replace(found, disputes=found.disputes + 1)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        """See ClaimBook."""
        gateway = self.claims[ref.outer_root].gateway
        found = self.bond_of(gateway)
        found = replace(found, disputes=found.disputes - 1)
        first = convicted and not found.is_convicted
        self.bonds[gateway] = replace(found, is_convicted=True, is_bonded=False) if first else found
        return first
