"""A whole game in every family, from the challenge to the verdict, by the agents' own code on the contracts of a run.

Once with a commitment whose lie begins in exactly one node of that family, once with a challenger that lies in such a
node about a true commitment: the true side wins. The programs are captured: the demo's at its small size, and one that
ranks its gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.game import errors as game_errors
from assay.protocol.game.moves import AnyMove, ProveRoot
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Move
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Trace
from assay.protocol.types import Address
from assay_ledger.agents.game_player import encode_move
from assay_ledger.index.games import Game
from tests.harness.actors.claims import RoundClaims, aside, open_round
from tests.harness.actors.families import NodeLie, lie_in, predict, slot_of
from tests.harness.actors.sparse import sparse_rounds
from tests.harness.actors.world import COMPUTE, SharedChain
from tests.harness.damage import flip, flipped

PROOFS = (Move.SELECT_ELEMENT, Move.PROVE_TERM, Move.PROVE_ROOT)
LEAST_FIELDS = {Family.CONST: 1, Family.INPUT: 8}
"""A const is proved by its descriptor alone, an input by the state that it is a slot of, all else by openings."""

REFUSALS = {e.__name__ for e in vars(game_errors).values() if isinstance(e, type)}
PPM = 1_000_000


@pytest.fixture(scope="module")
def claims_of(
    stage: SharedChain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Family], RoundClaims]]:
    """A run whose step program has this family; each is brought there once."""

    @cache
    def gpt() -> RoundClaims:
        return begun(open_round(stage, tmp_path_factory.mktemp("gpt")))

    @cache
    def sparse() -> RoundClaims:
        # On a node of its own: the time at which its round begins would end the other's.
        nodes.append(SharedChain())
        return begun(open_round(nodes[0], tmp_path_factory.mktemp("sparse"), sparse_rounds(2)))

    nodes: list[SharedChain] = []
    yield lambda family: sparse() if family is Family.RANK else gpt()
    for node in nodes:
        node.close()


def begun(claims: RoundClaims) -> RoundClaims:
    """With somebody who challenges."""
    claims.add_stranger()
    return claims


def false_run(claims: RoundClaims, name: str, lie: NodeLie) -> Trace:
    """The run behind an actor's claim with this lie in it."""
    job = claims.job_of(name)
    return COMPUTE.trace(job.program, job.lists, job.steps, lie.tamper)


