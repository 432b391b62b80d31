"""The games that games.json records: whom they set against whom, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.game.moves import AnyMove, PostParts, ProveRoot, SelectElement
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace, flip_bit
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.games import (
    ETHER,
    GameWorld,
    Log,
    Player,
    config,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
)
from tests.harness.programs import Example, counting, every_family, i32_bytes
from tests.harness.recorded import HONEST, LIAR

ARITY = 4
Bend = Callable[[Player], Player]
"""Makes another player of one that sticks to its trace."""


def unbent(inner: Player) -> Player:
    """The player itself."""
    return inner


@dataclass(frozen=True, slots=True)
class Definition:
    """A game between two players over traces of one program."""

    what: str
    example: Example
    defends: ReferenceTrace
    challenges: ReferenceTrace
    steps: int = 1
    defender: Bend = unbent
    challenger: Bend = unbent

    def play(self) -> tuple[GameState, Log]:
        """The game, from its first move to its end, in the model."""
        world = GameWorld(self.example.program, config(ARITY))
        game_id = world.challenge(world.claim(self.defends, LIAR, 1000 * ETHER), HONEST)
        log = Log()
        defender = self.defender(player(Side.DEFENDER, self.defends, ARITY))
        challenger = self.challenger(player(Side.CHALLENGER, self.challenges, ARITY))
        return play_out(world, game_id, defender, challenger, log=log), log


# --- players


def silent_at(stage: Stage) -> Bend:
    """Says nothing at a stage, until its clock runs out."""

    def bend(inner: Player) -> Player:
        return lambda state, posted: None if state.stage is stage else inner(state, posted)

    return bend


def _whole_parts(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Bend:
    """Posts other parts of the element."""

    def bend(inner: Player) -> Player:
        def play(state: GameState, posted: Posted) -> AnyMove | None:
            move = inner(state, posted)
            return replace(move, parts=change(move.parts)) if isinstance(move, PostParts) and state.whole else move

        return play

    return bend


def _without_heads(inner: Player) -> Player:
    """Opens no heads, as malformed nodes demand."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        return replace(move, heads=()) if isinstance(move, SelectElement) else move

    return play


