"""What gateways, accusers and strangers try with bonds and statements, and what they get by it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.inference.claims import honest_trace, said_of
from assay.inference.lies import claimed_trace, contrary_trace, false_statement
from assay.inference.sampling import GREEDY, SamplingTerms
from assay.inference.statement import AnswerStatement, SignedStatement
from assay.inference.verify import FalseAnswer, replay
from assay.protocol.digests import ZERO
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.payments.gateway_books import answer_ref
from assay.protocol.run.answers import HELD, MAX_TOKENS, REFUTED, answer_claim
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Digest
from tests.harness.games import address
from tests.harness.payments.answer_stage import BOND, KEYS, ORDER, SALT, AnswerStage, account, signed_by
from tests.harness.rounds.charters import HOUR, RUN
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.stage import refused

GATE, OTHER, *_ = KEYS
READER, RIVAL = address("reader"), address("rival")
UNTIL = 30 * HOUR
HOT = SamplingTerms(seed=7, temperature=1_200_000, top_k=9)


@pytest.fixture
def stage() -> Iterator[AnswerStage]:
    made = AnswerStage()
    made.bond(GATE)
    made.pledge(GATE, UNTIL)
    for who in (READER, RIVAL):
        made.fund(who, 10 * ETHER)
    yield made
    made.compare()
    made.end()


def lie_in(stage: AnswerStage, place: int = 3, terms: SamplingTerms = HOT) -> tuple[AnswerStatement, int]:
    """A statement whose token at `place` is the next one, with the place at which a reader finds it."""
    true = stage.statement(terms)
    false = false_statement(true, place, stage.model.vocabulary)
    with pytest.raises(FalseAnswer) as caught:
        replay(stage.model, false)
    return false, caught.value.details["place"]


def accused(stage: AnswerStage, signed: SignedStatement, place: int) -> int:
    """The game that a reader opens: it commits before it shows the statement."""
    claim = answer_claim(signed.statement.digest, signed.signer, place)
    stage.commit(claim, READER, REFUTED)
    assert stage.accuse(signed, place) == claim
    return stage.reveal(claim, READER, REFUTED)


# --- games


@pytest.mark.parametrize("terms", [HOT, GREEDY], ids=["drawn", "greedy"])
def test_a_false_answer_is_convicted_at_its_leaf_and_costs_the_bond(stage: AnswerStage, terms: SamplingTerms) -> None:
    false, place = lie_in(stage, terms=terms)
    assert place == 3
    game = accused(stage, signed_by(GATE, false), place)
    said = said_of(false)
    lie = claimed_trace(stage.answers, stage.model, said, place)
    truth = honest_trace(stage.answers, stage.model, said, place)
    assert (lie.state_root(1), truth.state_root(1)) == (HELD, REFUTED)
    state = stage.play(game, lie, truth)
    assert state.verdict is not None
    assert (state.verdict.side, state.verdict.outcome) == (Side.DEFENDER, Outcome.LEAF)
    bounty = BOND * RUN.economics.third_bounty_ppm // 10**6
    assert stage.vault.free[READER] == 10 * ETHER + bounty - state.advanced
    assert stage.vault.burned == BOND - bounty
    assert stage.books.bond_of(account(GATE)).is_convicted


def test_a_false_accuser_loses_its_stake_to_the_gateway(stage: AnswerStage) -> None:
    true = stage.statement(HOT)
    game = accused(stage, signed_by(GATE, true), 2)
    said = said_of(true)
    truth = claimed_trace(stage.answers, stage.model, said, 2)
    assert truth.state_root(1) == HELD
    lie = contrary_trace(stage.answers, stage.model, said, 2)
    state = stage.play(game, truth, lie)
    assert state.verdict is not None and state.verdict.side is Side.CHALLENGER
    assert stage.vault.free[READER] == 10 * ETHER - RUN.economics.challenge_bond
    assert stage.vault.free[account(GATE)] > 150 * ETHER
    assert stage.books.bond_of(account(GATE)).is_bonded


def test_a_gateway_that_says_nothing_in_its_game_loses_the_bond(stage: AnswerStage) -> None:
    false, place = lie_in(stage)
    game = accused(stage, signed_by(GATE, false), place)
    truth = honest_trace(stage.answers, stage.model, said_of(false), place)
    state = stage.play(game, None, truth)
    assert state.verdict is not None and state.verdict.outcome is Outcome.DEFAULT
    assert stage.books.bond_of(account(GATE)).is_convicted


# --- what cannot be presented


def test_only_a_pledged_gateways_own_words_are_a_claim(stage: AnswerStage) -> None:
    true = stage.statement(HOT)
    signed = signed_by(GATE, true)
    # Nobody has pledged anything: a stranger, another program, model, run, chain; a text under an old signature.
    assert refused(stage.accuse, signed_by(OTHER, true), 0) == "NotPledged"
    for odd in (
        replace(true, program=ZERO),
        replace(true, model=ZERO),
        replace(true, run=READER),
        replace(true, chain_id=2),
        replace(true, tokenizer=ZERO),
    ):
        told = said_of(true) if odd.model == true.model and odd.tokenizer == true.tokenizer else said_of(odd)
        other = replace(signed, signature=signed_by(GATE, odd).signature)
        if told == said_of(true):
            assert refused(stage.accuse, other, 0) == "NotPledged"
    assert refused(stage.accuse, signed_by(GATE, replace(true, model=ZERO)), 0) == "NotPledged"
    said = said_of(true)
    for lied in (
        replace(said, seed=said.seed + 1),
        replace(said, answer=(*said.answer[:-1], 0)),
        replace(said, prompt=said.prompt[1:]),
        replace(said, temperature=0),
        replace(said, top_k=1),
        replace(said, most=said.most + 1),
        replace(said, end=5),
    ):
        assert refused(stage.accuse, signed, 0, lied) == "NotPledged"


def test_a_signature_has_one_form(stage: AnswerStage) -> None:
    signed = signed_by(GATE, stage.statement(HOT))
    r, s, v = signed.signature[:32], int.from_bytes(signed.signature[32:64], "big"), signed.signature[64]
    high = r + (ORDER - s).to_bytes(32, "big") + bytes([55 - v])
    for odd in (high, signed.signature[:-1], signed.signature[:-1] + bytes([v - 27]), b"", bytes(65)):
        assert refused(stage.accuse, replace(signed, signature=odd), 0) == "NotPledged"
    first = stage.accuse(signed, 0)
    assert stage.accuse(signed, 0) == first


def test_a_place_behind_the_end_says_nothing(stage: AnswerStage) -> None:
    true = stage.statement(HOT)
    signed = signed_by(GATE, true)
    assert refused(stage.accuse, signed, len(true.answer)) == "NothingSaid"
    assert refused(stage.accuse, signed, len(true.answer) + 1) == "NothingSaid"
    long = replace(true, prompt=(1,) * (MAX_TOKENS - len(true.answer) + 1))
    assert refused(stage.accuse, signed_by(GATE, long), 0) == "TooManyTokens"


def test_what_contradicts_itself_claims_what_nothing_ends_in(stage: AnswerStage) -> None:
    true = stage.statement(HOT)
    count, V = len(true.answer), stage.model.vocabulary
    hot = replace(HOT, temperature=100_000_000)
    object.__setattr__(hot, "temperature", 100_000_001)
    odd = [
        (replace(true, answer=true.answer[:-1]), count - 1),
        (replace(true, most=count - 1), count - 1),
        (replace(true, end=true.answer[1], answer=true.answer), 2),
        (replace(true, prompt=()), 0),
        (replace(true, prompt=(V,)), 0),
        (replace(true, answer=(V, *true.answer[1:])), 0),
        (replace(true, answer=(V, *true.answer[1:])), 1),
        (replace(true, terms=hot), 0),
        (replace(true, answer=()), 0),
    ]
    for statement, place in odd:
        claim = stage.accuse(signed_by(GATE, statement), place)
        assert stage.books.claims[claim].y == ZERO, (statement, place)
    good = [
        (true, count - 1),
        (replace(true, prompt=(V - 1,)), 0),
        (replace(true, terms=replace(HOT, temperature=100_000_000)), 0),
        (replace(true, end=true.answer[1], answer=true.answer[:2]), 1),
    ]
    for statement, place in good:
        assert stage.books.claims[stage.accuse(signed_by(GATE, statement), place)].y == HELD, (statement, place)
    short, place = odd[0]
    game = accused(stage, signed_by(GATE, short), place)
    said = said_of(short)
    lie = claimed_trace(stage.answers, stage.model, said, place)
    state = stage.play(game, lie, honest_trace(stage.answers, stage.model, said, place))
    assert state.verdict is not None and state.verdict.side is Side.DEFENDER
    assert stage.books.bond_of(account(GATE)).is_convicted


# --- bonds and pledges


def test_a_bond_goes_back_when_nothing_can_be_presented_or_disputed_any_more(stage: AnswerStage) -> None:
    assert refused(stage.bond, GATE) == "AlreadyBonded"
    assert refused(stage.unbond, OTHER) == "NotBonded"
    false, place = lie_in(stage)
    signed = signed_by(GATE, false)
    claim = answer_claim(false.digest, account(GATE), place)
    stage.pass_time(UNTIL - stage.now)
    stage.accuse(signed, place)
    stage.pass_time(1)
    assert refused(stage.accuse, signed, place + 1) == "NotPledged"
    stage.pass_time(RUN.timing.challenge - 1 - RUN.chain.reorg_depth - 1)
    stage.commit(claim, READER, REFUTED)
    assert stage.now == UNTIL + RUN.timing.challenge, "the last second of the window"
    assert refused(stage.unbond, GATE) == "BondInUse"
    game = stage.reveal(claim, READER, REFUTED)
    assert game != 0
    stage.pass_time(1)
    assert refused(stage.unbond, GATE) == "BondInUse"
    said = said_of(false)
    state = stage.play(
        game,
        claimed_trace(stage.answers, stage.model, said, place),
        honest_trace(stage.answers, stage.model, said, place),
    )
    assert state.verdict is not None and state.verdict.side is Side.DEFENDER
    assert refused(stage.unbond, GATE) == "NotBonded"
    assert refused(stage.bond, GATE) == "GatewayConvicted"
    assert refused(stage.pledge, GATE, UNTIL * 2) == "NotBonded"


def test_an_honest_gateway_leaves_with_its_bond_and_comes_back(stage: AnswerStage) -> None:
    claim = stage.accuse(signed_by(GATE, stage.statement(HOT)), 1)
    stage.pass_time(UNTIL + RUN.timing.challenge - stage.now)
    assert refused(stage.unbond, GATE) == "BondInUse"
    stage.pass_time(1)
    stage.unbond(GATE)
    assert stage.vault.free[account(GATE)] == 200 * ETHER
    assert stage.open(claim, READER, REFUTED) == 0, "the window is over; the deposit went back"
    assert stage.vault.free[READER] == 10 * ETHER
    stage.bond(GATE)
    stage.unbond(GATE)


def test_a_pledge_only_grows_and_not_beyond_half_a_year(stage: AnswerStage) -> None:
    assert refused(stage.pledge, OTHER, UNTIL) == "NotBonded"
    assert refused(stage.pledge, GATE, UNTIL) == "PledgeNotLonger"
    assert refused(stage.pledge, GATE, UNTIL - 1) == "PledgeNotLonger"
    assert refused(stage.pledge, GATE, stage.now + 180 * 86_400 + 1) == "PledgeTooLong"
    stage.pledge(GATE, UNTIL + 1, ZERO)
    stage.pledge(GATE, stage.now + 180 * 86_400)
    # A shorter pledge of another model frees nothing.
    stage.pledge(GATE, UNTIL + 2, ZERO)
    stage.pass_time(UNTIL + RUN.timing.challenge + 3 - stage.now)
    assert refused(stage.unbond, GATE) == "BondInUse"


def test_nobody_challenges_directly_or_with_the_root_that_is_claimed(stage: AnswerStage) -> None:
    claim = stage.accuse(signed_by(GATE, stage.statement(HOT)), 1)
    assert refused_game(stage, claim) == "MayNotChallenge"
    stage.commit(claim, READER, HELD)
    assert refused(stage.reveal, claim, READER, HELD) == "WrongDigest"


def refused_game(stage: AnswerStage, claim: Digest) -> str:
    """What a direct challenge ends with."""
    return refused(stage.book.challenge, READER, answer_ref(claim), stage.now)


def test_who_copies_an_accusation_comes_after_its_accuser(stage: AnswerStage) -> None:
    false, place = lie_in(stage)
    signed = signed_by(GATE, false)
    claim = answer_claim(false.digest, account(GATE), place)
    stage.commit(claim, READER, REFUTED)
    # The rival sees the accusation in the mempool, presents it first, and commits at once.
    stage.accuse(signed, place)
    stage.book.commit_challenge(
        RIVAL, challenge_commitment(answer_ref(claim), REFUTED, SALT, RIVAL), stage.now, stage.block
    )
    assert refused(stage.reveal, claim, RIVAL, REFUTED) == "RevealTooEarly"
    assert stage.reveal(claim, READER, REFUTED) == 1


def test_two_accusers_take_one_bond_and_neither_loses(stage: AnswerStage) -> None:
    false, place = lie_in(stage)
    games = [accused(stage, signed_by(GATE, false), place)]
    claim = answer_claim(false.digest, account(GATE), place)
    games.append(stage.open(claim, RIVAL, REFUTED))
    said = said_of(false)
    lie = claimed_trace(stage.answers, stage.model, said, place)
    truth = honest_trace(stage.answers, stage.model, said, place)
    for game in games:
        state = stage.play(game, lie, truth)
        assert state.verdict is not None and state.verdict.side is Side.DEFENDER
    assert stage.vault.free[READER] > 10 * ETHER
    assert stage.vault.free[RIVAL] == 10 * ETHER


def test_a_puppet_that_signs_the_same_words_shields_nobody(stage: AnswerStage) -> None:
    """It presents them first and has itself convicted: what the other signed must still be a claim, of the other."""
    false, place = lie_in(stage)
    puppet = KEYS[2]
    stage.bond(puppet)
    stage.pledge(puppet, UNTIL)
    truth = honest_trace(stage.answers, stage.model, said_of(false), place)
    for signer in (puppet, GATE):
        game = accused(stage, signed_by(signer, false), place)
        state = stage.play(game, None, truth)
        assert state.claim.claimant == account(signer)
        assert stage.books.bond_of(account(signer)).is_convicted


# --- what the contract builds


@pytest.mark.parametrize("number", range(4))
def test_every_window_and_draw_is_built_as_the_program_reads_it(stage: AnswerStage, number: int) -> None:
    # X and Y of model and contract are compared by the game that opens: a claim's id binds both.
    rng = random.Random(number)
    terms = [HOT, GREEDY, SamplingTerms((1 << 64) - 1, 1, 0), SamplingTerms(1 << 40, 100_000_000, (1 << 31) - 1)]
    V, W = stage.model.vocabulary, stage.model.context
    prompt = tuple(rng.randrange(V) for _ in range(rng.choice([1, W - 3, W, 3 * W])))
    answer = tuple(rng.randrange(V) for _ in range(6))
    true = replace(stage.statement(terms[number]), prompt=prompt, answer=answer, most=6)
    for place in (0, 3, 5):
        claim = stage.accuse(signed_by(GATE, true), place)
        found = stage.books.claims[claim]
        told = stage.told_claim(claim)
        assert told == (account(GATE), found.x, found.y)
