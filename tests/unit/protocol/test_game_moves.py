"""What each move of the dispute game must carry, and what a wrong one is refused for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.game import errors
from assay.protocol.game.machine import process_move
from assay.protocol.game.moves import AnyMove, OpenLeaf, PostDigests, ProveRoot, ProveTerm, SelectElement
from assay.protocol.game.state import NO_FAMILY, GameState, Rules
from assay.protocol.game.table import Side, Stage, Turn
from assay.protocol.types import Digest
from tests.harness.games import ETHER, GameWorld, honest_trace
from tests.harness.programs import counting, every_family
from tests.harness.recorded import HONEST, LIAR, recorded


def at(stage: Stage, side: Side) -> tuple[GameState, AnyMove, Rules]:
    """A recorded turn."""
    return recorded()[Turn(stage, side)]


def refuse(error: type[errors.GameError], state: GameState, move: AnyMove, rules: Rules) -> None:
    """The move is refused by this error."""
    with pytest.raises(error):
        process_move(state, state.party(state.turn), move, state.turn_started, rules)


@pytest.mark.parametrize("stage", (Stage.STEPS, Stage.NODES))
def test_a_posted_list_has_the_exact_count_and_ends_in_the_disputed_digest(stage: Stage) -> None:
    state, move, rules = at(stage, Side.DEFENDER)
    assert isinstance(move, PostDigests)
    refuse(errors.WrongCount, state, PostDigests(move.digests[1:]), rules)
    refuse(errors.WrongCount, state, PostDigests((*move.digests, move.digests[-1])), rules)
    refuse(errors.WrongDigest, state, PostDigests((*move.digests[:-1], Digest(bytes(32)))), rules)


@pytest.mark.parametrize("stage", (Stage.STEPS, Stage.NODES, Stage.TENSOR, Stage.LIST, Stage.STATE, Stage.PARTS))
def test_a_selection_gives_the_posted_list_again_and_names_an_entry_of_it(stage: Stage) -> None:
    state, move, rules = at(stage, Side.CHALLENGER)
    name = next(f for f in ("digests", "list_roots", "parts") if hasattr(move, f))
    posted = getattr(move, name)
    refuse(errors.ListMismatch, state, replace(move, **{name: posted[:-1]}), rules)
    refuse(errors.ListMismatch, state, replace(move, **{name: tuple(reversed(posted)) + posted}), rules)
    refuse(errors.IndexOutOfRange, state, replace(move, index=len(posted)), rules)


def test_each_binding_of_an_opened_node_is_checked() -> None:
    state, move, rules = at(Stage.NODE, Side.DEFENDER)
    program = every_family().program
    same_shape = [k for k, spec in enumerate(program.specs) if spec == program.specs[state.node] and k != state.node]
    other = same_shape[0]
    zero, other_path = Digest(bytes(32)), (Digest(bytes(31) + b"\1"), *move.append_path[1:])
    # (a) append path, (b) descriptor, (d) header; (c) and (e) are the ROOT and SLOT stages.
    refuse(errors.WrongDigest, state, replace(move, append_path=other_path), rules)
    refuse(errors.WrongCount, state, replace(move, append_path=move.append_path[1:]), rules)
    swapped = replace(move, node=program.descriptors[other], program_path=program.tree.path(other))
    refuse(errors.WrongDigest, state, swapped, rules)
    refuse(errors.WrongDigest, state, replace(move, node=move.node[:-1] + bytes((move.node[-1] ^ 1,))), rules)
    refuse(errors.WrongCount, state, replace(move, program_path=(*move.program_path, zero)), rules)
    refuse(errors.WrongCount, state, replace(move, digests=(*move.digests, zero)), rules)
    refuse(errors.WrongDigest, state, replace(move, digests=(zero,) * len(move.digests)), rules)


def test_a_leaf_of_another_length_is_refused_even_if_its_digest_was_claimed() -> None:
    state, move, rules = at(Stage.LEAF, Side.DEFENDER)
    assert isinstance(move, OpenLeaf)
    refuse(errors.WrongCount, state, OpenLeaf(move.leaf + b"\0"), rules)
    refuse(errors.WrongCount, state, OpenLeaf(move.leaf[:-1]), rules)
    refuse(errors.WrongDigest, state, OpenLeaf(bytes(len(move.leaf))), rules)


def test_an_element_outside_the_leaf_cannot_be_selected() -> None:
    state, move, rules = at(Stage.LEAF, Side.CHALLENGER)
    assert isinstance(move, SelectElement)
    refuse(errors.IndexOutOfRange, state, replace(move, offset=len(move.leaf)), rules)
    refuse(errors.WrongDigest, state, replace(move, node=move.node + b"\0"), rules)
    refuse(
        errors.WrongCount, state, replace(move, heads=(*move.heads, *move.heads, *move.heads)), rules
    ) if move.heads else None


def test_parts_that_do_not_stand_for_the_element_are_refused() -> None:
    state, move, rules = at(Stage.PARTS, Side.DEFENDER)
    parts = (move.parts[0] + 1 << 70, *move.parts[1:])
    refuse(errors.PartsMismatch, state, replace(move, parts=parts), rules)
    refuse(errors.WrongCount, state, replace(move, parts=move.parts[:-1]), rules)


def test_proofs_for_a_slot_or_a_constant_carry_nothing_superfluous() -> None:
    state, move, rules = at(Stage.SLOT, Side.CHALLENGER)
    assert isinstance(move, ProveRoot)
    refuse(errors.WrongCount, state, replace(move, node=b"\0"), rules)
    refuse(errors.WrongCount, state, replace(move, opening=move.opening + b"\0"), rules)
    refuse(errors.WrongCount, state, replace(move, path=move.path[:-1]), rules)


def test_the_challenger_goes_on_to_prove_what_it_selected() -> None:
    for stage in (Stage.TERM, Stage.SLOT):
        state, move, _ = at(stage, Side.CHALLENGER)
        assert isinstance(move, ProveTerm | ProveRoot)
        assert state.turn is Side.CHALLENGER


def test_a_game_of_one_step_begins_with_its_nodes_and_the_empty_prefix() -> None:
    world = GameWorld(counting().program)
    state = world.state(world.challenge(world.claim(honest_trace(counting()), LIAR, ETHER), HONEST))
    assert (state.stage, state.turn, state.lo, state.hi) == (Stage.NODES, Side.DEFENDER, 0, 4)
    assert state.agreed.hex() == "7a618954dca87e1f844c2e2222e632b1697192ee82989632bbd501114adabe6d"
    assert state.family == NO_FAMILY