def _at_the_first(inner: Player) -> Player:
    """Selects the first of everything."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        return replace(move, index=0) if move is not None and hasattr(move, "index") else move

    return play


# --- programs with a malformed node


@dataclass(frozen=True)
class Damaged(Program):
    """A program whose descriptors are not those of its nodes."""

    given: tuple[bytes, ...] = ()

    @cached_property
    def descriptors(self) -> tuple[bytes, ...]:
        """The bytes given."""
        return self.given


@cache
def damaged(name: str, change: Callable[[bytes], bytes], node: int = 1, size: tuple[int, ...] = (2,)) -> Example:
    """Two maps one after the other, each adding a constant's 1; one node's descriptor is changed."""
    spec = TensorSpec(DType.I32, size)
    b = ProgramBuilder([[spec]])
    s = ScalarBuilder([DType.I32, DType.I32])
    code = s.build(s.add(s.operand(0), s.operand(1)))
    one = b.const(spec, i32_bytes(1, 1))
    first = b.map(code, [b.input(0, 0), one], size)
    program = b.build([[b.map(code, [first, one], size)]])
    given = tuple(change(d) if k == node else d for k, d in enumerate(program.descriptors))
    changed = Damaged(program.nodes, program.inputs, program.outputs, program.consts, given)
    return Example(name, changed, ((i32_bytes(7, 9),),))


def _longer(data: bytes) -> bytes:
    return data + b"\0"


def _nine_sizes(data: bytes) -> bytes:
    """Rank 9, the last size 3: its value has the first eight (EL-16)."""
    return data[:2] + b"\x09" + data[3:67] + (3).to_bytes(8, "big") + data[67:]


def _family_12(data: bytes) -> bytes:
    return b"\x0c" + data[1:]


def _shorter(data: bytes) -> bytes:
    return data[:-1]


def _zeros(example: Example, node: int) -> ReferenceTrace:
    """The trace in which a node is 0."""
    return example.trace(1, lambda t, k, data: bytes(len(data)) if k == node else data)


def _malformed() -> Iterator[Definition]:
    const, first, second, output = 1, 2, 3, 4
    wide = (2, 1, 1, 1, 1, 1, 1, 1)
    for what, change, size in (
        ("a byte left over", _longer, (2,)),
        ("nine sizes", _nine_sizes, wide),
        ("family 12", _family_12, (2,)),
    ):
        example = damaged(what, change, first, size)
        as_if, truth = example.trace(), _zeros(example, first)
        yield Definition(
            f"a malformed node, {what}: claimed to compute", example, as_if, truth, 1, unbent, _without_heads
        )
        if change is _nine_sizes:
            yield Definition("a malformed node that is 0", example, truth, as_if, 1, unbent, _without_heads)
    example = damaged("nine sizes", _nine_sizes, first, wide)
    lie = example.trace(1, lambda t, k, data: bytes(len(data)) if k in (first, second) else data)
    yield Definition("a lie in a node that reads a malformed one", example, lie, _zeros(example, first))
    example = damaged("an input with a byte left over", _longer, 0)
    yield Definition("a lie in a malformed input", example, example.trace(1, flip_bit(1, 0)), example.trace())
    # Its last byte, 3, is missing: it names node 0.
    example = damaged("an output cut short", _shorter, output)
    (state,) = example.state[0]
    truth = example.trace(1, lambda t, k, data: state if k == output else data)

    def named(inner: Player) -> Player:
        def play(game: GameState, posted: Posted) -> AnyMove | None:
            move = inner(game, posted)
            if not isinstance(move, ProveRoot):
                return move
            return ProveRoot(move.node, truth.prefix_path(1, output, 0), truth.node_root(1, 0))

        return play

    yield Definition("a malformed output, claimed as it was meant", example, example.trace(), truth, 1, unbent, named)
    example = damaged("a const cut short", _shorter, const)
    yield Definition("a malformed const", example, example.trace(), _zeros(example, const))


# --- all of them


@cache
def _liar(family: Family) -> tuple[int, ReferenceTrace]:
    """A node of a family in which a lie reaches the end, and the lie."""
    example = every_family()
    for k in example.nodes_of(family):
        if (found := lie_at(example, k)) is not None:
            return k, found
    raise AssertionError(f"no lie in {family.name} reaches the end")


COMPUTED_TERM = (Family.DOT, Family.SCATTER_SUM, Family.MAX, Family.ROWEXP, Family.GATHER, Family.RANK, Family.SUM)
OTHERS = (Family.RANDOM, Family.INPUT, Family.CONST, Family.OUTPUT)


def definitions() -> Iterator[Definition]:
    """Every stage and every move of the game, and every end."""
    count, many = counting(), every_family()
    lie, truth, honest = lie_at(count, 1, 2, 5), honest_trace(count, 5), honest_trace(many)
    assert lie is not None
    yield Definition("five steps of counting, a lie in the map of the second", count, lie, truth, 5)
    for family in (*COMPUTED_TERM, *OTHERS):
        yield Definition(f"a lie in a node of family {family.name.lower()}", many, _liar(family)[1], honest)
    slot = lie_in_slot(many, 2, 0)
    yield Definition("a slot of the end that is not its output node", many, slot, honest)
    yield from _challengers_lose()
    yield _odd_parts()
    yield from _silent()
    yield from _malformed()


def _challengers_lose() -> Iterator[Definition]:
    count, many = counting(), every_family()
    lie, truth, honest = lie_at(count, 1, 2, 5), honest_trace(count, 5), honest_trace(many)
    assert lie is not None
    yield Definition("a true claim, refuted by its own element", count, truth, lie, 5)
    for family in (Family.DOT, Family.MAX, Family.INPUT, Family.CONST):
        what = f"a true claim, challenged in a node of family {family.name.lower()}"
        yield Definition(what, many, honest, _liar(family)[1])
    yield Definition("a true claim, challenged in a slot of the end", many, honest, lie_in_slot(many, 2, 0))
    # A game's description seeds what is refused in it, so these two keep their words.
    yield Definition("a true claim, pointed at where both agree", many, honest, honest, 1, unbent, _at_the_first)
    second, first = count.trace(1, flip_bit(1, 1, 32)), count.trace(1, flip_bit(1, 1, 0))
    yield Definition("a false claim, pointed at beside the lie", count, second, first)


def _odd_parts() -> Definition:
    # They stand for the true element, but what is kept of them is no f32 (GM-23).
    many, above = every_family(), _whole_parts(lambda parts: tuple(p + (1 << 32) for p in parts))
    return Definition("parts of max above 32 bits", many, honest_trace(many), _liar(Family.MAX)[1], 1, above)


def _silent() -> Iterator[Definition]:
    count, many = counting(), every_family()
    lie, truth, honest = lie_at(count, 1, 2, 5), honest_trace(count, 5), honest_trace(many)
    assert lie is not None
    for stage in (Stage.STEPS, Stage.NODE):
        what = f"a defender that is silent at {stage.name}"
        yield Definition(what, count, lie, truth, 5, silent_at(stage))
    dot, scatter = _liar(Family.DOT)[1], _liar(Family.SCATTER_SUM)[1]
    slot = lie_in_slot(many, 2, 0)
    yield Definition("a defender that is silent at PARTS", many, scatter, honest, 1, silent_at(Stage.PARTS))
    yield Definition("a defender that is silent at LIST", many, slot, honest, 1, silent_at(Stage.LIST))
    yield Definition("a challenger that is silent at NODES", count, lie, truth, 5, unbent, silent_at(Stage.NODES))
    yield Definition("a challenger that is silent at TERM", many, dot, honest, 1, unbent, silent_at(Stage.TERM))
    yield Definition("a challenger that is silent at SLOT", many, slot, honest, 1, unbent, silent_at(Stage.SLOT))
