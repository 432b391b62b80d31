"""Vouchers turned into tokens: in batches, through the account's outbox, and what is the owners' sent on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.payments.voucher import PayerDeposit
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.revenue import RevenueContract
from assay_ledger.bindings.vouchers import GatewayPaid, PayerVoucherFields, VoucherRedeemed, VouchersContract
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Call
from assay_ledger.vouchers.signed import SignedVoucher

if TYPE_CHECKING:
    from web3.types import TxReceipt

    from assay_ledger.chain.transaction_signer import TransactionSigner

BATCH: Final = 100
"""Vouchers of one transaction: 3.8 M gas where all of them are their payers' first (docs/gas.md)."""


class VouchersUnpaid(RejectedError):
    """Vouchers took less than the deposits behind them covered when they were looked at."""

    remedy = "Nothing more can be done about these; redeem at least four times in a refund delay."


@dataclass(frozen=True, slots=True)
class DueVoucher:
    """A voucher that takes something now: `worth` wei, with which `redeemed` are redeemed of its payer in all.
    `before`: chain time at which its payer may withdraw, if it has asked to."""

    signed: SignedVoucher
    worth: Wei
    redeemed: Wei
    before: int | None


@dataclass(slots=True)
class Redeemed:
    """What became of vouchers: how many were redeemed; by token, wei paid to the gateway, owed to the owners by it, and
    sent on to the run's revenue; transactions; errors, which leave the rest for the next time."""

    vouchers: int = 0
    paid: dict[Address, Wei] = field(default_factory=dict)
    to_owners: dict[Address, Wei] = field(default_factory=dict)
    sent_on: dict[Address, Wei] = field(default_factory=dict)
    transactions: list[str] = field(default_factory=list)
    errors: list[AssayError] = field(default_factory=list)


def due_vouchers(chain: Chain, contract: VouchersContract, kept: Iterable[SignedVoucher]) -> list[DueVoucher]:
    """The vouchers that take something, as the chain is now; those first whose payers may withdraw soonest."""
    found = []
    for signed in kept:
        voucher = signed.voucher
        deposit: PayerDeposit = chain.ask(contract.deposit_of(voucher.payer, voucher.gateway, voucher.token))
        worth = Wei(min(voucher.amount - deposit.redeemed, deposit.balance))
        if worth > 0:
            before = deposit.not_before if deposit.asked else None
            found.append(DueVoucher(signed, worth, Wei(deposit.redeemed + worth), before))
    return sorted(found, key=lambda due: (due.before is None, due.before or 0, -due.worth))


def worth_redeeming(due: Sequence[DueVoucher], least: Mapping[Address, Wei]) -> list[DueVoucher]:
    """What a gateway redeems now: a token's vouchers, once worth `least` of it; else those of who may withdraw.

    Who asks this at least four times in a refund delay loses nothing that was covered.
    """
    worth: dict[Address, int] = {}
    for one in due:
        worth[one.signed.voucher.token] = worth.get(one.signed.voucher.token, 0) + one.worth
    ripe = {token for token, amount in worth.items() if amount >= least[token]}
    return [one for one in due if one.before is not None or one.signed.voucher.token in ripe]


def redeem_vouchers(
    chain: Chain,
    account: TransactionSigner,
    contract: VouchersContract,
    due: Sequence[DueVoucher],
    *,
    batch: int = BATCH,
) -> Redeemed:
    """Redeem vouchers of one gateway, by whoever pays for the gas; the tokens go to the gateway that they name.

    A batch that fails is told of and leaves its vouchers for the next time.
    """
    result = Redeemed()
    batches = list(_batches(due, batch))
    calls = [_call(contract, some) for some in batches]
    for some, answer in zip(batches, chain.send_all(account, calls), strict=True):
        taken = 0
        if not isinstance(answer, AssayError):
            taken = _count(result, contract, answer)
        elif answer.code != "NothingToRedeem":
            result.errors.append(answer)
            continue
        # Somebody else may have redeemed these vouchers, which pays the gateway as well; or a payer was faster.
        if taken < sum(one.worth for one in some) and (unpaid := [d for d in some if _is_unpaid(chain, contract, d)]):
            text = (
                f"{len(unpaid)} of {len(some)} vouchers took less than their deposits covered, the first that of payer "
                f"0x{unpaid[0].signed.voucher.payer.hex()}: a deposit was taken back first, or a signature denied."
            )
            result.errors.append(VouchersUnpaid(text))
    return result


