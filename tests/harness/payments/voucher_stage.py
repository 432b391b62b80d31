"""Vouchers in an EVM beside their model: payers with keys, a wallet that is a contract, gateways; calls on both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount
from pyrevm import BlockEnv

from assay.protocol.errors import RejectedError
from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain, owners_part
from assay.protocol.payments.voucher_books import SignedAmount, VoucherBooks
from assay.protocol.types import Address, Wei
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract, Reverted
from tests.harness.contracts.node_evm import NodeEvm
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.samples import START
from tests.harness.rounds.stage import person, text
from tests.harness.rounds.staged import modules_at

PPM: Final = 123_457
DELAY: Final = 7200
WEALTH: Final = 10**12
CHAIN_ID: Final = 1
"""Of pyrevm."""
MIN_PAYMENT: Final = 1_000_000
"""Least deposit of Revenue, in wei."""

KEYS: Final[Sequence[LocalAccount]] = [Account.from_key((0xA11CE + k).to_bytes(32, "big")) for k in range(4)]
GATEWAYS: Final = [person(0x301 + k) for k in range(2)]
ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of secp256k1."""


class Mood(IntEnum):
    """What VoucherWallet.sol says of a signature."""

    HONEST = 0
    DENIES = 1
    BURNS = 2
    NONSENSE = 3
    REVERTS = 4


class Fault(IntEnum):
    """What is wrong with a voucher of a batch."""

    NONE = 0
    STRANGER = 1
    OTHER_GATEWAY = 2
    OTHER_TOKEN = 3
    OTHER_CHAIN = 4
    OTHER_CONTRACT = 5
    OTHER_AMOUNT = 6
    HIGH_S = 7
    SHORT = 8


@dataclass(frozen=True)
class VoucherChain:
    """The contracts on a chain of their own. `wallet` belongs to the last of `KEYS`."""

    evm: Evm | NodeEvm
    tokens: Sequence[EvmContract]
    revenue: EvmContract
    vouchers: EvmContract
    wallet: EvmContract


def deployed(token: str = "ReentrantToken", evm: Evm | NodeEvm | None = None) -> VoucherChain:
    """A charter, its shares and revenue, and vouchers of it, in two tokens."""
    evm = evm or Evm(timestamp=START)
    tokens = [evm.deploy(token) for _ in range(2)]
    caller = Address(bytes.fromhex(evm.caller.removeprefix("0x")))
    nonce = evm.evm.basic(evm.caller).nonce
    charter, shares, revenue = (text(create_address(caller, nonce + k)) for k in range(3))
    listed = tuple(address_of(found) for found in tokens)
    terms = replace(RUN, revenue_tokens=listed)
    evm.deploy("RunCharter", terms.as_tuple(), astuple(modules_at(charter=charter, shares=shares, revenue=revenue)))
    evm.deploy("ModelShares", charter)
    paid = evm.deploy("Revenue", charter)
    assert paid.address.lower() == revenue
    vouchers = evm.deploy("Vouchers", charter, PPM, DELAY)
    chain = VoucherChain(evm, tokens, paid, vouchers, evm.deploy("VoucherWallet", KEYS[-1].address))
    for who in payers(chain):
        for held in tokens:
            held.call("mint", text(who), WEALTH)
            as_payer(chain, who, held, "approve", vouchers.address, 2**256 - 1)
    return chain


_chain = cache(deployed)


def address_of(contract: EvmContract) -> Address:
    """The 20 bytes of a contract's address."""
    return Address(bytes.fromhex(contract.address[2:]))


def payers(chain: VoucherChain) -> list[Address]:
    """Three accounts with keys, and the wallet."""
    return [*(Address(bytes.fromhex(key.address[2:])) for key in KEYS[:-1]), address_of(chain.wallet)]


def as_payer(chain: VoucherChain, who: Address, contract: EvmContract, function: str, *args: Any) -> Any:
    """A call of a payer; the wallet makes it as a contract does. Raises Reverted by the called contract's errors."""
    if who != address_of(chain.wallet):
        return contract.call(function, *args, caller=text(who))
    try:
        chain.wallet.call("act", contract.address, contract.calldata(function, *args))
    except Reverted as reverted:
        raise Reverted(reverted.data, contract.artifact.abi) from None
    return None


