"""A staged charter: terms as tests write them, unchecked, for contracts and their vault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any

from assay.protocol.rounds.duty_types import DutyTerms
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.run.run_charter import RunModules
from assay.protocol.types import Address, Wei
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.samples import AUDIT_TERMS, ETHER, TERMS, TICKET_TERMS

NOBODY = "0x" + bytes(20).hex()
BOND = Wei(ETHER)


def modules_at(other: str = NOBODY, **places: str) -> RunModules:
    """Where the contracts of a run are; all that are not named are at one place, but for a governor: there is none."""
    usual = dict.fromkeys((f.name for f in fields(RunModules)), other) | {"governor": NOBODY}
    named = {name: places.get(name, place) for name, place in usual.items()}
    return RunModules(**{name: Address(bytes.fromhex(place[2:])) for name, place in named.items()})


def charter_arguments(
    token: str,
    modules: RunModules,
    lockers: Iterable[str] = (),
    rounds: RoundTerms = TERMS,
    tickets: TicketTerms | tuple[int, ...] = TICKET_TERMS,
    duties: DutyTerms = AUDIT_TERMS,
    exit_delay: int = 1,
) -> list[Any]:
    """What StageCharter.sol is built with."""
    money = (token, exit_delay, BOND, 500_000)
    rows = (rounds, tickets, duties, modules)
    return [money, list(lockers), *(row if isinstance(row, tuple) else astuple(row) for row in rows)]


def deploy_charter(evm: Evm, modules: RunModules, **terms: Any) -> EvmContract:
    """A staged charter on a chain."""
    return evm.deploy("StageCharter", *charter_arguments(NOBODY, modules, **terms))