def pay_owners(
    chain: Chain,
    account: TransactionSigner,
    contract: VouchersContract,
    least: Mapping[Address, Wei],
    result: Redeemed,
) -> None:
    """Sends on what is owed to the owners in some tokens: what `result` redeemed, and from `least` of it on what
    others did.

    Attack: a voucher of next to nothing, redeemed at another gateway, has all gateways of the token pay for gas.
    """
    for token in sorted(least):
        _pay_owners(chain, account, contract, token, Wei(0) if token in result.to_owners else least[token], result)


def _batches(due: Sequence[DueVoucher], batch: int) -> Iterable[Sequence[DueVoucher]]:
    for place in sorted({(d.signed.voucher.gateway, d.signed.voucher.token) for d in due}):
        own = [d for d in due if (d.signed.voucher.gateway, d.signed.voucher.token) == place]
        for at in range(0, len(own), batch):
            yield own[at : at + batch]


def _call(contract: VouchersContract, some: Sequence[DueVoucher]) -> Call:
    signed = [one.signed for one in some]
    fields = [PayerVoucherFields(s.voucher.payer, s.voucher.amount, s.signature) for s in signed]
    return contract.redeem(signed[0].voucher.gateway, signed[0].voucher.token, fields)


def _is_unpaid(chain: Chain, contract: VouchersContract, due: DueVoucher) -> bool:
    voucher = due.signed.voucher
    return chain.ask(contract.deposit_of(voucher.payer, voucher.gateway, voucher.token)).redeemed < due.redeemed


def _count(result: Redeemed, contract: VouchersContract, receipt: TxReceipt) -> int:
    """Adds what a batch took to the sums; how much it is in all."""
    taken = 0
    result.transactions.append("0x" + bytes(receipt["transactionHash"]).hex())
    for log in receipt["logs"]:
        if bytes.fromhex(str(log["address"])[2:]) != contract.address:
            continue
        if bytes(log["topics"][0]) == VoucherRedeemed.topic():
            result.vouchers += 1
        if bytes(log["topics"][0]) == GatewayPaid.topic():
            event = GatewayPaid.decode(log)
            result.paid[event.token] = Wei(result.paid.get(event.token, 0) + event.paid)
            result.to_owners[event.token] = Wei(result.to_owners.get(event.token, 0) + event.to_owners)
            taken += event.paid + event.to_owners
    return taken


def _pay_owners(
    chain: Chain,
    account: TransactionSigner,
    contract: VouchersContract,
    token: Address,
    least: Wei,
    result: Redeemed,
) -> None:
    """Sends on what is owed to the owners, once it is `least` and as much as the run's revenue takes."""
    revenue = RevenueContract(chain.ask(contract.revenue()))
    room = chain.ask(revenue.max_total()) - chain.ask(revenue.deposited_of(token))
    amount = min(chain.ask(contract.owed_of(token)), room)
    if amount < max(least, chain.ask(revenue.min_deposit())):
        return
    try:
        receipt = chain.send(account, contract.pay_owners(token, Wei(amount)))
    except RejectedError as error:
        if error.code != "OwedTooLittle":  # else somebody was faster
            result.errors.append(error)
        return
    result.sent_on[token] = Wei(amount)
    result.transactions.append("0x" + bytes(receipt["transactionHash"]).hex())
