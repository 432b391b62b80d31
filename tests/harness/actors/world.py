"""What tests of actors share: a node with a token, small work to train, and the contracts of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from eth_account import Account

from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.training.rounds import TorchCompute
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_token
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS
from assay_ledger.store.objects import Objects
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.programs import Example, mlp_step

ETHER = 10**18
START = 1_800_000_000
CONTRACTS = [
    *ROUND_CONTRACTS.values(),
    *GOVERNOR.values(),
    *LEAVES.values(),
    "Arbiter",
    "GroupedGenerations",
    "RunDeployer",
    "RunCharter",
    "TestToken",
    "DrandSeed",
    "PrevrandaoSeed",
    "StageCharter",
    "RoundsBench",
    "PuppetGame",
    "Vouchers",
    "AnswerDeployer",
    "AnswerCharter",
    "Gateways",
]


@dataclass(frozen=True)
class TrainedWork:
    """What a run trains: the three programs and where it starts."""

    step: Program
    update: Program
    outer: Program
    parameters: tuple[bytes, ...]
    optimizer: tuple[bytes, ...]
    data: bytes
    inner_steps: int
    learning_rate: int

    @property
    def specs(self) -> list[TensorSpec]:
        """The parameters' types and dims."""
        return [self.step.specs[k] for k in self.step.input_nodes[0]]


@cache
def small_work() -> TrainedWork:
    """A hand-written perceptron on bytes: two steps per interval."""
    example: Example = mlp_step()
    parameters, optimizer, scalars = example.state
    specs = [example.program.specs[k] for k in example.program.input_nodes[0]]
    rate = int.from_bytes(scalars[1], "little")
    # Bytes that differ from place to place, so that other data gives another update.
    data = sha256(b"data").digest() + b"".join(sha256(bytes([k])).digest() for k in range(len(scalars[-1]) // 32 - 1))
    return TrainedWork(
        example.program, update_program(specs), outer_program(specs), parameters, optimizer, data, 10, rate
    )


@contextmanager
def actors_artifacts(folder: Path) -> Iterator[None]:
    """The contracts of a run as the sources stand now, unless ASSAY_ARTIFACTS names others."""
    if "ASSAY_ARTIFACTS" in os.environ:
        yield
        return
    with fresh_artifacts(folder, CONTRACTS):
        yield


class SharedChain:
    """A node with what any number of runs share: a token and a rich sponsor."""

    def __init__(self, genesis_time: int = START) -> None:
        self.node = Anvil(accounts=1, genesis_time=genesis_time)
        self.chain = Chain(self.node.url)
        self.sponsor = Account.from_key(self.node.dev_keys[0])
        self.token = deploy_token(self.chain, self.sponsor)
        self.worlds = 0

    def close(self) -> None:
        """Ends the node."""
        self.node.close()


COMPUTE = TorchCompute()
"""One plan per program for all actors of a process."""


def publish(objects: Objects, work: TrainedWork) -> None:
    """Everything that a run starts from."""
    for program in (work.step, work.update, work.outer):
        objects.put_program(program)
    objects.put_tensor(work.step.specs[work.step.input_nodes[2][-1]], work.data)
    objects.put_list(work.specs, work.parameters)
    objects.put_list([work.step.specs[k] for k in work.step.input_nodes[1]], work.optimizer)
