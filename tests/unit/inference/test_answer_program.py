"""The program that a claim of an answer is about says of every token what the definition says."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.runtime.trace import TorchTrace
from assay.inference.answer_program import MOST_VOCABULARY, answer_program
from assay.inference.claims import honest_trace, said_of
from assay.inference.generate import generate
from assay.inference.lies import claimed_trace
from assay.inference.model import LanguageModel
from assay.inference.rows import WindowRows
from assay.inference.sampling import GREEDY, MAX_TEMPERATURE, SamplingTerms, draw, weights
from assay.inference.statement import statement_of
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError, UserError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.run.answers import HELD, REFUTED, SaidAnswer, answer_inputs, answer_start, said_end
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.inference.models import small_gpt, two_back

W = 4
temperatures = st.sampled_from([0, 1, 50, 500_000, 1_000_000, 3_141_593, MAX_TEMPERATURE])


@cache
def of_logits(vocabulary: int) -> Program:
    """An answer program whose parameters are the logits."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (1, vocabulary))], [TensorSpec(DType.I32, (1, W))]])
    s = ScalarBuilder([DType.F32])
    same = s.build(s.add(s.operand(0), s.f32(-0.0)))
    return answer_program(b.build([[b.map(same, [b.input(0, 0)], (1, vocabulary))]]))


