"""Statements as claims: what a bonded gateway answers for, and the run of the answer program behind it.

Source: docs/adr/0067-bonded-gateways.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.engine.runtime.trace import TorchTrace
from assay.inference.answer_program import answer_program
from assay.inference.model import LanguageModel
from assay.inference.statement import AnswerStatement
from assay.protocol.program.program import Program
from assay.protocol.run.answers import AnswerTerms, SaidAnswer, answer_inputs
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.types import Wei

if TYPE_CHECKING:
    from assay.protocol.trees.state import ListBytes


def said_of(statement: AnswerStatement) -> SaidAnswer:
    """What of a statement its claims follow from."""
    terms = statement.terms
    return SaidAnswer(
        statement.model,
        statement.tokenizer,
        statement.prompt,
        terms.seed,
        terms.temperature,
        terms.top_k,
        statement.most,
        statement.end,
        statement.answer,
    )


def answer_terms(model: LanguageModel, bond: Wei) -> AnswerTerms:
    """What gateways of a model answer for. Raises UserError (VocabularyTooLarge)."""
    program = answer_program(model.program)
    return AnswerTerms(ProgramRef.of(program), model.program.root, model.context, model.vocabulary, bond)


def answer_state(model: LanguageModel, said: SaidAnswer, place: int) -> ListBytes:
    """X of a claim, with the model at hand."""
    parameters = tuple(p.detach().contiguous().numpy().tobytes() for p in model.parameters)
    return (parameters, *answer_inputs(said, place, model.context))


def honest_trace(program: Program, model: LanguageModel, said: SaidAnswer, place: int) -> TorchTrace:
    """The run of the answer program on what a statement says, as an accuser and an honest gateway have it."""
    return TorchTrace(program, answer_state(model, said, place))
