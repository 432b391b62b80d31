"""Outer steps as claims, addressed by content (Outers.sol)."""

from __future__ import annotations

from assay.protocol.digests import list_digest, state_digest
from assay.protocol.game.state import DisputedClaim
from assay.protocol.model import ids
from assay.protocol.model.books import RunBooks
from assay.protocol.model.errors import not_before, refuse
from assay.protocol.model.games import ClaimView
from assay.protocol.model.types import NO_CLAIM, Inclusion, OuterClaim, OuterRoot
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import SEATS, Address, Digest, DType, Round, Seat, Status

ONE = bytes.fromhex("0000803f")
"""1.0 as a little-endian binary32."""


def mask_list(mask: int) -> Digest:
    """List root of one f32[8] tensor: 1.0 where the bit is set, +0 elsewhere."""
    elements = b"".join(ONE if mask >> k & 1 else bytes(4) for k in range(SEATS))
    return list_digest(1, merkle.root([tensor_root(TensorSpec(DType.F32, (SEATS,)), elements)]))


def outer_input(parameters: Digest, momentum: Digest, updates: tuple[Digest, ...], mask: int) -> Digest:
    """State root of X of an outer step: parameters, momentum, the update of each slot, the mask."""
    return state_digest((parameters, momentum, *updates, mask_list(mask)))


