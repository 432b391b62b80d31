"""Escrow, pay, wages, shares: fixed prices, nothing redistributed, nothing back to the sponsor before the end."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from assay.protocol.model import ids
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Role, Round, Seat
from tests.harness.contracts.world import ETHER, RunWorld, charter
from tests.harness.ledger.strangers import (
    CHEATING_SOLVERS,
    HONEST_SOLVERS,
    HONEST_VERIFIERS,
    HONEST_WHISTLEBLOWER,
    LAZY_VERIFIER,
    PEOPLE,
    SPONSOR,
    STRANGER,
    Strangers,
)

CHEAT = CHEATING_SOLVERS[0]
W = 100 * ETHER
WAGE = 26 * ETHER


def play_round(s: Strangers, lie: int | None = None, cheat: bool = False) -> Round:
    """A whole round with every honest duty kept, its games over, beyond its window, its outer step final."""
    assert s.play.open_round(s.people[STRANGER]) is None
    if cheat:
        assert s.commit(CHEAT, s.latest(), Seat(3), lie, s.truth[s.latest()]) is None
    s.towards(s.times().t7)
    s.keep_posting()
    for number in range(len(s.play.games)):
        s.end_game(number, True)
    s.towards(s.times().challenge_until + 20)
    round_ = s.latest()
    poster = s.people[HONEST_VERIFIERS[round_ % 2]]
    assert s.play.finalize_outer(s.people[STRANGER], round_, s.truth[round_ + 1], poster) is None
    return round_


def settle_all(s: Strangers, round_: Round) -> None:
    for r, seat in sorted(s.ledger.rounds.commitments):
        if r == round_:
            s.settle_work(s.people[STRANGER], r, seat)
    for r, who in sorted(s.ledger.audit.attendances):
        if r == round_ and s.ledger.audit.attendances[r, who].revealed:
            s.settle_duties(s.people[STRANGER], r, who)


def test_final_work_is_paid_and_credited_at_the_fixed_price_and_once(strangers: Strangers) -> None:
    s = strangers
    round_ = play_round(s)
    me = s.people[HONEST_SOLVERS[0]]
    free, escrow = s.ledger.vault.free_of(me), s.ledger.settlement.escrow
    assert s.play.settle_work(s.people[STRANGER], round_, Seat(0)) is None
    assert s.ledger.vault.free_of(me) - free == W + 60 * ETHER  # pay, and the lock back
    assert s.world.call("settlement", "escrow") == escrow - W
    assert s.play.settle_work(s.people[STRANGER], round_, Seat(0)) == "AlreadyClosed"
    grant = s.world.call("vesting", "grantOf", ids.work_grant(round_, Seat(0)))
    assert grant == (me, 100 * ETHER, s.ledger.settlement.vests_at(round_), False, False)
    assert s.world.call("shares", "totalSupply") == 0  # pending shares are no tokens, and vote nowhere


@pytest.mark.parametrize("what", ("work", "duties"))
def test_nothing_is_paid_before_the_window_is_over(strangers: Strangers, what: str) -> None:
    """A challenge in the last second of the window still finds the money there."""
    s = strangers
    assert s.play.open_round(s.people[STRANGER]) is None
    s.towards(s.times().t7)
    s.keep_posting()
    caller = s.people[STRANGER]

    def settle() -> str | None:
        if what == "work":
            return s.play.settle_work(caller, Round(0), Seat(0))
        return s.play.settle_duties(caller, Round(0), s.people[HONEST_VERIFIERS[0]])

    s.play.now = s.times().challenge_until - 1
    assert settle() == "TooEarly"
    assert s.play.now == s.times().challenge_until
    assert settle() is None


def test_convicted_work_is_not_paid_and_its_price_goes_to_nobody(strangers: Strangers) -> None:
    s = strangers
    assert s.play.join(s.people[CHEAT]) is None
    round_ = play_round(s, lie=0, cheat=True)
    assert s.ledger.rounds.commitments[round_, Seat(3)].convicted
    before = [s.wealth_of(k) for k in range(1, PEOPLE)]
    escrow = s.ledger.settlement.escrow
    assert s.play.settle_work(s.people[CHEAT], round_, Seat(3)) is None
    assert s.ledger.settlement.escrow == escrow
    assert [s.wealth_of(k) for k in range(1, PEOPLE)] == before
    assert ids.work_grant(round_, Seat(3)) not in s.ledger.settlement.grants


def test_excluded_but_true_work_is_paid_in_full(strangers: Strangers) -> None:
    s = strangers
    me = s.people[LAZY_VERIFIER]
    assert s.play.register(me, Role.VERIFIER, 260 * ETHER) is None
    assert s.play.open_round(s.people[STRANGER]) is None
    s.towards(s.times().t2)
    assert s.play.draw_seed(me, Round(0)) is None
    assert s.play.bind_leaves(me, Round(0), s.make_leaves(LAZY_VERIFIER, Round(0), "invent", random.Random(1))) is None
    s.towards(s.times().t3)
    assert s.play.reveal_draw(me, Round(0)) is None
    s.towards(s.times().t5)
    assert s.play.reveal_leaves(me, Round(0)) is None
    s.towards(s.times().t7)
    s.keep_posting()
    excluded = [k for k in range(3) if s.ledger.rounds.commitments[Round(0), Seat(k)].excluded]
    assert excluded
    # The solver that was denied takes the bond of the party that denied it.
    seat = Seat(excluded[0])
    duty = next(d for (_, k, d, who) in sorted(s.ledger.audit.end_roots) if who == me and k == seat)
    ref = ClaimRef(ClaimKind.ATTESTATION, Round(0), seat, duty, me)
    solver = s.people[HONEST_SOLVERS[excluded[0]]]
    assert s.play.open_game(solver, ref, False) is None
    for number in range(len(s.play.games)):
        s.end_game(number, True)
    assert s.ledger.audit.attesters[me].convicted_at
    s.towards(s.times().challenge_until + 20)
    free = s.ledger.vault.free_of(solver)
    assert s.play.settle_work(s.people[STRANGER], Round(0), seat) is None
    assert s.ledger.vault.free_of(solver) - free == W + 60 * ETHER


def test_wages_are_per_drawn_and_revealed_duty(strangers: Strangers) -> None:
    s = strangers
    round_ = play_round(s)
    paid = 0
    for k in (*HONEST_VERIFIERS, HONEST_WHISTLEBLOWER):
        me = s.people[k]
        duties = sum(who == me for (_, _, _, who) in s.ledger.audit.end_roots)
        free = s.ledger.vault.free_of(me)
        assert s.play.settle_duties(s.people[STRANGER], round_, me) is None
        assert s.ledger.vault.free_of(me) - free == duties * WAGE
        paid += duties
        grant = s.ledger.settlement.grants.get(ids.duties_grant(round_, me))
        assert (grant.amount if grant else 0) == 3 * ETHER * duties
    assert paid > 0
    assert s.play.settle_duties(s.people[STRANGER], round_, s.people[STRANGER]) == "NotAttested"


def test_shares_vest_after_the_longer_wait_and_only_then_exist(strangers: Strangers) -> None:
    s = strangers
    round_ = play_round(s)
    settle_all(s, round_)
    grant, me = ids.work_grant(round_, Seat(0)), s.people[HONEST_SOLVERS[0]]
    at = s.ledger.settlement.vests_at(round_)
    assert at == s.ledger.rounds.times(round_).t7 + 20 * s.ledger.charter.windows.round_length
    s.play.now = at - 2
    assert s.play.release(me, grant) == "NotVested"
    assert s.world.call("shares", "balanceOf", me) == 0
    assert s.play.release(me, grant) is None
    assert s.world.call("shares", "balanceOf", me) == 100 * ETHER
    assert s.play.release(me, grant) == "GrantNotFound"


def test_a_verifiers_conviction_cancels_what_is_pending_and_nothing_that_vested(strangers: Strangers) -> None:
    s = strangers
    me = s.people[LAZY_VERIFIER]
    assert s.play.register(me, Role.VERIFIER, 260 * ETHER) is None
    assert s.play.join(s.people[CHEAT]) is None

    def lazy_round(lie: int | None) -> Round:
        assert s.play.open_round(s.people[STRANGER]) is None
        round_ = s.latest()
        assert s.commit(CHEAT, round_, Seat(3), lie, s.truth[round_]) is None
        s.towards(s.times().t2)
        assert s.play.draw_seed(me, round_) is None
        leaves = s.make_leaves(LAZY_VERIFIER, round_, "copy" if lie is None else "invent", random.Random(1))
        assert s.play.bind_leaves(me, round_, leaves) is None
        s.towards(s.times().t3)
        assert s.play.reveal_draw(me, round_) is None
        s.towards(s.times().t5)
        assert s.play.reveal_leaves(me, round_) is None
        s.towards(s.times().t7)
        s.keep_posting()
        return round_

    settled = [lazy_round(None)]
    first_vests = s.ledger.settlement.vests_at(settled[0])
    s.play.now = first_vests - 10_000
    settled.append(lazy_round(None))
    last = lazy_round(1)  # by now the first grant has vested, and was not pulled
    for r in settled:
        assert s.play.settle_duties(me, r, me) is None
    for number in range(len(s.play.games)):
        s.end_game(number, True)
    solver = s.people[HONEST_SOLVERS[0]]
    duty = next(d for (r, k, d, who) in sorted(s.ledger.audit.end_roots) if who == me and (r, k) == (last, 0))
    if not s.ledger.audit.attesters[me].convicted_at:
        assert s.play.open_game(solver, ClaimRef(ClaimKind.ATTESTATION, last, Seat(0), duty, me), False) is None
        s.end_game(len(s.play.games) - 1, True)
    convicted = s.ledger.audit.attesters[me].convicted_at
    assert convicted > first_vests
    s.play.now = s.ledger.settlement.vests_at(last) + 10
    kept = 0
    for r in settled:
        grant = s.ledger.settlement.grants[ids.duties_grant(r, me)]
        assert s.play.release(me, ids.duties_grant(r, me)) is None
        kept += grant.amount if grant.vests_at <= convicted else 0
    assert 0 < kept < sum(s.ledger.settlement.grants[ids.duties_grant(r, me)].amount for r in settled)
    assert s.world.call("shares", "balanceOf", me) == kept
    assert s.world.call("vesting", "pendingOf", me) == 0


def test_the_escrow_returns_only_after_the_last_claim(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = RunWorld(tmp_path_factory.mktemp("artifacts"), charter(rounds=1))
    try:
        first = world.rpc("evm_snapshot")
        s: Strangers = type("Short", (Strangers,), {"world": world, "snapshot": first})()
        s.set_up()
        sponsor = s.people[SPONSOR]
        assert s.play.refund(sponsor) == "RunNotOver"
        round_ = play_round(s)
        assert s.play.open_round(sponsor) == "RunOver"
        assert s.play.join(s.people[CHEAT]) == "RunOver"
        assert s.play.refund(sponsor) == "RunNotOver"
        assert s.play.settle_round(sponsor, round_) == "RoundUnsettled"
        settle_all(s, round_)
        assert s.play.settle_round(sponsor, round_) is None
        assert s.play.settle_round(sponsor, round_) == "AlreadySettled"
        left, free = s.ledger.settlement.escrow, s.ledger.vault.free_of(sponsor)
        assert s.play.refund(s.people[STRANGER]) is None  # anybody calls, the sponsor is paid
        assert s.ledger.vault.free_of(sponsor) - free == left
        assert world.call("settlement", "escrow") == 0
        # Participants get out when the run is over and their last round is beyond challenge.
        verifier = s.people[HONEST_VERIFIERS[0]]
        assert s.play.reclaim(verifier) is None
        assert s.play.leave_seat(s.people[HONEST_SOLVERS[0]]) is None
    finally:
        world.close()


def test_only_the_sponsor_funds(strangers: Strangers) -> None:
    s = strangers
    assert s.play.fund(s.people[STRANGER], ETHER) == "NotTheSponsor"


def test_a_run_that_pays_in_shares_alone_still_pays_wages(tmp_path_factory: pytest.TempPathFactory) -> None:
    terms = charter()
    terms = replace(terms, economics=replace(terms.economics, pays=False))
    world = RunWorld(tmp_path_factory.mktemp("artifacts"), terms)
    try:
        s: Strangers = type("Shares", (Strangers,), {"world": world, "snapshot": world.rpc("evm_snapshot")})()
        s.set_up()
        round_ = play_round(s)
        me, verifier = s.people[HONEST_SOLVERS[0]], s.people[HONEST_VERIFIERS[0]]
        free = s.ledger.vault.free_of(me)
        assert s.play.settle_work(me, round_, Seat(0)) is None
        assert s.ledger.vault.free_of(me) - free == 60 * ETHER
        assert s.world.call("vesting", "pendingOf", me) == 100 * ETHER
        free = s.ledger.vault.free_of(verifier)
        assert s.play.settle_duties(verifier, round_, verifier) is None
        assert s.ledger.vault.free_of(verifier) > free
    finally:
        world.close()
