"""Disputes as an actor plays them: read a game from the chain, answer from a trace, send the move.

Solver, verifier and whistleblower use this one player, each for the side it is on. All that a move needs is on chain:
the game's state, and what the defender's last move showed, from its event. Nothing is kept here, so an actor that is
killed and restarted goes on in the same game.
Source: docs/protocol.md, section 5; docs/adr/0007-actors.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from eth_account.signers.local import LocalAccount
from web3.contract import Contract
from web3.types import EventData, TxReceipt

from assay.ledger.chain import Chain, address_of
from assay.ledger.traces import LooksUp, Traces
from assay.protocol import leaf
from assay.protocol.claims import ClaimKind, ClaimRef
from assay.protocol.digests import ZERO, digest_list_hash
from assay.protocol.errors import AssayError, InvariantError, MismatchError
from assay.protocol.game_descent import position_key
from assay.protocol.game_moves import AnyMove, PointElement, PostDigests
from assay.protocol.game_state import DisputedClaim, GameState, Outcome, Verdict
from assay.protocol.game_table import Side, Stage
from assay.protocol.openings import Opening
from assay.protocol.play import Challenger, Defender, Posted
from assay.protocol.play_values import Position
from assay.protocol.tensors import LEAF_SIZE
from assay.protocol.trace import Trace
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay.protocol.words import canonical

BLOCKS_PER_QUERY: Final = 5_000
"""Most nodes refuse to search more blocks at once."""

SHOWN_IN_GAME: Final = {Stage.LEAF: "LeafPosted", Stage.PARTS: "PartsPosted"}
"""Where what the challenger selects from is told of by the game's number; in other stages by the hash of the list."""

AT_A_NODE: Final = (Stage.NODE, Stage.ROOT, Stage.TENSOR, Stage.LEAF, Stage.PARTS, Stage.TERM)
AT_A_STEP: Final = (Stage.NODES, *AT_A_NODE, Stage.SLOT)
"""Where a player needs the prefix roots of the disputed step, and the value of the disputed node."""

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


class GamePlayer:
    """Moves for one account in any number of games, from traces that `trace_of` rebuilds once per claim and side."""

    def __init__(self, games: Games, account: LocalAccount, arity: int, trace_of: Callable[[Game], Trace]) -> None:
        self._games = games
        self._account = account
        self._arity = arity
        self._trace_of = trace_of
        self._traces = Traces()

    def is_ready(self, claim_id: Digest, side: Side) -> bool:
        """Has the run behind a claim been executed for games on this side of it?"""
        return (claim_id, side) in self._traces

    def is_due(self, game: Game) -> bool:
        """Is this account to move, or may it end the game because the opponent's clock ran out?"""
        side = game.side_of(address_of(self._account))
        return side is not Side.NONE and not game.state.is_over and game.state.turn is side

    def move(self, game: Game) -> TxReceipt | None:
        """Makes this account's move; None when it has none to make.

        Raises RejectedError where the contract refuses the move, and what `confirm` raises.
        """
        call = self.call_of(game)
        return None if call is None else self._games.chain.send(self._account, call)

    def call_of(self, game: Game) -> Any:
        """The contract call of this account's move; None when it has none to make. Raises what `confirm` raises."""
        move = self.next_move(game)
        if move is None:
            return None
        self.confirm(game, move)
        return encode_move(self._games.contract, game.game_id, move)

    def calls_of(self, games: Sequence[Game]) -> Iterator[tuple[Game, Any | AssayError | None]]:
        """The calls of this account's moves in several games, sent in this order; an error where there is none.

        Games on one claim are answered by one run of each step that they stand at. Of games that wait for the same list
        the first is sent it; the others are left out, since their reply is a short one as soon as it is known.
        Raises InvariantError.
        """
        failed = self._look_ahead(games)
        positions: set[Digest] = set()
        for game in games:
            if (lost := failed.get(game.state.claim.id)) is not None:
                yield game, lost
                continue
            try:
                move = self.next_move(game)
                if isinstance(move, PostDigests) and move.digests:
                    if (position := position_key(game.state)) in positions:
                        continue
                    positions.add(position)
                if move is not None:
                    self.confirm(game, move)
            except InvariantError:
                raise
            except AssayError as error:
                yield game, error
            else:
                yield game, None if move is None else encode_move(self._games.contract, game.game_id, move)

    def _look_ahead(self, games: Sequence[Game]) -> dict[Digest, AssayError]:
        """Has every trace compute at once what the games on its claim ask for; errors by the claim's id."""
        failed: dict[Digest, AssayError] = {}
        by_claim: dict[Digest, list[Game]] = {}
        for game in games:
            if self.is_due(game):
                by_claim.setdefault(game.state.claim.id, []).append(game)
        for claim, found in by_claim.items():
            try:
                trace = self._trace(found[0])
                if isinstance(trace, LooksUp):
                    at = [g.state for g in found if g.state.stage in AT_A_STEP]
                    trace.look_up((s.step, s.node if s.stage in AT_A_NODE else None) for s in at)
            except InvariantError:
                raise
            except AssayError as error:
                failed[claim] = error
        return failed

    def next_move(self, game: Game) -> AnyMove | None:
        """The move that this account would make now, from its trace; None when it has none to make."""
        state = game.state
        side = game.side_of(address_of(self._account))
        if state.is_over or state.turn is not side:
            return None
        trace = self._trace(game)
        if side is Side.DEFENDER:
            move = self._shortened(state, Defender(trace, self._arity).next_move(state))
        else:
            move = Challenger(trace, self._arity).next_move(state, self._games.posted(state))
        if move is None:
            raise InvariantError(f"No move for stage {state.stage.name}.", code="NoMove")
        return move

    def _shortened(self, state: GameState, move: AnyMove | None) -> AnyMove | None:
        """A list that was posted at this position after the game had come to it is not sent again."""
        if isinstance(move, PostDigests) and self._games.list_at(state) == digest_list_hash(move.digests):
            return PostDigests(())
        return move

    def confirm(self, game: Game, move: AnyMove) -> None:
        """A last look before a move is sent: see `check_element`, whose MismatchError stops it."""
        check_element(self._trace(game), game.state, move)

    def overdue_call(self, game: Game, now: int) -> Any:
        """The contract call that ends a game whose other side's clock has run out; None while it has not."""
        state = game.state
        mine = game.side_of(address_of(self._account))
        if state.is_over or mine is Side.NONE or state.turn is mine or now <= state.deadline:
            return None
        return self._games.contract.functions.timeout(game.game_id)

    def _trace(self, game: Game) -> Trace:
        # The id binds claimant, X and Y: after a reorganization of the chain the same game can be on another claim.
        key = game.state.claim.id, game.side_of(address_of(self._account))
        return self._traces.get(key, lambda: self._trace_of(game))


