"""Disputes of a run, read from the chain: a game's state, what the last move showed, and its verdict.

Source: docs/protocol.md, section 5; docs/adr/0007-actors.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from web3.contract import Contract
from web3.types import EventData

from assay.protocol.digests import ZERO
from assay.protocol.game.descent import position_key
from assay.protocol.game.players import Posted
from assay.protocol.game.state import DisputedClaim, GameState, Outcome, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.chain.client import Chain

BLOCKS_PER_QUERY: Final = 5_000
"""Most nodes refuse to search more blocks at once."""

SHOWN_IN_GAME: Final = {Stage.LEAF: "LeafPosted", Stage.PARTS: "PartsPosted"}
"""Where what the challenger selects from is told of by the game's number; in other stages by the hash of the list."""


WITHOUT_LIST: Final = (Stage.ROOT, Stage.TERM, Stage.SLOT, Stage.OVER)


@dataclass(frozen=True, slots=True)
class Game:
    """A game as the chain has it now."""

    state: GameState
    ref: ClaimRef

    @property
    def game_id(self) -> int:
        """Its number, from 1."""
        return self.state.game_id

    def side_of(self, who: Address) -> Side:
        """The side that an address plays."""
        return next((s for s in (Side.DEFENDER, Side.CHALLENGER) if self.state.party(s) == who), Side.NONE)


class Games:
    """The disputes of a run, read from the chain."""

    def __init__(self, chain: Chain, contract: Contract, first_block: int = 0) -> None:
        self.chain = chain
        self.contract = contract
        self._first_block = first_block

    def count(self) -> int:
        """How many games there have been."""
        return int(self.chain.call(self.contract.functions.games()))

    def game(self, game_id: int) -> Game:
        """One game; X, Y and steps of its claim are those at stage STEPS or from what the contract still stores."""
        raw = dict(_named(self.contract, "gameOf", self.chain.call(self.contract.functions.gameOf(game_id))))
        ref = ref_from_chain(raw["ref"])
        claim = DisputedClaim(
            Digest(raw["claimId"]),
            _address(raw["defender"]),
            ZERO,
            ZERO,
            Digest(raw["program"]),
            0,
            Digest(raw["lockId"]),
        )
        state = GameState(
            game_id=game_id,
            claim=claim,
            challenger=_address(raw["challenger"]),
            stage=Stage(raw["stage"]),
            turn=Side(raw["turn"]),
            turn_started=raw["turnStarted"],
            deadline=raw["deadline"],
            budget_left=(raw["defenderBudget"], raw["challengerBudget"]),
            advanced=Wei(raw["advanced"]),
            held=Wei(raw["held"]),
            lo=raw["lo"],
            hi=raw["hi"],
            agreed=Digest(raw["agreed"]),
            disputed=Digest(raw["disputed"]),
            posted=Digest(raw["posted"]),
            before=Digest(raw["before"]),
            after=Digest(raw["after_"]),
            step=raw["step"],
            node=raw["node"],
            family=raw["family"],
            node_hash=Digest(raw["nodeHash"]),
            value=Digest(raw["value"]),
            level=raw["level"],
            index=raw["index"],
            count=raw["count"],
            last=raw["last"],
            list_index=raw["listIndex"],
            whole=raw["whole"],
            element=raw["element"],
            claimed=raw["claimed"],
            heads=tuple(raw["heads"]),
            deferrals=(raw["defenderDeferrals"], raw["challengerDeferrals"]),
        )
        return Game(state, ref)

    def posted(self, state: GameState) -> Posted:
        """What the challenger is to select from, from its event; empty where there is nothing to select from.

        A list is looked up by its hash, since the claimant may have posted it in another game.
        """
        if state.turn is not Side.CHALLENGER or state.stage in WITHOUT_LIST:
            return Posted()
        name = SHOWN_IN_GAME.get(state.stage, "DigestsPosted")
        wanted = {"gameId": state.game_id} if state.stage in SHOWN_IN_GAME else {"list": bytes(state.posted)}
        head = self.chain.head().number
        for high in range(head, self._first_block - 1, -BLOCKS_PER_QUERY):
            low = max(self._first_block, high - BLOCKS_PER_QUERY + 1)
            if found := self._events(name, wanted, low, high):
                values = max(found, key=lambda e: (e["blockNumber"], e["logIndex"]))["args"]
                return Posted(
                    digests=tuple(Digest(bytes(d)) for d in values.get("digests", ())),
                    leaf=bytes(values.get("leaf", b"")),
                    parts=tuple(int(p) for p in values.get("parts", ())),
                )
        return Posted()

    def list_at(self, state: GameState) -> Digest | None:
        """K(list) of what the claimant has posted at the position that a game stands at; None if it has not."""
        found = Digest(bytes(self.chain.call(self.contract.functions.listAt(bytes(position_key(state))))))
        return None if found == ZERO else found

    def verdict(self, game_id: int) -> tuple[Verdict, bytes] | None:
        """The verdict of a game and the hash of the transaction that brought it, once it is over."""
        head = self.chain.head().number
        game = self.game(game_id)
        for high in range(head, self._first_block - 1, -BLOCKS_PER_QUERY):
            low = max(self._first_block, high - BLOCKS_PER_QUERY + 1)
            for event in self._events("Verdict", {"gameId": game_id}, low, high):
                args = event["args"]
                loser = _address(args["loser"])
                verdict = Verdict(
                    loser,
                    game.side_of(loser),
                    Outcome(args["outcome"]),
                    args["family"],
                    args["node"],
                    args["element"],
                    args["term"],
                    args["expected"],
                    args["claimed"],
                )
                return verdict, bytes(event["transactionHash"])
        return None

    def _events(self, name: str, wanted: dict[str, Any], low: int, high: int) -> list[EventData]:
        event = self.contract.events[name]
        return list(self.chain.read(lambda: event.get_logs(from_block=low, to_block=high, argument_filters=wanted)))


def ref_to_chain(ref: ClaimRef) -> tuple[int, int, int, int, bytes, bytes]:
    """A claim reference as the contracts take it."""
    return int(ref.kind), ref.round, ref.seat, ref.duty, bytes(ref.party), bytes(ref.outer_root)


def ref_from_chain(raw: Any) -> ClaimRef:
    """A claim reference as the contracts give it."""
    kind, round_, seat, duty, party, outer_root = raw.values() if isinstance(raw, Mapping) else raw
    return ClaimRef(ClaimKind(kind), Round(round_), Seat(seat), duty, _address(party), Digest(bytes(outer_root)))


def _named(contract: Contract, function: str, raw: Any) -> dict[str, Any]:
    """Names for the fields of a struct that a view function returns."""
    if isinstance(raw, dict):
        return raw
    entry = next(e for e in contract.abi if e.get("name") == function)
    components = entry["outputs"][0]["components"]  # type: ignore[typeddict-item]
    return {str(c["name"]): v for c, v in zip(components, raw, strict=True)}


def _address(value: Any) -> Address:
    return Address(value if isinstance(value, bytes) else bytes.fromhex(str(value)[2:]))
