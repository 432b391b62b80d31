"""Revenue and shares in an EVM beside the model that the explorer reckons with: deposits, mints, and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache

from pyrevm import BlockEnv

from assay.protocol.payments.share_earnings import RevenueStream
from assay.protocol.types import Address
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.samples import START
from tests.harness.rounds.stage import person, text
from tests.harness.rounds.staged import modules_at

GRANTS = person(0x601)
OWNERS = [person(0x611 + k) for k in range(3)]
PAYERS = [person(0x621 + k) for k in range(3)]
WEALTH = 1 << 119


@dataclass(frozen=True)
class RevenueChain:
    """The contracts on a chain of their own."""

    evm: Evm
    token: EvmContract
    shares: EvmContract
    revenue: EvmContract


@cache
def deployed() -> RevenueChain:
    """A charter, its shares and revenue, and payers with tokens."""
    evm = Evm(timestamp=START)
    token = evm.deploy("ReentrantToken")
    caller = Address(bytes.fromhex(evm.caller.removeprefix("0x")))
    nonce = evm.evm.basic(evm.caller).nonce
    charter, shares, revenue = (text(create_address(caller, nonce + k)) for k in range(3))
    terms = replace(RUN, revenue_tokens=(Address(bytes.fromhex(token.address[2:])),))
    modules = modules_at(charter=charter, shares=shares, revenue=revenue, grants=text(GRANTS))
    evm.deploy("RunCharter", terms.as_tuple(), astuple(modules))
    made = evm.deploy("ModelShares", charter)
    paid = evm.deploy("Revenue", charter)
    for who in PAYERS:
        token.call("mint", text(who), WEALTH // len(PAYERS))
        token.call("approve", paid.address, 2**256 - 1, caller=text(who))
    return RevenueChain(evm, token, made, paid)


class RevenueStage:
    """Calls on model and contract at once; the chain is as before after `end`."""

    def __init__(self) -> None:
        self.chain = deployed()
        self.mark = self.chain.evm.evm.snapshot()
        self.stream: RevenueStream[Address] = RevenueStream()
        self.paid = dict.fromkeys(PAYERS, 0)
        self.now = START
        self.pass_time(0)

    def end(self) -> None:
        """The chain is as it was before."""
        self.chain.evm.evm.revert(self.mark)

    def pass_time(self, seconds: int) -> None:
        """Let chain time pass."""
        self.now += seconds
        block = BlockEnv(number=1, timestamp=self.now, gas_limit=30_000_000, prevrandao=bytes(32))
        self.chain.evm.evm.set_block_env(block)

    def deposit(self, payer: int, amount: int) -> None:
        """Somebody pays in."""
        who = PAYERS[payer]
        self.chain.revenue.call("deposit", self.chain.token.address, amount, caller=text(who))
        self.stream.on_deposit([(who, amount)], self.now // (7 * 86_400) + 1)
        self.paid[who] += amount

    def mint(self, owner: int, amount: int) -> None:
        """Shares are made; what waited for the first streams anew before it, as the contract's events say."""
        waited = self.books()[2] if self.stream.supply == 0 else 0
        self.chain.shares.call("mint", text(OWNERS[owner]), amount, caller=text(GRANTS))
        if waited:
            self.stream.on_stream_anew(waited, self.now // (7 * 86_400) + 1, self.now)
        self.stream.on_mint(amount, self.now)

    def transfer(self, source: int, target: int, amount: int) -> None:
        """Shares change hands, of which the model is told nothing."""
        self.chain.shares.call("transfer", text(OWNERS[target]), amount, caller=text(OWNERS[source]))

    def held(self, owner: int) -> int:
        """Shares of an owner."""
        return int(self.chain.shares.call("balanceOf", text(OWNERS[owner])))

    def books(self) -> Sequence[int]:
        """The contract's books now: per share, remainder, waiting."""
        # No shares that change hands have it count up to now.
        self.chain.shares.call("transfer", text(OWNERS[0]), 0, caller=text(OWNERS[0]))
        found = self.chain.revenue.call("streamOf", self.chain.token.address)
        return [int(value) for value in found[:3]]

    def claimable(self, owner: int) -> int:
        """What an owner may take out."""
        return int(self.chain.revenue.call("claimable", self.chain.token.address, text(OWNERS[owner])))

    def compare(self) -> None:
        """The model says what the contract does, and every unit is somebody's, in every week and in all."""
        stream, now = self.stream, self.now
        per_share, _, waiting = self.books()
        weeks, waits = stream.weeks(now), stream.waiting(now)
        assert stream.per_share(now) == per_share
        assert sum(waits.values()) == waiting
        assert sum(week.whole.per_share for week in weeks) == per_share
        earned = sum(week.whole.amount for week in weeks)
        assert earned + waiting + stream.coming(now) == stream.deposited == sum(self.paid.values())
        by = dict.fromkeys(PAYERS, 0)
        for week in weeks:
            assert sum(part.amount for part in week.by.values()) == week.whole.amount
            assert sum(part.per_share for part in week.by.values()) == week.whole.per_share
            for who, part in week.by.items():
                assert part.amount >= 0 and part.per_share >= 0
                by[who] += part.amount
        if stream.coming(now) == 0 and not waits:
            assert by == self.paid
        assert all(by[who] + waits.get(who, 0) <= paid for who, paid in self.paid.items())
        claims = [self.claimable(owner) for owner in range(len(OWNERS))]
        # The contract rounds each owner down: by less than a unit for each time it was settled.
        assert sum(claims) <= earned
