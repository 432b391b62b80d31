"""Gas of the calls of audits with 8 to 10,000 tickets: none grows with tickets or commitments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import left_out
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.types import Wei
from tests.harness.contracts import snapshots
from tests.harness.contracts.node_evm import NodeEvm
from tests.harness.rounds.duties import TERMS, DutyStage, work_duties
from tests.harness.rounds.duty_scenes import begin
from tests.harness.rounds.stage import ETHER, START


@pytest.mark.timeout(600)
def test_gas_of_audits_does_not_grow_with_tickets_or_commitments() -> None:
    table: dict[str, dict[str, int]] = {}
    for count in (8, 64, 1024, 10_000):
        for call, gas in gas_of_audits(count).items():
            table.setdefault(call, {})[f"{count} tickets"] = gas
    for call, row in table.items():
        assert max(row.values()) < 1.15 * min(row.values()), call
    snapshots.check("duties", table)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_gas_of_audits_on_a_node_with_cold_slots_does_not_grow() -> None:
    table: dict[str, dict[str, int]] = {}
    for count in (8, 64, 256):
        with NodeEvm(START) as node:
            for call, gas in gas_of_audits(count, node).items():
                table.setdefault(call, {})[f"{count} tickets"] = gas
    for call, row in table.items():
        few, some, many = row.values()
        # Eight are no dearer than 64 but for how many bytes of the calldata happen to be zero.
        assert many <= 1.15 * some and few <= 1.001 * some, call
    snapshots.check("duties-on-a-node", table)


def gas_of_audits(count: int, node: NodeEvm | None = None) -> dict[str, int]:
    """Gas of each call with this many tickets, at most 1,024 commitments, and nearly everybody drawn."""
    start = START + 7200 + 12 * count
    terms = replace(TERMS, start=start, audit_ppm=4_000_000_000, reaudit_ppm=4_000_000_000)
    tickets = TicketTerms(Wei(ETHER), 7200, 2)
    stage = DutyStage(terms=terms, tickets=tickets, people=1, stake=20_000 * ETHER, node=node)
    secrets = stage.chains[stage.register(0)]
    for _ in range(count - 1):
        stage.pass_time(12)
        stage.register(0, secrets=secrets)
    stage.pass_time(tickets.seasoning)
    gas: dict[str, int] = {}
    seats = range(min(count, 1024))
    # The first epoch is opened by half of its shift, so that it fines; the first openings write slots that are zero.
    round_ = begin(stage, seats)
    gas["seedEpoch"] = stage.gas["seedEpoch"]
    shift, called = stage.duties.epochs[0].shift, stage.duties.epochs[0].on_call
    crew = [ticket for ticket in range(1, count + 1) if ticket % 2 == shift]
    assert len(crew) == called
    if node is not None and crew[0] == 1:
        # The first ticket's place in the list is 0: its first call writes a slot that is not zero for any other.
        crew = [*crew[1:], crew[0]]
    some = sorted({(len(seats) - 1) * k // 11 for k in range(12)})
    duties = [stage.drawn(crew[k], work_duties(round_, some))[:4] for k in range(2)]
    stage.open(crew[0], [stage.result(crew[0], duty) for duty in duties[0]])
    gas["open, 4 results"] = stage.gas["open"]
    stage.open(crew[1], [stage.result(crew[1], duties[1][0])])
    gas["open, 1 result"] = stage.gas["open"]
    for ticket in crew[2 : called // 2 + 1]:
        stage.open(ticket, [])
    gas["open, none"] = stage.gas["open"]
    if node is None:  # of eight tickets the one that is left has the first place
        stage.open(crew[-1], [left_out(stage.drawn(crew[-1], work_duties(round_, some))[0])])
        gas["open, 1 left out"] = stage.gas["open"]
    stage.close()
    gas["closeEpoch"] = stage.gas["closeEpoch"]
    stage.miss(crew[1], 0, duties[1][1], who=0)
    stage.miss(crew[1], 0, duties[1][2], who=0)
    gas["miss"] = stage.gas["miss"]
    return gas
