"""Verifiers and whistleblowers: keys with proof, private draws, hidden leaves, attestations that fall once."""

from __future__ import annotations

import random

import pytest

from assay.protocol.digests import ZERO, keccak
from assay.protocol.model import ids
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Role, Round, Seat
from assay_ledger.keys.bls import BlsKey
from tests.harness.contracts.world import ETHER, Rejected
from tests.harness.ledger.play import ref_tuple
from tests.harness.ledger.strangers import (
    CHEATING_SOLVERS,
    HONEST_SOLVERS,
    HONEST_VERIFIERS,
    HONEST_WHISTLEBLOWER,
    LAZY_VERIFIER,
    LAZY_WHISTLEBLOWER,
    STRANGER,
    Strangers,
)

CHEAT = CHEATING_SOLVERS[0]
LAZY = LAZY_VERIFIER
B = 200 * ETHER


def open_round(s: Strangers) -> Round:
    assert s.play.open_round(s.people[STRANGER]) is None
    return s.latest()


def with_lazy_verifier(s: Strangers, stake: int = 500 * ETHER, lie: int | None = 1) -> Round:
    """Round 0 with a lazy verifier among the founders and a cheat in seat 3 that lies in one duty; at T1."""
    assert s.play.register(s.people[LAZY], Role.VERIFIER, stake) is None
    assert s.play.join(s.people[CHEAT]) is None
    round_ = open_round(s)
    assert s.commit(CHEAT, round_, Seat(3), lie, s.truth[0]) is None
    s.towards(s.times().t1)
    for seat in range(4):  # half of the stake is its own, so nothing is complete without it
        if (round_, Seat(seat)) not in s.withheld:
            assert s.play.receipt(s.people[LAZY], round_, Seat(seat)) is None
    return round_


def attest(s: Strangers, k: int, manner: str) -> str | None:
    return s.play.bind_leaves(s.people[k], s.latest(), s.make_leaves(k, s.latest(), manner, random.Random(1)))


def lazy_round(s: Strangers, manner: str = "copy", stake: int = 500 * ETHER) -> None:
    """A round in which the lazy verifier reveals what it copied or invented; at T5 + a moment."""
    with_lazy_verifier(s, stake)
    s.towards(s.times().t2)
    assert s.play.draw_seed(s.people[STRANGER], Round(0)) is None
    assert attest(s, LAZY, manner) is None
    s.towards(s.times().t3)
    assert s.play.reveal_draw(s.people[LAZY], Round(0)) is None
    s.towards(s.times().t5)
    assert s.play.reveal_leaves(s.people[LAZY], Round(0)) is None


def false_attestations(s: Strangers, k: int) -> list[ClaimRef]:
    refs = [
        ClaimRef(ClaimKind.ATTESTATION, r, Seat(seat), duty, who)
        for (r, seat, duty, who) in sorted(s.ledger.audit.end_roots)
        if who == s.people[k]
    ]
    return [ref for ref in refs if not s.is_true(ref)]


# --- registration


def test_a_key_is_registered_by_its_owner_alone_and_once(strangers: Strangers) -> None:
    s = strangers
    me, thief = s.people[LAZY], s.people[STRANGER]
    key = BlsKey.from_secret(12345)
    proof = key.prove_possession(s.ledger.chain_id, s.ledger.audit_address, me)
    with pytest.raises(Rejected, match="BadPossession"):  # a proof from the mempool names its owner
        s.world.send(thief, "audit", "register", 1, key.public_key, proof, B)
    flipped = bytes([*proof[:-1], proof[-1] ^ 1])
    with pytest.raises(Rejected, match="BadPossession"):
        s.world.send(me, "audit", "register", 1, key.public_key, flipped, B)
    s.world.send(me, "audit", "register", 1, key.public_key, proof, B)
    again = key.prove_possession(s.ledger.chain_id, s.ledger.audit_address, thief)
    with pytest.raises(Rejected, match="KeyTaken"):
        s.world.send(thief, "audit", "register", 1, key.public_key, again, B)
    with pytest.raises(Rejected, match="AlreadyRegistered"):
        s.world.send(me, "audit", "register", 2, key.public_key, proof, B)


