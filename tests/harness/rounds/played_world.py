"""People of a run who lie and challenge, on its real game and the model of it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.protocol.digests import digest_list_hash
from assay.protocol.errors import refuse
from assay.protocol.game.book import GameBook
from assay.protocol.game.errors import GameError
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.players import Posted, posted_by
from assay.protocol.game.state import GameState, ProgramHeader
from assay.protocol.game.table import POSTINGS, Side, Turn
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.claim_books import ClaimBooks
from assay.protocol.rounds.duty_types import MAX_AUDITED, NO_FINDING, DrawnDuty, DutyResult
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.rounds.terms import UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimRef, challenge_commitment
from assay.protocol.trees.state import ListBytes, RoundScalars
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.contracts.game_chain import arguments, ref_tuple
from tests.harness.contracts.game_fields import same, stored
from tests.harness.contracts.harness import transaction_gas
from tests.harness.games import Player
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.played_chain import STEPS_PER_UNIT, UNITS, played_chain, played_charter
from tests.harness.rounds.played_programs import (
    SEATS,
    SeatRun,
    accumulator,
    blind_lie,
    end_slots,
    lie_in,
    merged,
    run_programs,
    trained,
    witnessed,
)
from tests.harness.rounds.samples import START

STEPS = UNITS * STEPS_PER_UNIT
SALT = Digest(bytes(31) + b"\x07")


class PlayedWorld(MoneyWorld):
    """A run in which everything that is claimed can be played to one element."""

    chain_of = staticmethod(played_chain)

    def __init__(self, label: object = 0) -> None:
        super().__init__(played_charter(), label)
        config = game_config(self.charter)
        p = run_programs()
        headers = {h.root: h for h in map(ProgramHeader.of, (p.step.program, p.update, p.merge, p.witness))}
        modules = self.chain.modules  # type: ignore[attr-defined]
        self.claims = ClaimBooks(self.run, 1, modules.charter)
        self.book = GameBook(modules.game, config, headers, self.vault, self.claims.book_of)
        self.book.is_stopped = self.run.escrow.is_stopped
        self.done: dict[Seat, SeatRun] = {}
        """What seats committed to, in the order of their commitments."""
        self.blind: set[int] = set()
        """Tickets whose accumulators are false."""
        self.liars: set[int] = set()
        """Tickets whose updates are false."""
        self.replays: dict[tuple[Seat, Digest], ReferenceTrace] = {}
        self.false_replays: dict[tuple[Seat, Digest], ReferenceTrace] = {}
        self.shown: dict[Digest, Posted] = {}
        self.last: dict[int, Posted] = {}
        self.moves: dict[int, list[tuple[str, int]]] = {}
        """Function and gas of each transaction of a game."""

    # --- what is computed

    def scalars(self, seat: Seat) -> RoundScalars:
        """What the contract builds X of a commitment to round 0 from."""
        t = self.charter.training
        steps = t.max_units * t.steps_per_unit
        return RoundScalars(self.charter.run, seat, Round(0), steps, t.shards, t.shard_length, t.learning_rate, t.data)

    def train(self, who: Address, lie: str = "") -> None:
        """Commit to round 0, truly or with a lie in the "run" or the "update"."""
        seat = self.seat(who)
        self.done[seat] = trained(self.scalars(seat), UNITS, STEPS, lie)
        assert self.commit(who, self.done[seat].work) == ""

    def truth(self, seat: Seat) -> SeatRun:
        """What the seat should have committed to."""
        return trained(self.scalars(seat), UNITS, STEPS)

    def result(self, ticket: int, duty: DrawnDuty, lie: bool = False) -> DutyResult:
        """What a replay finds; a lie is another update, and who is blind invents its accumulators."""
        target = self.run.duties._target_of(self.epoch, TicketId(ticket), duty, self.now)
        seed = self.run.duties.epochs[-1].seed
        assert seed is not None
        true = self.truth(target.seat).work
        audited = self.run.duties.attestations.findings.get(duty.attestation, NO_FINDING)
        own = draws.witness_key(self.secret(ticket), seed, target.id, TicketId(ticket), duty.kind)
        keys = (own, *(audited.keys if len(audited.keys) <= MAX_AUDITED else ()))
        replays = self.false_replay if ticket in self.blind else self.replay
        found = tuple(accumulator(replays(target.seat, key)) for key in keys)
        is_false = lie or ticket in self.liars
        update = self.false_update(target.seat).list_roots(1)[0] if is_false else true.update
        return DutyResult(duty, self.done[target.seat].work, true.ends, update, found, audited)

    def replay(self, seat: Seat, key: Digest) -> ReferenceTrace:
        """The witnessed run of a seat's round under a key."""
        if (seat, key) not in self.replays:
            self.replays[seat, key] = witnessed(self.scalars(seat), key, STEPS)
        return self.replays[seat, key]

    def false_replay(self, seat: Seat, key: Digest) -> ReferenceTrace:
        """The same with a wrong accumulator."""
        if (seat, key) not in self.false_replays:
            self.false_replays[seat, key] = blind_lie(self.scalars(seat), key, STEPS)
        return self.false_replays[seat, key]

    def false_update(self, seat: Seat) -> ReferenceTrace:
        """A run of the update's program on the seat's true round that ends in another update."""
        p = run_programs()
        return lie_in(p.update, (p.parameters, end_slots(self.truth(seat).run)), 1)

    def root_of(self, label: object) -> tuple[Digest, Digest, Digest]:
        """Parameters, momentum and root that a merge ends in."""
        assert isinstance(label, ReferenceTrace)
        return (*label.list_roots(1), label.state_root(1))  # type: ignore[return-value]

    def merge_state(self) -> ListBytes:
        """X of the merge of round 0."""
        slots = range(len(run_programs().parameters))
        return merged([[self.done[Seat(s)].update.slot_bytes(1, 0, i) for i in slots] for s in range(SEATS)])

    def prepare_merge(self) -> None:
        """X of the merge of round 0 is built."""
        units = self.charter.training.max_units
        rows = [UpdateEntry(seat, units, self.done[seat].work.update) for seat in self.done]
        shown = [(e.seat, e.units, e.update) for e in rows]
        books = self.model.generations
        assert self.do(lambda: books.prepare(Round(0), rows, self.now), "Generations", "prepare", 0, shown) == ""

    # --- games

    def open_direct(self, who: Address, ref: ClaimRef) -> int:
        """Challenge as an accuser, or as whoever trains; the game's number."""
        model = lambda: self.book.challenge(who, ref, self.now)  # noqa: E731
        return self._opened(who, "Game", "challenge", (ref_tuple(ref),), model)

    def open_committed(self, who: Address, ref: ClaimRef, own_root: Digest) -> int:
        """Commit to a challenge and reveal it as soon as one may; the game's number."""
        self.bind(who, ref, own_root)
        self.tick(max(self.charter.chain.reorg_depth, 24))
        return self.reveal(who, ref, own_root)

    def bind(self, who: Address, ref: ClaimRef, own_root: Digest) -> None:
        """Commit to a challenge."""
        name, block = challenge_commitment(ref, own_root, SALT, who), self.block
        model = lambda: self.book.commit_challenge(who, name, self.now, block)  # noqa: E731
        assert self.try_(model, "Challenges", "commitChallenge", name, who=who) == ""

    def reveal(self, who: Address, ref: ClaimRef, own_root: Digest) -> int:
        """Reveal it; the game's number."""
        model = lambda: self.book.reveal_challenge(who, ref, own_root, SALT, self.now, self.block)  # noqa: E731
        return self._opened(who, "Challenges", "revealChallenge", (ref_tuple(ref), own_root, SALT), model)

    @property
    def block(self) -> int:
        """The number of the block that calls are in."""
        return 1 + (self.now - START) // 12

    def _opened(
        self, who: Address, contract: str, function: str, args: tuple[Any, ...], model: Callable[[], int]
    ) -> int:
        """Raises RejectedError, on both alike."""
        made: list[int] = []
        if said := self.try_(lambda: made.append(model()), contract, function, *args, who=who):
            raise refuse(said)
        (number,) = made
        if number:
            self.moves[number] = [(function, self._transaction(contract, function, *args))]
            self.compare_game(number)
        return number

    def try_(
        self, model: Callable[[], Any], contract: str, function: str, *args: Any, who: Address | None = None
    ) -> str:
        """As `do`, of the game, whose errors are a family of their own."""

        def both() -> None:
            try:
                model()
            except GameError as error:
                raise refuse(error.code) from error

        self.claims.now = self.now
        return self.do(both, contract, function, *args, who=who)

    def state(self, number: int) -> GameState:
        return self.book.games[number].state

    def move(self, number: int, move: AnyMove) -> str:
        """The side to move makes a move."""
        state = self.state(number)
        who, name, args = state.party(state.turn), move.kind.function, (number, *arguments(move))
        said = self.try_(lambda: self.book.move(number, who, move, self.now), "Game", name, *args, who=who)
        if not said:
            self.moves[number].append((name, self._transaction("Game", name, *args)))
            self.compare_game(number)
            if state.turn is Side.DEFENDER:
                self.last[number] = posted_by(move)
                if self.last[number].digests:
                    self.shown[digest_list_hash(self.last[number].digests)] = self.last[number]
        return said

    def time_out(self, number: int) -> str:
        """Anybody ends a game whose clock ran out."""
        self.at(self.state(number).deadline + 1)
        said = self.try_(lambda: self.book.timeout(number, self.now), "Game", "timeout", number)
        self.moves[number].append(("timeout", self._transaction("Game", "timeout", number)))
        self.compare_game(number)
        return said

    def step(self, number: int, defender: Player, challenger: Player, times_out: bool = True) -> bool:
        """One move of a game; False where the side to move says nothing, which ends the game unless told otherwise."""
        state = self.state(number)
        posted = self.last.get(number, Posted())
        if state.turn is Side.CHALLENGER and Turn(state.stage, Side.DEFENDER) in POSTINGS:
            posted = self.shown.get(state.posted, posted)
        move = (defender if state.turn is Side.DEFENDER else challenger)(state, posted)
        if move is None:
            assert not times_out or self.time_out(number) == ""
            return False
        self.tick(1)
        assert self.move(number, move) == ""
        return True

    def play(self, number: int, defender: Player, challenger: Player) -> GameState:
        """A game to its verdict."""
        while not self.state(number).is_over:
            self.step(number, defender, challenger)
        return self.state(number)

    def compare_game(self, number: int) -> None:
        """The stored game is the model's, field by field."""
        contract = self.chain.contracts["Game"]
        components = contract.artifact.entry("function", "gameOf")["outputs"][0]["components"]
        chain = dict(zip((c["name"] for c in components), contract.call("gameOf", number), strict=True))
        model = self.book.games[number]
        assert {k: same(v) for k, v in chain.items()} == stored(model, ref_tuple(model.ref), 0)

    def _transaction(self, contract: str, function: str, *args: Any) -> int:
        made = self.chain.contracts[contract]
        return transaction_gas(made.calldata(function, *args), self.gas[function])
