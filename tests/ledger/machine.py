"""The state machine that both ledger tests run: honest people keep their duties, the others do anything.

After every rule: tokens are conserved, nobody honest has lost a token, and the rules E1 to E5 of the design hold.
"""

from __future__ import annotations

import random
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.ledger.model import Ledger
from assay.ledger.model.rounds import NO_ONE
from assay.ledger.model.types import Fate, Role
from assay.protocol.charter import SEATS
from assay.protocol.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.digests import ZERO
from assay.protocol.types import Address, Digest, Round, Seat
from tests.contracts.world import ETHER, START, World, charter
from tests.ledger.play import Play, do_work, ids, mark, true_end, true_outer, wealth

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

anybody = st.sampled_from(range(PEOPLE))
dishonest = st.sampled_from(DISHONEST)
chance = st.randoms(use_true_random=False)
manner = st.sampled_from(["copy", "invent", "true", "undrawn", "mixed"])


class LedgerMachine(RuleBasedStateMachine):
    """`world` is None for the pure model; `steps` counts rules over all examples."""

    world: ClassVar[World | None] = None
    snapshot: ClassVar[str] = ""
    steps: ClassVar[int] = 0
    accepted: ClassVar[dict[str, int]] = {}

    @initialize()
    def open_run(self) -> None:
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
        self.play = Play(ledger, people, now, world)
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
            self._deposit(k, STAKE if k != SPONSOR else 10 * STAKE)
        assert self.play.fund(people[SPONSOR], 9 * STAKE) is None
        self.escrow_in = 9 * STAKE
        for k in HONEST_VERIFIERS:
            assert self.play.register(people[k], Role.VERIFIER, 250 * ETHER) is None
        assert self.play.register(people[HONEST_WHISTLEBLOWER], Role.WHISTLEBLOWER, 200 * ETHER) is None
        for k in HONEST_SOLVERS:
            assert self.play.join(people[k]) is None
        self.richest = [self._wealth(k) for k in range(PEOPLE)]

    def teardown(self) -> None:
        if hasattr(self, "play"):
            for name, count in self.play.accepted.items():
                type(self).accepted[name] = type(self).accepted.get(name, 0) + count

    # --- rules: time and rounds

    @rule(fraction=st.floats(0.05, 1.0), jumps=st.integers(1, 12))
    def let_time_pass(self, fraction: float, jumps: int) -> None:
        """Towards the next deadline, or past several of them."""
        for _ in range(jumps):
            self._towards_next_deadline(1.0 if jumps > 1 else fraction)

    @rule(who=anybody)
    def open_round(self, who: int) -> None:
        self._keep_posting()
        if self.play.open_round(self.people[who]) is None:
            self._keep_posting()

    @rule(
        lies=st.tuples(st.integers(0, 4), st.integers(0, 4)),
        manners=st.tuples(manner, manner),
        withhold=st.booleans(),
        false_outer=st.booleans(),
        whim=st.booleans(),
    )
    def run_a_round(
        self, lies: tuple[int, int], manners: tuple[str, str], withhold: bool, false_outer: bool, whim: bool
    ) -> None:
        """A whole round in which every dishonest person takes its turn in time; games end as they must."""
        times = self._times()
        if times is not None and self.play.now < times.t7:
            self._towards(times.t7)
        self.open_round(STRANGER)
        round_, times = self._latest(), self._times()
        if times is None or self.play.now > times.t0 + 120:
            return
        r = random.Random(round_)
        for k in CHEATING_SOLVERS:
            self.play.join(self.people[k])
        for k, lie in zip(CHEATING_SOLVERS, lies, strict=True):
            self.commit_something(k, lie, withhold and k == CHEATING_SOLVERS[0], False)
        self._towards(times.t1)
        self.play.register(self.people[LAZY_VERIFIER], Role.VERIFIER, STAKE // 16)
        self.play.register(self.people[LAZY_WHISTLEBLOWER], Role.WHISTLEBLOWER, STAKE // 16)
        for seat in range(SEATS):
            self.play.receipt(self.people[LAZY_VERIFIER], round_, Seat(seat))
        self._towards(times.t2)
        self.play.draw_seed(self.people[STRANGER], round_)
        self.attest_something(LAZY_VERIFIER, manners[0], r)
        self._towards(times.t3)
        self.reveal_a_draw(LAZY_VERIFIER)
        self._towards(times.t4)
        self.play.draw_whistle_seed(self.people[STRANGER], round_)
        self.attest_something(LAZY_WHISTLEBLOWER, manners[1], r)
        self.reveal_a_draw(LAZY_WHISTLEBLOWER)
        self._towards(times.t5)
        self.reveal_leaves(LAZY_VERIFIER)
        self.reveal_leaves(LAZY_WHISTLEBLOWER)
        self.challenge_anything(STRANGER, r)
        self._towards(times.t7)
        if false_outer:
            self.post_an_outer_step(CHEATING_SOLVERS[1], 0, True, False)
        self._keep_posting()
        for number in range(len(self.play.games)):
            self._end_a_game(number, whim)

    @rule(who=dishonest)
    def join(self, who: int) -> None:
        self.play.join(self.people[who])

    @rule(who=dishonest)
    def leave_seat(self, who: int) -> None:
        self.play.leave_seat(self.people[who])

    # --- rules: solvers

    @rule(who=dishonest, lie=st.integers(0, 4), withhold=st.booleans(), odd_base=st.booleans())
    def commit_something(self, who: int, lie: int, withhold: bool, odd_base: bool) -> None:
        """A lie in duty 0..3, or true work (4), perhaps on a false base, perhaps withheld."""
        round_, seat = self._latest(), self._seat_of(who)
        if seat is None:
            return
        base = self.truth.get(round_, ZERO)
        if odd_base:
            base = max((r for g, r in self.ledger.outers.roots if g == round_), default=base)
        if self._commit(who, round_, seat, None if lie == 4 else lie, base) is None and withhold:
            self.withheld.add((round_, seat))

    @rule(who=anybody, guess=st.integers(0, 3))
    def commit_from_a_convenient_start(self, who: int, guess: int) -> None:
        """The contract refuses work that starts anywhere but where it says."""
        round_, seat = self._latest(), self._seat_of(who)
        if seat is None or (round_, seat) in self.ledger.rounds.commitments:
            return
        intervals = self.ledger.charter.training.intervals
        work = do_work(mark("convenient", bytes([guess])), mark("p"), intervals, None)
        assert self.play.commit(self.people[who], round_, seat, work, self.truth.get(round_, ZERO)) is not None

    # --- rules: verifiers and whistleblowers

    @rule(who=dishonest, role=st.sampled_from([Role.VERIFIER, Role.WHISTLEBLOWER]), stake=st.integers(150, 400))
    def register(self, who: int, role: Role, stake: int) -> None:
        self.play.register(self.people[who], role, stake * ETHER)

    @rule(who=dishonest)
    def retire(self, who: int) -> None:
        self.play.retire(self.people[who])

    @rule(who=dishonest)
    def reclaim(self, who: int) -> None:
        self.play.reclaim(self.people[who])

    @rule(who=dishonest, seat=st.integers(0, SEATS - 1))
    def sign_a_receipt(self, who: int, seat: int) -> None:
        self.play.receipt(self.people[who], self._latest(), Seat(seat))

    @rule(who=dishonest, manner=manner, r=chance)
    def attest_something(self, who: int, manner: str, r: random.Random) -> None:
        """Copies what is claimed, invents results, answers for duties that it did not draw, ..."""
        round_ = self._latest()
        self.play.bind_leaves(self.people[who], round_, self._leaves(who, round_, manner, r))

    @rule(who=dishonest)
    def reveal_a_draw(self, who: int) -> None:
        self.play.reveal_draw(self.people[who], self._latest())

    @rule(who=dishonest)
    def reveal_leaves(self, who: int) -> None:
        self.play.reveal_leaves(self.people[who], self._latest())

    @rule(who=anybody)
    def draw_seeds(self, who: int) -> None:
        self.play.draw_seed(self.people[who], self._latest())
        self.play.draw_whistle_seed(self.people[who], self._latest())

    # --- rules: outer steps

    @rule(who=dishonest, back=st.integers(0, 2), odd=st.booleans(), odd_base=st.booleans())
    def post_an_outer_step(self, who: int, back: int, odd: bool, odd_base: bool) -> None:
        round_ = Round(max(self._latest() - back, 0))
        base = self.truth.get(round_)
        if odd_base:
            base = max((r for g, r in self.ledger.outers.roots if g == round_), default=base)
        if base is None:
            return
        lists = self._true_outer(round_, base)
        if odd:
            lists = (mark("false outer", lists[0]), lists[1])
        self.play.post_outer(self.people[who], round_, base, *lists)

    @rule(who=anybody, r=chance)
    def end_an_outer_claim(self, who: int, r: random.Random) -> None:
        claims = sorted(self.ledger.outers.claims)
        if not claims:
            return
        round_, root, poster = r.choice(claims)
        self.play.finalize_outer(self.people[who], round_, root, poster)
        self.play.void_outer(self.people[who], round_, root, poster)

    # --- rules: games

    @rule(who=dishonest, r=chance)
    def challenge_anything(self, who: int, r: random.Random) -> None:
        """A challenge by somebody who does not care what is true; the stranger's are free-lance."""
        refs = self._all_claims()
        if refs:
            ref = r.choice(refs)
            self.play.open_game(self.people[who], ref, self._is_true(ref))

    @rule(r=chance, whim=st.booleans())
    def end_a_game(self, r: random.Random, whim: bool) -> None:
        """An honest side with the truth wins; where both sides are crooks, anything may happen."""
        self._end_a_game(r.randrange(max(len(self.play.games), 1)), whim)

    @rule()
    def end_all_games(self) -> None:
        for number in range(len(self.play.games)):
            self._end_a_game(number, number % 2 == 0)

    # --- rules: money

    @rule(who=anybody, r=chance)
    def settle_something(self, who: int, r: random.Random) -> None:
        me = self.people[who]
        if self.ledger.rounds.commitments:
            self._settle_work(me, *r.choice(sorted(self.ledger.rounds.commitments)))
        if self.ledger.audit.attendances:
            self._settle_duties(me, *r.choice(sorted(self.ledger.audit.attendances)))
        self.play.settle_round(me, Round(r.randrange(self._latest() + 1)))
        if self.ledger.settlement.grants:
            self.play.release(me, r.choice(sorted(self.ledger.settlement.grants)))

    @rule()
    def settle_everything(self) -> None:
        me = self.people[STRANGER]
        for round_, root, poster in sorted(self.ledger.outers.claims, key=lambda key: key[0]):
            claim = self.ledger.outers.claims[round_, root, poster]
            if not claim.closed and not claim.convicted:
                self.play.finalize_outer(me, round_, root, poster)
                if not claim.closed:
                    self.play.void_outer(me, round_, root, poster)
        for round_, seat in sorted(self.ledger.rounds.commitments):
            if not self.ledger.rounds.commitments[round_, seat].closed:
                self._settle_work(me, round_, seat)
        for round_, attester in sorted(self.ledger.audit.attendances):
            attendance = self.ledger.audit.attendances[round_, attester]
            if attendance.revealed and not attendance.closed:
                self._settle_duties(me, round_, attester)
        for grant in sorted(g for g, entry in self.ledger.settlement.grants.items() if not entry.done):
            self.play.release(me, grant)
        for number in range(self.ledger.rounds.latest + 1):
            if Round(number) not in self.ledger.settlement.settled:
                self.play.settle_round(me, Round(number))

    @rule(who=anybody, amount=st.integers(0, 100))
    def move_money(self, who: int, amount: int) -> None:
        """In, out, and out of the vault."""
        me = self.people[who]
        self._deposit(who, amount * ETHER)
        # Honest people keep what their duties need.
        if who not in HONEST or self.ledger.vault.free_of(me) > 2_000 * ETHER:
            self.play.request_exit(me, amount * ETHER // 2)
        leaving = self.ledger.vault.exits.get(me, (0, 0))[0]
        if self.play.withdraw(me) is None:
            self.withdrawn[who] += leaving
        self.play.flush(me)

    @rule(who=anybody, amount=st.integers(0, 10))
    def move_the_escrow(self, who: int, amount: int) -> None:
        """Only the sponsor funds; nobody takes out while rounds are live."""
        if self.play.fund(self.people[who], amount * ETHER) is None:
            self.escrow_in += amount * ETHER
        if self.ledger.settlement.reserved_total or self.ledger.rounds.latest < 0:
            assert self.play.refund(self.people[who]) is not None

    # --- what always holds

    @invariant()
    def one_more_step(self) -> None:
        type(self).steps += 1

    @invariant()
    def nobody_honest_has_lost(self) -> None:
        if not hasattr(self, "play"):
            return
        for k in HONEST:
            assert self._wealth(k) >= self.richest[k], f"person {k} lost {self.richest[k] - self._wealth(k)}"
            self.richest[k] = self._wealth(k)
            assert self.people[k] not in self.convicted

    @invariant()
    def hidden_things_are_hidden(self) -> None:
        """E3: no result is known before everybody who could copy it has committed."""
        if not hasattr(self, "play"):
            return
        for round_, _, _, _ in self.ledger.audit.end_roots:
            assert self.play.now > self.ledger.rounds.times(round_).t5

    @invariant()
    def the_escrow_pays_for_work_alone(self) -> None:
        """E5: what the escrow lost, final work and duties got; nothing slashed came in."""
        if not hasattr(self, "play"):
            return
        settlement = self.ledger.settlement
        assert settlement.escrow == self.escrow_in - self.paid_out
        assert settlement.escrow >= settlement.reserved_total

    # --- honest duties

    def _towards_next_deadline(self, fraction: float) -> None:
        times = self._times()
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
        self._keep_duties(ahead)
        self.play.now = max(self.play.now, ahead)

    def _towards(self, time: int) -> None:
        """Passes every deadline up to `time`, each with what honest people do before it."""
        while self.play.now < time:
            before = self.play.now
            self._towards_next_deadline(1.0)
            assert self.play.now > before

    def _keep_duties(self, until: int) -> None:
        """What honest people do before the clock passes `until`; each kind of duty has 60 s to be done in."""
        times, round_ = self._times(), self.ledger.rounds.latest
        assert times is not None
        if until == times.t1:
            for k in HONEST_SOLVERS:
                seat = self._seat_of(k)
                if seat is not None and (round_, seat) not in self.ledger.rounds.commitments:
                    self._keep_posting()
                    assert self._commit(k, round_, seat, None, self.truth[round_]) is None
        elif until == times.receipts_until:
            self._each(HONEST_VERIFIERS, self._sign_receipts)
        elif until == times.t3:
            self.play.draw_seed(self.people[STRANGER], round_)
            self._each(HONEST_VERIFIERS, self._attest_truly)
        elif until == times.t4:
            self._each(HONEST_VERIFIERS, lambda k: self.play.reveal_draw(self.people[k], round_))
        elif until == times.t5:
            self.play.draw_whistle_seed(self.people[STRANGER], round_)
            self._attest_truly(HONEST_WHISTLEBLOWER)
            assert self.play.reveal_draw(self.people[HONEST_WHISTLEBLOWER], round_) is None
        elif until == times.leaves_until:
            self._each(HONEST_VERIFIERS, self._reveal)
        elif until == times.t7:
            self._reveal(HONEST_WHISTLEBLOWER)
            self._each((*HONEST_VERIFIERS, HONEST_WHISTLEBLOWER), self._accuse)
        elif until == times.challenge_until + 1:
            self._keep_posting()

    def _each(self, who: tuple[int, ...], duty: Any) -> None:
        for k in who:
            duty(k)

    def _sign_receipts(self, k: int) -> None:
        round_ = self.ledger.rounds.latest
        for r, seat in sorted(self.ledger.rounds.commitments):
            if r == round_ and (r, seat) not in self.withheld:
                assert self.play.receipt(self.people[k], r, seat) is None

    def _attest_truly(self, k: int) -> None:
        round_ = self.ledger.rounds.latest
        leaves = self._leaves(k, round_, "true", random.Random(k))
        assert self.play.bind_leaves(self.people[k], round_, leaves) is None

    def _reveal(self, k: int) -> None:
        assert self.play.reveal_leaves(self.people[k], self.ledger.rounds.latest) is None

    def _accuse(self, k: int) -> None:
        """Opens a game on everything that differs from what it revealed itself: claims, then attestations."""
        round_, me = self.ledger.rounds.latest, self.people[k]
        mine = {
            (s, d): root for (r, s, d, who), root in self.ledger.audit.end_roots.items() if (r, who) == (round_, me)
        }
        for (seat, duty), root in sorted(mine.items()):
            refs = [self._work_ref(round_, Seat(seat), duty)]
            refs += [
                ClaimRef(ClaimKind.ATTESTATION, round_, Seat(seat), duty, who)
                for (r, s, d, who), other in sorted(self.ledger.audit.end_roots.items())
                if (r, s, d) == (round_, seat, duty) and other != root
            ]
            for ref in refs:
                view = self.ledger.book_of(ref).claim_of(ref)
                if view.claim.y != root and not view.fallen:
                    assert self.ledger.book_of(ref).may_challenge_directly(ref, me)
                    assert self.play.open_game(me, ref, self._is_true(ref)) is None

    def _keep_posting(self) -> None:
        """After T7 an honest member posts the true outer step if it does not stand, and accuses false ones in time."""
        rounds = self.ledger.rounds
        for number in range(max(rounds.latest - 1, 0), rounds.latest + 1):
            round_ = Round(number)
            if self.play.now < rounds.times(round_).t7 or number not in self.truth:
                continue
            lists = self._true_outer(round_, self.truth[number])
            if ("posted", number) not in self.done:
                poster = self.people[HONEST_VERIFIERS[number % 2]]
                assert self.play.post_outer(poster, round_, self.truth[number], *lists) is None
                self.done.add(("posted", number))
                root = max(
                    r for g, r in self.ledger.outers.roots if g == number + 1 and self._root_is(number, r, lists)
                )
                self.truth[number + 1] = root

    def _root_is(self, number: int, root: Digest, lists: tuple[Digest, Digest]) -> bool:
        entry = self.ledger.outers.roots[Round(number + 1), root]
        return (entry.parameters, entry.momentum) == lists

    # --- helpers

    def _latest(self) -> Round:
        """The round under way; 0 before the first, which is then refused."""
        return Round(max(self.ledger.rounds.latest, 0))

    def _times(self) -> Any:
        rounds = self.ledger.rounds
        return rounds.times(rounds.latest) if rounds.latest >= 0 else None

    def _deposit(self, k: int, amount: int) -> None:
        if self.play.deposit(self.people[k], amount) is None:
            self.paid_in[k] += amount

    def _wealth(self, k: int) -> int:
        """Net of what was paid in; the escrow's lock counts as the sponsor's until somebody has earned it."""
        spent = self.paid_out if k == SPONSOR else 0
        return wealth(self.ledger, self.people[k], self.withdrawn[k]) - self.paid_in[k] + spent

    def _seat_of(self, k: int) -> Seat | None:
        rounds = self.ledger.rounds
        if rounds.latest < 0 or self.people[k] not in rounds.rosters[rounds.latest]:
            return None
        return Seat(rounds.rosters[rounds.latest].index(self.people[k]))

    def _commit(self, k: int, round_: Round, seat: Seat, lie: int | None, base: Digest) -> str | None:
        _, start = self.ledger.rounds.start_of(round_, seat, base)
        entry = self.ledger.outers.roots.get((round_, base))
        parameters = entry.parameters if entry else ZERO
        work = do_work(start, parameters, self.ledger.charter.training.intervals, lie)
        refusal = self.play.commit(self.people[k], round_, seat, work, base)
        if refusal is None:
            self.lies[round_, seat] = lie
        return refusal

    def _work_ref(self, round_: Round, seat: Seat, duty: int) -> ClaimRef:
        last = self.ledger.charter.training.intervals
        return ClaimRef(ClaimKind.UPDATE if duty == last else ClaimKind.INTERVAL, round_, seat, duty)

    def _leaves(self, k: int, round_: Round, manner: str, r: random.Random) -> list[tuple[AttestationLeaf, Seat]]:
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
                truth = true_end(x, self._work_ref(rr, seat, duty).kind)
                root = {"copy": claimed, "invent": mark("invented", x)}.get(how, truth)
                leaves.append((AttestationLeaf(claim, duty, root, mark("salt", claim, bytes([duty, k]))), seat))
        return sorted(leaves, key=lambda item: (item[0].claim_id, item[0].duty))

    def _true_outer(self, round_: Round, base: Digest) -> tuple[Digest, Digest]:
        fixed = self.ledger.outers.inclusion_of(round_, base)
        entry = self.ledger.outers.roots[round_, base]
        return true_outer(fixed.x, fixed.mask, (entry.parameters, entry.momentum))

    def _all_claims(self) -> list[ClaimRef]:
        duties = self.ledger.charter.training.duties
        refs = [self._work_ref(r, s, d) for r, s in sorted(self.ledger.rounds.commitments)[-4:] for d in range(duties)]
        refs += [
            ClaimRef(ClaimKind.ATTESTATION, r, Seat(s), d, who)
            for r, s, d, who in sorted(self.ledger.audit.end_roots)[-12:]
        ]
        refs += [
            ClaimRef(ClaimKind.OUTER, r, party=who, outer_root=root)
            for r, root, who in sorted(self.ledger.outers.claims)[-6:]
        ]
        return refs

    def _is_true(self, ref: ClaimRef) -> bool:
        view = self.ledger.book_of(ref).claim_of(ref)
        if ref.kind is ClaimKind.OUTER:
            claim = self.ledger.outers.claims[ref.round, ref.outer_root, ref.party]
            return self._root_is(ref.round, ref.outer_root, self._true_outer(ref.round, claim.base))
        last = ref.duty == self.ledger.charter.training.intervals
        return view.claim.y == true_end(view.claim.x, ClaimKind.UPDATE if last else ClaimKind.INTERVAL)

    def _end_a_game(self, number: int, whim: bool) -> None:
        if number >= len(self.play.games) or self.play.games[number].over:
            return
        game = self.play.games[number]
        honest = {self.people[k] for k in HONEST}
        convicted = whim
        if game.is_true and game.defender in honest:
            convicted = False
        if not game.is_true and game.challenger in honest:
            convicted = True
        before = [self._wealth(k) for k in range(PEOPLE)]
        burned = self.ledger.vault.burned + self.ledger.vault.flushed
        fallen = self.ledger.book_of(game.ref).claim_of(game.ref).fallen
        assert self.play.finish_game(game.challenger, number, convicted) is None
        change = {self.people[k]: self._wealth(k) - before[k] for k in range(PEOPLE)}
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

    def _settle_work(self, me: Address, round_: Round, seat: Seat) -> None:
        before = [self._wealth(k) for k in range(PEOPLE) if k != SPONSOR]
        commitment = self.ledger.rounds.commitments[round_, seat]
        lie, e = self.lies[round_, seat], self.ledger.charter.economics
        escrow = self.ledger.settlement.escrow
        if self.play.settle_work(me, round_, seat) is not None:
            return
        paid = escrow - self.ledger.settlement.escrow
        self.paid_out += paid
        after = [self._wealth(k) for k in range(PEOPLE) if k != SPONSOR]
        gained = {self.people[k + 1]: b - a for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        # E2: whatever becomes of unconvicted work, its lock returned (wealth counts locks, so nothing was lost).
        # E5: the price goes to the worker or stays where it was.
        assert gained == ({commitment.solver: e.price} if paid else {})
        assert paid in (0, e.price)
        if commitment.convicted:
            assert not paid
        honest = commitment.solver in {self.people[k] for k in HONEST}
        complete = self.ledger.rounds.is_complete(round_, seat)
        final_base = self.ledger.outers.fate_of(round_, commitment.base, self.play.now) is Fate.FINAL
        if honest and complete and lie is None:
            # Excluded but true work is paid; an honest solver stands on a base that is upheld.
            assert final_base and paid == e.price

    def _settle_duties(self, me: Address, round_: Round, attester: Address) -> None:
        escrow = self.ledger.settlement.escrow
        before = self.ledger.vault.free_of(attester)
        if self.play.settle_duties(me, round_, attester) is not None:
            return
        paid = escrow - self.ledger.settlement.escrow
        self.paid_out += paid
        assert self.ledger.vault.free_of(attester) - before == paid
        if attester in self.convicted and self.ledger.audit.attesters[attester].convicted_at:
            assert paid == 0


__all__ = ["NO_ONE", "LedgerMachine", "ids"]
