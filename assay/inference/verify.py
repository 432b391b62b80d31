"""Whether an answer is what the model says: it is drawn again, token by token, from whole windows.

By windows and not with kept keys and values: a verifier takes the definition, so that a defect of the faster way is one
that it finds.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.inference.generate import answered
from assay.inference.model import LanguageModel
from assay.inference.rows import WindowRows
from assay.inference.statement import AnswerStatement
from assay.protocol.errors import ConfigError, FraudError, UserError
from assay.protocol.types import Address


class FalseAnswer(FraudError):
    """A signed answer is not what the model that it names answers."""

    remedy = "Keep the file: its signature says who answered."


class AnotherModel(ConfigError):
    """The model at hand is not the one that a statement is about."""

    remedy = "Fetch the model that it names (`assay model pull`), and give the tier of its programs with --tier."


@dataclass(frozen=True, slots=True)
class AnswerReplay:
    """What was drawn again: all tokens of the answer."""

    tokens: tuple[int, ...]


def check_model(model: LanguageModel, statement: AnswerStatement) -> None:
    """Raises AnotherModel where parameters, tokenizer or program are not those of the statement."""
    pairs = (
        ("parameters", model.root, statement.model),
        ("tokenizer", model.tokenizer_digest, statement.tokenizer),
        ("program", model.program.root, statement.program),
    )
    for what, own, named in pairs:
        if own != named:
            raise AnotherModel(
                f"The statement is about the {what} 0x{named.hex()}; the model at hand has 0x{own.hex()}."
            )


def check_run(statement: AnswerStatement, chain_id: int, run: Address) -> None:
    """Raises AnotherModel where a statement is about another run than the one whose model is at hand, or about none."""
    if (statement.chain_id, statement.run) != (chain_id, run):
        raise AnotherModel(
            f"The statement is about the run 0x{statement.run.hex()} of chain {statement.chain_id}; "
            f"the model at hand is of 0x{run.hex()} of chain {chain_id}."
        )


def replay(model: LanguageModel, statement: AnswerStatement) -> AnswerReplay:
    """The answer drawn again, once it is found to be the statement's.

    Raises AnotherModel, FalseAnswer; the latter for a prompt that the model does not answer as well.
    """
    check_model(model, statement)
    try:
        model.check_tokens(statement.prompt)
    except UserError as error:
        raise FalseAnswer(f"The model answers no such prompt. {error}") from None
    claimed, found = statement.answer, list[int]()
    for token in answered(WindowRows(model), statement.prompt, statement.terms, statement.most, statement.end):
        place = len(found)
        found.append(token)
        if place >= len(claimed) or claimed[place] != token:
            said = f"is {claimed[place]}" if place < len(claimed) else "is missing"
            raise _false(f"Token {place} of the answer {said}; the model says {token}.", place, claimed, token)
    if len(claimed) > len(found):
        raise _false(f"The answer goes on after token {len(found) - 1}, where it ends.", len(found), claimed, None)
    return AnswerReplay(tuple(found))


def false_place(model: LanguageModel, statement: AnswerStatement) -> int | None:
    """The first place at which a statement is false: what a claim of it names. None where it is true.

    Raises AnotherModel, NumericsError (LogitsNotFinite).
    """
    try:
        replay(model, statement)
    except FalseAnswer as false:
        place = false.details.get("place", 0)
        assert isinstance(place, int)
        return place
    return None


def _false(what: str, place: int, claimed: tuple[int, ...], expected: int | None) -> FalseAnswer:
    said = claimed[place] if place < len(claimed) else None
    return FalseAnswer(what, place=place, claimed=said, expected=expected)