class Outers:
    """The books of outer roots. Generation 0 is the genesis; what is posted after round r is of generation r + 1."""

    def __init__(self, ledger: RunBooks) -> None:
        self.ledger = ledger
        training = ledger.charter.training
        self.genesis = state_digest((training.parameters, training.momentum))
        genesis = OuterRoot(training.parameters, training.momentum, standing=1, is_final=True)
        self.roots: dict[tuple[Round, Digest], OuterRoot] = {(Round(0), self.genesis): genesis}
        self.claims: dict[tuple[Round, Digest, Address], OuterClaim] = {}
        self.inclusions: dict[tuple[Round, Digest], Inclusion] = {}

    def post_outer(
        self, who: Address, round_: Round, base: Digest, x: Digest, parameters: Digest, momentum: Digest, now: int
    ) -> Digest:
        """Raises RoundNotOpen, TooEarly, RescueOver, NotAMember, RoundPassed, BaseNotStanding, AlreadyPosted,
        InclusionMoved, InsufficientFree."""
        not_before(now, self.ledger.rounds.times(round_).t7)
        after, root = Round(round_ + 1), state_digest((parameters, momentum))
        self._check_root(who, round_, root, now)
        if not self.is_alive(round_, base, now):
            raise refuse("BaseNotStanding", round=round_, base=base)
        if (round_, root, who) in self.claims:
            raise refuse("AlreadyPosted", round=round_, root=root, poster=who)
        inclusion = self.inclusion_of(round_, base)
        # A conviction mined just before an honest post would make its step another claim's.
        if inclusion.x != x:
            raise refuse("InclusionMoved", got=inclusion.x, wanted=x)
        self.ledger.vault.lock(ids.outer_lock(round_, root, who), who, self.ledger.charter.economics.price)
        # The first post for (round, base) fixes mask and X, so that all honest posters claim the same step.
        self.inclusions.setdefault((round_, base), inclusion)
        self.claims[round_, root, who] = OuterClaim(base, now)
        self.roots.setdefault((after, root), OuterRoot(parameters, momentum)).standing += 1
        return root

    def finalize_outer(self, round_: Round, root: Digest, poster: Address, now: int) -> None:
        """Raises ClaimNotFound, OuterClosed, GamesOpen, TooEarly, BaseNotFinal."""
        claim = self._open(round_, root, poster)
        not_before(now, claim.posted_at + self.ledger.charter.windows.challenge + 1)
        if self.status_of(round_, claim.base, now) is not Status.FINAL:
            raise refuse("BaseNotFinal", round=round_, base=claim.base)
        claim.closed = True
        self.roots[Round(round_ + 1), root].is_final = True
        self.ledger.vault.release(ids.outer_lock(round_, root, poster))

    def void_outer(self, round_: Round, root: Digest, poster: Address, now: int) -> None:
        """Raises ClaimNotFound, OuterClosed, GamesOpen, BaseNotVoid."""
        claim = self._open(round_, root, poster)
        if self.status_of(round_, claim.base, now) is not Status.VOID:
            raise refuse("BaseNotVoid", round=round_, base=claim.base)
        claim.closed = True
        self._lose_standing(round_, root, now)
        self.ledger.vault.release(ids.outer_lock(round_, root, poster))

    # --- views

    def is_standing(self, generation: Round, root: Digest) -> bool:
        """Whether some poster's claim behind the root has not fallen."""
        entry = self.roots.get((generation, root))
        return entry is not None and entry.standing > 0

    def is_alive(self, generation: Round, root: Digest, now: int) -> bool:
        """Whether it stands or can still be rescued: what may be built upon."""
        entry = self.roots.get((generation, root))
        return entry is not None and (entry.standing > 0 or now <= entry.rescue_until)

    def standing_count(self, generation: Round) -> int:
        """Roots of a generation that stand."""
        return sum(entry.standing > 0 for (g, _), entry in sorted(self.roots.items()) if g == generation)

    def status_of(self, generation: Round, root: Digest, now: int) -> Status:
        """OPEN, FINAL, or VOID: fallen and not rescued in time."""
        entry = self.roots.get((generation, root))
        if entry is None:
            return Status.OPEN
        if entry.is_final:
            return Status.FINAL
        return Status.OPEN if self.is_alive(generation, root, now) else Status.VOID

    def inclusion_of(self, round_: Round, base: Digest) -> Inclusion:
        """Mask and X of the outer step of a round from a base: the fixed ones, or what a post now would fix."""
        if (round_, base) in self.inclusions:
            return self.inclusions[round_, base]
        rounds, mask = self.ledger.rounds, 0
        updates = [self.ledger.charter.training.zero_update] * SEATS
        for k in range(SEATS):
            c = rounds.commitments.get((round_, Seat(k)))
            if c is None or c.base != base or c.excluded or c.convicted or not rounds.is_complete(round_, Seat(k)):
                continue
            updates[k], mask = c.update, mask | 1 << k
        entry = self.roots[round_, base]
        return Inclusion(mask, outer_input(entry.parameters, entry.momentum, tuple(updates), mask))

    # --- claims

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        """What a game sees; `NO_CLAIM` where there is none."""
        claim = self._find(ref)
        if claim is None:
            return NO_CLAIM
        charter = self.ledger.charter
        x = self.inclusions[ref.round, claim.base].x
        disputed = DisputedClaim(
            id=self.ledger.claim_id(ClaimKind.OUTER, ref.party, x, ref.outer_root),
            claimant=ref.party,
            x=x,
            y=ref.outer_root,
            program=charter.outer.root,
            steps=1,
            lock_id=ids.outer_lock(ref.round, ref.outer_root, ref.party),
        )
        until = claim.posted_at + charter.windows.challenge
        return ClaimView(
            disputed, claim.posted_at, until, charter.economics.price, claim.convicted, charter.economics.bounty_ppm
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        """Solvers and verifiers other than the poster: everybody recomputes an outer step."""
        return self._find(ref) is not None and who != ref.party and self._is_member(who)

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises ClaimNotFound, ClaimSettled."""
        claim = self._find(ref)
        if claim is None:
            raise refuse("ClaimNotFound", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        if claim.closed:
            raise refuse("ClaimSettled", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        claim.open_games += 1

    def on_closed(self, ref: ClaimRef, convicted: bool, now: int) -> bool:
        """Whether this conviction is the first."""
        claim = self.claims[ref.round, ref.outer_root, ref.party]
        claim.open_games -= 1
        if not convicted or claim.convicted:
            return False
        claim.convicted = True
        self._lose_standing(ref.round, ref.outer_root, now)
        return True

    # --- inside

    def _find(self, ref: ClaimRef) -> OuterClaim | None:
        if ref.kind is not ClaimKind.OUTER:
            return None
        return self.claims.get((ref.round, ref.outer_root, ref.party))

    def _open(self, round_: Round, root: Digest, poster: Address) -> OuterClaim:
        claim = self.claims.get((round_, root, poster))
        if claim is None:
            raise refuse("ClaimNotFound", kind=ClaimKind.OUTER, round=round_)
        if claim.closed or claim.convicted:
            raise refuse("OuterClosed", round=round_, root=root, poster=poster)
        if claim.open_games:
            raise refuse("GamesOpen", count=claim.open_games)
        return claim

    def _check_root(self, who: Address, round_: Round, root: Digest, now: int) -> None:
        """A post behind what was posted before is in time for a rescue; a new root needs more."""
        after = Round(round_ + 1)
        entry = self.roots.get((after, root))
        # For one window only, so that no root is kept in doubt for ever.
        if entry is not None and entry.rescue_until and now > entry.rescue_until:
            raise refuse("RescueOver", round=round_, root=root, until=entry.rescue_until)
        # Its posters may have lost it on purpose: anybody may, in whatever round.
        if self.is_alive(after, root, now):
            return
        if not self._is_member(who):
            raise refuse("NotAMember", caller=who)
        if round_ + 2 < len(self.ledger.rounds.opened_at) and self.standing_count(after):
            raise refuse("RoundPassed", round=round_)

    def _lose_standing(self, round_: Round, root: Digest, now: int) -> None:
        entry = self.roots[Round(round_ + 1), root]
        entry.standing -= 1
        entry.rescue_until = entry.rescue_until or now + self.ledger.charter.windows.rescue

    def _is_member(self, who: Address) -> bool:
        rounds = self.ledger.rounds
        if rounds.latest < 0:
            return False
        seated = rounds.is_seated(rounds.latest, who) or who in rounds.holders
        return seated or self.ledger.audit.stake_at(who, rounds.latest) > 0
