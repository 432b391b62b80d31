"""The state machine that both ledger tests run: honest people keep their duties, the others do anything.

After every rule: tokens are conserved, no honest party has lost one, and rules E1 to E5 hold (docs/economics.md).
"""

from __future__ import annotations

import random
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.protocol.digests import ZERO
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import SEATS, Role, Round, Seat
from tests.harness.contracts.world import ETHER
from tests.harness.honest_rules import hp7_the_honest_lose_nothing
from tests.harness.ledger.strangers import (
    CHEATING_SOLVERS,
    DISHONEST,
    HONEST,
    LAZY_VERIFIER,
    LAZY_WHISTLEBLOWER,
    PEOPLE,
    STAKE,
    STRANGER,
    Strangers,
)
from tests.harness.ledger.truth import do_work, mark

anybody = st.sampled_from(range(PEOPLE))
dishonest = st.sampled_from(DISHONEST)
chance = st.randoms(use_true_random=False)
manner = st.sampled_from(["copy", "invent", "true", "undrawn", "mixed"])


class LedgerMachine(Strangers, RuleBasedStateMachine):
    """`steps` counts rules over all examples."""

    steps: ClassVar[int] = 0
    accepted: ClassVar[dict[str, int]] = {}

    @initialize()
    def open_run(self) -> None:
        self.set_up()

    def teardown(self) -> None:
        if hasattr(self, "play"):
            for name, count in self.play.accepted.items():
                type(self).accepted[name] = type(self).accepted.get(name, 0) + count

    # --- rules: time and rounds

    @rule(fraction=st.floats(0.05, 1.0), jumps=st.integers(1, 12))
    def let_time_pass(self, fraction: float, jumps: int) -> None:
        """Towards the next deadline, or past several of them."""
        for _ in range(jumps):
            self.pass_deadline(1.0 if jumps > 1 else fraction)

    @rule(who=anybody)
    def open_round(self, who: int) -> None:
        self.keep_posting()
        if self.play.open_round(self.people[who]) is None:
            self.keep_posting()

    @rule(
        lies=st.tuples(st.integers(0, 4), st.integers(0, 4)),
        manners=st.tuples(manner, manner),
        withhold=st.booleans(),
        false_outer=st.booleans(),
        true_outer=st.booleans(),
        whim=st.booleans(),
    )
    def run_a_round(
        self,
        lies: tuple[int, int],
        manners: tuple[str, str],
        withhold: bool,
        false_outer: bool,
        true_outer: bool,
        whim: bool,
    ) -> None:
        """A whole round in which every dishonest person takes its turn in time; games end as they must."""
        times = self.times()
        if times is not None and self.play.now < times.t7:
            self.towards(times.t7)
        self.open_round(STRANGER)
        round_, times = self.latest(), self.times()
        if times is None or self.play.now > times.t0 + 120:
            return
        r = random.Random(round_)
        for k in CHEATING_SOLVERS:
            self.play.join(self.people[k])
        for k, lie in zip(CHEATING_SOLVERS, lies, strict=True):
            self.commit_something(k, lie, withhold and k == CHEATING_SOLVERS[0], False)
        self.towards(times.t1)
        self.play.register(self.people[LAZY_VERIFIER], Role.VERIFIER, STAKE // 16)
        self.play.register(self.people[LAZY_WHISTLEBLOWER], Role.WHISTLEBLOWER, STAKE // 16)
        for seat in range(SEATS):
            self.play.receipt(self.people[LAZY_VERIFIER], round_, Seat(seat))
        self.towards(times.t2)
        self.play.draw_seed(self.people[STRANGER], round_)
        self.attest_something(LAZY_VERIFIER, manners[0], r)
        self.towards(times.t3)
        self.reveal_a_draw(LAZY_VERIFIER)
        self.towards(times.t4)
        self.play.draw_whistle_seed(self.people[STRANGER], round_)
        self.attest_something(LAZY_WHISTLEBLOWER, manners[1], r)
        self.reveal_a_draw(LAZY_WHISTLEBLOWER)
        self.towards(times.t5)
        self.reveal_leaves(LAZY_VERIFIER)
        self.reveal_leaves(LAZY_WHISTLEBLOWER)
        self.challenge_anything(STRANGER, r)
        self.towards(times.t7)
        if false_outer:
            self.post_an_outer_step(CHEATING_SOLVERS[1], 0, True, False)
        if true_outer:
            self.post_an_outer_step(CHEATING_SOLVERS[0], 0, False, False)
        self.keep_posting()
        for number in range(len(self.play.games)):
            self.end_game(number, whim)
        self.rescue()

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
        round_, seat = self.latest(), self.seat_of(who)
        if seat is None:
            return
        base = self.truth.get(round_, ZERO)
        if odd_base:
            base = max((r for g, r in self.ledger.outers.roots if g == round_), default=base)
        if self.commit(who, round_, seat, None if lie == 4 else lie, base) is None and withhold:
            self.withheld.add((round_, seat))

    @rule(who=anybody, guess=st.integers(0, 3))
    def commit_from_a_convenient_start(self, who: int, guess: int) -> None:
        """The contract refuses work that starts anywhere but where it says."""
        round_, seat = self.latest(), self.seat_of(who)
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
        self.play.receipt(self.people[who], self.latest(), Seat(seat))

    @rule(who=dishonest, manner=manner, r=chance)
    def attest_something(self, who: int, manner: str, r: random.Random) -> None:
        """Copies what is claimed, invents results, answers for duties that it did not draw, ..."""
        round_ = self.latest()
        self.play.bind_leaves(self.people[who], round_, self.make_leaves(who, round_, manner, r))

    @rule(who=dishonest)
    def reveal_a_draw(self, who: int) -> None:
        self.play.reveal_draw(self.people[who], self.latest())

    @rule(who=dishonest)
    def reveal_leaves(self, who: int) -> None:
        self.play.reveal_leaves(self.people[who], self.latest())

    @rule(who=anybody)
    def draw_seeds(self, who: int) -> None:
        self.play.draw_seed(self.people[who], self.latest())
        self.play.draw_whistle_seed(self.people[who], self.latest())

    # --- rules: outer steps

    @rule(who=dishonest, back=st.integers(0, 2), odd=st.booleans(), odd_base=st.booleans())
    def post_an_outer_step(self, who: int, back: int, odd: bool, odd_base: bool) -> None:
        round_ = Round(max(self.latest() - back, 0))
        base = self.truth.get(round_)
        if odd_base:
            base = max((r for g, r in self.ledger.outers.roots if g == round_), default=base)
        if base is None:
            return
        lists = self.true_outer_of(round_, base)
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
        self.rescue()

    @rule(r=chance, at_once=st.booleans())
    def lose_an_outer_claim_on_purpose(self, r: random.Random, at_once: bool) -> None:
        """A puppet challenges a dishonest poster, whatever is true; the game ends now, or when it suits them."""
        crooks = {self.people[k] for k in DISHONEST}
        claims = [(n, y, who) for n, y, who in sorted(self.ledger.outers.claims) if who in crooks]
        if not claims:
            return
        round_, root, poster = r.choice(claims)
        ref = ClaimRef(ClaimKind.OUTER, round_, party=poster, outer_root=root)
        if self.play.open_game(self.people[STRANGER], ref, self.is_true(ref)) is None and at_once:
            self.end_game(len(self.play.games) - 1, True)
            self.rescue()

    # --- rules: games

    @rule(who=dishonest, r=chance)
    def challenge_anything(self, who: int, r: random.Random) -> None:
        """A challenge by somebody who does not care what is true; the stranger's are a third party's."""
        refs = self.all_claims()
        if refs:
            ref = r.choice(refs)
            self.play.open_game(self.people[who], ref, self.is_true(ref))

    @rule(r=chance, whim=st.booleans())
    def end_a_game(self, r: random.Random, whim: bool) -> None:
        """An honest side with the truth wins; where both sides are crooks, anything may happen."""
        self.end_game(r.randrange(max(len(self.play.games), 1)), whim)
        self.rescue()

    @rule()
    def end_all_games(self) -> None:
        for number in range(len(self.play.games)):
            self.end_game(number, number % 2 == 0)
        self.rescue()

    # --- rules: money

    @rule(who=anybody, r=chance)
    def settle_something(self, who: int, r: random.Random) -> None:
        me = self.people[who]
        if self.ledger.rounds.commitments:
            self.settle_work(me, *r.choice(sorted(self.ledger.rounds.commitments)))
        if self.ledger.audit.attendances:
            self.settle_duties(me, *r.choice(sorted(self.ledger.audit.attendances)))
        self.play.settle_round(me, Round(r.randrange(self.latest() + 1)))
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
        self.rescue()
        for round_, seat in sorted(self.ledger.rounds.commitments):
            if not self.ledger.rounds.commitments[round_, seat].closed:
                self.settle_work(me, round_, seat)
        for round_, attester in sorted(self.ledger.audit.attendances):
            attendance = self.ledger.audit.attendances[round_, attester]
            if attendance.revealed and not attendance.closed:
                self.settle_duties(me, round_, attester)
        for grant in sorted(g for g, entry in self.ledger.settlement.grants.items() if not entry.done):
            self.play.release(me, grant)
        for number in range(self.ledger.rounds.latest + 1):
            if Round(number) not in self.ledger.settlement.settled:
                self.play.settle_round(me, Round(number))

    @rule(who=anybody, amount=st.integers(0, 100))
    def move_money(self, who: int, amount: int) -> None:
        """In, out, and out of the vault."""
        me = self.people[who]
        self.deposit(who, amount * ETHER)
        # Honest people keep what their duties need.
        if who not in HONEST or self.ledger.vault.free_of(me) > 2_000 * ETHER:
            self.play.request_exit(me, amount * ETHER // 2)
        leaving = self.ledger.vault.exits.get(me, (0, 0))[0]
        if self.play.withdraw(me) is None:
            self.withdrawn[who] += leaving
        self.play.flush(me)

    @rule(who=anybody, amount=st.integers(0, 10))
    def move_the_escrow(self, who: int, amount: int) -> None:
        """Only the sponsor funds; nothing is taken out while rounds are live."""
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
        gains = {self.people[k]: self.wealth_of(k) - self.richest[k] for k in HONEST}
        hp7_the_honest_lose_nothing(gains, gains.keys())
        for k in HONEST:
            self.richest[k] = self.wealth_of(k)
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
