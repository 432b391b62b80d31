"""The charter in Python and in its contract: one encoding, one identity, the same parts of its terms."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from assay.protocol.rounds.run_terms import duty_terms, round_terms, ticket_terms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RunCharter
from tests.harness.contracts.harness import Evm, EvmContract, Reverted
from tests.harness.rounds.charters import BEACON, RUN, WIDE, deploy
from tests.harness.rounds.samples import START
from tests.harness.rounds.stage import text


def made(charter: RunCharter) -> EvmContract:
    return deploy(Evm(timestamp=START), charter)


@pytest.mark.parametrize("charter", [RUN, WIDE], ids=["8 seats", "1,024 seats"])
def test_the_contract_knows_the_charter_as_python_encodes_it(charter: RunCharter) -> None:
    contract = made(charter)
    assert contract.call("run") == charter.run
    assert RunCharter.from_tuple(contract.call("runTerms")) == charter


@pytest.mark.parametrize("charter", [RUN, WIDE], ids=["8 seats", "1,024 seats"])
def test_each_contract_reads_its_part_of_the_terms(charter: RunCharter) -> None:
    contract = made(charter)
    assert contract.call("roundTerms") == astuple(round_terms(charter))
    assert contract.call("dutyTerms") == astuple(duty_terms(charter))
    assert contract.call("ticketTerms") == astuple(ticket_terms(charter))


def test_the_charter_names_itself_and_its_beacon_among_the_modules() -> None:
    contract = made(RUN)
    modules = contract.call("roundModules")
    assert (modules[0], modules[-1]) == (contract.address.lower(), text(BEACON))
    assert len(contract.call("lockers")) == 7


@pytest.mark.parametrize("charter", [RUN, WIDE], ids=["8 seats", "1,024 seats"])
def test_each_program_of_a_run_is_found_by_its_root(charter: RunCharter) -> None:
    contract = made(charter)
    for program in charter.programs.values():
        assert contract.call("programOf", program.root) == (program.header, program.tree)
    with pytest.raises(Reverted, match="ProgramNotFound"):
        contract.call("programOf", bytes(32))


def test_a_kind_of_claim_that_does_not_exist_has_no_book() -> None:
    with pytest.raises(Reverted, match="BookNotFound"):
        made(RUN).call("bookOf", int(ClaimKind.NONE))
