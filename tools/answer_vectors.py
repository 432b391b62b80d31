"""Write tests/vectors/answers.json: tokens drawn, statements, vouchers and seeds, and what is claimed of answers.

The file's fields are explained in tests/vectors/README.md. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import torch
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_typing import Hash32

from assay.inference import sampling
from assay.inference.claims import said_of
from assay.inference.gateway.till import seed_of
from assay.inference.generate import NO_END
from assay.inference.model import MAX_TOKENS
from assay.inference.sampling import MAX_TEMPERATURE, SamplingTerms
from assay.inference.statement import AnswerStatement, sign
from assay.protocol.digests import keccak
from assay.protocol.errors import RejectedError
from assay.protocol.payments.voucher import AMOUNT_END, Voucher, VoucherDomain
from assay.protocol.run.answers import answer_claim, answer_inputs, answer_start, said_end
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.chain.client import address_of
from assay_ledger.vouchers.signed import SignedVoucher

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "answers.json"

HOSTILE = (0.0, -0.0, float("inf"), -float("inf"), 2.0**-149, -(2.0**-22), 1.5 * 2.0**-20, 2.0**30, 3e38)
TEMPERATURES = (0, 1, 700_001, 1_000_000, 1_300_000, MAX_TEMPERATURE)


def draws(source: Random) -> Iterator[dict[str, Any]]:
    """Tokens from logits, most of them near each other."""
    for temperature in TEMPERATURES:
        for size, top_k in ((1, 0), (7, 0), (12, 3), (12, (1 << 31) - 1), (40, 0)):
            logits = [source.gauss(0, 3) if source.random() < 0.7 else source.choice(HOSTILE) for _ in range(size)]
            logits_BV = torch.tensor([logits])
            terms = SamplingTerms(source.getrandbits(64), temperature, top_k)
            place = source.choice((0, 1, 3999, source.getrandbits(32)))
            yield {
                "logits": [f"0x{word:08x}" for word in struct.unpack(f"<{size}I", logits_BV.numpy().tobytes())],
                "temperature": temperature,
                "top_k": top_k,
                "seed": str(terms.seed),
                "place": place,
                "weights": sampling.weights(logits_BV, [terms])[0].tolist() if temperature else None,
                "token": sampling.draw(logits_BV, [terms], [place])[0],
            }


def statements(source: Random) -> Iterator[dict[str, Any]]:
    """Files and what was signed, at the limits and between."""
    least = _statement(source, SamplingTerms(0, 0, 0), (), ())
    yield _signed(source, replace(least, most=0, end=0, chain_id=0, run=Address(bytes(20))))
    largest = _statement(source, SamplingTerms((1 << 64) - 1, MAX_TEMPERATURE, (1 << 31) - 1), (NO_END - 1,), (0,))
    yield _signed(source, replace(largest, most=MAX_TOKENS, end=NO_END, chain_id=(1 << 53) - 1))
    for count in (1, 8, 9):
        prompt, answer = (tuple(source.randrange(1 << 17) for _ in range(n)) for n in (count, 2 * count))
        yield _signed(source, _statement(source, SamplingTerms(source.getrandbits(64), 800_000, 40), prompt, answer))


def _statement(
    source: Random, terms: SamplingTerms, prompt: tuple[int, ...], answer: tuple[int, ...]
) -> AnswerStatement:
    model, program, tokenizer = (Digest(source.randbytes(32)) for _ in range(3))
    run = Address(source.randbytes(20))
    return AnswerStatement(model, program, tokenizer, prompt, terms, 16, NO_END, answer, 8453, run)


def _signed(source: Random, statement: AnswerStatement) -> dict[str, Any]:
    return {"file": sign(statement, _account(source)).encode().decode(), "digest": statement.digest.hex()}


def vouchers(source: Random) -> Iterator[dict[str, Any]]:
    """Lines and what was signed, and the seed of an answer that one of them pays for."""
    for amount in (0, 1, 12 * 10**18, AMOUNT_END - 1):
        account, domain = _account(source), VoucherDomain(source.getrandbits(53), Address(source.randbytes(20)))
        gateway, token = (Address(source.randbytes(20)) for _ in range(2))
        voucher = Voucher(address_of(account), gateway, token, Wei(amount))
        signed = SignedVoucher(voucher, bytes(account.unsafe_sign_hash(Hash32(voucher.digest(domain))).signature))
        body = json.dumps({"model": "m", "prompt": "a" * source.randrange(200), "max_tokens": 4})
        yield {
            "chain_id": domain.chain_id,
            "contract": domain.contract.hex(),
            "line": signed.to_text(),
            "digest": voucher.digest(domain).hex(),
            "body": body,
            "seed": str(seed_of(signed, keccak(body.encode()))),
        }


def claims(source: Random) -> Iterator[dict[str, Any]]:
    """What a bonded gateway claims of each token, by X, Y and the claim's outer root."""
    usual = _statement(source, SamplingTerms(source.getrandbits(64), 700_000, 40), (1, 2, 3), (4, 5, 6))
    usual = replace(usual, most=4)
    cases = {
        "a token": (usual, 1),
        "one behind an answer that stops before its end": (usual, 3),
        "none behind one that has the most tokens": (replace(usual, most=3), 3),
        "none behind one that ends": (replace(usual, end=6), 3),
        "one that ends it": (replace(usual, end=6), 2),
        "one behind its end": (replace(usual, end=5), 2),
        "one beyond the most": (replace(usual, most=2), 2),
        "to no prompt": (replace(usual, prompt=()), 0),
        "a word that the model has not": (replace(usual, answer=(4, 100, 6)), 1),
        "before a word that the model has not": (replace(usual, answer=(4, 5, 100)), 1),
        "the largest of logits": (replace(usual, terms=SamplingTerms(source.getrandbits(64), 0, 40)), 0),
        "of all tokens": (replace(usual, terms=SamplingTerms(source.getrandbits(64), MAX_TEMPERATURE, 0)), 2),
        "before a long prompt": (replace(usual, prompt=tuple(range(40))), 2),
    }
    for what, (statement, place) in cases.items():
        yield _claim(what, statement, _account(source), place)


def _claim(what: str, statement: AnswerStatement, gateway: LocalAccount, place: int) -> dict[str, Any]:
    window, vocabulary = 8, 100
    signed, said = sign(statement, gateway), said_of(statement)
    case = {"what": what, "file": signed.encode().decode(), "window": window, "vocabulary": vocabulary, "place": place}
    try:
        end = said_end(said, place, vocabulary)
    except RejectedError as refused:
        return {**case, "error": refused.code}
    start = answer_start(said.model, answer_inputs(said, place, window), window)
    outer = answer_claim(statement.digest, signed.signer, place)
    return {**case, "x": start.hex(), "y": end.hex(), "outer_root": outer.hex()}


def _account(source: Random) -> LocalAccount:
    account: LocalAccount = Account.from_key(source.randbytes(32))
    return account


def text() -> str:
    """The document as it stands in the file: one line per case."""
    groups = []
    for make in (draws, statements, vouchers, claims):
        cases = ",\n".join(json.dumps(case) for case in make(Random(f"vectors {make.__name__}")))
        groups.append(f'"{make.__name__}": [\n{cases}\n]')
    return "{" + ",\n".join(groups) + "}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.answer_vectors`")
    PATH.write_text(text())


if __name__ == "__main__":
    main()
