"""Who of several nodes differs from the others, and who stands still while they go on. Pure.

Source: docs/adr/0056-several-nodes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar

from web3.exceptions import Web3RPCError

FINAL_BEHIND: Final = 64
"""Blocks, where nodes know no `finalized`: two epochs of Ethereum."""

E = TypeVar("E", bound=Hashable)


def believed_hash(said: Sequence[str]) -> str:
    """What most say; in a tie what the one that was named first says."""
    votes = Counter(said)
    return max(said, key=lambda found: votes[found])  # max takes the first of equals


def final_heights(finals: Mapping[E, int], nodes: Sequence[E]) -> list[int]:
    """The heights, in ascending order, at which nodes are compared: those that more than half of all call final that
    answered.

    finals: the height that each node which answered calls final; nodes: all that may be asked, the most trusted first,
    whose word is enough where no more than two answered. Attacks: one that calls its newest block final has all others
    dropped when the block is replaced, as newest blocks are; one that calls nothing final is compared at nothing, as
    soon as others are down.
    """

    def is_called_so(number: int) -> bool:
        callers = [node for node, final in finals.items() if final >= number]
        return 2 * len(callers) > len(finals) or (len(finals) <= 2 and nodes[0] in callers)

    return [number for number in sorted(set(finals.values())) if is_called_so(number)]


def lacking(number: int, said: Mapping[E, str | None], heads: Mapping[E, int]) -> list[E]:
    """Those that have no block of a number that two others have, or one, though they name a newer block as theirs."""
    if not any(found is not None for found in said.values()):
        return []
    return [node for node, found in said.items() if found is None and heads.get(node, -1) >= number]


def is_left_behind(node: E, before: Mapping[E, int], heads: Mapping[E, int]) -> bool:
    """Whether others have seen what a node does not show.

    before, heads: the numbers of all nodes' newest blocks at the last comparison and now. A node stands still where
    its own has not grown while that of as many others as stand with it, or more, has; and it is far behind where more
    than half are FINAL_BEHIND blocks ahead. One node alone of three can claim neither for the others.
    """
    if node not in heads:
        return False
    own, others = heads[node], [other for other in heads if other != node]
    far = [other for other in others if heads[other] > own + FINAL_BEHIND]
    if 2 * len(far) > len(heads):
        return True
    if own > before.get(node, -1):
        return False
    gone_on = [other for other in others if heads[other] > max(own, before.get(other, heads[other]))]
    return 2 * len(gone_on) >= len(heads)


def lags(why: str) -> Web3RPCError:
    """The error of a node that is behind."""
    said = f"unknown block: {why}"
    return Web3RPCError(said, rpc_response={"error": {"code": -32000, "message": said}})


def block_hash(block: Any) -> str:
    """The hash of a block as a node gave it. Raises TypeError, KeyError or ValueError."""
    found = str(block["hash"]).lower()
    if len(bytes.fromhex(found.removeprefix("0x"))) != 32:
        raise ValueError(f"{found[:80]} is no hash")
    return found
