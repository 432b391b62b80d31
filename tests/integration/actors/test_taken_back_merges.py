"""A reorganization within the charter's depth changes what a merge is over; what was signed is mined again as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from eth_utils import to_checksum_address

from assay.protocol.rounds.ids import seat_party
from assay.protocol.types import Round, Seat, Wei
from assay_ledger.contract import Call
from tests.harness.actors.disputed import RATES
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

GAS = hex(6_000_000)


@pytest.fixture
def made(stage: SharedChain, tmp_path: Path) -> WholeRun:
    """Two seats; both committed to the first round, whose mask is closed."""
    made = new_whole_run(stage, tmp_path, seats=2, rounds=1, rates=RATES, kind="l1")
    made.solver("ada")
    made.solver("mallory")  # honest in the history that is taken back
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    made.settle(lambda view: len(view.works(Round(0))) == 2)
    return made


def mine(made: WholeRun, second: int, method: str, *args: Any) -> int:
    """A transaction in a block of its own, in this second or in the first that is left; its status."""
    chain = made.chain
    chain.rpc("evm_setNextBlockTimestamp", hex(max(second, chain.head().timestamp + 1)))
    return int(chain.w3.eth.wait_for_transaction_receipt(chain.rpc(method, *args), timeout=30)["status"])


@pytest.mark.long
def test_an_honest_opening_mined_again_over_another_mask_is_refused_and_is_free(made: WholeRun) -> None:
    """Attack: who committed last says in the new history that it holds its own update alone; the other's root, which is
    over both, would be false there, and its S taken."""
    chain, run, ada, mallory = made.chain, made.run, made.address("ada"), made.address("mallory")
    seat_of = {tenure.holder: tenure.seat for tenure in made.view.books.tenures.tenures.values()}
    snapshot, kept = chain.rpc("evm_snapshot"), chain.head()
    view = made.settle(lambda v: len(v.openings(1)) == 2)
    assert view.counted(Round(0))[0] == {0, 1} and len({opening.root for opening in view.openings(1)}) == 1
    last, group = chain.head(), chain.ask(run.commitments.group_of(Round(0), 0))
    assert last.timestamp - kept.timestamp < run.charter.chain.reorg_depth
    blocks = [chain.rpc("eth_getBlockByNumber", hex(n), True) for n in range(kept.number + 1, last.number + 1)]
    sent = [(int(b["timestamp"], 16), t["from"].lower(), t["hash"]) for b in blocks for t in b["transactions"]]
    raws = [(second, sender, chain.rpc("eth_getRawTransactionByHash", name)) for second, sender, name in sent]
    assert chain.rpc("evm_revert", snapshot)
    statuses = mined_again(made, raws, hers(made, seat_of[mallory], group.acc))
    assert statuses[-1] == 0 and set(statuses[:-1]) == {1}  # word and seal go through, the opening does not
    counted, is_closed = chain.ask(run.commitments.counted_of(Round(0), 0))
    assert (counted, is_closed) == (1 << seat_of[mallory], True)
    before = made.wealth("ada")
    made.players.pop("mallory").agent.close()
    for _ in range(40):
        if not made.sweep() and not made.pass_time():
            break
    assert chain.ask(run.generations.opening_of(1, seat_party(seat_of[ada]))).at == 0
    tenure = next(n for n, held in made.view.books.tenures.tenures.items() if held.holder == ada)
    assert not chain.ask(run.tenures.is_convicted(tenure))
    assert made.wealth("ada") >= before


def hers(made: WholeRun, seat: Seat, acc: Any) -> list[Call]:
    """What mallory says in the new history: she holds her own update alone, and computes no root."""
    run, mine_alone = made.run, 1 << seat
    return [
        run.commitments.hold(Round(0), 0, mine_alone, acc, Wei(mine_alone)),
        run.generations.abstain(Round(0), seat),
    ]


def mined_again(made: WholeRun, raws: list[tuple[int, str, Any]], words: list[Call]) -> list[int]:
    """Everybody's transactions as they were signed, mallory's in the place of hers; the statuses of ada's."""
    mallory = to_checksum_address("0x" + made.address("mallory").hex())
    made.chain.rpc("anvil_impersonateAccount", mallory)
    statuses = []
    for second, sender, raw in raws:
        if sender != mallory.lower():
            status = mine(made, second, "eth_sendRawTransaction", raw)
            statuses += [status] if sender == "0x" + made.address("ada").hex() else []
        elif words:
            call = words.pop(0)
            fields = {"from": mallory, "to": to_checksum_address(call.to), "data": "0x" + call.data.hex(), "gas": GAS}
            assert mine(made, second, "eth_sendTransaction", fields) == 1
    return statuses
