"""Attacks on the money around a game: a token that calls back, a verdict and a settlement in one block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_hash.auto import keccak

from assay.protocol.types import Address, Round, Seat
from tests.harness.contracts import harness
from tests.harness.contracts.world import ETHER, GAS, RunWorld, _hex
from tests.harness.ledger.play import ref_tuple
from tests.harness.ledger.strangers import CHEATING_SOLVERS, HONEST_VERIFIERS, STRANGER, Strangers

CHEAT = CHEATING_SOLVERS[0]


# --- a token that calls back


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """A run whose token is hostile, and owns a stake of 20 tokens of itself of which half may be withdrawn."""
    world = RunWorld(tmp_path_factory.mktemp("artifacts"), accounts=3, token="ReentrantToken")
    world.artifacts["token"] = harness.artifact("ReentrantToken")
    token, vault = world.addresses["token"], world.addresses["vault"]
    world.send(world.people[1], "token", "mint", token, 100 * ETHER)
    act(world, "token", "approve", vault, 2**256 - 1)
    act(world, "vault", "deposit", 20 * ETHER)
    act(world, "vault", "requestExit", 10 * ETHER)
    world.now += world.charter.windows.exit + 1
    yield world
    world.close()


def act(world: RunWorld, contract: str, function: str, *args: Any) -> None:
    """The token itself calls a contract, as an owner of a stake."""
    call = world.calldata(contract, function, *args)
    world.send(world.people[1], "token", "act", world.addresses[contract], call)


@pytest.mark.parametrize(
    ("function", "args", "back", "back_args"),
    [
        ("deposit", (ETHER,), "deposit", (ETHER,)),
        ("deposit", (ETHER,), "withdraw", ()),
        ("withdraw", (), "withdraw", ()),
        ("withdraw", (), "deposit", (ETHER,)),
        ("withdraw", (), "flush", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_token_that_calls_back_in_a_transfer_takes_nothing_out_twice(
    hostile: RunWorld, function: str, args: tuple[int, ...], back: str, back_args: tuple[int, ...]
) -> None:
    world, token, vault = hostile, hostile.addresses["token"], hostile.addresses["vault"]
    snapshot = world.rpc("evm_snapshot")
    now, before = world.now, world.call("token", "balanceOf", token)
    world.send(world.people[1], "token", "arm", vault, world.calldata("vault", back, *back_args))
    act(world, "vault", function, *args)
    assert world.call("token", "succeeded") == 0
    refusal = world.call("token", "refusal")
    assert refusal[:4] == keccak(b"ReentrancyGuardReentrantCall()")[:4]
    moved = -ETHER if function == "deposit" else 10 * ETHER
    assert world.call("token", "balanceOf", token) - before == moved
    assert world.call("token", "balanceOf", vault) == sum(world.call("vault", "totals"))
    world.rpc("evm_revert", snapshot)
    world.now = now


def test_the_hostile_token_does_call_back_where_nothing_forbids_it(hostile: RunWorld) -> None:
    """Otherwise the test above could not fail."""
    world = hostile
    snapshot, now = world.rpc("evm_snapshot"), world.now
    call = world.calldata("vault", "requestExit", ETHER)
    world.send(world.people[1], "token", "arm", world.addresses["vault"], call)
    act(world, "vault", "deposit", ETHER)
    assert world.call("token", "succeeded") == 1
    # It asked for an exit in the middle of its own deposit: allowed, and harmless.
    assert world.call("token", "balanceOf", world.addresses["vault"]) == sum(world.call("vault", "totals"))
    world.rpc("evm_revert", snapshot)
    world.now = now


# --- a verdict and a settlement in one block


def disputed_after_its_window(s: Strangers) -> Round:
    """A false commitment challenged in the last second of its window, the game still open when the window is over."""
    assert s.play.join(s.people[CHEAT]) is None
    assert s.play.open_round(s.people[STRANGER]) is None
    assert s.commit(CHEAT, s.latest(), Seat(3), 0, s.truth[s.latest()]) is None
    s.towards(s.times().t7)
    s.keep_posting()
    round_ = s.latest()
    s.play.now = s.times().challenge_until - 1
    number = len(s.play.games)
    # Every call is one second on: this is the last second in which a challenge may be made.
    assert s.play.open_game(s.people[STRANGER], s.work_ref(round_, Seat(3), 0), False) is None
    assert s.play.now == s.times().challenge_until
    assert number == len(s.play.games) - 1
    s.towards(s.times().challenge_until + 20)
    poster = s.people[HONEST_VERIFIERS[round_ % 2]]
    assert s.play.finalize_outer(s.people[STRANGER], round_, s.truth[round_ + 1], poster) is None
    return round_


def in_one_block(world: RunWorld, sender: Address, calls: list[tuple[str, str, tuple[Any, ...]]]) -> list[bool]:
    """Sends transactions of one account, mined in this order in one block; which of them succeeded."""
    world.rpc("evm_setAutomine", False)
    try:
        hashes = [
            world.rpc(
                "eth_sendTransaction",
                {
                    "from": _hex(sender),
                    "to": _hex(world.addresses[contract]),
                    "data": _hex(world.calldata(contract, function, *args)),
                    "gas": hex(GAS // 8),
                },
            )
            for contract, function, args in calls
        ]
        world.rpc("evm_mine", hex(world.now + 1))
        receipts = [world.rpc("eth_getTransactionReceipt", h) for h in hashes]
    finally:
        world.rpc("evm_setAutomine", True)
    assert len({r["blockNumber"] for r in receipts}) == 1
    assert [int(r["transactionIndex"], 16) for r in receipts] == list(range(len(calls)))
    return [r["status"] == "0x1" for r in receipts]


@pytest.mark.parametrize("verdict_first", (True, False), ids=("verdict, settlement", "settlement, verdict"))
def test_a_conviction_and_a_settlement_in_one_block_pay_nothing_in_either_order(
    strangers: Strangers, verdict_first: bool
) -> None:
    s = strangers
    round_ = disputed_after_its_window(s)
    world, cheat = type(s).world, s.people[CHEAT]
    assert world is not None
    free, escrow = world.call("vault", "free", cheat), world.call("settlement", "escrow")
    # Honest auditors found the lie as well: all games end in this block.
    verdicts = [("game", "finish", (n, True)) for n, game in enumerate(s.play.games) if not game.over]
    settle = ("settlement", "settleWork", (round_, Seat(3)))
    calls = [*verdicts, settle] if verdict_first else [settle, *verdicts]
    world.now = s.play.now
    done = in_one_block(world, s.people[STRANGER], calls)
    # While a game is open nothing is settled; after the verdict it is settled as convicted.
    assert len(verdicts) > 1
    assert done == [verdict_first or call != settle for call in calls]
    assert world.call("vault", "free", cheat) == free
    assert world.call("settlement", "escrow") == escrow
    claim = world.call("rounds", "claimOf", ref_tuple(s.work_ref(round_, Seat(3), 0)))
    assert claim[10] is True  # fallen
