"""The terms of gateways at their limits, what their charter passes on, and what their deployer creates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest
from eth_hash.auto import keccak

from assay.protocol.digests import ZERO, program_digest
from assay.protocol.economics.run_times import min_kept
from assay.protocol.run.answers import AnswerTerms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.types import Wei
from tests.harness.contracts.harness import Reverted, artifact
from tests.harness.payments.answer_stage import CONTRACTS_BESIDE, AnswerStage, terms_digest
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.staged import NOBODY

MODULES = (NOBODY,) * 4
LEAST = Wei(-(-2 * 10**6 * min_kept(RUN.chain, RUN.clocks.arity) // RUN.economics.third_bounty_ppm))
"""The least bond whose bounty pays for a game."""


@pytest.fixture
def stage() -> Iterator[AnswerStage]:
    made = AnswerStage()
    yield made
    made.end()


def refusal(stage: AnswerStage, terms: AnswerTerms) -> str:
    """The error under which such a charter is refused; empty where it is admitted."""
    evm = stage.games.chain
    try:
        charter = evm.deploy("AnswerCharter", stage.games.run_charter.address, astuple(terms), MODULES)
    except Reverted as reverted:
        return reverted.name
    except RuntimeError as error:
        data = str(error)
        names = {e["name"]: e for e in artifact("AnswerCharter").abi if e["type"] == "error"}
        for name, entry in names.items():
            types = ",".join(i["type"] for i in entry["inputs"])
            if keccak(f"{name}({types})".encode())[:4].hex() in data:
                return name
        raise
    assert charter.call("answerTerms") == plain(terms)
    return ""


def plain(terms: AnswerTerms) -> tuple[Any, ...]:
    """As an ABI decoder gives it."""
    return astuple(terms)


def test_terms_are_admitted_at_each_limit_and_refused_beyond(stage: AnswerStage) -> None:
    terms = stage.games.terms
    header = bytes(2049)
    long = ProgramRef(program_digest(header, ZERO), ZERO, header)
    admitted = [
        terms,
        replace(terms, window=1),
        replace(terms, window=(1 << 16) - 1),
        replace(terms, vocabulary=1),
        replace(terms, vocabulary=1 << 20),
        replace(terms, bond=LEAST),
        replace(terms, bond=Wei((1 << 112) - 1)),
    ]
    assert [refusal(stage, found) for found in admitted] == [""] * len(admitted)
    refused = {
        "window 0": (replace(terms, window=0), "ValueZero"),
        "window": (replace(terms, window=1 << 16), "ScheduleTooLong"),
        "vocabulary 0": (replace(terms, vocabulary=0), "ValueZero"),
        "vocabulary": (replace(terms, vocabulary=(1 << 20) + 1), "ScheduleTooLong"),
        "bond": (replace(terms, bond=Wei(LEAST - 1)), "BountyTooSmall"),
        "no bond": (replace(terms, bond=Wei(0)), "BountyTooSmall"),
        "large bond": (replace(terms, bond=Wei(1 << 112)), "AmountTooLarge"),
        "program": (replace(terms, answer=replace(terms.answer, root=ZERO)), "ProgramMismatch"),
        "tree": (replace(terms, answer=replace(terms.answer, tree=ZERO)), "ProgramMismatch"),
        "header": (replace(terms, answer=long), "ScheduleTooLong"),
    }
    assert {name: refusal(stage, found) for name, (found, _) in refused.items()} == {
        name: wanted for name, (_, wanted) in refused.items()
    }


def test_the_charter_answers_by_the_runs_terms_and_for_answers_alone(stage: AnswerStage) -> None:
    charter, run = stage.games.charter, stage.games.run_charter
    for view in ("run", "runTerms", "roundTerms", "dutyTerms", "ticketTerms"):
        assert charter.call(view) == run.call(view), view
    assert charter.call("isStopped") is False
    assert charter.call("bookOf", int(ClaimKind.ANSWER)).lower() == stage.games.gateways.address.lower()
    for kind in set(ClaimKind) - {ClaimKind.ANSWER}:
        with pytest.raises(Reverted, match="BookNotFound"):
            charter.call("bookOf", int(kind))
    with pytest.raises(Reverted, match="BookNotFound"):
        run.call("bookOf", int(ClaimKind.ANSWER))
    answer = stage.games.terms.answer
    assert charter.call("programOf", answer.root) == (answer.header, answer.tree)
    with pytest.raises(Reverted, match="ProgramNotFound"):
        charter.call("programOf", ZERO)
    lockers = [c.address.lower() for c in (stage.games.gateways, stage.games.game, stage.games.challenges)]
    assert [found.lower() for found in charter.call("lockers")] == lockers


def test_the_deployer_creates_known_code_with_its_own_terms_in_order(stage: AnswerStage) -> None:
    evm, terms = stage.games.chain, stage.games.terms
    codes = [artifact(name).bytecode for name in CONTRACTS_BESIDE]
    given = stage.games.run_charter.address, terms_digest(terms), stage.games.arbiter.address
    deployer = evm.deploy("AnswerDeployer", *given, [keccak(code) for code in codes])
    with pytest.raises(Reverted, match="NotNext"):
        deployer.call("create", codes[1])
    with pytest.raises(Reverted, match="WrongTerms"):
        deployer.call("createCharter", codes[0], astuple(replace(terms, window=9)))
    with pytest.raises(Reverted, match="WrongCode"):
        deployer.call("createCharter", codes[1], astuple(terms))
    deployer.call("createCharter", codes[0], astuple(terms))
    with pytest.raises(Reverted, match="NotNext"):
        deployer.call("createCharter", codes[0], astuple(terms))
    with pytest.raises(Reverted, match="WrongCode"):
        deployer.call("create", codes[2])
    for code in codes[1:]:
        deployer.call("create", code)
    with pytest.raises(Reverted, match="NotNext"):
        deployer.call("create", codes[1])
    assert deployer.call("created") == len(codes) == deployer.call("COUNT")