def test_a_stake_is_at_least_the_bond(strangers: Strangers) -> None:
    s = strangers
    assert s.play.register(s.people[LAZY], Role.VERIFIER, B - 1) == "StakeBelowBond"
    assert s.play.register(s.people[LAZY], Role.NONE, B) == "WrongRole"
    assert s.play.register(s.people[LAZY], Role.VERIFIER, B) is None
    assert s.world.call("vault", "lockOf", ids.attester_lock(s.people[LAZY])) == (s.people[LAZY], B)


def test_a_stake_returns_when_the_last_round_it_was_drawn_in_is_beyond_challenge(strangers: Strangers) -> None:
    s = strangers
    me = s.people[LAZY]
    assert s.play.register(me, Role.VERIFIER, B) is None
    open_round(s)
    assert s.play.retire(me) is None
    assert s.play.retire(me) == "AlreadyRetired"
    assert s.play.reclaim(me) == "NotRetired"
    for _ in range(2):  # it is drawn in rounds 0 and 1
        s.towards(s.times().t7)
        s.keep_posting()
        assert s.world.call("audit", "stakeAt", me, s.latest()) == B
        open_round(s)
    assert s.world.call("audit", "stakeAt", me, 2) == 0
    until = s.ledger.rounds.times(Round(1)).challenge_until
    assert s.play.now < until
    assert s.play.reclaim(me) == "TooEarly"
    s.play.now = until - 1
    assert s.play.reclaim(me) == "TooEarly"
    assert s.play.reclaim(me) is None
    assert s.play.reclaim(me) == "NotRegistered"


# --- draws