class VoucherStage:
    """Calls on model and contract at once; the chain is as before after `end`."""

    def __init__(self, chain: VoucherChain | None = None) -> None:
        self.chain = chain or _chain()
        self.mark = self.chain.evm.evm.snapshot()
        self.payers = payers(self.chain)
        self.tokens = [address_of(token) for token in self.chain.tokens]
        self.contract = self.chain.vouchers
        self.books = VoucherBooks(address_of(self.contract), frozenset(self.tokens), PPM, DELAY)
        self.domain = VoucherDomain(CHAIN_ID, self.books.address)
        self.mood = Mood.HONEST
        self.now = START
        self.paid = dict.fromkeys(GATEWAYS, 0)
        self.to_revenue = dict.fromkeys(self.tokens, 0)
        self.pass_time(0)

    def end(self) -> None:
        """The chain is as it was before."""
        self.chain.evm.evm.revert(self.mark)

    def pass_time(self, seconds: int) -> None:
        """Let chain time pass."""
        self.now += seconds
        block = BlockEnv(number=1, timestamp=self.now, gas_limit=30_000_000, prevrandao=bytes(32))
        self.chain.evm.evm.set_block_env(block)

    def behave(self, mood: Mood) -> None:
        """What the wallet says of signatures from now on."""
        self.mood = mood
        self.chain.wallet.call("behave", int(mood))

    def both(self, model: Callable[[], Any], who: Address, function: str, *args: Any) -> Any:
        """A call on both: same error, or both go through. Raises RejectedError as the model does."""
        error: RejectedError | None = None
        answer = None
        try:
            answer = model()
        except RejectedError as rejected:
            error = rejected
        refused = ""
        try:
            as_payer(self.chain, who, self.contract, function, *args)
        except Reverted as reverted:
            refused = reverted.name or str(reverted)
        assert refused == (error.code if error else ""), (function, args, refused, error)
        if error is not None:
            raise error
        return answer

    def deposit(self, giver: int, payer: int, gateway: int, amount: int, token: int = 0) -> None:
        who, to, of = self.payers[payer], GATEWAYS[gateway], self.tokens[token]
        names = (text(who), text(to), text(of))
        self.both(lambda: self.books.deposit(who, to, of, amount), self.payers[giver], "deposit", *names, amount)

    def ask_refund(self, payer: int, gateway: int, amount: int, token: int = 0) -> None:
        who, to, of = self.payers[payer], GATEWAYS[gateway], self.tokens[token]
        ask = lambda: self.books.ask_refund(who, to, of, amount, self.now)  # noqa: E731
        self.both(ask, who, "askRefund", text(to), text(of), amount)

    def withdraw(self, payer: int, gateway: int, token: int = 0) -> int:
        who, to, of = self.payers[payer], GATEWAYS[gateway], self.tokens[token]
        before = self.tokens_of(who, token)
        amount = self.both(lambda: self.books.withdraw(who, to, of, self.now), who, "withdraw", text(to), text(of))
        assert self.tokens_of(who, token) - before == amount
        return int(amount)

    def signed(self, payer: int, gateway: int, amount: int, token: int = 0, fault: Fault = Fault.NONE) -> bytes:
        """A payer's signature under a voucher, with one thing wrong."""
        other = Address(bytes(19) + b"\x01")
        voucher = Voucher(self.payers[payer], GATEWAYS[gateway], self.tokens[token], Wei(amount))
        domain = self.domain
        if fault is Fault.OTHER_GATEWAY:
            voucher = replace(voucher, gateway=GATEWAYS[1 - gateway])
        elif fault is Fault.OTHER_TOKEN:
            voucher = replace(voucher, token=self.tokens[1 - token])
        elif fault is Fault.OTHER_AMOUNT:
            voucher = replace(voucher, amount=Wei(amount + 1))
        elif fault is Fault.OTHER_CHAIN:
            domain = replace(domain, chain_id=CHAIN_ID + 1)
        elif fault is Fault.OTHER_CONTRACT:
            domain = replace(domain, contract=other)
        key = KEYS[(payer + 1) % len(KEYS)] if fault is Fault.STRANGER else KEYS[payer]
        signature = key.unsafe_sign_hash(voucher.digest(domain))
        v, s = signature.v, signature.s
        if fault is Fault.HIGH_S:
            v, s = 55 - v, ORDER - s
        whole = signature.r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])
        return whole[:-1] if fault is Fault.SHORT else whole

    def is_good(self, payer: int, fault: Fault) -> bool:
        """Whether the contract takes such a signature."""
        is_wallet = self.payers[payer] == address_of(self.chain.wallet)
        return fault is Fault.NONE and (not is_wallet or self.mood is Mood.HONEST)

    def redeem(self, gateway: int, batch: Sequence[tuple[int, int, Fault]], token: int = 0, by: int = 0) -> int:
        """Redeem vouchers of (payer, amount, fault) as anybody; returns what they took."""
        to, of = GATEWAYS[gateway], self.tokens[token]
        claims = [SignedAmount(self.payers[p], amount, self.is_good(p, fault)) for p, amount, fault in batch]
        sent = [(text(self.payers[p]), a, self.signed(p, gateway, a, token, f)) for p, a, f in batch]
        before = self.tokens_of(to, token)
        redeem = lambda: self.books.redeem(to, of, claims)  # noqa: E731
        total = int(self.both(redeem, self.payers[by], "redeem", text(to), text(of), sent))
        assert self.tokens_of(to, token) - before == total - owners_part(Wei(total), PPM)
        self.paid[to] += total
        return total

    def pay_owners(self, amount: int, token: int = 0) -> None:
        """Send on what is owed; Revenue itself refuses less than MIN_PAYMENT."""
        of = self.tokens[token]
        self.both(lambda: self.books.pay_owners(of, amount), self.payers[0], "payOwners", text(of), amount)
        self.to_revenue[of] += amount

    def tokens_of(self, who: Address, token: int = 0) -> int:
        """Tokens that somebody holds."""
        return int(self.chain.tokens[token].call("balanceOf", text(who)))

    def shown(self, payer: int, gateway: int, token: int = 0) -> PayerDeposit:
        """A deposit as the contract has it."""
        names = (self.payers[payer], GATEWAYS[gateway], self.tokens[token])
        return PayerDeposit(*self.contract.call("depositOf", *map(text, names)))

    def compare(self) -> None:
        """Everything that the contract shows equals the model; nothing is lost to the last unit."""
        for (who, to, of), held in self.books.deposits.items():
            assert held == PayerDeposit(*self.contract.call("depositOf", *map(text, (who, to, of))))
            assert held.asked <= held.balance
        for token, of in enumerate(self.tokens):
            assert self.contract.call("owedOf", text(of)) == self.books.owed.get(of, 0)
            assert self.tokens_of(self.books.address, token) == self.books.held(of)
            revenue = address_of(self.chain.revenue)
            assert self.tokens_of(revenue, token) == self.to_revenue[of]
            people = [*self.payers, *GATEWAYS, self.books.address, revenue]
            assert sum(self.tokens_of(who, token) for who in people) == WEALTH * len(self.payers)
