"""Private draws, hidden leaves, attestations (Audit.sol)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.protocol.digests import ZERO, keccak
from assay.protocol.game.state import DisputedClaim
from assay.protocol.model import ids
from assay.protocol.model.books import RunBooks
from assay.protocol.model.errors import not_after, not_before, refuse
from assay.protocol.model.games import ClaimView
from assay.protocol.model.registry import Registry
from assay.protocol.model.types import NO_CLAIM, Attendance, EndRoots, Leaf
from assay.protocol.run import draws
from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.trees.merkle import root as tree_root
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei

VerifyDraw = Callable[[bytes, bytes, bytes], bool]
"""Whether (public key, signature, message) pass the pairing."""


class Audit(Registry):
    """The books of verifiers and whistleblowers. `seed` is what the seed source says at a draw."""

    def __init__(self, ledger: RunBooks) -> None:
        super().__init__(ledger)
        self.seeds: dict[Round, Digest] = {}
        self.whistle_seeds: dict[Round, Digest] = {}
        self.attendances: dict[tuple[Round, Address], Attendance] = {}
        self.end_roots: EndRoots = {}

    # --- draws

    def draw_seed(self, round_: Round, seed: Digest, now: int) -> None:
        """Raises RoundNotOpen, TooEarly, SeedAlreadyDrawn."""
        not_before(now, self.ledger.rounds.times(round_).t2)
        if round_ in self.seeds:
            raise refuse("SeedAlreadyDrawn", round=round_)
        self.seeds[round_] = seed

    def draw_whistle_seed(self, round_: Round, seed: Digest, now: int) -> None:
        """Raises RoundNotOpen, TooEarly, SeedAlreadyDrawn."""
        not_before(now, self.ledger.rounds.times(round_).t4)
        if round_ in self.whistle_seeds:
            raise refuse("SeedAlreadyDrawn", round=round_)
        self.whistle_seeds[round_] = seed

    def attest(self, who: Address, round_: Round, seed: Digest, root: Digest, now: int) -> None:
        """`seed` is what the leaves were drawn from.

        Raises RoundNotOpen, TooLate, SeedNotDrawn, SeedMismatch, WrongRole, AttesterConvicted, NoStake,
        AlreadyAttested.
        """
        not_after(now, self.ledger.rounds.times(round_).t3)
        if round_ not in self.seeds:
            raise refuse("SeedNotDrawn", round=round_)
        self._commit_root(who, round_, Role.VERIFIER, seed, root)

    def whistle(self, who: Address, round_: Round, seed: Digest, root: Digest, now: int) -> None:
        """The same for a whistleblower, until T5. Raises what `attest` raises."""
        not_after(now, self.ledger.rounds.times(round_).t5)
        if round_ not in self.whistle_seeds:
            raise refuse("SeedNotDrawn", round=round_)
        self._commit_root(who, round_, Role.WHISTLEBLOWER, seed, root)

    def reveal_draw(self, who: Address, round_: Round, y: bytes, now: int, verify: VerifyDraw) -> None:
        """Raises NotAttested, TooEarly, TooLate, AlreadyRevealed, BadDraw."""
        attendance = self.attendances.get((round_, who))
        if attendance is None:
            raise refuse("NotAttested", round=round_, who=who)
        times, verifies = self.ledger.rounds.times(round_), self.attesters[who].role is Role.VERIFIER
        if verifies:
            not_before(now, times.t3 + 1)
        not_after(now, times.t4 if verifies else times.t5)
        if attendance.ticket is not None:
            raise refuse("AlreadyRevealed", round=round_, who=who)
        if not verify(self.attesters[who].public_key, y, self.draw_message(round_, self.attesters[who].role)):
            raise refuse("BadDraw", who=who)
        attendance.ticket = keccak(y)

    def draw_message(self, round_: Round, role: Role) -> bytes:
        """What a member of this role signs in a round whose seed is drawn."""
        verifies = role is Role.VERIFIER
        return draws.draw_message(
            self.ledger.chain_id,
            self.ledger.audit_address,
            self.ledger.charter.run,
            round_,
            draws.Purpose.AUDIT if verifies else draws.Purpose.WHISTLE,
            (self.seeds if verifies else self.whistle_seeds)[round_],
        )

    def is_drawn(self, who: Address, round_: Round, y: bytes, claim: Digest, duty: int) -> bool:
        """Whether the holder of this ticket is on duty."""
        role, economics = self.attesters[who].role, self.ledger.charter.economics
        ppm = economics.audit_ppm if role is Role.VERIFIER else economics.whistle_ppm
        stake, total = Wei(self.stake_at(who, round_)), Wei(self.total_at(role, round_))
        return draws.ticket(y, claim, duty) < draws.threshold(ppm, stake, total)

    # --- leaves

    def reveal_leaves(self, who: Address, round_: Round, leaves: Sequence[Leaf], y: bytes, now: int) -> None:
        """Raises TooEarly, TooLate, AttesterConvicted, DrawNotRevealed, TicketMismatch, AlreadyRevealed, ClaimNotFound,
        NotSorted, NotDrawn, EndRootZero, RootMismatch."""
        attester, times = self.attesters.get(who), self.ledger.rounds.times(round_)
        not_before(now, times.t5 + 1)
        verifies = attester is not None and attester.role is Role.VERIFIER
        not_after(now, times.leaves_until if verifies else times.t7 - 1)
        if attester is not None and attester.convicted_at:
            raise refuse("AttesterConvicted", who=who)
        attendance = self.attendances.get((round_, who))
        if attendance is None or attendance.ticket is None:
            raise refuse("DrawNotRevealed", round=round_, who=who)
        if attendance.ticket != keccak(y):
            raise refuse("TicketMismatch", got=keccak(y), wanted=attendance.ticket)
        if attendance.revealed:
            raise refuse("AlreadyRevealed", round=round_, who=who)
        recorded = self._checked(who, round_, leaves, y)
        root = tree_root([leaf.digest for leaf, _, _ in recorded])
        if root != attendance.root:
            raise refuse("RootMismatch", got=root, wanted=attendance.root)
        attendance.revealed, attendance.duties = True, len(leaves)
        for leaf, seat, claimed in recorded:
            self.end_roots[round_, seat, leaf.duty, who] = leaf.end_root
            if leaf.end_root != claimed:
                self.ledger.rounds.commitments[round_, seat].excluded = True

    def _checked(
        self, who: Address, round_: Round, leaves: Sequence[Leaf], y: bytes
    ) -> list[tuple[AttestationLeaf, Seat, Digest]]:
        recorded: list[tuple[AttestationLeaf, Seat, Digest]] = []
        previous = (ZERO, -1)
        for leaf in leaves:
            claim, _, claimed = self.ledger.rounds.duty_of(round_, leaf.seat, leaf.duty)
            if (claim, leaf.duty) <= previous:
                raise refuse("NotSorted", seat=leaf.seat, duty=leaf.duty)
            previous = (claim, leaf.duty)
            if not self.is_drawn(who, round_, y, claim, leaf.duty):
                raise refuse("NotDrawn", seat=leaf.seat, duty=leaf.duty)
            if leaf.end_root == ZERO:
                raise refuse("EndRootZero", seat=leaf.seat, duty=leaf.duty)
            hidden = AttestationLeaf(claim, leaf.duty, leaf.end_root, leaf.salt)
            recorded.append((hidden, leaf.seat, claimed))
        return recorded

    def check_close(self, round_: Round, who: Address, now: int) -> int:
        """Duties due a wage. Raises NotAttested, AlreadyClosed, GamesOpen, TooEarly."""
        attendance = self.attendances.get((round_, who))
        if attendance is None or not attendance.revealed:
            raise refuse("NotAttested", round=round_, who=who)
        if attendance.closed:
            raise refuse("AlreadyClosed", round=round_, who=who)
        if attendance.open_games:
            raise refuse("GamesOpen", count=attendance.open_games)
        if self.attesters[who].convicted_at:
            return 0
        not_before(now, self.ledger.rounds.times(round_).challenge_until + 1)
        return attendance.duties

    def close(self, round_: Round, who: Address, now: int) -> int:
        """End an attester's round. Raises what `check_close` raises."""
        duties = self.check_close(round_, who, now)
        self.attendances[round_, who].closed = True
        return duties

    def revealers(self, round_: Round) -> int:
        """Attesters who revealed leaves in a round."""
        return sum(a.revealed for (r, _), a in sorted(self.attendances.items()) if r == round_)

    # --- claims

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        """What a game sees; `NO_CLAIM` where there is none."""
        end_root = self._find(ref)
        if end_root is None:
            return NO_CLAIM
        charter, times = self.ledger.charter, self.ledger.rounds.times(ref.round)
        _, x, _ = self.ledger.rounds.duty_of(ref.round, ref.seat, ref.duty)
        updates = ref.duty == charter.training.intervals
        disputed = DisputedClaim(
            id=self.ledger.claim_id(ClaimKind.ATTESTATION, ref.party, x, end_root),
            claimant=ref.party,
            x=x,
            y=end_root,
            program=charter.update.root if updates else charter.step.root,
            steps=1 if updates else charter.training.steps_per_interval,
            lock_id=ids.attester_lock(ref.party),
        )
        fallen = self.attesters[ref.party].convicted_at != 0
        money = charter.economics
        return ClaimView(disputed, times.t5 + 1, times.challenge_until, money.verifier_bond, fallen, money.bounty_ppm)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        """The solver whose work is denied, and every party that revealed another result for the same duty."""
        end_root = self._find(ref)
        if end_root is None:
            return False
        own = self.end_roots.get((ref.round, ref.seat, ref.duty, who))
        if own is not None and own != end_root:
            return True
        denied = self.ledger.rounds.duty_of(ref.round, ref.seat, ref.duty)[2] != end_root
        return denied and self.ledger.rounds.commitments[ref.round, ref.seat].solver == who

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises ClaimNotFound, ClaimSettled."""
        if self._find(ref) is None:
            raise refuse("ClaimNotFound", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        attendance = self.attendances[ref.round, ref.party]
        if attendance.closed:
            raise refuse("ClaimSettled", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        attendance.open_games += 1
        self.attesters[ref.party].open_games += 1

    def on_closed(self, ref: ClaimRef, convicted: bool, now: int) -> bool:
        """Whether this conviction is the first."""
        self.attendances[ref.round, ref.party].open_games -= 1
        attester = self.attesters[ref.party]
        attester.open_games -= 1
        if not convicted or attester.convicted_at:
            return False
        self.convict(ref.party, now)
        return True

    # --- inside

    def _find(self, ref: ClaimRef) -> Digest | None:
        if ref.kind is not ClaimKind.ATTESTATION:
            return None
        return self.end_roots.get((ref.round, ref.seat, ref.duty, ref.party))

    def _commit_root(self, who: Address, round_: Round, role: Role, seed: Digest, root: Digest) -> None:
        drawn = (self.seeds if role is Role.VERIFIER else self.whistle_seeds)[round_]
        if seed != drawn:
            raise refuse("SeedMismatch", got=seed, wanted=drawn)
        attester = self.attesters.get(who)
        if attester is None or attester.role is not role:
            raise refuse("WrongRole", who=who, role=attester.role if attester else Role.NONE)
        if attester.convicted_at:
            raise refuse("AttesterConvicted", who=who)
        if not self.stake_at(who, round_):
            raise refuse("NoStake", who=who, round=round_)
        if (round_, who) in self.attendances:
            raise refuse("AlreadyAttested", round=round_, who=who)
        self.attendances[round_, who] = Attendance(root)
