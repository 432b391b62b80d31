"""A sponsor that is a contract of several owners: what it is to do is written down for it, never sent.

The document is a batch of Safe's Transaction Builder, which other multisigs and people read as well: where a call goes,
its value in wei and its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from assay.protocol.errors import UserError

if TYPE_CHECKING:
    from assay.protocol.types import Address
    from assay_ledger.chain.client import Chain
    from assay_ledger.contract import Call

DELEGATION: Final = bytes.fromhex("ef0100")
"""What the code of a person's account begins with that lends its address to a contract (EIP-7702)."""


class NotAMultisig(UserError):
    """An address that is to sponsor a run as a contract, and is none."""

    remedy = "Give the address of the multisig on this very chain; a Safe may lie elsewhere on another chain."


def check_multisig(chain: Chain, address: Address) -> None:
    """Attack on oneself: terms name an address for ever, and where no contract is nobody can cancel or be paid back.

    Raises NotAMultisig.
    """
    code = chain.code_at(address)
    if not code or code.startswith(DELEGATION):
        raise NotAMultisig(f"There is no contract at {to_checksum_address(address)} on chain {chain.chain_id}.")


def batch_of(chain: Chain, multisig: Address, what: str, calls: Sequence[Call]) -> dict[str, Any]:
    """The calls for a multisig to execute, in this order. `what`: their purpose in a few words. Nothing is sent."""
    return {
        "version": "1.0",
        "chainId": str(chain.chain_id),
        "createdAt": chain.head().timestamp * 1000,
        "meta": {
            "name": what,
            "description": ", then ".join(call.name for call in calls),
            "createdFromSafeAddress": to_checksum_address(multisig),
        },
        "transactions": [
            {"to": to_checksum_address(call.to), "value": str(call.value), "data": "0x" + call.data.hex()}
            for call in calls
        ],
    }
