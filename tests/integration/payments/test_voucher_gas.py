"""Gas of whole transactions that redeem vouchers, on a node: 1, 10 and 100 at once."""

from __future__ import annotations

from collections.abc import Sequence

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.payments.voucher import Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import EvmContract
from tests.harness.contracts.node_evm import NodeEvm
from tests.harness.payments.voucher_stage import address_of, deployed
from tests.harness.rounds.samples import START
from tests.harness.rounds.stage import person, text

KEYS = [Account.from_key((0xBEEF + k).to_bytes(32, "big")) for k in range(100)]
ANVIL = 31_337


def test_gas_of_redeeming_a_voucher_falls_with_the_batch() -> None:
    table: dict[str, dict[str, int]] = {}
    with NodeEvm(START) as node:
        chain = deployed("TestToken", node)
        vouchers, token = chain.vouchers, chain.tokens[0]
        giver = KEYS[0].address
        token.call("mint", giver, 10**12)
        token.call("approve", vouchers.address, 2**256 - 1, caller=giver)
        for size in (1, 10, 100):
            gateway = person(size)
            for key in KEYS[:size]:
                vouchers.call("deposit", key.address, text(gateway), token.address, 10**6, caller=giver)
            first, later = (redeem(vouchers, token, KEYS[:size], gateway, amount) for amount in (1000, 2000))
            row = "1 voucher" if size == 1 else f"{size} vouchers"
            table[row] = {"first": first, "later": later, "later, each": later // size}
    assert table["100 vouchers"]["later, each"] < table["1 voucher"]["later, each"] / 2
    assert max(row["first"] for row in table.values()) < 1 << 22
    snapshots.check("vouchers", table)


def redeem(
    contract: EvmContract, token: EvmContract, keys: Sequence[LocalAccount], gateway: Address, amount: int
) -> int:
    """Gas of redeeming a voucher of each key."""
    batch, domain = [], VoucherDomain(ANVIL, address_of(contract))
    for key in keys:
        payer = Address(bytes.fromhex(key.address[2:]))
        digest = Voucher(payer, gateway, address_of(token), Wei(amount)).digest(domain)
        batch.append((key.address, amount, bytes(key.unsafe_sign_hash(digest).signature)))
    before = token.call("balanceOf", text(gateway))
    contract.call("redeem", text(gateway), token.address, batch)
    gas = contract.gas
    assert 0 < token.call("balanceOf", text(gateway)) - before < 1000 * len(keys)
    return gas
