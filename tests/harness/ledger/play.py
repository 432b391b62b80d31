"""People who play a run on the executable model and, where a world is given, on the contracts at the same time.

Every call goes through `LedgerPlay.do`, which demands that both accept, or both refuse under the same name, and that
the money agrees afterwards. Work is symbolic: the true end of an interval is a digest of its start, so that truth costs
nothing to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from eth_abi import encode

from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import AssayError
from assay.protocol.model import ids
from assay.protocol.model.ledger import Ledger
from assay.protocol.model.types import Leaf
from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef, attestation_root
from assay.protocol.run.draws import Purpose
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei
from assay_ledger.keys.bls import BlsKey, verify_draw, verify_possession
from tests.harness.contracts.world import Rejected, RunWorld
from tests.harness.ledger.truth import TrueWork, do_work, mark, true_end, true_outer

# --- calls


@dataclass
class PuppetGame:
    """A game of the puppet."""

    ref: ClaimRef
    challenger: Address
    defender: Address
    is_true: bool
    lock_id: Digest
    lock_amount: Wei
    over: bool = False


@dataclass
class LedgerPlay:
    """A run under way: the model, perhaps the contracts, and what people remember."""

    ledger: Ledger
    people: Sequence[Address]
    now: int
    world: RunWorld | None = None
    games: list[PuppetGame] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    keys: dict[Address, BlsKey] = field(default_factory=dict)
    leaves: dict[tuple[Round, Address], list[tuple[AttestationLeaf, Seat]]] = field(default_factory=dict)
    compared: dict[Address, int] = field(default_factory=dict)

    def do(self, who: Address, contract: str, function: str, *args: Any, model: Callable[[], object]) -> str | None:
        """One call, one second later, on model and chain. Returns the name of the refusal, None if accepted."""
        self.now += 1
        try:
            model()
            mine = None
        except AssayError as error:
            mine = error.code
        (self.refused if mine else self.accepted)[f"{function}:{mine}" if mine else function] += 1
        if self.world is not None:
            try:
                self.world.send(who, contract, function, *args, at=self.now)
                theirs = None
            except Rejected as error:
                theirs = error.name
            assert mine == theirs, f"{function}: the model says {mine}, the contract {theirs}"
            self.compare_money()
        assert self.ledger.vault.is_conserved()
        return mine

    def compare_money(self) -> None:
        """The sums of the vault, and every balance that the model has moved, are the same on both sides."""
        assert self.world is not None
        vault = self.ledger.vault
        assert self.world.call("vault", "totals") == vault.totals()
        for person in self.people:
            if self.compared.get(person) != vault.free_of(person):
                assert self.world.call("vault", "free", person) == vault.free_of(person)
                self.compared[person] = vault.free_of(person)

    # --- vault, settlement

    def deposit(self, who: Address, amount: int) -> str | None:
        return self.do(who, "vault", "deposit", amount, model=lambda: self.ledger.vault.deposit(who, amount))

    def request_exit(self, who: Address, amount: int) -> str | None:
        vault = self.ledger.vault
        return self.do(who, "vault", "requestExit", amount, model=lambda: vault.request_exit(who, amount, self.now))

    def withdraw(self, who: Address) -> str | None:
        return self.do(who, "vault", "withdraw", model=lambda: self.ledger.vault.withdraw(who, self.now))

    def flush(self, who: Address) -> str | None:
        return self.do(who, "vault", "flush", model=self.ledger.vault.flush)

    def fund(self, who: Address, amount: int) -> str | None:
        return self.do(who, "settlement", "fund", amount, model=lambda: self.ledger.settlement.fund(who, Wei(amount)))

    def settle_work(self, who: Address, round_: Round, seat: Seat) -> str | None:
        settle = self.ledger.settlement.settle_work
        return self.do(who, "settlement", "settleWork", round_, seat, model=lambda: settle(round_, seat, self.now))

    def settle_duties(self, who: Address, round_: Round, attester: Address) -> str | None:
        settle = self.ledger.settlement.settle_duties
        return self.do(
            who,
            "settlement",
            "settleDuties",
            round_,
            attester,
            model=lambda: settle(round_, attester, self.now),
        )

    def settle_round(self, who: Address, round_: Round) -> str | None:
        settle = self.ledger.settlement.settle_round
        return self.do(who, "settlement", "settleRound", round_, model=lambda: settle(round_, self.now))

    def refund(self, who: Address) -> str | None:
        return self.do(who, "settlement", "refund", model=lambda: self.ledger.settlement.refund(self.now))

    def release(self, who: Address, grant: Digest) -> str | None:
        release = self.ledger.settlement.release
        refusal = self.do(who, "vesting", "release", grant, model=lambda: release(grant, self.now))
        if refusal is None and self.world is not None:
            owner = self.ledger.settlement.grants[grant].owner
            assert self.world.call("shares", "balanceOf", owner) == self.ledger.settlement.shares.get(owner, 0)
            assert self.world.call("vesting", "pendingOf", owner) == self.ledger.settlement.pending_of(owner)
        return refusal

    # --- rounds

    def join(self, who: Address) -> str | None:
        return self.do(who, "rounds", "join", model=lambda: self.ledger.rounds.join(who, self.now))

    def leave_seat(self, who: Address) -> str | None:
        return self.do(who, "rounds", "leaveSeat", model=lambda: self.ledger.rounds.leave_seat(who, self.now))

    def open_round(self, who: Address) -> str | None:
        return self.do(who, "rounds", "openRound", model=lambda: self.ledger.rounds.open_round(self.now))

    def commit(self, who: Address, round_: Round, seat: Seat, work: TrueWork, base: Digest) -> str | None:
        args = (round_, seat, work.roots, work.end_lists, work.update, base)
        refusal = self.do(who, "rounds", "commit", *args, model=lambda: self.ledger.rounds.commit(who, *args, self.now))
        if refusal is None and self.world is not None:
            made = self.ledger.rounds.commitments[round_, seat]
            on_chain = self.world.call("rounds", "commitmentOf", round_, seat)
            assert on_chain[5:] == (
                *(made.digest, made.base, made.start_optimizer, made.parameters, made.optimizer, made.update),
            )
        return refusal

    def receipt(self, who: Address, round_: Round, seat: Seat) -> str | None:
        made = self.ledger.rounds.commitments.get((round_, seat))
        digest = made.digest if made else mark("none")
        receipt = self.ledger.rounds.receipt
        return self.do(
            who, "rounds", "receipt", round_, seat, digest, model=lambda: receipt(who, round_, seat, digest, self.now)
        )

    # --- outer steps

    def post_outer(
        self,
        who: Address,
        round_: Round,
        base: Digest,
        parameters: Digest,
        momentum: Digest,
        x: Digest | None = None,
    ) -> str | None:
        """Posts for the inclusion as it is now, or for `x`."""
        outers = self.ledger.outers
        if x is None:
            x = outers.inclusion_of(round_, base).x if (round_, base) in outers.roots else ZERO
        post, args = outers.post_outer, (round_, base, x, parameters, momentum)
        refusal = self.do(who, "outers", "postOuter", *args, model=lambda: post(who, *args, self.now))
        if refusal is None and self.world is not None:
            fixed = self.ledger.outers.inclusions[round_, base]
            assert self.world.call("outers", "inclusionOf", round_, base) == (fixed.mask, fixed.x, True)
        return refusal

    def finalize_outer(self, who: Address, round_: Round, root: Digest, poster: Address) -> str | None:
        end, args = self.ledger.outers.finalize_outer, (round_, root, poster)
        return self.do(who, "outers", "finalizeOuter", *args, model=lambda: end(*args, self.now))

    def void_outer(self, who: Address, round_: Round, root: Digest, poster: Address) -> str | None:
        end, args = self.ledger.outers.void_outer, (round_, root, poster)
        return self.do(who, "outers", "voidOuter", *args, model=lambda: end(*args, self.now))

    # --- audit

    def register(self, who: Address, role: Role, stake: int) -> str | None:
        key = self.keys.setdefault(who, BlsKey.from_secret(int.from_bytes(who, "big")))
        chain, audit = self.ledger.chain_id, self.ledger.audit_address
        proof = key.prove_possession(chain, audit, who)

        def is_good(public_key: bytes, owner: Address) -> bool:
            return verify_possession(public_key, proof, chain, audit, owner)

        return self.do(
            who, "audit", "register", int(role), key.public_key, proof, stake,
            model=lambda: self.ledger.audit.register(who, role, key.public_key, Wei(stake), is_good),
        )  # fmt: skip

    def retire(self, who: Address) -> str | None:
        return self.do(who, "audit", "retire", model=lambda: self.ledger.audit.retire(who))

    def reclaim(self, who: Address) -> str | None:
        return self.do(who, "audit", "reclaim", model=lambda: self.ledger.audit.reclaim(who, self.now))

    def seed_now(self) -> Digest:
        """What FixedSeed.sol says in this block."""
        return Digest(keccak(encode(["string", "uint256"], ["fixed seed", self.now])))

    def draw_seed(self, who: Address, round_: Round) -> str | None:
        draw = self.ledger.audit.draw_seed
        return self.do(who, "audit", "drawSeed", round_, model=lambda: draw(round_, self.seed_now(), self.now))

    def draw_whistle_seed(self, who: Address, round_: Round) -> str | None:
        draw = self.ledger.audit.draw_whistle_seed
        return self.do(who, "audit", "drawWhistleSeed", round_, model=lambda: draw(round_, self.seed_now(), self.now))

    def bind_leaves(
        self, who: Address, round_: Round, leaves: list[tuple[AttestationLeaf, Seat]], seed: Digest | None = None
    ) -> str | None:
        """attest or whistle, by role, under the role's own seed unless another one is named."""
        audit = self.ledger.audit
        attester = audit.attesters.get(who)
        root = attestation_root([leaf for leaf, _ in leaves])
        verifies = attester is None or attester.role is Role.VERIFIER
        method = audit.attest if verifies else audit.whistle
        name = "attest" if verifies else "whistle"
        drawn = (audit.seeds if verifies else audit.whistle_seeds).get(round_, ZERO)
        named = drawn if seed is None else seed
        refusal = self.do(
            who, "audit", name, round_, named, root, model=lambda: method(who, round_, named, root, self.now)
        )
        if refusal is None:
            self.leaves[round_, who] = leaves
        return refusal

    def ticket(self, who: Address, round_: Round) -> bytes | None:
        """The signature that draws this participant's duties, once its seed is out."""
        audit = self.ledger.audit
        attester = audit.attesters.get(who)
        if attester is None:
            return None
        verifies = attester.role is Role.VERIFIER
        seed = (audit.seeds if verifies else audit.whistle_seeds).get(round_)
        if seed is None:
            return None
        purpose = Purpose.AUDIT if verifies else Purpose.WHISTLE
        return self.keys[who].sign_draw(
            self.ledger.chain_id, audit.ledger.audit_address, self.ledger.charter.run, round_, purpose, seed
        )

    def reveal_draw(self, who: Address, round_: Round) -> str | None:
        y = self.ticket(who, round_) or bytes(256)
        reveal = self.ledger.audit.reveal_draw
        return self.do(
            who, "audit", "revealDraw", round_, y, model=lambda: reveal(who, round_, y, self.now, verify_draw)
        )

    def reveal_leaves(self, who: Address, round_: Round) -> str | None:
        y = self.ticket(who, round_) or bytes(256)
        hidden = self.leaves.get((round_, who), [])
        leaves = [Leaf(seat, leaf.duty, leaf.end_root, leaf.salt) for leaf, seat in hidden]
        shown = [(leaf.seat, leaf.duty, leaf.end_root, leaf.salt) for leaf in leaves]
        reveal = self.ledger.audit.reveal_leaves
        refusal = self.do(
            who, "audit", "revealLeaves", round_, shown, y, model=lambda: reveal(who, round_, leaves, y, self.now)
        )
        if refusal is None and self.world is not None:
            for seat in {leaf.seat for leaf in leaves}:
                excluded = self.ledger.rounds.commitments[round_, seat].excluded
                assert self.world.call("rounds", "commitmentOf", round_, seat)[3] == excluded
        return refusal

    # --- games

    def open_game(self, who: Address, ref: ClaimRef, is_true: bool) -> str | None:
        seen = self.ledger.book_of(ref).claim_of(ref)

        def open_() -> None:
            view = self.ledger.book_of(ref).claim_of(ref)
            if not view.challengeable_from <= self.now <= view.challengeable_until or view.fallen:
                raise AssayError("", code="NotChallengeable")
            self.ledger.book_of(ref).on_opened(ref, who)
            bond = self.ledger.charter.economics.challenge_bond
            try:
                self.ledger.vault.lock(puppet_lock(len(self.games)), who, bond)
            except AssayError:
                self.ledger.on_closed(ref, False, self.now)  # as if it had never opened
                raise

        if self.world is not None:
            assert self._view_on_chain(ref) == self._view_of_model(ref)
        refusal = self.do(who, "game", "open", ref_tuple(ref), model=open_)
        if refusal is None:
            claim = seen.claim
            self.games.append(PuppetGame(ref, who, claim.claimant, is_true, claim.lock_id, seen.lock_amount))
        return refusal

    def finish_game(self, who: Address, number: int, convicted: bool) -> str | None:
        game = self.games[number]

        def finish() -> None:
            if game.over:
                raise AssayError("", code="Over")
            vault, economics = self.ledger.vault, self.ledger.charter.economics
            first = self.ledger.on_closed(game.ref, convicted, self.now)
            lock, bond = puppet_lock(number), economics.challenge_bond
            if not convicted:
                vault.seize(lock, game.defender, Wei(bond // 2))
                vault.burn(lock, Wei(bond - bond // 2))
                return
            vault.release(lock)
            if first:
                bounty = game.lock_amount * economics.bounty_ppm // 1_000_000
                vault.seize(game.lock_id, game.challenger, Wei(bounty))
                vault.burn(game.lock_id, Wei(game.lock_amount - bounty))

        refusal = self.do(who, "game", "finish", number, convicted, model=finish)
        if refusal is None:
            game.over = True
        return refusal

    def _view_on_chain(self, ref: ClaimRef) -> tuple[Any, ...]:
        assert self.world is not None
        book = {ClaimKind.OUTER: "outers", ClaimKind.ATTESTATION: "audit"}.get(ref.kind, "rounds")
        view: tuple[Any, ...] = self.world.call(book, "claimOf", ref_tuple(ref))
        return view

    def _view_of_model(self, ref: ClaimRef) -> tuple[Any, ...]:
        view = self.ledger.book_of(ref).claim_of(ref)
        c = view.claim
        return (
            *(c.id, c.claimant, c.x, c.y, c.program, c.steps, view.challengeable_from, view.challengeable_until),
            *(c.lock_id, view.lock_amount, view.fallen, view.bounty_ppm, bytes(20)),
        )


def ref_tuple(ref: ClaimRef) -> tuple[Any, ...]:
    """The struct as an ABI encoder takes it."""
    return int(ref.kind), ref.round, ref.seat, ref.duty, ref.party, ref.outer_root


def puppet_lock(number: int) -> Digest:
    """The lock of a challenger's bond in PuppetGame.sol."""
    return Digest(keccak(encode(["string", "uint256"], ["puppet", number])))


def wealth(ledger: Ledger, who: Address, withdrawn: int) -> int:
    """Everything that is this person's: free, locked, exiting, withdrawn."""
    vault = ledger.vault
    locked = sum(lock.amount for lock in vault.locks.values() if lock.owner == who)
    return vault.free_of(who) + locked + vault.exits.get(who, (0, 0))[0] + withdrawn


__all__ = ["LedgerPlay", "PuppetGame", "TrueWork", "do_work", "ids", "mark", "true_end", "true_outer", "wealth"]
