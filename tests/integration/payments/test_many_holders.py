"""Paying in and claiming cost the same for one holder and for a hundred thousand, and every unit is somebody's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import pytest
from pyrevm import BlockEnv

from assay.protocol.types import Address
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.samples import START
from tests.harness.rounds.stage import person, text
from tests.harness.rounds.staged import modules_at

WEEK = 7 * 86_400
SHARES = 10**18 + 7
"""Of each holder."""
PAID = 10**22
SETTLED = 2 + 4 + 2
"""Accounts that `gas` settles: by two claims, by two transfers one on each side, by two mints."""


@dataclass
class SharedModel:
    """A model's shares and revenue on a chain of their own, and who vests shares in it."""

    evm: Evm
    token: EvmContract
    shares: EvmContract
    revenue: EvmContract
    grants: str
    now: int = START

    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.evm.evm.set_block_env(BlockEnv(number=1, timestamp=self.now, gas_limit=30_000_000, prevrandao=bytes(32)))

    def vest(self, holders: Sequence[Address]) -> None:
        for holder in holders:
            self.shares.call("mint", text(holder), SHARES, caller=self.grants)

    def claim(self, holder: Address) -> int:
        return int(self.revenue.call("claim", self.token.address, caller=text(holder)))

    def gas(self, holder: Address, stranger: Address) -> dict[str, int]:
        """Of each call, when none of its slots is written for the first time; two weeks pass."""
        for _ in range(2):
            self.revenue.call("deposit", self.token.address, PAID)
        found = {"deposit": self.revenue.gas}
        for _ in range(2):
            self.pass_time(WEEK)
            assert self.claim(holder) > 0
        found["claim"] = self.revenue.gas
        for _ in range(2):
            self.shares.call("transfer", text(stranger), SHARES // 4, caller=text(holder))
        found["transfer"] = self.shares.gas
        for _ in range(2):
            self.shares.call("mint", text(holder), 1, caller=self.grants)
        return found | {"mint": self.shares.gas}


def shared_model() -> SharedModel:
    """A charter, its vault, shares and revenue in one token, with money to pay in."""
    evm, grants = Evm(timestamp=START), text(person(0x6A7))
    token = evm.deploy("TestToken")
    caller = Address(bytes.fromhex(evm.caller.removeprefix("0x")))
    nonce = evm.evm.basic(evm.caller).nonce
    charter, vault, shares, revenue = (text(create_address(caller, nonce + k)) for k in range(4))
    terms = replace(RUN, revenue_tokens=(Address(bytes.fromhex(token.address[2:])),))
    places = modules_at(charter=charter, vault=vault, shares=shares, revenue=revenue, grants=grants)
    evm.deploy("RunCharter", terms.as_tuple(), astuple(places))
    evm.deploy("Vault", charter)
    owned, paid = evm.deploy("ModelShares", charter), evm.deploy("Revenue", charter)
    assert paid.address.lower() == revenue
    token.call("mint", evm.caller, 100 * PAID)
    token.call("approve", revenue, 2**256 - 1)
    return SharedModel(evm, token, owned, paid, grants)


@pytest.mark.parametrize("most", [300, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_pay_and_claim_cost_the_same_for_any_number_of_holders(most: int) -> None:
    holders = [Address((0x50_0000 + k).to_bytes(20, "big")) for k in range(most)]
    stranger, gas = person(0x5EE), []
    for some in (holders[:1], holders):
        model = shared_model()
        model.vest(some)
        gas.append(model.gas(holders[0], stranger))
    assert gas[0] == gas[1]
    print({"holders": most, "gas": gas[1]})
    # All streams end and everybody claims: each time that somebody's account was settled, less than a unit was left.
    model.pass_time(10 * WEEK)
    for holder in [*holders, stranger]:
        model.claim(holder)
    left = model.token.call("balanceOf", model.revenue.address)
    assert 0 <= left < len(holders) + 1 + SETTLED
