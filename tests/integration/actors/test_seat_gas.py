"""What a seat's own calls cost on a real node, and settling a finding: receipts, slots cold, calldata counted."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from web3.types import TxReceipt

from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, UnavailableError
from assay.sponsor.governing import governed
from assay_ledger.chain.client import Chain
from assay_ledger.chain.sent import Payload
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.contract import Call
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.contracts import snapshots

SEATS, ROUNDS = 8, 4
OWN_CALLS = (
    "commit(uint64,uint32,uint32,bytes32,(uint32,bytes32,bytes32[3],bytes32))",
    "hold(uint64,uint32,uint64,bytes32,uint64)",
    "seal(uint64,uint32,bytes32)",
    "open(uint64,uint32,bytes32,bytes32,bytes32)",
)
"""What each seat does once a round, in its order; one of the openings opens the next round."""

LATER_CALLS = (
    "close(uint64,bytes32)",
    "settleWork(uint64,uint32,uint24)",
    "settleOpening(uint64,bytes32)",
)
"""What is done for it once the round is final: by itself, or by anybody."""


FINDING = "settleDuty(bytes32)"
"""What is done for an auditor once a finding of its stands: as many as were drawn, the first is the dearest."""


def gas_by_call(made: WholeRun) -> dict[str, list[int]]:
    """Gas of everybody's transactions that went through, by the function's first four bytes."""
    chain, found = made.chain, defaultdict(list)
    actors = {f"0x{player.agent.me.hex()}" for player in made.players.values()}
    for number in range(made.run.first_block, chain.head().number + 1):
        for sent in chain.rpc("eth_getBlockByNumber", hex(number), True)["transactions"]:
            if sent["from"].lower() in actors:
                receipt = chain.rpc("eth_getTransactionReceipt", sent["hash"])
                if int(receipt["status"], 16):
                    found[sent["input"][2:10]].append(int(receipt["gasUsed"], 16))
    return found


@pytest.mark.long
def test_a_seat_s_own_calls_cost_what_the_document_says(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=SEATS, rounds=ROUNDS)
    for number in range(SEATS):
        made.solver(f"solver {number}")
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    made.end()
    gas = gas_by_call(made)
    table: dict[str, dict[str, int]] = {}
    for calls, sum_of in ((OWN_CALLS, "a seat and round"), (LATER_CALLS, "and settling it")):
        rows = {signature.partition("(")[0]: gas[keccak(signature.encode()).hex()[:8]] for signature in calls}
        assert {name: len(spent) for name, spent in rows.items()} == dict.fromkeys(rows, SEATS * ROUNDS)
        found = {name: {"mean": sum(s) // len(s), "least": min(s), "most": max(s)} for name, s in rows.items()}
        table |= found
        table[sum_of] = {key: sum(row[key] for row in found.values()) for key in ("mean", "least", "most")}
    table[FINDING.partition("(")[0]] = {"most": max(gas[keccak(FINDING.encode()).hex()[:8]])}
    snapshots.check("seats", table)


class OpensAtOnce:
    """Two seats open their roots in one moment: the gas of both is estimated before either is mined."""

    def __init__(self) -> None:
        self.plain = Chain.send
        self.first: tuple[TransactionSigner, Payload] | None = None
        self.later: list[TxReceipt | AssayError] = []
        self.short_of: int | None = None
        """Gas that the later one is given in the place of what was estimated."""

    def send(self, chain: Chain, account: TransactionSigner, call: Call, **options: Any) -> TxReceipt:
        """In the place of Chain.send."""
        if call.name != "Generations.open":
            return self.plain(chain, account, call, **options)
        if self.first is None:
            payload = chain.prepare(account, call)
            self.first = account, replace(payload, data=payload.data + options["tail"])
            raise UnavailableError("It is on its way.", code="Held")
        who, payload = self.first
        if who is account:
            raise UnavailableError("It is on its way.", code="Held")
        made, self.first = self.plain(chain, account, call, **options), None
        if self.short_of is not None:
            payload = replace(payload, gas=self.short_of)
        self.later += chain.outbox(who).send([payload])
        return made


def test_an_opening_has_gas_for_the_next_round_where_another_s_came_before_it(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, opens = new_whole_run(stage, tmp_path, seats=2, rounds=2, governs=governed), OpensAtOnce()
    monkeypatch.setattr(Chain, "send", lambda chain, *args, **options: opens.send(chain, *args, **options))
    made.begin_with("ada", "ben")
    made.settle(lambda _view: len(opens.later) == 1)
    (receipt,) = opens.later
    assert not isinstance(receipt, AssayError) and receipt["status"] == 1, receipt
    # One that nevertheless has too little says so: a contract that calls another is refused without a word.
    opens.short_of = 160_000
    made.settle(lambda _view: len(opens.later) == 2)
    short = opens.later[1]
    assert isinstance(short, AssayError) and short.code == "OutOfGas", short
    assert "ran out of gas: of 160,000 it used 1" in short.message
