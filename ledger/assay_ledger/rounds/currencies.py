"""How amounts of a token are written, as its contract says. What it says is a stranger's word, and is bounded.

Nothing that an actor decides depends on it. Source: IERC20Metadata; docs/adr/0065-amounts-of-any-token.md.
"""

from __future__ import annotations

from assay.amounts import MOST_DECIMALS, UNKNOWN_MONEY, Currency, shown_symbol
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Query

WORD = 32


def read_currency(chain: Chain, token: Address) -> Currency:
    """How a token's amounts are written; UNKNOWN_MONEY where it does not say, or says what none can have.

    Attack: a token whose code is changed stops answering. Whoever has something at stake can still show it, defend it
    and take it out: an answer that is none is no error here. Who has nothing at stake yet does not join.

    Raises UnavailableError where the node does not answer.
    """
    contract = TokenContract(token)
    said = _answer(chain, contract.decimals())
    decimals = int.from_bytes(said[:WORD], "big")
    # Attack: more decimals than any amount has digits fill a screen, and hide what is shown.
    if len(said) < WORD or decimals > MOST_DECIMALS:
        return UNKNOWN_MONEY
    return Currency(decimals, shown_symbol(_text(_answer(chain, contract.symbol()))))


def _answer(chain: Chain, query: Query[int] | Query[str]) -> bytes:
    """What a contract answers, as bytes; none where it refuses."""
    try:
        return chain.ask(Query(query.to, query.data, query.name, bytes))
    except RejectedError:
        return b""
    except UnavailableError as error:
        if error.code != "RpcError":
            raise
        return b""  # the node answers, and this call cannot be made: it takes all gas, say


def _text(said: bytes) -> str:
    """A symbol as the ABI encodes a string, or as the 32 bytes that older tokens give; empty for anything else."""
    if len(said) == WORD:
        return said.rstrip(b"\0").decode("ascii", "ignore")
    start = int.from_bytes(said[:WORD], "big")
    length = int.from_bytes(said[start : start + WORD], "big")
    return said[start + WORD : start + WORD + min(length, len(said))].decode("ascii", "ignore")
