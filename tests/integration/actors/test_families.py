"""A whole game in every family, from the challenge to the verdict, by the agents' own code on the demo's contracts.

Once with a defender whose lie begins in exactly one node of that family, once with a challenger that lies in such a
node about a true claim: the true side wins. The programs are captured: the demo's at its small size, and one that
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
from assay.protocol.game.table import Move, Side
from assay.protocol.program.nodes import Family
from assay_ledger.agents.game_player import encode_move
from assay_ledger.index.games import Game
from tests.harness.actors.claims import ClaimsRun, aside, open_claims, posted_world
from tests.harness.actors.families import NodeLie, lie_in, predict, slot_of
from tests.harness.actors.sparse import sparse_work
from tests.harness.actors.verdicts import digest_of
from tests.harness.actors.world import SharedChain, new_world
from tests.harness.damage import flip, flipped

IN_THE_GPT = tuple(f for f in Family if f is not Family.RANK)
PROOFS = (Move.SELECT_ELEMENT, Move.PROVE_TERM, Move.PROVE_ROOT)
LEAST_FIELDS = {Family.CONST: 1, Family.INPUT: 8}
"""A const is proved by its descriptor alone, an input by the state that it is a slot of, all else by openings."""

REFUSALS = {e.__name__ for e in vars(game_errors).values() if isinstance(e, type)}


@pytest.fixture(scope="module")
def claims_of(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Family], ClaimsRun]:
    """The claims with a lie in this family; each run is brought there once."""

    @cache
    def gpt() -> ClaimsRun:
        liars = {"mallory": IN_THE_GPT[:5], "oscar": IN_THE_GPT[5:10], "trudy": IN_THE_GPT[10:]}
        return open_claims(posted_world(stage, tmp_path_factory.mktemp("gpt")), liars)

    @cache
    def sparse() -> ClaimsRun:
        world = new_world(stage, tmp_path_factory.mktemp("sparse"), sparse_work(), rounds=1)
        return open_claims(world, {"mallory": [Family.RANK]})

    return lambda family: sparse() if family is Family.RANK else gpt()


def damages(move: AnyMove) -> Iterator[AnyMove]:
    """The move with one bit of one field flipped, for every field and for every digest of a field of digests."""
    yield from flipped(move)
    if isinstance(move, ProveRoot):
        for at in range(0, len(move.opening), 32):
            yield replace(move, opening=flip(move.opening, 8 * at + at // 32))


def check_refused(claims: ClaimsRun, game: Game, move: AnyMove, sender: str) -> None:
    """The contract takes no such move, and says why."""
    with pytest.raises(RejectedError) as refused:
        claims.world.stage.chain.simulate(encode_move(claims.world.run.game, game.game_id, move), sender=sender)
    assert refused.value.code in REFUSALS, refused.value


def check_verdict(verdict: Verdict, loser: bytes, family: Family, lie: NodeLie) -> None:
    """Who lost, how, and where."""
    assert (verdict.loser, verdict.outcome, verdict.family) == (loser, Outcome.LEAF, family)
    assert verdict.node == lie.node


def check_money(claims: ClaimsRun, before: dict[bytes, int], verdict: Verdict, other: bytes, replies: int) -> None:
    """The loser pays what the terms say, and no other wealth changed."""
    run, terms = claims.world.run, claims.world.run.charter.economics
    refunds = replies * claims.world.stage.chain.ask(run.game.move_refund())
    assert 0 < refunds < terms.challenge_bond
    after = claims.wealth()
    gains = {who: after[who] - before[who] for who in before if after[who] != before[who]}
    if verdict.side is Side.DEFENDER:
        bounty = terms.claim_lock * terms.bounty_ppm // 1_000_000
        assert gains == {verdict.loser: refunds - terms.claim_lock, other: bounty - refunds}
    else:
        won = refunds + (terms.challenge_bond - refunds) // 2
        assert gains == {verdict.loser: -terms.challenge_bond, other: won}


@pytest.mark.parametrize("family", Family, ids=lambda f: f.name)
def test_a_lie_in_this_family_is_convicted_and_every_field_of_the_proof_counts(
    claims_of: Callable[[Family], ClaimsRun], family: Family
) -> None:
    claims = claims_of(family)
    name, ref, lie = claims.lie_of(family)
    vera, liar, chain = claims.participant("vera"), claims.participant(name), claims.world.stage.chain
    refused: list[int] = []

    def damage(game: Game, move: AnyMove) -> None:
        """Sends every damaged form of a proof first; `refused` counts those of the last move."""
        refused.append(0)
        for damaged in damages(move) if move.kind in PROOFS else ():
            check_refused(claims, game, damaged, vera.account.address)
            refused[-1] += 1

    with aside(claims):
        before, first = claims.wealth(), chain.head().number + 1
        game_id = claims.accuse(ref)
        verdict, replies = claims.play(game_id, claims.player(liar), claims.player(vera), damage)
        assert refused[-1] >= LEAST_FIELDS.get(family, 20)
        check_verdict(verdict, liar.me, family, lie)
        truth = claims.truth(ref, lie.step)
        words = predict(truth, lie, lie.data, truth.node_bytes(lie.step, lie.node), claims.arity)
        assert (verdict.element, verdict.term, verdict.expected, verdict.claimed) == words
        assert verdict.expected != verdict.claimed
        check_money(claims, before, verdict, vera.me, replies)
        assert claims.check_transactions(first, chain.head().number) > 2 * replies


@pytest.mark.parametrize("family", Family, ids=lambda f: f.name)
def test_a_challenger_that_lies_in_this_family_about_a_true_claim_loses(
    claims_of: Callable[[Family], ClaimsRun], family: Family
) -> None:
    claims = claims_of(family)
    ada, chain, ref = claims.participant("ada"), claims.world.stage.chain, claims.ref("ada", 0)
    job = claims.job(ref)
    lie = lie_in(ada.compute, job, family, 1 + family % job.steps)
    false = ada.compute.trace(job.program, job.lists, job.steps, lie.tamper)
    with aside(claims):
        before, first = claims.wealth(), chain.head().number + 1
        game_id = claims.challenge_as_third_party(ref, false.state_root(job.steps))
        verdict, replies = claims.play(game_id, claims.player(ada), claims.liar(claims.stranger, false))
        check_verdict(verdict, claims.stranger.address, family, lie)
        truth = claims.truth(ref, job.steps)
        words = predict(truth, lie, truth.node_bytes(lie.step, lie.node), lie.data, claims.arity)
        assert (verdict.element, verdict.term, verdict.expected, verdict.claimed) == words
        assert verdict.expected == verdict.claimed
        check_money(claims, before, verdict, ada.me, replies)
        assert claims.check_transactions(first, chain.head().number) > 2 * replies


def test_a_slot_that_is_not_its_output_node_convicts_the_defender(claims_of: Callable[[Family], ClaimsRun]) -> None:
    claims = claims_of(Family.OUTPUT)
    name, ref, lie = claims.lie_of(Family.OUTPUT)
    vera, liar, job = claims.participant("vera"), claims.participant(name), claims.job(ref)
    false = liar.compute.trace(job.program, job.lists, job.steps, tamper_slot=lie.in_slot(job.program))
    with aside(claims):
        before = claims.wealth()
        game_id = claims.accuse(ref)
        verdict, replies = claims.play(game_id, claims.liar(liar.keys, false), claims.player(vera))
        check_verdict(verdict, liar.me, Family.OUTPUT, lie)
        check_slot(claims, verdict, lie, claims.truth(ref, lie.step).node_root(lie.step, lie.node))
        assert verdict.expected != verdict.claimed
        check_money(claims, before, verdict, vera.me, replies)


def test_a_challenger_that_lies_about_a_slot_of_a_true_claim_loses(claims_of: Callable[[Family], ClaimsRun]) -> None:
    claims = claims_of(Family.OUTPUT)
    ada, ref = claims.participant("ada"), claims.ref("ada", 0)
    job = claims.job(ref)
    lie = lie_in(ada.compute, job, Family.OUTPUT, job.steps)
    false = ada.compute.trace(job.program, job.lists, job.steps, tamper_slot=lie.in_slot(job.program))
    with aside(claims):
        before = claims.wealth()
        game_id = claims.challenge_as_third_party(ref, false.state_root(job.steps))
        verdict, replies = claims.play(game_id, claims.player(ada), claims.liar(claims.stranger, false))
        check_verdict(verdict, claims.stranger.address, Family.OUTPUT, lie)
        check_slot(claims, verdict, lie, claims.truth(ref, job.steps).node_root(lie.step, lie.node))
        assert verdict.expected == verdict.claimed
        check_money(claims, before, verdict, ada.me, replies)


def check_slot(claims: ClaimsRun, verdict: Verdict, lie: NodeLie, root: bytes) -> None:
    """The verdict names the slot and the root that the reference computes for it."""
    assert (verdict.term, verdict.element) == slot_of(claims.world.work.step, lie.node)
    assert digest_of(verdict.expected) == root


def test_after_a_reorganization_the_same_number_is_another_game(claims_of: Callable[[Family], ClaimsRun]) -> None:
    claims, families = claims_of(Family.MAP), IN_THE_GPT[:2]
    vera, numbers = claims.participant("vera"), []
    for family in families:
        name, ref, lie = claims.lie_of(family)
        liar = claims.participant(name)
        with aside(claims):
            numbers.append(claims.accuse(ref))
            verdict, _ = claims.play(numbers[-1], claims.player(liar), claims.player(vera))
            check_verdict(verdict, liar.me, family, lie)
    assert numbers[0] == numbers[1] and len({claims.lie_of(f)[0] for f in families}) == 1


@pytest.mark.parametrize("family", (Family.MAP, Family.RANK), ids=("gpt", "sparse"))
def test_deployment_and_round_stay_within_the_caps_of_every_transaction(
    claims_of: Callable[[Family], ClaimsRun], family: Family
) -> None:
    claims = claims_of(family)
    run = claims.world.run
    assert claims.check_transactions(0, claims.world.stage.chain.head().number) > len(run.contracts())
