"""Shares and revenue: what streams, to whom, and that every unit ends with a holder."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.contracts.run_world import Rejected, RunWorld
from tests.harness.rounds.samples import ETHER

WEEK = 7 * 24 * 3600
STREAM = 4 * WEEK
HOLDERS = (1, 2, 3)


@pytest.fixture
def shares(clean_world: RunWorld) -> RunWorld:
    """The run's shares with a contract of grants that the test speaks for, at the start of a week."""
    world = clean_world
    grants = "0x" + world.addresses["grants"].hex()
    world.rpc("anvil_impersonateAccount", grants)
    world.rpc("anvil_setBalance", grants, hex(10**20))
    for person in world.people:
        world.send(person, "token", "approve", world.addresses["revenue"], 2**256 - 1)
    world.now = (world.now // WEEK + 1) * WEEK
    return world


def mint(world: RunWorld, k: int, amount: int, at: int | None = None) -> None:
    world.send(world.addresses["grants"], "shares", "mint", world.people[k], amount, at=at)


def deposit(world: RunWorld, amount: int, at: int | None = None) -> int:
    """Somebody pays in; returns the chain time at which the stream begins."""
    world.send(world.people[9], "revenue", "deposit", world.addresses["token"], amount, at=at)
    return (world.now // WEEK + 1) * WEEK


def claim(world: RunWorld, k: int, at: int | None = None) -> int:
    token = world.addresses["token"]
    before = world.call("token", "balanceOf", world.people[k])
    try:
        world.send(world.people[k], "revenue", "claim", token, at=at)
    except Rejected as error:
        assert error.name == "NothingToClaim"
    return int(world.call("token", "balanceOf", world.people[k]) - before)


def test_only_grants_mint_and_only_shares_settle(shares: RunWorld) -> None:
    world = shares
    for caller in (world.people[0], world.people[1]):
        with pytest.raises(Rejected, match="NotGrants"):
            world.send(caller, "shares", "mint", caller, 1)
        with pytest.raises(Rejected, match="NotShares"):
            world.send(caller, "revenue", "onTransfer", caller, caller)
        with pytest.raises(Rejected, match="NotPayments"):
            world.send(caller, "grants", "credit", bytes(32), caller, 1, 1, 0)


def test_what_shares_have_earned_is_paid_to_the_payee_whoever_has_the_key(shares: RunWorld) -> None:
    world, (owner, cold, stranger) = shares, (shares.people[k] for k in HOLDERS)
    token = world.addresses["token"]
    mint(world, 1, ETHER)
    begins = deposit(world, 4000 * ETHER)
    world.send(owner, "vault", "setPayee", owner, cold)
    before = world.call("token", "balanceOf", owner)
    with pytest.raises(Rejected) as refused:
        world.send(stranger, "revenue", "claimFor", token, owner, at=begins + 1)
    assert (refused.value.name, refused.value.values) == ("NotThePayee", (owner, cold, stranger))
    for caller, function, at in ((owner, "claim", STREAM // 4), (cold, "claimFor", STREAM)):
        had = world.call("token", "balanceOf", cold)
        world.send(caller, "revenue", function, token, *([owner] if function == "claimFor" else []), at=begins + at)
        assert world.call("token", "balanceOf", cold) - had == (1000 if caller == owner else 3000) * ETHER
    assert world.call("token", "balanceOf", owner) == before


def test_revenue_streams_over_the_four_weeks_after_its_bucket_begins(shares: RunWorld) -> None:
    world = shares
    mint(world, 1, 3 * ETHER)
    mint(world, 2, ETHER)
    begins = deposit(world, 4000 * ETHER)
    assert claim(world, 1, at=begins) == 0
    assert claim(world, 1, at=begins + STREAM // 4) == 750 * ETHER
    assert claim(world, 2, at=begins + STREAM // 2) == 500 * ETHER
    assert claim(world, 1, at=begins + 10 * STREAM) == 2250 * ETHER
    assert claim(world, 2) == 500 * ETHER
    assert world.call("token", "balanceOf", world.addresses["revenue"]) == 0


def test_a_share_held_for_an_hour_earns_an_hours_part(shares: RunWorld) -> None:
    """Neither a lump nor a flash purchase: what streamed before is the seller's."""
    world = shares
    mint(world, 1, 10 * ETHER)
    begins = deposit(world, 4032 * ETHER)  # 6 tokens per hour
    at = begins + STREAM // 2
    world.send(world.people[1], "shares", "transfer", world.people[2], 5 * ETHER, at=at)
    world.send(world.people[2], "shares", "transfer", world.people[1], 5 * ETHER, at=at + 3600)
    assert claim(world, 2) == 3 * ETHER
    assert 4029 * ETHER - 2 <= claim(world, 1, at=begins + STREAM) <= 4029 * ETHER


def test_a_deposit_changes_no_running_stream(shares: RunWorld) -> None:
    world = shares
    mint(world, 1, ETHER)
    begins = deposit(world, 400 * ETHER)
    for k in range(20):  # dust in every few hours, which in a rolling scheme would slow the stream for ever
        deposit(world, 1_000_000, at=begins + k * 10_000 + 1)
    assert claim(world, 1, at=begins + STREAM) >= 400 * ETHER


def test_what_streams_while_nobody_holds_a_share_streams_anew_from_the_first_one(shares: RunWorld) -> None:
    """The week after the first share exists, over four weeks, beside what still streams."""
    world = shares
    begins = deposit(world, 400 * ETHER)
    token, me = world.addresses["token"], world.people[1]
    mint(world, 1, ETHER, at=begins + STREAM // 2)
    assert world.call("revenue", "claimable", token, me) == 0
    assert world.call("revenue", "streamOf", token)[2] == 0, "nothing is parked any more"
    # Half of the deposit was parked. A week on: a quarter of the stream's four weeks, and nothing of what starts then.
    assert claim(world, 1, at=begins + STREAM // 2 + WEEK) == 100 * ETHER
    # Another: a quarter of the old one, and a quarter of the 200 that stream anew.
    assert claim(world, 1, at=begins + STREAM // 2 + 2 * WEEK) == 150 * ETHER
    assert claim(world, 1, at=begins + STREAM // 2 + 5 * WEEK) == 150 * ETHER
    assert world.call("token", "balanceOf", world.addresses["revenue"]) == 0


def test_vesting_a_moment_earlier_gains_no_more_of_the_parked_revenue(shares: RunWorld) -> None:
    world = shares
    begins = deposit(world, 1000 * ETHER)
    late = begins + 2 * STREAM  # all of it has streamed
    mint(world, 1, ETHER, at=late)
    assert claim(world, 1, at=late + 1) == 0
    mint(world, 2, ETHER, at=late + 2)
    assert (claim(world, 1, at=late + 2 * STREAM), claim(world, 2)) == (500 * ETHER, 500 * ETHER)


def test_small_deposits_unlisted_tokens_and_empty_claims_are_refused(shares: RunWorld) -> None:
    world = shares
    payer, token = world.people[9], world.addresses["token"]
    with pytest.raises(Rejected, match="DepositTooSmall"):
        world.send(payer, "revenue", "deposit", token, 999_999)
    with pytest.raises(Rejected, match="TokenNotListed"):
        world.send(payer, "revenue", "deposit", world.addresses["vault"], ETHER)
    with pytest.raises(Rejected, match="NothingToClaim"):
        world.send(payer, "revenue", "claim", token)


def test_a_stranger_that_settles_a_holder_takes_nothing_from_it(shares: RunWorld) -> None:
    """Attack: no share transferred to a holder every few seconds; each time its fraction of a unit was dropped."""
    world = shares
    mint(world, 1, 9 * ETHER)
    mint(world, 2, ETHER)  # a tenth
    begins = deposit(world, 1_000_000)  # 0.04 units a second to the holder
    stranger, holder = world.people[5], world.people[2]
    for k in range(1, 51):
        world.send(stranger, "shares", "transfer", holder, 0, at=begins + 20 * k)
    due = 1_000_000 * 1000 // STREAM // 10
    assert world.call("revenue", "claimable", world.addresses["token"], holder) == due == 41
    assert claim(world, 2, at=begins + 1000) == 41
    # What a claim rounds away is paid by a later one: of the whole stream less than a unit of each is left.
    paid = [claim(world, k, at=begins + 2000 + 20 * n + k) for n in range(10) for k in (1, 2)]
    assert 999_998 <= sum(paid) + 41 + claim(world, 1, at=begins + STREAM) + claim(world, 2) <= 1_000_000


def test_votes_follow_tokens_and_chain_time(shares: RunWorld) -> None:
    world = shares
    me = world.people[1]
    mint(world, 1, 7 * ETHER)
    assert world.call("shares", "getVotes", me) == 0
    world.send(me, "shares", "delegate", me)
    delegated = world.now
    assert world.call("shares", "getVotes", me) == 7 * ETHER
    assert world.call("shares", "CLOCK_MODE") == "mode=timestamp"
    world.send(me, "shares", "transfer", world.people[2], 2 * ETHER, at=delegated + 100)
    world.send(me, "token", "mint", me, 1, at=delegated + 200)
    assert world.call("shares", "getPastVotes", me, delegated + 50) == 7 * ETHER
    assert world.call("shares", "getVotes", me) == 5 * ETHER


class Books:
    """The stream as it is meant: exact fractions, no rounding anywhere."""

    def __init__(self) -> None:
        self.buckets: dict[int, Fraction] = {}
        self.held: dict[int, int] = dict.fromkeys(HOLDERS, 0)
        self.earned: dict[int, Fraction] = dict.fromkeys(HOLDERS, Fraction(0))
        self.parked = Fraction(0)
        self.now = 0

    def advance(self, time: int) -> None:
        streamed = sum((self.part(w, time) - self.part(w, self.now)) * a for w, a in self.buckets.items())
        self.now = time
        supply = sum(self.held.values())
        if not supply:
            self.parked += streamed
            return
        for k in HOLDERS:
            self.earned[k] += streamed * self.held[k] / supply

    def mint(self, k: int, amount: int) -> None:
        """The first share starts what was parked anew, in the bucket of the next week."""
        self.pour(self.parked)
        self.parked = Fraction(0)
        self.held[k] += amount

    def pour(self, amount: Fraction) -> None:
        week = self.now // WEEK + 1
        self.buckets[week] = self.buckets.get(week, Fraction(0)) + amount

    @staticmethod
    def part(week: int, time: int) -> Fraction:
        return min(max(Fraction(time - week * WEEK, STREAM), Fraction(0)), Fraction(1))


action = st.tuples(
    st.sampled_from(["deposit", "deposit", "transfer", "mint", "claim"]),
    st.sampled_from(HOLDERS),
    st.sampled_from(HOLDERS),
    st.integers(1_000_000, 10**21),
    st.one_of(st.integers(1, 3 * WEEK), st.sampled_from([WEEK, STREAM, 10 * WEEK, 60 * WEEK])),
)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(actions=st.lists(action, min_size=3, max_size=14))
def test_every_unit_streams_to_whoever_held_the_shares_then(
    shares: RunWorld, actions: list[tuple[str, int, int, int, int]]
) -> None:
    world, books, claimed = shares, Books(), dict.fromkeys(HOLDERS, 0)
    snapshot = world.rpc("evm_snapshot")
    start = world.now
    books.now = world.now
    deposited, steps = 0, 0
    try:
        for what, a, b, amount, wait in actions:
            at, steps = world.now + wait, steps + 1
            books.advance(at)
            if what == "deposit" or deposited == 0:
                deposit(world, amount, at=at)
                deposited += amount
                books.pour(Fraction(amount))
            elif what == "mint":
                mint(world, a, amount, at=at)
                books.mint(a, amount)
            elif what == "transfer":
                moved = min(amount, books.held[a])
                world.send(world.people[a], "shares", "transfer", world.people[b], moved, at=at)
                books.held[a] -= moved
                books.held[b] += moved
            else:
                claimed[a] += claim(world, a, at=at)
        end = world.now + 5 * STREAM  # longer than what starts anew needs
        books.advance(end)
        for position, k in enumerate(HOLDERS):
            claimed[k] += claim(world, k, at=end + position)
        held = sum(books.held.values())
        for k in HOLDERS:
            # A fraction of a wei per bucket and booking streams a moment later.
            assert abs(books.earned[k] - claimed[k]) <= 4 * len(actions) * (steps + 4), (k, books.earned[k], claimed[k])
        assert sum(claimed.values()) <= deposited
        if held:
            # Claims alone round, and keep the rest: less than a wei of each holder, and one of the stream.
            assert deposited - sum(claimed.values()) <= len(HOLDERS)
    finally:
        world.rpc("evm_revert", snapshot)
        world.now = start
