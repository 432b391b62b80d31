"""A statement has one form and one signer, and says nothing once a byte of it is another."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import rfc8785
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st

from assay.inference.generate import NO_END, generate
from assay.inference.model import LanguageModel
from assay.inference.rows import CachedRows
from assay.inference.sampling import MAX_TEMPERATURE, SamplingTerms
from assay.inference.statement import (
    ANSWER_TYPE,
    MAX_BYTES,
    AnswerStatement,
    SignedStatement,
    StatementRefused,
    read_statement,
    sign,
    statement_of,
)
from assay.inference.verify import AnotherModel, FalseAnswer, replay
from assay.protocol.types import Address, Digest
from tests.harness.inference.models import small_gpt

PAGE = Path(__file__).resolve().parents[3] / "docs" / "inference.md"
ACCOUNT = Account.from_key(bytes(31) + b"\x05")
DIGESTS = st.binary(min_size=32, max_size=32).map(Digest)
TOKENS = st.lists(st.integers(0, NO_END - 1), max_size=5).map(tuple)
TERMS = st.builds(SamplingTerms, st.integers(0, 2**64 - 1), st.integers(0, MAX_TEMPERATURE), st.integers(0, 2**31 - 1))
STATEMENTS = st.builds(
    AnswerStatement,
    *(DIGESTS, DIGESTS, DIGESTS, TOKENS, TERMS, st.integers(0, 1 << 16), st.integers(0, NO_END), TOKENS),
    *(st.integers(0, 2**53 - 1), st.binary(min_size=20, max_size=20).map(Address)),
)
SIGNED = sign(
    AnswerStatement(*(Digest(bytes([k] * 32)) for k in (1, 2, 3)), (1, 2), SamplingTerms(9), 3, NO_END, (4, 5, 6)),
    ACCOUNT,
)


@given(STATEMENTS)
def test_a_statement_is_read_as_it_was_signed(statement: AnswerStatement) -> None:
    signed = sign(statement, ACCOUNT)
    assert read_statement(signed.encode()) == signed
    assert signed.encode() == rfc8785.dumps(signed.document())
    assert "0x" + signed.signer.hex() == ACCOUNT.address.lower()


def test_what_other_programs_write_by_the_page_is_read() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    domain = re.search(r'domain \(name "([^"]+)", version "([^"]+)", chainId\)', text)
    struct = re.search(r"`Answer\(([^`]+)` `([^`]+)\)`", text)
    written = re.search(r"The file, for other programs, is an object (.+?)\. ", text)
    assert domain is not None and struct is not None and written is not None
    names = set(re.findall(r"`(\w+)`", written[1]))
    said = {
        "topK": 0,
        "temperature": 1_000_000,
        "seed": 9,
        "most": 3,
        "end": NO_END,
        "prompt": [1, 2],
        "answer": [4, 5, 6],
    }
    said |= {"run": "0x" + "00" * 20} | {
        n: "0x" + f"{k:02x}" * 32 for k, n in enumerate(("model", "program", "tokenizer"))
    }
    fields = [
        dict(zip(("type", "name"), field.split(" "), strict=True)) for field in (struct[1] + struct[2]).split(",")
    ]
    domain_of = {"name": domain[1], "version": domain[2], "chainId": 0}
    signature = bytes(ACCOUNT.sign_typed_data(domain_of, {"Answer": fields}, said).signature)
    document = {**said, "seed": "9", "top_k": said.pop("topK"), "chain_id": 0, "signer": ACCOUNT.address.lower()}
    document |= {"format": "assay-inference-1", "signature": "0x" + signature.hex()}
    del document["topK"]
    assert names == set(document)
    assert read_statement(rfc8785.dumps(document)).statement.answer == (4, 5, 6)


@given(st.data())
def test_a_statement_with_any_byte_changed_is_refused(data: st.DataObject) -> None:
    text = bytearray(SIGNED.encode())
    place = data.draw(st.integers(0, len(text) - 1))
    text[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StatementRefused):
        read_statement(bytes(text))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_statement_are_refused(data: bytes) -> None:
    with pytest.raises(StatementRefused):
        read_statement(data)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"seed": "09"},
        {"seed": 9},
        {"prompt": [1, True]},
        {"prompt": [1.0]},
        {"temperature": MAX_TEMPERATURE + 1},
        {"answer": [0] * 65537},
        {"run": "0x" + "0A" * 20},
        {"signature": "0x" + "00" * 65},
        {"signature": "0x" + "ff" * 65},
        {"format": "assay-inference-2"},
    ],
    ids=["more", "zero", "number", "bool", "float", "hot", "long", "upper-case", "no-signature", "all-ones", "format"],
)
def test_a_document_beyond_its_bounds_is_refused(change: dict) -> None:
    with pytest.raises(StatementRefused):
        read_statement(rfc8785.dumps(SIGNED.document() | change))


def test_the_other_form_of_a_signature_is_refused() -> None:
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    r, s, v = SIGNED.signature[:32], int.from_bytes(SIGNED.signature[32:64], "big"), SIGNED.signature[64]
    other = replace(SIGNED, signature=r + (order - s).to_bytes(32, "big") + bytes([55 - v]))
    with pytest.raises(StatementRefused):
        read_statement(other.encode())


def test_other_spaces_and_other_orders_are_no_statement() -> None:
    document = SIGNED.document()
    for text in (json.dumps(document), json.dumps(document, separators=(",", ":"))):
        with pytest.raises(StatementRefused):
            read_statement(text.encode())
    with pytest.raises(StatementRefused):
        read_statement(SIGNED.encode() + b" " * MAX_BYTES)


def test_the_digest_is_that_of_typed_data_elsewhere() -> None:
    said = SIGNED.statement
    fields = [part.split(" ") for part in ANSWER_TYPE[len("Answer(") : -1].split(",")]
    terms = said.terms
    message = {name: getattr(said, name) for name in ("model", "program", "tokenizer", "most", "end")}
    message |= {"seed": terms.seed, "temperature": terms.temperature, "topK": terms.top_k}
    message |= {"run": "0x" + said.run.hex(), "prompt": list(said.prompt), "answer": list(said.answer)}
    typed = encode_typed_data(
        {"name": "Assay inference", "version": "1", "chainId": 0},
        {"Answer": [{"name": name, "type": kind} for kind, name in fields]},
        message,
    )
    assert bytes(Account.sign_message(typed, ACCOUNT.key).signature) == SIGNED.signature


# --- replayed


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_gpt()


@pytest.fixture(scope="module")
def honest(model: LanguageModel) -> SignedStatement:
    terms = SamplingTerms(seed=4)
    return sign(statement_of(model, [1, 2], terms, 14, generate(model, CachedRows(model), [1, 2], terms, 14)), ACCOUNT)


def test_an_honest_answer_is_drawn_again(model: LanguageModel, honest: SignedStatement) -> None:
    assert replay(model, read_statement(honest.encode()).statement).tokens == honest.statement.answer


@pytest.mark.parametrize("lie", ["token", "short", "long", "seed", "cold", "prompt"])
def test_an_answer_that_the_model_does_not_give_is_false(
    model: LanguageModel, honest: SignedStatement, lie: str
) -> None:
    said = honest.statement
    answer, terms = list(said.answer), said.terms
    told = {
        "token": lambda: replace(said, answer=(*answer[:-1], (answer[-1] + 1) % 20)),
        "short": lambda: replace(said, answer=tuple(answer[:-1])),
        "long": lambda: replace(said, most=13),
        "seed": lambda: replace(said, terms=replace(terms, seed=5)),
        "cold": lambda: replace(said, terms=replace(terms, temperature=1)),
        "prompt": lambda: replace(said, prompt=(1, 3)),
    }[lie]()
    with pytest.raises(FalseAnswer) as found:
        replay(model, read_statement(sign(told, ACCOUNT).encode()).statement)
    assert found.value.details["claimed"] != found.value.details["expected"]


def test_an_answer_ends_at_its_end(model: LanguageModel, honest: SignedStatement) -> None:
    said = honest.statement
    end = said.answer[5]
    whole = said.answer[: said.answer.index(end) + 1]
    assert replay(model, replace(said, end=end, answer=whole)).tokens == whole
    with pytest.raises(FalseAnswer):
        replay(model, replace(said, end=end))


@pytest.mark.parametrize("part", ["model", "program", "tokenizer"])
def test_a_statement_about_another_model_is_no_lie_about_this_one(
    model: LanguageModel, honest: SignedStatement, part: str
) -> None:
    with pytest.raises(AnotherModel):
        replay(model, replace(honest.statement, **{part: Digest(bytes(32))}))
