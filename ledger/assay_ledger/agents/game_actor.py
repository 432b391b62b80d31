"""An actor that plays games: the moves that are due, several at once, whatever kind of run they are about."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol, TypeVar

from assay.protocol.errors import AssayError
from assay.protocol.program.trace import Trace
from assay.protocol.types import Digest
from assay_ledger.agents.game_actions import Defer, EndOverdue, Play
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import A, ActorLoop, Seen
from assay_ledger.agents.traces import Traces
from assay_ledger.bindings.game import GameContract
from assay_ledger.contract import Call
from assay_ledger.index.games import Game, Games
from assay_ledger.index.records import GameRecord


class SeenGames(Seen, Protocol):
    """What is needed of a view: its games, and the chain time of the newest block in seconds."""

    @property
    def games(self) -> Mapping[int, GameRecord]: ...

    @property
    def now(self) -> int: ...


class HasGames(Protocol):
    """What is needed of a run."""

    @property
    def game(self) -> GameContract: ...

    @property
    def games(self) -> Games: ...


W = TypeVar("W", bound=SeenGames)


class GameActor(ActorLoop[W, A]):
    """An actor with games."""

    @property
    @abstractmethod
    def disputes(self) -> HasGames:
        """Where its games are."""

    @property
    @abstractmethod
    def arity(self) -> int:
        """Digests of a list in a game."""

    @abstractmethod
    def trace_of(self, game: Game, view: W) -> Trace:
        """The run behind a disputed claim, executed again; as claimed where the claim is one's own."""

    def handlers(self) -> Handlers[W]:
        """See ActorLoop. Moves (`Play`) are not here: `carry_out` makes several at once."""
        return super().handlers().add(Defer, self.do_defer).add(EndOverdue, self.do_end_overdue)

    def together(self, due: Sequence[A], view: W) -> Sequence[A]:
        """See ActorLoop: moves that wait for no execution but the first one's go out at once, as many as there are."""
        if not isinstance(due[0], Play):
            return due[:1]
        first = view.games[due[0].game_id].claim_id
        return [a for a in due if isinstance(a, Play) and (self._is_at_hand(a, view, first))]

    def _is_at_hand(self, action: Play, view: W, executed: Digest) -> bool:
        game = view.games[action.game_id]
        return game.claim_id == executed or self._player(view).is_ready(game.claim_id, game.turn)

    def carry_out(self, actions: Sequence[A], view: W) -> Iterator[tuple[A, AssayError | None]]:
        """See ActorLoop: moves in several games are sent at once and mined as fast as blocks take them."""
        if not isinstance(actions[0], Play):
            yield from super().carry_out(actions, view)
            return
        moves = {a.game_id: a for a in actions if isinstance(a, Play)}
        games = [self.disputes.games.game(number) for number in moves]
        calls: dict[A, Call] = {}
        for game, call in self._player(view).calls_of(games):
            if call is None or isinstance(call, AssayError):
                yield moves[game.game_id], call
            else:
                calls[moves[game.game_id]] = call
        for action, result in zip(calls, self.send_all(list(calls.values())), strict=True):
            yield action, result if isinstance(result, AssayError) else None

    def do_defer(self, action: Defer, view: W) -> None:
        """Defers a turn of this actor's; refused by the contract when the fee has fallen meanwhile."""
        self.send(self.disputes.game.defer(action.game_id))

    def do_end_overdue(self, action: EndOverdue, view: W) -> None:
        """Ends a game that the other side lets run out."""
        call = self._player(view).overdue_call(self.disputes.games.game(action.game_id), view.now)
        if call is not None:
            self.send(call)

    @cached_property
    def _traces(self) -> Traces:
        """The runs behind disputed claims, kept for the next move."""
        return Traces()

    def _player(self, view: W) -> GamePlayer:
        return GamePlayer(
            self.disputes.games, self.account, self.arity, lambda game: self.trace_of(game, view), self._traces
        )