def test_seeds_are_drawn_once_each_in_their_time(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.play.now = s.times().t2 - 2
    assert s.play.draw_seed(s.people[STRANGER], Round(0)) == "TooEarly"
    assert s.play.draw_seed(s.people[STRANGER], Round(0)) is None
    assert s.play.draw_seed(s.people[STRANGER], Round(0)) == "SeedAlreadyDrawn"
    s.play.now = s.times().t4 - 2
    assert s.play.draw_whistle_seed(s.people[STRANGER], Round(0)) == "TooEarly"
    assert s.play.draw_whistle_seed(s.people[STRANGER], Round(0)) is None
    audit = s.ledger.audit
    assert s.world.call("audit", "seedOf", 0) == (audit.seeds[Round(0)], audit.whistle_seeds[Round(0)])
    assert audit.seeds[Round(0)] != audit.whistle_seeds[Round(0)]


def test_results_are_bound_before_any_duty_is_known(strangers: Strangers) -> None:
    """E3: no draw is revealed before T3, no result before T5, and nothing is bound after its time."""
    s = strangers
    with_lazy_verifier(s)
    times, me = s.times(), s.people[LAZY]
    assert attest(s, LAZY, "copy") == "SeedNotDrawn"
    s.towards(times.t2)
    assert s.play.draw_seed(me, Round(0)) is None
    assert s.play.reveal_draw(me, Round(0)) == "NotAttested"
    assert attest(s, LAZY, "copy") is None
    assert attest(s, LAZY, "copy") == "AlreadyAttested"
    s.play.now = times.t3 - 1
    assert s.play.reveal_draw(me, Round(0)) == "TooEarly"  # at T3
    assert s.play.reveal_draw(me, Round(0)) is None
    assert s.play.reveal_draw(me, Round(0)) == "AlreadyRevealed"
    s.play.now = times.t5 - 1
    assert s.play.reveal_leaves(me, Round(0)) == "TooEarly"  # at T5
    assert s.play.reveal_leaves(me, Round(0)) is None
    assert s.play.reveal_leaves(me, Round(0)) == "AlreadyRevealed"


def test_a_root_for_duties_drawn_from_another_seed_binds_nothing(strangers: Strangers) -> None:
    """What a reorganization of the chain carries over from one seed to another."""
    s = strangers
    with_lazy_verifier(s)
    times, verifier, whistleblower = s.times(), s.people[LAZY], s.people[HONEST_WHISTLEBLOWER]
    s.towards(times.t2)
    early = s.play.seed_now()
    assert s.play.draw_seed(verifier, Round(0)) is None
    audit_seed = s.ledger.audit.seeds[Round(0)]
    for other in (early, ZERO, keccak(audit_seed)):
        assert s.play.bind_leaves(verifier, Round(0), [], seed=other) == "SeedMismatch"
    assert s.play.bind_leaves(verifier, Round(0), [], seed=audit_seed) is None
    s.towards(times.t4)
    assert s.play.draw_whistle_seed(verifier, Round(0)) is None
    assert s.play.bind_leaves(whistleblower, Round(0), [], seed=audit_seed) == "SeedMismatch"
    assert s.play.bind_leaves(whistleblower, Round(0), []) is None


@pytest.mark.parametrize("what", ["attest", "reveal draw", "reveal leaves"])
def test_what_comes_late_does_not_count(strangers: Strangers, what: str) -> None:
    s = strangers
    with_lazy_verifier(s)
    times, me = s.times(), s.people[LAZY]
    s.towards(times.t2)
    assert s.play.draw_seed(me, Round(0)) is None
    if what == "attest":
        s.play.now = times.t3
        assert attest(s, LAZY, "copy") == "TooLate"
        return
    assert attest(s, LAZY, "copy") is None
    if what == "reveal draw":
        s.play.now = times.t4
        assert s.play.reveal_draw(me, Round(0)) == "TooLate"
        return
    s.towards(times.t3)
    assert s.play.reveal_draw(me, Round(0)) is None
    s.play.now = times.leaves_until
    assert s.play.reveal_leaves(me, Round(0)) == "TooLate"


def test_another_rounds_or_roles_signature_is_no_draw(strangers: Strangers) -> None:
    s = strangers
    with_lazy_verifier(s)
    me = s.people[LAZY]
    s.towards(s.times().t2)
    assert s.play.draw_seed(me, Round(0)) is None
    assert attest(s, LAZY, "copy") is None
    s.towards(s.times().t3)
    good = s.play.ticket(me, Round(0))
    other = s.play.ticket(s.people[HONEST_VERIFIERS[0]], Round(0))
    assert good is not None and other is not None
    for y in (other, good[:-1] + bytes([good[-1] ^ 1]), bytes(256)):
        with pytest.raises(Rejected, match="BadDraw"):
            s.world.send(me, "audit", "revealDraw", 0, y, at=s.play.now + 1)
        s.play.now += 1
    assert s.play.reveal_draw(me, Round(0)) is None


def test_whistleblowers_draw_from_a_seed_of_their_own_after_the_verifiers(strangers: Strangers) -> None:
    s = strangers
    with_lazy_verifier(s)
    me = s.people[HONEST_WHISTLEBLOWER]
    s.towards(s.times().t4)
    assert s.play.draw_whistle_seed(me, Round(0)) is None
    assert attest(s, LAZY, "copy") == "TooLate"  # the verifiers are bound by now
    assert attest(s, HONEST_WHISTLEBLOWER, "true") is None
    assert s.play.reveal_draw(me, Round(0)) is None
    s.play.now = s.times().t7 - 2
    assert s.play.reveal_leaves(me, Round(0)) is None  # at T5 + 2r


# --- leaves


def test_a_leaf_for_a_duty_that_was_not_drawn_is_refused(strangers: Strangers) -> None:
    """An attester that may choose its duties answers where it likes."""
    s = strangers
    assert s.play.register(s.people[LAZY_WHISTLEBLOWER], Role.WHISTLEBLOWER, B) is None
    with_lazy_verifier(s)
    s.towards(s.times().t4)
    me = s.people[LAZY_WHISTLEBLOWER]
    assert s.play.draw_whistle_seed(me, Round(0)) is None
    drawn = s.make_leaves(LAZY_WHISTLEBLOWER, Round(0), "true", random.Random(1))
    more = s.make_leaves(LAZY_WHISTLEBLOWER, Round(0), "undrawn", random.Random(3))
    assert len(more) > len(drawn)  # at q2 / 2 some duty is not drawn
    assert s.play.bind_leaves(me, Round(0), more) is None
    assert s.play.reveal_draw(me, Round(0)) is None
    s.towards(s.times().t5)
    assert s.play.reveal_leaves(me, Round(0)) == "NotDrawn"
    assert s.ledger.audit.attendances[Round(0), me].duties == 0


def test_leaves_are_the_ones_that_were_bound(strangers: Strangers) -> None:
    s = strangers
    with_lazy_verifier(s)
    me = s.people[LAZY]
    s.towards(s.times().t2)
    assert s.play.draw_seed(me, Round(0)) is None
    assert attest(s, LAZY, "copy") is None
    s.towards(s.times().t3)
    assert s.play.reveal_draw(me, Round(0)) is None
    s.towards(s.times().t5)
    bound = s.play.leaves[Round(0), me]
    others = s.make_leaves(LAZY, Round(0), "true", random.Random(1))
    assert others != bound
    cases = {
        "RootMismatch": others,  # what the others have revealed meanwhile
        "NotSorted": [bound[1], bound[0], *bound[2:]],
    }
    for name, leaves in cases.items():
        s.play.leaves[Round(0), me] = leaves
        assert s.play.reveal_leaves(me, Round(0)) == name
    s.play.leaves[Round(0), me] = bound[:-1]
    assert s.play.reveal_leaves(me, Round(0)) == "RootMismatch"
    s.play.leaves[Round(0), me] = [*bound, bound[-1]]
    assert s.play.reveal_leaves(me, Round(0)) == "NotSorted"
    s.play.leaves[Round(0), me] = bound
    assert s.play.reveal_leaves(me, Round(0)) is None


def test_another_signature_than_the_revealed_one_opens_nothing(strangers: Strangers) -> None:
    s = strangers
    with_lazy_verifier(s)
    me = s.people[LAZY]
    s.towards(s.times().t2)
    assert s.play.draw_seed(me, Round(0)) is None
    assert attest(s, LAZY, "copy") is None
    s.towards(s.times().t3)
    assert s.play.reveal_draw(me, Round(0)) is None
    s.towards(s.times().t5)
    with pytest.raises(Rejected, match="TicketMismatch"):
        s.world.send(me, "audit", "revealLeaves", 0, [], b"\x01" * 256, at=s.play.now + 1)


def test_a_revealed_mismatch_is_an_attestation_and_excludes_the_seat(strangers: Strangers) -> None:
    s = strangers
    lazy_round(s, "invent")
    assert s.world.call("rounds", "commitmentOf", 0, 0)[3]  # an honest seat, left out by an invented result
    false = false_attestations(s, LAZY)
    assert false
    # The solver whose work is denied may challenge at once, and so may a party that revealed another result.
    ref = next(r for r in false if r.seat == 0)
    solver = s.ledger.rounds.commitments[Round(0), Seat(0)].solver
    assert s.world.call("audit", "mayChallengeDirectly", ref_tuple(ref), solver)
    assert not s.world.call("audit", "mayChallengeDirectly", ref_tuple(ref), s.people[STRANGER])
    s.towards(s.times().leaves_until)
    honest = s.people[HONEST_VERIFIERS[0]]
    seen = {(seat, duty) for (_, seat, duty, who) in s.ledger.audit.end_roots if who == honest}
    for ref in false:
        drawn = (ref.seat, ref.duty) in seen
        assert s.world.call("audit", "mayChallengeDirectly", ref_tuple(ref), honest) is drawn
        work = s.work_ref(Round(0), ref.seat, ref.duty)
        assert s.world.call("rounds", "mayChallengeDirectly", ref_tuple(work), s.people[LAZY])
        lies = drawn and not s.is_true(work)
        assert s.world.call("rounds", "mayChallengeDirectly", ref_tuple(work), honest) is lies


def test_one_false_attestation_costs_the_bond_and_many_cost_it_once(strangers: Strangers) -> None:
    s = strangers
    lazy_round(s, "invent")
    me, stake = s.people[LAZY], 500 * ETHER
    false = false_attestations(s, LAZY)
    assert len(false) > 3
    challenger = s.people[HONEST_SOLVERS[0]]
    for ref in false[:3]:
        assert s.play.open_game(challenger, ref, False) is None
    first = len(s.play.games) - 3
    before = s.wealth_of(LAZY)
    for number in range(first, first + 3):
        s.end_game(number, True)
    assert s.wealth_of(LAZY) == before - B
    assert s.ledger.vault.lock_amount(ids.attester_lock(me)) == stake - B
    assert s.play.open_game(challenger, false[3], False) == "NotChallengeable"
    # Its verdict convicts no other party (E1): the solvers it denied, and those it affirmed, stand.
    assert not any(c.convicted for c in s.ledger.rounds.commitments.values())


def test_a_convicted_verifier_is_paid_nothing_and_drawn_no_more(strangers: Strangers) -> None:
    s = strangers
    lazy_round(s)
    false = false_attestations(s, LAZY)
    assert [(ref.seat, ref.duty) for ref in false] == [(3, 1)]  # it copied the cheat's lie
    assert s.play.open_game(s.people[HONEST_VERIFIERS[0]], false[0], False) is None
    s.end_game(len(s.play.games) - 1, True)
    me = s.people[LAZY]
    assert s.play.settle_duties(me, Round(0), me) is None
    assert s.ledger.vault.free_of(me) < 5_000 * ETHER - 500 * ETHER + 1
    assert ids.duties_grant(Round(0), me) not in s.ledger.settlement.grants
    s.towards(s.times().t7)
    s.keep_posting()
    for stake in (500 * ETHER, 0):  # round 1 was drawn among stakes that counted before the conviction
        round_ = open_round(s)
        assert s.world.call("audit", "stakeAt", me, round_) == stake
        s.towards(s.times().t1)
        assert s.play.receipt(me, round_, Seat(0)) == "NotAVerifier"
        s.towards(s.times().t7)
        s.keep_posting()


def test_a_verdict_against_a_claim_convicts_no_attester(strangers: Strangers) -> None:
    """A true claim that its owner loses on purpose costs those who attested it nothing."""
    s = strangers
    with_lazy_verifier(s, lie=None)
    s.towards(s.times().t7)
    assert s.play.open_game(s.people[STRANGER], s.work_ref(Round(0), Seat(3), 0), True) is None
    s.end_game(len(s.play.games) - 1, True)
    assert s.ledger.rounds.commitments[Round(0), Seat(3)].convicted
    assert not any(a.convicted_at for a in s.ledger.audit.attesters.values())
    s.towards(s.times().challenge_until + 1)
    verifier = s.people[HONEST_VERIFIERS[0]]
    duties = s.ledger.audit.attendances[Round(0), verifier].duties
    free = s.ledger.vault.free_of(verifier)
    assert duties > 0
    s.settle_duties(verifier, Round(0), verifier)
    assert s.ledger.vault.free_of(verifier) - free == duties * s.ledger.charter.economics.wage


def test_an_incomplete_commitment_has_no_duties(strangers: Strangers) -> None:
    s = strangers
    s.withheld.add((Round(0), Seat(3)))
    with_lazy_verifier(s)
    s.towards(s.times().t3)
    with pytest.raises(Rejected, match="ClaimNotFound"):
        s.world.call("rounds", "dutyOf", 0, 3, 0)