def check_element(trace: Trace, state: GameState, move: AnyMove) -> None:
    """Computes the element that a challenger is about to select once more, by the reference.

    A fault of this machine's executor would lose the game at the contract. Raises MismatchError (ElementMismatch).
    """
    if not isinstance(move, PointElement):
        return
    place = Position(trace, state.step, state.node)
    dtype = place.value.spec.dtype
    element = state.index * (LEAF_SIZE // dtype.size) + move.offset
    own = canonical(dtype, place.value.word(element))
    expected = leaf.element(place.node, element, place.load)
    if own != expected:
        raise MismatchError(
            f"Element {element} of node {state.node} is {expected:#x} by the reference and {own:#x} in this run.",
            code="ElementMismatch",
            remedy="This machine's arithmetic or memory is at fault: stop the actor and test the hardware.",
        )


def encode_move(contract: Contract, game_id: int, move: AnyMove) -> Any:
    """The contract call for a move."""
    arguments = [_abi_value(getattr(move, f.name)) for f in fields(move)]
    return contract.functions[move.kind.function](game_id, *arguments)


def ref_to_chain(ref: ClaimRef) -> tuple[int, int, int, int, bytes, bytes]:
    """A claim reference as the contracts take it."""
    return int(ref.kind), ref.round, ref.seat, ref.duty, bytes(ref.party), bytes(ref.outer_root)


def ref_from_chain(raw: Any) -> ClaimRef:
    """A claim reference as the contracts give it."""
    kind, round_, seat, duty, party, outer_root = raw.values() if isinstance(raw, Mapping) else raw
    return ClaimRef(ClaimKind(kind), Round(round_), Seat(seat), duty, _address(party), Digest(bytes(outer_root)))


def _abi_value(value: object) -> Any:
    match value:
        case Opening():
            return (int(value.dtype), list(value.dims), value.leaf, list(value.path), list(value.prefix_path))
        case tuple():
            return [_abi_value(v) for v in value]
        case _:
            return value


def _named(contract: Contract, function: str, raw: Any) -> dict[str, Any]:
    """Names for the fields of a struct that a view function returns."""
    if isinstance(raw, dict):
        return raw
    entry = next(e for e in contract.abi if e.get("name") == function)
    components = entry["outputs"][0]["components"]  # type: ignore[typeddict-item]
    return {str(c["name"]): v for c, v in zip(components, raw, strict=True)}


def _address(value: Any) -> Address:
    return Address(value if isinstance(value, bytes) else bytes.fromhex(str(value)[2:]))
