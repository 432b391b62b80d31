"""A governed run whose model earns: users pay gateways by voucher, deposits stream to the owners who vote."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain
from assay.protocol.payments.voucher_books import SignedAmount, VoucherBooks
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Wei
from tests.harness.payments.voucher_stage import CHAIN_ID, DELAY, GATEWAYS, KEYS, PPM
from tests.harness.rounds.governed_world import DEMOCRATIC, GovernedChain, GovernedWorld
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.stage import text

PAYERS: Final = [Address(bytes.fromhex(key.address[2:])) for key in KEYS]
WEALTH: Final = 10**6 * ETHER


class EarningChain(GovernedChain):
    """The same contracts, and vouchers."""

    def prepare(self) -> None:
        """The token of its revenue is not the one that it pays in: what people hold of each says where it came from."""
        self.revenue_tokens = (self.evm.deploy("TestToken"),)

    def __init__(self, charter: RunCharter) -> None:
        super().__init__(charter)
        vouchers = self.evm.deploy("Vouchers", self.contracts["RunCharter"].address, PPM, DELAY)
        self.contracts["Vouchers"] = vouchers
        for who in PAYERS:
            self.evm.evm.set_balance(text(who), 10**24)
            self.revenue_tokens[0].call("mint", text(who), WEALTH)
            for spender in (vouchers, self.contracts["Revenue"]):
                self.revenue_tokens[0].call("approve", spender.address, 2**256 - 1, caller=text(who))


@cache
def _chain(charter: RunCharter) -> EarningChain:
    return EarningChain(charter)


class EarningWorld(GovernedWorld):
    """Payers and gateways beside everybody else."""

    chain_of = staticmethod(_chain)

    def __init__(self, charter: RunCharter = DEMOCRATIC, label: object = 0) -> None:
        super().__init__(charter, label)
        self.at_vouchers = Address(bytes.fromhex(self.chain.contracts["Vouchers"].address[2:]))
        (token,) = self.charter.revenue_tokens
        self.earned_in = token
        self.revenue_token = self.chain.revenue_tokens[0]  # type: ignore[attr-defined]
        self.vouchers = VoucherBooks(self.at_vouchers, frozenset({token}), PPM, DELAY, governor=self.governor)
        self.revenue_in = self.claimed = 0

    def pay_in(self, payer: int, gateway: int, amount: int) -> str:
        """A user's deposit at a gateway."""
        who, to, of = PAYERS[payer], GATEWAYS[gateway], self.earned_in
        put = lambda: self.vouchers.deposit(who, to, of, amount)  # noqa: E731
        return self.do(put, "Vouchers", "deposit", text(who), text(to), text(of), amount, who=who)

    def ask_back(self, payer: int, gateway: int, amount: int) -> str:
        who, to, of = PAYERS[payer], GATEWAYS[gateway], self.earned_in
        ask = lambda: self.vouchers.ask_refund(who, to, of, amount, self.now)  # noqa: E731
        return self.do(ask, "Vouchers", "askRefund", text(to), text(of), amount, who=who)

    def take_back(self, payer: int, gateway: int) -> str:
        who, to, of = PAYERS[payer], GATEWAYS[gateway], self.earned_in
        take = lambda: self.vouchers.withdraw(who, to, of, self.now)  # noqa: E731
        return self.do(take, "Vouchers", "withdraw", text(to), text(of), who=who)

    def redeem(self, gateway: int, batch: Sequence[tuple[int, int]]) -> str:
        """A gateway's vouchers of (payer, amount), all signed."""
        to, of, domain = GATEWAYS[gateway], self.earned_in, VoucherDomain(CHAIN_ID, self.at_vouchers)
        claims = [SignedAmount(PAYERS[p], amount, True) for p, amount in batch]
        sent = []
        for p, amount in batch:
            signature = KEYS[p].unsafe_sign_hash(Voucher(PAYERS[p], to, of, Wei(amount)).digest(domain))
            whole = signature.r.to_bytes(32, "big") + signature.s.to_bytes(32, "big") + bytes([signature.v])
            sent.append((text(PAYERS[p]), amount, whole))
        redeem = lambda: self.vouchers.redeem(to, of, claims)  # noqa: E731
        return self.do(redeem, "Vouchers", "redeem", text(to), text(of), sent, who=PAYERS[0])

    def pay_owners(self, amount: int) -> str:
        """What is owed to the owners goes on to Revenue, which takes no less than a million wei."""
        of = self.earned_in
        said = self.do(lambda: self.vouchers.pay_owners(of, amount), "Vouchers", "payOwners", text(of), amount)
        self.revenue_in += 0 if said else amount
        return said

    def deposit_revenue(self, amount: int) -> None:
        """Somebody pays revenue in; it streams to whoever owns shares meanwhile."""
        self.call("Revenue", "deposit", text(self.earned_in), amount, who=PAYERS[0])
        self.revenue_in += amount

    def claim(self, who: Address) -> int:
        """What an owner's shares have earned; what was promised is what is paid."""
        token = text(self.earned_in)
        due = int(self.call("Revenue", "claimable", token, text(who)))
        said = self.refusal("Revenue", "claim", token, who=who)
        assert said == ("" if due else "NothingToClaim")
        self.claimed += due
        return due

    def check_earnings(self) -> None:
        """Every deposit, and to the wei what Vouchers and Revenue hold."""
        of = self.earned_in
        for (who, to, token), held in self.vouchers.deposits.items():
            shown = self.call("Vouchers", "depositOf", text(who), text(to), text(token))
            assert held == PayerDeposit(*shown) and held.asked <= held.balance
        assert self.call("Vouchers", "owedOf", text(of)) == self.vouchers.owed.get(of, 0)
        assert self.revenue_token.call("balanceOf", text(self.at_vouchers)) == self.vouchers.held(of)
        revenue = self.chain.contracts["Revenue"].address
        assert self.revenue_token.call("balanceOf", revenue) == self.revenue_in - self.claimed
        due = sum(int(self.call("Revenue", "claimable", text(of), text(who))) for who in self.people)
        assert due <= self.revenue_in - self.claimed