def damages(move: AnyMove) -> Iterator[AnyMove]:
    """The move with one bit of one field flipped, for every field and for every digest of a field of digests."""
    yield from flipped(move)
    if isinstance(move, ProveRoot):
        for at in range(0, len(move.opening), 32):
            yield replace(move, opening=flip(move.opening, 8 * at + at // 32))


def check_refused(claims: RoundClaims, game: Game, move: AnyMove, sender: str) -> None:
    """The contract takes no such move, and says why."""
    with pytest.raises(RejectedError) as refused:
        claims.made.chain.simulate(encode_move(claims.made.run.game, game.game_id, move), sender=sender)
    assert refused.value.code in REFUSALS, refused.value


def wealth(claims: RoundClaims) -> dict[str, int]:
    """What everybody who may play can spend, in wei."""
    made, (stranger,) = claims.made, claims.strangers
    people = {"ada": made.address("ada"), "mallory": made.address("mallory"), "stranger": stranger.address}
    return {name: made.free(who) for name, who in people.items()}


def check_verdict(
    claims: RoundClaims, before: dict[str, int], verdict: Verdict | None, loser: str, lie: NodeLie, family: Family
) -> Verdict:
    """Who lost, how, and where; and that no wei moved but those that the rules move."""
    made, e = claims.made, claims.made.run.charter.economics
    (stranger,) = claims.strangers
    who: Address = stranger.address if loser == "stranger" else made.address(loser)
    assert verdict is not None
    assert (verdict.loser, verdict.outcome, verdict.family) == (who, Outcome.LEAF, family)
    assert verdict.node == lie.node
    state = made.run.games.game(made.run.games.count()).state
    gains = {name: now - before[name] for name, now in wealth(claims).items() if now != before[name]}
    paid = state.advanced + state.held
    if loser == "stranger":
        assert gains == {"stranger": -e.challenge_bond, "ada": paid + (e.challenge_bond - paid) // 2}
        assert claims.lock_of("ada") == e.seat_lock
    else:
        bounty = e.seat_lock * e.third_bounty_ppm // PPM
        assert gains == {"stranger": bounty - state.advanced, "mallory": state.advanced}
        assert claims.lock_of("mallory") == 0 and bounty > paid
    return verdict


@pytest.mark.parametrize("family", Family, ids=lambda f: f.name)
@pytest.mark.gate_takes(2)
def test_a_lie_in_this_family_is_convicted_and_every_field_of_the_proof_counts(
    claims_of: Callable[[Family], RoundClaims], family: Family
) -> None:
    claims = claims_of(family)
    (stranger,), job = claims.strangers, claims.job_of("mallory")
    lie = lie_in(COMPUTE, job, family, 1 + family % job.steps)
    truth, false = claims.truth("mallory", lie.step), false_run(claims, "mallory", lie)
    honest = COMPUTE.trace(job.program, job.lists, job.steps)
    refused: list[int] = []

    def damage(game: Game, move: AnyMove) -> None:
        """Sends every damaged form of a proof first; `refused` counts those of the last move."""
        refused.append(0)
        for damaged in damages(move) if move.kind in PROOFS else ():
            check_refused(claims, game, damaged, stranger.account.address)
            refused[-1] += 1

    with aside(claims):
        first = claims.made.chain.head().number + 1
        claims.commit(false)
        before = wealth(claims)
        game_id = claims.challenge(stranger, claims.ref("mallory"), honest.state_root(job.steps))
        players = claims.player(claims.mallory, false), claims.player(stranger, honest)
        verdict = claims.play(game_id, *players, damage)
        assert refused[-1] >= LEAST_FIELDS.get(family, 20)
        made = check_verdict(claims, before, verdict, "mallory", lie, family)
        words = predict(truth, lie, lie.data, truth.node_bytes(lie.step, lie.node), claims.arity)
        assert (made.element, made.term, made.expected, made.claimed) == words
        assert made.expected != made.claimed
        assert claims.check_transactions(first) > len(refused)


@pytest.mark.parametrize("family", Family, ids=lambda f: f.name)
@pytest.mark.gate_takes(1)
def test_a_challenger_that_lies_in_this_family_about_a_true_claim_loses(
    claims_of: Callable[[Family], RoundClaims], family: Family
) -> None:
    claims = claims_of(family)
    (stranger,), job = claims.strangers, claims.job_of("ada")
    lie = lie_in(COMPUTE, job, family, 1 + family % job.steps)
    truth, false = claims.truth("ada", lie.step), false_run(claims, "ada", lie)
    with aside(claims):
        claims.prepare_adas()
        before = wealth(claims)
        game_id = claims.challenge(stranger, claims.ref("ada"), false.state_root(job.steps))
        verdict = claims.play(game_id, claims.adas_player(), claims.liar(stranger, false))
        made = check_verdict(claims, before, verdict, "stranger", lie, family)
        words = predict(truth, lie, truth.node_bytes(lie.step, lie.node), lie.data, claims.arity)
        assert (made.element, made.term, made.expected, made.claimed) == words
        assert made.expected == made.claimed


def false_slot(claims: RoundClaims, name: str, step: int) -> tuple[Trace, NodeLie]:
    """A run whose output node is right, and the slot of the state after it wrong."""
    job = claims.job_of(name)
    lie = lie_in(COMPUTE, job, Family.OUTPUT, step)
    return COMPUTE.trace(job.program, job.lists, job.steps, tamper_slot=lie.in_slot(job.program)), lie


def check_slot(claims: RoundClaims, name: str, verdict: Verdict, lie: NodeLie) -> None:
    """The verdict names the slot and the root that the reference computes for it."""
    assert (verdict.term, verdict.element) == slot_of(claims.job_of(name).program, lie.node)
    root = claims.truth(name, lie.step).node_root(lie.step, lie.node)
    assert (verdict.expected % (1 << 256)).to_bytes(32, "big") == root


def test_a_slot_that_is_not_its_output_node_convicts_the_defender(claims_of: Callable[[Family], RoundClaims]) -> None:
    claims = claims_of(Family.OUTPUT)
    (stranger,), job = claims.strangers, claims.job_of("mallory")
    false, lie = false_slot(claims, "mallory", 1)
    honest = COMPUTE.trace(job.program, job.lists, job.steps)
    with aside(claims):
        claims.commit(false)
        before = wealth(claims)
        game_id = claims.challenge(stranger, claims.ref("mallory"), honest.state_root(job.steps))
        verdict = claims.play(game_id, claims.liar(claims.mallory, false), claims.player(stranger, honest))
        made = check_verdict(claims, before, verdict, "mallory", lie, Family.OUTPUT)
        check_slot(claims, "mallory", made, lie)
        assert made.expected != made.claimed


def test_a_challenger_that_lies_about_a_slot_of_a_true_claim_loses(claims_of: Callable[[Family], RoundClaims]) -> None:
    claims = claims_of(Family.OUTPUT)
    (stranger,) = claims.strangers
    false, lie = false_slot(claims, "ada", claims.steps)
    with aside(claims):
        claims.prepare_adas()
        before = wealth(claims)
        game_id = claims.challenge(stranger, claims.ref("ada"), false.state_root(claims.steps))
        verdict = claims.play(game_id, claims.adas_player(), claims.liar(stranger, false))
        made = check_verdict(claims, before, verdict, "stranger", lie, Family.OUTPUT)
        check_slot(claims, "ada", made, lie)
        assert made.expected == made.claimed


def test_after_a_reorganization_the_same_number_is_another_game(claims_of: Callable[[Family], RoundClaims]) -> None:
    """One process plays both, with what it remembers of the first."""
    claims, numbers = claims_of(Family.MAP), []
    (stranger,), job = claims.strangers, claims.job_of("mallory")
    honest = COMPUTE.trace(job.program, job.lists, job.steps)
    lies = [lie_in(COMPUTE, job, family, 1 + family % job.steps) for family in (Family.MAP, Family.DOT)]
    runs = {false.state_root(job.steps): false for false in (false_run(claims, "mallory", lie) for lie in lies)}
    claimed: list[Trace] = []
    defender = claims.player(claims.mallory, honest)
    defender._trace_of = lambda game: claimed[-1]
    for lie, false in zip(lies, runs.values(), strict=True):
        claimed.append(false)
        with aside(claims):
            claims.commit(false)
            before = wealth(claims)
            numbers.append(claims.challenge(stranger, claims.ref("mallory"), honest.state_root(job.steps)))
            verdict = claims.play(numbers[-1], defender, claims.player(stranger, honest))
            family = job.program.nodes[lie.node].family
            check_verdict(claims, before, verdict, "mallory", lie, family)
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("family", (Family.MAP, Family.RANK), ids=("gpt", "sparse"))
def test_deployment_and_round_stay_within_the_caps_of_every_transaction(
    claims_of: Callable[[Family], RoundClaims], family: Family
) -> None:
    claims = claims_of(family)
    first = claims.made.run.first_block
    assert claims.check_transactions(first) > len(claims.made.run.all_contracts())