def holds(
    logits_1V: torch.Tensor,
    terms: SamplingTerms,
    place: int,
    token: int,
    by: type = TorchTrace,
    bits: int | None = None,
) -> bool:
    """Whether the program says that this is the token. bits: 64 random ones, in place of those of seed and place."""
    answer = (0,) * place + (token,)
    said = SaidAnswer(ZERO, ZERO, (1,), terms.seed, terms.temperature, terms.top_k, 99, 1 << 31, answer)
    (tokens, _), (rates, draws) = answer_inputs(said, place, W)
    if bits is not None:
        draws = draws[:8] + (bits >> 32).to_bytes(4, "little") + (bits & 0xFFFFFFFF).to_bytes(4, "little")
    drawn = rates, draws
    trace = by(of_logits(logits_1V.shape[1]), ((logits_1V.numpy().tobytes(),), (tokens,), drawn))
    return bool(trace.slot_bytes(1, 0, 0)[0])


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 29, 257]),
    st.integers(0, (1 << 64) - 1),
    temperatures,
    st.sampled_from([0, 1, 2, 5, (1 << 31) - 1]),
    st.integers(0, 5),
    st.sampled_from(["normal", "flat", "wide", "endless", "ties"]),
    st.integers(0, 1 << 30),
)
def test_the_token_that_is_drawn_holds_and_no_other(
    vocabulary: int, seed: int, temperature: int, top_k: int, place: int, kind: str, number: int
) -> None:
    generator = torch.Generator().manual_seed(number)
    logits = torch.randn(1, vocabulary, generator=generator)
    match kind:
        case "flat":
            logits = logits * 0
        case "wide":
            logits = logits * 1e12
        case "endless":
            logits[0, number % vocabulary] = float("inf")
            logits[0, number // 7 % vocabulary] = float("-inf")
        case "ties":
            logits = logits.round()
    terms = SamplingTerms(seed, temperature, top_k)
    (token,) = draw(logits, [terms], [place])
    others = {(token + 1) % vocabulary, (token - 1) % vocabulary, number % vocabulary} - {token}
    assert holds(logits, terms, place, token)
    assert not any(holds(logits, terms, place, other) for other in others)


@pytest.mark.parametrize("vocabulary", [1, 2, 7, 33])
def test_the_reference_says_the_same(vocabulary: int) -> None:
    rng = random.Random(vocabulary)
    for number in range(6):
        logits = torch.randn(1, vocabulary) * 3
        terms = SamplingTerms(rng.getrandbits(64), rng.choice([0, 700_000]), rng.choice([0, 2]))
        (token,) = draw(logits, [terms], [number])
        for other in {token, rng.randrange(vocabulary)}:
            assert holds(logits, terms, number, other, ReferenceTrace) == (other == token)


@pytest.mark.parametrize("vocabulary", [50_257, 151_936])
def test_large_vocabularies_are_summed_exactly(vocabulary: int) -> None:
    logits = torch.randn(1, vocabulary, generator=torch.Generator().manual_seed(5)) * 0.01
    for seed in ((1 << 64) - 1, 1 << 63, 12345):
        (token,) = draw(logits, [SamplingTerms(seed)], [1])
        found = [holds(logits, SamplingTerms(seed), 1, other) for other in (token - 1, token, token + 1)]
        assert found == [False, True, False]


def test_a_sum_of_all_the_largest_weights_is_exact() -> None:
    # Attack: 2^17 equal weights of 2^31 are 2^48; binary32 holds 24 bits of it.
    vocabulary = 1 << 17
    logits = torch.zeros(1, vocabulary)
    for seed in range(4):
        (token,) = draw(logits, [SamplingTerms(seed)], [0])
        assert holds(logits, SamplingTerms(seed), 0, token)
        assert not holds(logits, SamplingTerms(seed), 0, token + 1)


@pytest.mark.parametrize(("vocabulary", "tokens"), [(2, [0]), (1 << 10, [0, 511, 1022]), ((1 << 17) - 1, [99_999])])
def test_a_token_holds_up_to_the_last_unit_of_its_weight(vocabulary: int, tokens: list[int]) -> None:
    """Attack: a number on the border of two tokens, or a sum with a unit too few, of which both hold, or none."""
    logits = torch.randn(1, vocabulary, generator=torch.Generator().manual_seed(vocabulary)) * (vocabulary > 2) * 0.01
    terms = SamplingTerms()
    found = [int(weight) for weight in weights(logits, [terms])[0]]
    total = sum(found)
    for token in tokens:
        first = sum(found[: token + 1])  # the first number of the next one
        for number, whose in ((first - 1, token), (first, token + 1)):
            bits = -(-(number << 64) // total)
            assert bits * total >> 64 == number
            held = [t for t in (token, token + 1) if holds(logits, terms, 0, t, bits=bits)]
            assert held == [whose]


def test_a_vocabulary_beyond_the_sums_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        of_logits(MOST_VOCABULARY + 1)
    assert caught.value.code == "VocabularyTooLarge"


# --- whole models


@pytest.fixture(scope="module", params=["preset", "own"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return small_gpt() if request.param == "preset" else two_back()


@pytest.mark.parametrize("terms", [GREEDY, SamplingTerms(seed=3, temperature=1_500_000, top_k=6)])
def test_every_token_of_an_honest_answer_holds_and_any_other_is_refuted(
    model: LanguageModel, terms: SamplingTerms
) -> None:
    program = answer_program(model.program)
    prompt = model.encode("the end of it")
    answer = generate(model, WindowRows(model), prompt, terms, 5)
    said = said_of(statement_of(model, prompt, terms, 5, answer))
    for place, token in enumerate(answer):
        found = honest_trace(program, model, said, place)
        assert found.state_root(1) == HELD == said_end(said, place, model.vocabulary)
        inputs = answer_inputs(said, place, model.context)
        assert found.state_root(0) == answer_start(model.root, inputs, model.context)
        other = (*answer[:place], (token + 1) % model.vocabulary, *answer[place + 1 :])
        lie = replace(said, answer=other)
        assert honest_trace(program, model, lie, place).state_root(1) == REFUTED
        assert claimed_trace(program, model, lie, place).state_root(1) == HELD


def test_the_program_follows_from_the_forward_program_alone(model: LanguageModel) -> None:
    assert answer_program(model.program).root == answer_program(model.program).root
    assert answer_program(model.program).root != answer_program(small_gpt(seed=1).program).root or model.shape


# --- what a statement claims


def test_what_contradicts_itself_claims_the_zero_root() -> None:
    said = SaidAnswer(ZERO, ZERO, (1, 2), 0, 1_000_000, 0, 3, 9, (4, 5, 6))
    assert [said_end(said, p, 7) for p in range(3)] == [HELD] * 3
    for place in (3, 4):
        with pytest.raises(RejectedError) as caught:
            said_end(said, place, 7)
        assert caught.value.code == "NothingSaid"
    assert said_end(replace(said, most=4), 3, 7) == ZERO
    assert said_end(replace(said, most=2), 2, 7) == ZERO
    assert said_end(replace(said, end=4), 1, 7) == ZERO
    assert said_end(replace(said, end=6), 2, 7) == HELD
    assert said_end(replace(said, prompt=()), 0, 7) == ZERO
    assert said_end(replace(said, prompt=(7,)), 0, 7) == ZERO
    assert said_end(said, 2, 6) == ZERO
    assert said_end(replace(said, temperature=MAX_TEMPERATURE + 1), 0, 7) == ZERO
