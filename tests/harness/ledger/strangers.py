"""A run among strangers: some honest, who keep every duty in time, and some who do anything.

`Strangers` holds the run, the people and the truth; tests and the state machine drive it. `world` is None for the pure
model; otherwise every call goes to the contracts too.
"""

from __future__ import annotations

import random
from typing import Any, ClassVar

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.model.ledger import Ledger
from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status
from tests.harness.contracts.world import ETHER, START, RunWorld, charter
from tests.harness.ledger.play import LedgerPlay, wealth
from tests.harness.ledger.truth import do_work, mark, true_end, true_outer

PEOPLE = 12
SPONSOR = 0
HONEST_SOLVERS = (1, 2, 3)
CHEATING_SOLVERS = (4, 5)
HONEST_VERIFIERS = (6, 7)
LAZY_VERIFIER = 8
HONEST_WHISTLEBLOWER = 9
LAZY_WHISTLEBLOWER = 10
STRANGER = 11
HONEST = (SPONSOR, *HONEST_SOLVERS, *HONEST_VERIFIERS, HONEST_WHISTLEBLOWER)
DISHONEST = (*CHEATING_SOLVERS, LAZY_VERIFIER, LAZY_WHISTLEBLOWER, STRANGER)
STAKE = 5_000 * ETHER


