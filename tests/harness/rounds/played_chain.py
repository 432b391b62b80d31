"""A run on contracts that are all real but the beacon: `Game` and `Challenges` judge it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType, Wei
from assay_ledger.deployment.places import by_code
from tests.harness.contracts.leaf_cases import CONTRACTS as LEAVES
from tests.harness.contracts.leaf_cases import NO_LEAF
from tests.harness.rounds.charters import changed
from tests.harness.rounds.money_chain import CONTRACTS, DENSE, MoneyChain
from tests.harness.rounds.played_programs import run_programs
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER

STEPS_PER_UNIT: Final = 2
UNITS: Final = 2


def _list(slots: tuple[bytes, ...]) -> Digest:
    """List root of parameters, momentum or an update."""
    step = run_programs().step.program
    specs = [step.specs[k] for k in step.input_nodes[0]]
    return list_root([tensor_root(spec, data) for spec, data in zip(specs, slots, strict=True)])


@cache
def played_charter() -> RunCharter:
    """Four seats whose programs are small and real; every epoch replays each commitment once."""
    p = run_programs()
    zeros, data = _list(p.zeros), tensor_root(TensorSpec(DType.U8, (len(p.data),)), p.data)
    trained = changed(
        DENSE, "training", min_units=1, max_units=UNITS, steps_per_unit=STEPS_PER_UNIT, shards=4, shard_length=128,
        learning_rate=0x3D4CCCCD, parameters=_list(p.parameters), momentum=zeros, zero_optimizer=zeros,
        zero_update=zeros, data=data,
    )  # fmt: skip
    named = replace(
        trained,
        step=ProgramRef.of(p.step.program),
        update=ProgramRef.of(p.update),
        merge=ProgramRef.of(p.merge),
        witness=ProgramRef.of(p.witness),
    )
    paid = changed(named, "economics", unit_price=Wei(ETHER))
    return staked(paid, merge_pay=Wei(ETHER // 100), seat_fee=Wei(ETHER // 2), challenge_bond=Wei(ETHER))


class PlayedChain(MoneyChain):
    """The contracts, with arbiter and leaves beside them."""

    contracts_of = CONTRACTS | {"game": "Game", "challenges": "Challenges"}

    def prepare(self) -> None:
        leaves = {family: self.evm.deploy(name).address for family, name in LEAVES.items()}
        self.arbiter = self.evm.deploy("Arbiter", by_code(leaves, NO_LEAF))

    def more_arguments(self, name: str) -> tuple[str, ...]:
        return (self.arbiter.address,) if name == "Game" else ()


@cache
def played_chain(charter: RunCharter) -> PlayedChain:
    """One deployment for all tests; snapshots make it as new."""
    return PlayedChain(charter)
