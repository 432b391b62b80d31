"""Hardhat's node: another client than anvil, written by others, whose pool holds what pays too little for a block."""

from __future__ import annotations

import re
import shutil
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from assay_ledger.chain.client import Chain
from assay_ledger.deployment.places import FACTORY
from assay_ledger.processes.children import spawn, stop
from assay_ledger.processes.scratch import ScratchDir

INSTALLED: Final = Path(__file__).resolve().parents[2] / ".build" / "clients" / "node_modules"
"""Where `make clients` puts it."""

START_S: Final = 60.0

CONFIG: Final = """
module.exports = { solidity: "0.8.28", networks: { hardhat: {
  chainId: 31337, hardfork: "prague", blockGasLimit: 30000000, mining: { auto: false, interval: 0 } } } };
"""

FACTORY_CODE: Final = (
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f580151560395781"
    "82fd5b8082525050506014600cf3"
)
"""The deterministic deployment proxy, which anvil has from its first block."""

DEV_KEY: Final = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
"""The first account that Hardhat gives coins to; everybody knows it."""


class HardhatNode:
    """A node of its own on a free port, which mines when it is told: once, or by `keep_mining`."""

    def __init__(self) -> None:
        self._scratch = ScratchDir("hardhat")
        folder = self._scratch.path
        (folder / "hardhat.config.js").write_text(CONFIG)
        (folder / "package.json").write_text('{"private": true}')
        (folder / "node_modules").symlink_to(INSTALLED)
        environment = {"PATH": f"{Path(str(shutil.which('node'))).parent}", "HOME": str(folder), "CI": "true"}
        environment |= {"HARDHAT_DISABLE_TELEMETRY_PROMPT": "true", "TMPDIR": str(folder)}
        log = folder / "log"
        argv = [str(shutil.which("node")), str(INSTALLED / "hardhat/internal/cli/bootstrap.js"), "node"]
        argv += ["--hostname", "127.0.0.1", "--port", "0"]
        self._process = spawn(argv, log=log, env=environment, cwd=folder)
        self.base: int | None = None
        self._ended = threading.Event()
        self._miner: threading.Thread | None = None
        try:
            self.url = self._listening(log)
            self.chain = Chain(self.url)
            self.chain.rpc("hardhat_setCode", "0x" + FACTORY.hex(), FACTORY_CODE)
        except BaseException:
            self.close()
            raise

    def _listening(self, log: Path) -> str:
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            if found := re.search(r"JSON-RPC server at (http://[0-9.:]+)", log.read_text()):
                return found[1]
            time.sleep(0.05)
        raise AssertionError(log.read_text()[-2000:])

    def mine(self) -> None:
        """One block, at the base fee `base` unless that is None."""
        if self.base is not None:
            self.chain.rpc("hardhat_setNextBlockBaseFeePerGas", hex(self.base))
        self.chain.rpc("evm_mine")

    def keep_mining(self, every_s: float = 0.05) -> None:
        """From now on, beside whoever waits."""

        def run() -> None:
            while not self._ended.wait(every_s):
                self.mine()

        self._miner = threading.Thread(target=run, daemon=True)
        self._miner.start()

    @property
    def pool(self) -> list[dict[str, Any]]:
        """The transactions that are in it and in no block."""
        return list(self.chain.rpc("eth_pendingTransactions"))

    def close(self) -> None:
        """Ends the process."""
        self._ended.set()
        if self._miner is not None:
            self._miner.join(10)
        stop([self._process])
        self._scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
