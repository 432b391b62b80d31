"""What only a local chain gives: coins from accounts whose keys everybody knows, and time that moves when told."""

from __future__ import annotations

from typing import Any, Final

from eth_utils.address import to_checksum_address

from assay.protocol.errors import UnavailableError, UserError
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import CHAIN_ID
from assay_ledger.contract import Call

CLIENT: Final = "anvil"
"""How the version of a chain begins that `assay node start` started."""

RECEIPT_S: Final = 30.0


class NotALocalChain(UserError):
    """The chain is no local one: its coins and its time are not ours to give."""

    remedy = "Name the local chain by --rpc-url (`assay node start` prints it); elsewhere buy coins."


def check_local(chain: Chain) -> None:
    """Raises NotALocalChain unless the chain is one that `assay node start`, or a demo, started."""
    version = str(chain.rpc("web3_clientVersion"))
    if not version.startswith(CLIENT):
        raise NotALocalChain(f"The chain at {chain.place} is {version.split('/')[0]}, no local chain.")
    # Attack: a node of a public chain that says what a local one does, so that nobody is asked about a run's sponsor.
    # What is signed for the number of a local chain is worth nothing elsewhere, so about that it cannot lie.
    if chain.chain_id != CHAIN_ID:
        raise NotALocalChain(f"The chain at {chain.place} has the number {chain.chain_id}, a local one {CHAIN_ID}.")


def is_local(chain: Chain) -> bool:
    """Whether the chain is a local one. Raises UnavailableError where nothing answers."""
    try:
        check_local(chain)
    except NotALocalChain:
        return False
    except UnavailableError as error:
        if error.code != "RpcError":
            raise
        return False  # public nodes refuse to say what they are
    return True


def faucet_of(chain: Chain) -> str:
    """The account of a local chain that holds coins for everybody."""
    return str(chain.rpc("eth_accounts")[0])


def give_coins(chain: Chain, who: Address, amount: Wei) -> str:
    """Sends coins for gas, in wei, from the node's own account; the transaction's hash. Raises NotALocalChain."""
    check_local(chain)
    return _send(chain, {"to": to_checksum_address(who), "value": hex(amount)})


def give_tokens(chain: Chain, token: TokenContract, who: Address, amount: Wei) -> str:
    """Makes test tokens for somebody, in wei, in as many parts as the token makes at a time; the last part's hash.

    Raises NotALocalChain, RejectedError where the token is none that everybody mints.
    """
    check_local(chain)
    most, left = Wei(chain.ask(token.max_mint())), int(amount)
    while left > most:
        _call(chain, token.mint(who, most))
        left -= most
    return _call(chain, token.mint(who, Wei(left)))


def move_time(chain: Chain, seconds: int) -> int:
    """Mines one block so many seconds after the newest; its chain time. Raises NotALocalChain."""
    check_local(chain)
    target = chain.head().timestamp + seconds
    chain.rpc("evm_mine", {"timestamp": target})
    return target


def _call(chain: Chain, call: Call) -> str:
    chain.simulate(call, sender=faucet_of(chain))
    return _send(chain, {"to": to_checksum_address(call.to), "data": "0x" + call.data.hex()})


def _send(chain: Chain, fields: dict[str, Any]) -> str:
    name = str(chain.rpc("eth_sendTransaction", {"from": faucet_of(chain)} | fields))
    chain.read(lambda: chain.w3.eth.wait_for_transaction_receipt(name, timeout=RECEIPT_S, poll_latency=0.05))  # type: ignore[arg-type]
    return name
