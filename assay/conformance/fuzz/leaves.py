"""Elements of nodes as the leaf contracts compute them, in an EVM of this process.

What a game would open is read from the bytes of whole values; proofs of openings are tested elsewhere. Needs the
compiled contracts, tests included, and pyrevm, which only the gate installs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from random import Random
from typing import Any, Final

from assay.protocol.arithmetic.words import from_bytes
from assay.protocol.errors import ConfigError
from assay.protocol.program.nodes import Node, reads
from assay.protocol.program.program import Program
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.deployment.places import FAMILY_CODES, LEAVES

_GAS: Final = 1 << 60
_ACCOUNT: Final = "0x" + "11" * 20
TERMS_OF_A_NODE: Final = 1 << 11
"""Most terms that are computed of one node; of a node with more a part of the elements is drawn."""


class Leaves:
    """The nine leaf contracts and what calls them. Raises ConfigError: ContractsNotCompiled, ToolMissing."""

    def __init__(self) -> None:
        if find_spec("pyrevm") is None:
            raise ConfigError("There is no EVM here (pyrevm).", code="ToolMissing", remedy="Run `make setup`.")
        from eth_abi.abi import encode
        from eth_hash.auto import keccak
        from pyrevm import EVM, BlockEnv

        self._evm: Any = EVM(spec_id="PRAGUE")
        self._evm.set_block_env(BlockEnv(gas_limit=_GAS))
        self._encode = encode
        signature = "compute(address,bytes,uint64[],uint32[],uint8[],bytes[])"
        self._types = signature[len("compute(") : -1].split(",")
        self._selector = keccak(signature.encode())[:4]
        self._leaves = {f: self._deploy(contract) for f, contract in zip(FAMILY_CODES, LEAVES.values(), strict=True)}
        self._batch = self._deploy("LeafBatch")

    def differences(self, program: Program, values: Sequence[bytes], seed: int) -> tuple[int, str]:
        """How many elements were computed, and the first that is another than in these values of all nodes."""
        rng, count = Random(seed), 0
        for k, node in enumerate(program.nodes):
            if node.family not in self._leaves or node.spec.numel == 0:
                continue
            most = max(TERMS_OF_A_NODE // max(getattr(node, "terms", 1), 1), 1)
            chosen = list(range(node.spec.numel))
            if len(chosen) > most:
                chosen = sorted(rng.sample(chosen, most))
            known = from_bytes(node.spec.dtype, values[k])
            found = self._compute(program, k, node, chosen, values)
            count += len(chosen)
            for element, word in zip(chosen, found, strict=True):
                if word != known[element]:
                    return count, f"node {k} {node.family.name} element {element}: {word:#x} for {known[element]:#x}"
        return count, ""

    def _compute(
        self, program: Program, k: int, node: Node, elements: Sequence[int], values: Sequence[bytes]
    ) -> list[int]:
        sources = sorted(set(reads(node)))
        arguments = (
            self._leaves[node.family],
            program.descriptors[k],
            list(elements),
            sources,
            [int(program.specs[j].dtype) for j in sources],
            [values[j] for j in sources],
        )
        data = self._selector + self._encode(self._types, arguments)
        answer = bytes(self._evm.message_call(_ACCOUNT, self._batch, data, 0, _GAS))
        return [int.from_bytes(answer[i : i + 32], "big") for i in range(64, len(answer), 32)]

    def _deploy(self, name: str) -> str:
        return str(self._evm.deploy(_ACCOUNT, load_artifact(name).bytecode, 0, _GAS))