class Strangers:
    """`world` is None for the pure model; `snapshot` is the node's state that every run starts from."""

    world: ClassVar[RunWorld | None] = None
    snapshot: ClassVar[str] = ""
    endowment: ClassVar[int] = 9 * STAKE
    """What the sponsor puts into the escrow, in wei."""
    unit: ClassVar[int] = ETHER
    """Wei of what people count in: everybody has 5,000 of it, the sponsor ten times as many."""

    def set_up(self) -> None:
        """People with stakes, a funded escrow, three honest seats, two verifiers, one whistleblower."""
        world = type(self).world
        if world is None:
            terms = charter(sponsor=Address(bytes(19) + bytes([100])))
            people = [Address(bytes(19) + bytes([100 + k])) for k in range(PEOPLE)]
            ledger = Ledger(terms, 31337, Address(b"\xc0" * 20), Address(b"\xad" * 20))
            now = START
        else:
            world.rpc("evm_revert", type(self).snapshot)
            type(self).snapshot = world.rpc("evm_snapshot")
            terms, people = world.charter, world.people
            ledger = Ledger(terms, world.chain_id, world.run.address, world.addresses["audit"])
            now = int(world.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        self.play = LedgerPlay(ledger, people, now, world)
        self.ledger = ledger
        self.people = people
        self.truth: dict[int, Digest] = {0: ledger.outers.genesis}
        self.withheld: set[tuple[Round, Seat]] = set()
        self.lies: dict[tuple[Round, Seat], int | None] = {}
        self.done: set[tuple[Any, ...]] = set()
        self.convicted: set[Address] = set()
        self.withdrawn = [0] * PEOPLE
        self.paid_in = [0] * PEOPLE
        self.paid_out = 0
        self.escrow_in = 0
        for k in range(PEOPLE):
            self.deposit(k, (5_000 if k != SPONSOR else 50_000) * self.unit)
        assert self.play.fund(people[SPONSOR], self.endowment) is None
        self.escrow_in = self.endowment
        for k in HONEST_VERIFIERS:
            assert self.play.register(people[k], Role.VERIFIER, 250 * self.unit) is None
        assert self.play.register(people[HONEST_WHISTLEBLOWER], Role.WHISTLEBLOWER, 200 * self.unit) is None
        for k in HONEST_SOLVERS:
            assert self.play.join(people[k]) is None
        self.richest = [self.wealth_of(k) for k in range(PEOPLE)]

    # --- honest duties

    def pass_deadline(self, fraction: float) -> None:
        times = self.times()
        if times is None:
            self.play.now += int(600 * fraction)
            return
        edges = sorted(
            {
                *(times.t1, times.receipts_until, times.t2, times.t3, times.t4, times.t5),
                *(times.leaves_until, times.t7, times.challenge_until + 1, times.challenge_until + 90_000),
            }
        )
        ahead = next((t for t in edges if t > self.play.now + 60), self.play.now + 4_000)
        if fraction < 1.0:
            self.play.now += int((ahead - self.play.now) * fraction * 0.5)
            return
        self.keep_duties(ahead)
        self.play.now = max(self.play.now, ahead)

    def towards(self, time: int) -> None:
        """Passes every deadline up to `time`, each with what honest people do before it."""
        while self.play.now < time:
            before = self.play.now
            self.pass_deadline(1.0)
            assert self.play.now > before

    def keep_duties(self, until: int) -> None:
        """What honest people do before the clock passes `until`; each kind of duty has 60 s to be done in."""
        times, round_ = self.times(), self.ledger.rounds.latest
        assert times is not None
        if until == times.t1:
            for k in HONEST_SOLVERS:
                seat = self.seat_of(k)
                if seat is not None and (round_, seat) not in self.ledger.rounds.commitments:
                    self.keep_posting()
                    assert self.commit(k, round_, seat, None, self.truth[round_]) is None
        elif until == times.receipts_until:
            self.each(HONEST_VERIFIERS, self.sign_receipts)
        elif until == times.t3:
            self.play.draw_seed(self.people[STRANGER], round_)
            self.each(HONEST_VERIFIERS, self.attest_truly)
        elif until == times.t4:
            self.each(HONEST_VERIFIERS, lambda k: self.play.reveal_draw(self.people[k], round_))
        elif until == times.t5:
            self.play.draw_whistle_seed(self.people[STRANGER], round_)
            self.attest_truly(HONEST_WHISTLEBLOWER)
            assert self.play.reveal_draw(self.people[HONEST_WHISTLEBLOWER], round_) is None
        elif until == times.leaves_until:
            self.each(HONEST_VERIFIERS, self.reveal)
        elif until == times.t7:
            self.reveal(HONEST_WHISTLEBLOWER)
            self.each((*HONEST_VERIFIERS, HONEST_WHISTLEBLOWER), self.accuse)
        elif until == times.challenge_until + 1:
            self.keep_posting()

    def each(self, who: tuple[int, ...], duty: Any) -> None:
        for k in who:
            duty(k)

    def sign_receipts(self, k: int) -> None:
        round_ = self.ledger.rounds.latest
        for r, seat in sorted(self.ledger.rounds.commitments):
            if r == round_ and (r, seat) not in self.withheld:
                assert self.play.receipt(self.people[k], r, seat) is None

    def attest_truly(self, k: int) -> None:
        round_ = self.ledger.rounds.latest
        leaves = self.make_leaves(k, round_, "true", random.Random(k))
        assert self.play.bind_leaves(self.people[k], round_, leaves) is None

    def reveal(self, k: int) -> None:
        assert self.play.reveal_leaves(self.people[k], self.ledger.rounds.latest) is None

    def accuse(self, k: int) -> None:
        """Opens a game on everything that differs from what it revealed itself: claims, then attestations."""
        round_, me = self.ledger.rounds.latest, self.people[k]
        mine = {
            (s, d): root for (r, s, d, who), root in self.ledger.audit.end_roots.items() if (r, who) == (round_, me)
        }
        for (seat, duty), root in sorted(mine.items()):
            refs = [self.work_ref(round_, Seat(seat), duty)]
            refs += [
                ClaimRef(ClaimKind.ATTESTATION, round_, Seat(seat), duty, who)
                for (r, s, d, who), other in sorted(self.ledger.audit.end_roots.items())
                if (r, s, d) == (round_, seat, duty) and other != root
            ]
            for ref in refs:
                view = self.ledger.book_of(ref).claim_of(ref)
                if view.claim.y != root and not view.fallen:
                    assert self.ledger.book_of(ref).may_challenge_directly(ref, me)
                    assert self.play.open_game(me, ref, self.is_true(ref)) is None

    def keep_posting(self) -> None:
        """After T7 an honest participant posts the true outer step unless somebody else has."""
        rounds = self.ledger.rounds
        for number in range(max(rounds.latest - 1, 0), rounds.latest + 1):
            round_ = Round(number)
            if self.play.now < rounds.times(round_).t7 or number not in self.truth:
                continue
            if ("posted", number) not in self.done:
                lists = self.true_outer_of(round_, self.truth[number])
                self.truth[number + 1] = state_digest(lists)
                if not self.is_upheld(round_):
                    poster = self.people[HONEST_VERIFIERS[number % 2]]
                    assert self.play.post_outer(poster, round_, self.truth[number], *lists) is None
                self.done.add(("posted", number))

    def is_upheld(self, round_: Round) -> bool:
        """Does anybody stand by the claim that the true base of this round leads to the true root?"""
        base, root = self.truth[round_], self.truth[round_ + 1]
        claims = [c for (r, y, _), c in sorted(self.ledger.outers.claims.items()) if (r, y) == (round_, root)]
        return any(c.base == base and not c.convicted and not c.closed for c in claims)

    def rescue(self) -> None:
        """Every honest verifier puts its own lock behind each true root of which somebody lost its standing."""
        self.keep_posting()
        for number in sorted(self.truth)[:-1]:
            after, root = Round(number + 1), self.truth[number + 1]
            entry = self.ledger.outers.roots[after, root]
            if entry.is_final or self.play.now + 60 > entry.rescue_until:
                continue
            lists = self.true_outer_of(Round(number), self.truth[number])
            for k in HONEST_VERIFIERS:
                if (Round(number), root, self.people[k]) not in self.ledger.outers.claims:
                    assert self.play.post_outer(self.people[k], Round(number), self.truth[number], *lists) is None
                    self.play.accepted["rescue"] += 1

    def root_is(self, number: int, root: Digest, lists: tuple[Digest, Digest]) -> bool:
        entry = self.ledger.outers.roots[Round(number + 1), root]
        return (entry.parameters, entry.momentum) == lists

    # --- helpers

    def latest(self) -> Round:
        """The round under way; 0 before the first, which is then refused."""
        return Round(max(self.ledger.rounds.latest, 0))

    def times(self) -> Any:
        rounds = self.ledger.rounds
        return rounds.times(rounds.latest) if rounds.latest >= 0 else None

    def deposit(self, k: int, amount: int) -> None:
        if self.play.deposit(self.people[k], amount) is None:
            self.paid_in[k] += amount

    def wealth_of(self, k: int) -> int:
        """Net of what was paid in; the escrow's lock counts as the sponsor's until somebody has earned it."""
        spent = self.paid_out if k == SPONSOR else 0
        return wealth(self.ledger, self.people[k], self.withdrawn[k]) - self.paid_in[k] + spent

    def seat_of(self, k: int) -> Seat | None:
        rounds = self.ledger.rounds
        if rounds.latest < 0 or self.people[k] not in rounds.rosters[rounds.latest]:
            return None
        return Seat(rounds.rosters[rounds.latest].index(self.people[k]))

    def commit(self, k: int, round_: Round, seat: Seat, lie: int | None, base: Digest) -> str | None:
        _, start = self.ledger.rounds.start_of(round_, seat, base)
        entry = self.ledger.outers.roots.get((round_, base))
        parameters = entry.parameters if entry else ZERO
        work = do_work(start, parameters, self.ledger.charter.training.intervals, lie)
        refusal = self.play.commit(self.people[k], round_, seat, work, base)
        if refusal is None:
            self.lies[round_, seat] = lie
        return refusal

    def work_ref(self, round_: Round, seat: Seat, duty: int) -> ClaimRef:
        last = self.ledger.charter.training.intervals
        return ClaimRef(ClaimKind.UPDATE if duty == last else ClaimKind.INTERVAL, round_, seat, duty)

    def make_leaves(self, k: int, round_: Round, manner: str, r: random.Random) -> list[tuple[AttestationLeaf, Seat]]:
        y = self.play.ticket(self.people[k], round_)
        if y is None:
            return []
        leaves = []
        for rr, seat in sorted(self.ledger.rounds.commitments):
            if rr != round_ or not self.ledger.rounds.is_complete(rr, seat):
                continue
            for duty in range(self.ledger.charter.training.duties):
                claim, x, claimed = self.ledger.rounds.duty_of(rr, seat, duty)
                drawn = self.ledger.audit.is_drawn(self.people[k], rr, y, claim, duty)
                if not drawn and not (manner == "undrawn" and r.random() < 0.2):
                    continue
                how = r.choice(["copy", "invent", "true"]) if manner == "mixed" else manner
                truth = true_end(x, self.work_ref(rr, seat, duty).kind)
                root = {"copy": claimed, "invent": mark("invented", x)}.get(how, truth)
                leaves.append((AttestationLeaf(claim, duty, root, mark("salt", claim, bytes([duty, k]))), seat))
        return sorted(leaves, key=lambda item: (item[0].claim_id, item[0].duty))

    def true_outer_of(self, round_: Round, base: Digest) -> tuple[Digest, Digest]:
        fixed = self.ledger.outers.inclusion_of(round_, base)
        entry = self.ledger.outers.roots[round_, base]
        return true_outer(fixed.x, fixed.mask, (entry.parameters, entry.momentum))

    def all_claims(self) -> list[ClaimRef]:
        duties = self.ledger.charter.training.duties
        refs = [self.work_ref(r, s, d) for r, s in sorted(self.ledger.rounds.commitments)[-4:] for d in range(duties)]
        refs += [
            ClaimRef(ClaimKind.ATTESTATION, r, Seat(s), d, who)
            for r, s, d, who in sorted(self.ledger.audit.end_roots)[-12:]
        ]
        refs += [
            ClaimRef(ClaimKind.OUTER, r, party=who, outer_root=root)
            for r, root, who in sorted(self.ledger.outers.claims)[-6:]
        ]
        return refs

    def is_true(self, ref: ClaimRef) -> bool:
        view = self.ledger.book_of(ref).claim_of(ref)
        if ref.kind is ClaimKind.OUTER:
            claim = self.ledger.outers.claims[ref.round, ref.outer_root, ref.party]
            return self.root_is(ref.round, ref.outer_root, self.true_outer_of(ref.round, claim.base))
        last = ref.duty == self.ledger.charter.training.intervals
        return view.claim.y == true_end(view.claim.x, ClaimKind.UPDATE if last else ClaimKind.INTERVAL)

    def end_game(self, number: int, whim: bool) -> None:
        if number >= len(self.play.games) or self.play.games[number].over:
            return
        game = self.play.games[number]
        honest = {self.people[k] for k in HONEST}
        convicted = whim
        if game.is_true and game.defender in honest:
            convicted = False
        if not game.is_true and game.challenger in honest:
            convicted = True
        before = [self.wealth_of(k) for k in range(PEOPLE)]
        burned = self.ledger.vault.burned + self.ledger.vault.flushed
        fallen = self.ledger.book_of(game.ref).claim_of(game.ref).fallen
        assert self.play.finish_game(game.challenger, number, convicted) is None
        change = {self.people[k]: self.wealth_of(k) - before[k] for k in range(PEOPLE)}
        burnt = self.ledger.vault.burned + self.ledger.vault.flushed - burned
        # E1 and E4: only the two sides are touched, and together they have lost what burned.
        assert {who for who, delta in change.items() if delta} <= {game.challenger, game.defender}
        assert sum(change.values()) == -burnt <= 0
        if game.challenger != game.defender and convicted and not fallen:
            assert change[game.defender] == -game.lock_amount
            assert 0 < change[game.challenger] < game.lock_amount
            assert burnt > 0
        if convicted:
            self.convicted.add(game.defender)

    def settle_work(self, me: Address, round_: Round, seat: Seat) -> None:
        before = [self.wealth_of(k) for k in range(PEOPLE) if k != SPONSOR]
        commitment = self.ledger.rounds.commitments[round_, seat]
        lie, e = self.lies[round_, seat], self.ledger.charter.economics
        escrow = self.ledger.settlement.escrow
        if self.play.settle_work(me, round_, seat) is not None:
            return
        paid = escrow - self.ledger.settlement.escrow
        self.paid_out += paid
        after = [self.wealth_of(k) for k in range(PEOPLE) if k != SPONSOR]
        gained = {self.people[k + 1]: b - a for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        # E2: whatever becomes of unconvicted work, its lock returned (wealth counts locks, so nothing was lost).
        # E5: the price goes to the worker or stays where it was.
        assert gained == ({commitment.solver: e.price} if paid else {})
        assert paid in (0, e.price)
        if commitment.convicted:
            assert not paid
        honest = commitment.solver in {self.people[k] for k in HONEST}
        complete = self.ledger.rounds.is_complete(round_, seat)
        final_base = self.ledger.outers.status_of(round_, commitment.base, self.play.now) is Status.FINAL
        if honest and complete and lie is None:
            # Excluded but true work is paid; an honest solver stands on a base that is upheld.
            assert final_base and paid == e.price

    def settle_duties(self, me: Address, round_: Round, attester: Address) -> None:
        escrow = self.ledger.settlement.escrow
        before = self.ledger.vault.free_of(attester)
        if self.play.settle_duties(me, round_, attester) is not None:
            return
        paid = escrow - self.ledger.settlement.escrow
        self.paid_out += paid
        assert self.ledger.vault.free_of(attester) - before == paid
        if attester in self.convicted and self.ledger.audit.attesters[attester].convicted_at:
            assert paid == 0
