"""A real node in the place of the in-process EVM: gas of whole transactions, slots cold, calldata counted."""

from __future__ import annotations

from types import SimpleNamespace

from pyrevm import BlockEnv

from tests.harness.contracts.node_chain import NodeChain


class NodeEvm(NodeChain):
    """A node that has what `harness.Evm` has as far as worlds and stages of rounds need it.

    Many of its blocks may have one time.
    """

    counts_calldata = True

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.rpc("anvil_setBlockTimestampInterval", 0)
        self._time = timestamp

    @property
    def evm(self) -> NodeEvm:
        """In the place of pyrevm's."""
        return self

    def basic(self, _: str) -> SimpleNamespace:
        """The deployer's account."""
        return SimpleNamespace(nonce=self.nonce())

    def set_balance(self, who: str, amount: int) -> None:
        """Whoever sends is given what it needs."""

    def set_block_env(self, env: BlockEnv) -> None:
        """The chain time of the blocks from here on."""
        if env.timestamp != self._time:
            self._time = env.timestamp
            self.set_env(env.number, env.timestamp)
