"""What gateways of a run of its own answer, sign and bond themselves for."""

from __future__ import annotations

from typing import Final

from eth_account.signers.local import LocalAccount

from assay.inference.generate import generate
from assay.inference.rows import WindowRows
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import AnswerStatement, sign, statement_of
from assay.protocol.types import Address
from assay_ledger.deployment.answers import AnswerGates, check_answers
from tests.harness.inference.models import small_gpt
from tests.harness.payments.paid_run import PaidRun

MODEL: Final = small_gpt()
TERMS: Final = SamplingTerms(seed=11, temperature=1_100_000)
BOND: Final = "100"


def own_model(paid: PaidRun) -> tuple[str, str]:
    """The model's folder, as a command is told of it."""
    return ("--model", str(paid.folder / "pulled"))


def as_inference(paid: PaidRun, who: int, *words: str) -> tuple[str, ...]:
    """A command of `assay inference` by a payer."""
    return ("inference", *paid.words(who, *words)[1:])


def true_answer(paid: PaidRun, most: int = 8) -> AnswerStatement:
    """What the model says, of this run."""
    prompt = MODEL.encode("the cat")
    found = generate(MODEL, WindowRows(MODEL), prompt, TERMS, most)
    said = statement_of(MODEL, prompt, TERMS, most, found)
    return AnswerStatement(
        *(said.model, said.program, said.tokenizer, said.prompt, said.terms, said.most, said.end, said.answer),
        paid.chain.chain_id,
        paid.run.address,
    )


def file_of(paid: PaidRun, statement: AnswerStatement, key: LocalAccount, name: str) -> str:
    """A statement under a key's signature, on disk."""
    path = paid.folder / f"{name}.json"
    path.write_bytes(sign(statement, key).encode())
    return str(path)


def gates_at(paid: PaidRun, bonds: str) -> AnswerGates:
    """The contracts of gateways at an address."""
    return check_answers(paid.run, Address(bytes.fromhex(bonds[2:])))
