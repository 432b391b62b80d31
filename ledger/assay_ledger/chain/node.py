"""The local chain: one anvil process with its state on disk, that ends with us.

Chain time moves one second per block and never with the wall clock, so a loaded machine makes
nobody late. The rules are those of real networks: Prague, 30 M gas per block, code size as in EIP-170.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from assay.checkout import ROOT
from assay.protocol.errors import AssayError, ConfigError, DeadlineError, UnavailableError
from assay_ledger.chain.node_state import STATE, StateCopy, mend_state
from assay_ledger.processes.children import spawn, stop
from assay_ledger.processes.scratch import ScratchDir

CHAIN_ID: Final = 31337
GAS_LIMIT: Final = 30_000_000
START_LIMIT_S: Final = 30.0
STATE_INTERVAL_S: Final = 10

_LISTENING = re.compile(r"^Listening on (\S+):(\d+)$", re.MULTILINE)
_KEY = re.compile(r"^\(\d+\) 0x([0-9a-f]{64})$", re.MULTILINE)


def find_anvil() -> Path:
    """The native anvil binary: ASSAY_ANVIL, else the pinned package, else a native one on the PATH.

    npm's `anvil` command is a wrapper whose death leaves the native process alive, so a script is never taken.
    Raises ConfigError (ToolMissing).
    """
    named = os.environ.get("ASSAY_ANVIL")
    candidates = [Path(named)] if named else sorted((ROOT / "node_modules" / "@foundry-rs").glob("anvil-*/bin/anvil"))
    if not named and (on_path := shutil.which("anvil")):
        candidates.append(Path(on_path))
    for candidate in candidates:
        with contextlib.suppress(OSError), candidate.open("rb") as file:
            if file.read(4) == b"\x7fELF" and os.access(candidate, os.X_OK):
                return candidate
    raise ConfigError(
        f"ASSAY_ANVIL names {named}, which is no native anvil."
        if named
        else "The local chain needs anvil, which is not installed.",
        code="ToolMissing",
        remedy="Run `make setup`; it needs Node.js 20 or newer with npm.",
    )


@cache
def direct() -> urllib.request.OpenerDirector:
    """Opens addresses of this machine: proxies named in the environment are for the world outside.

    Kept, since Python 3.12 reads all certificates for every opener, 40 ms that calls of a local chain have no use for.
    """
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Anvil:
    """A running anvil. Use as a context manager; `url` is its RPC address.

    Without `data_dir` the state lives in a private folder that vanishes with this process; with one it stays and a
    later Anvil goes on from it: whole after `close()`, at most STATE_INTERVAL_S old after a kill, and where that came
    while the state was written as old as the copy (`keep_copy`), if there is one.
    Port 0 lets the operating system choose, so two nodes never collide.
    `dev_keys` are the funded accounts' secret keys, known to everybody: for a local chain only.
    Raises ConfigError (ToolMissing, PortInUse), UnavailableError (NodeFailed), DeadlineError (NodeSlow).
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        chain_id: int = CHAIN_ID,
        accounts: int = 1,
        genesis_time: int | None = None,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        binary = find_anvil()
        self.chain_id = chain_id
        self._scratch = ScratchDir("node") if data_dir is None else None
        self.data_dir = self._scratch.path if self._scratch is not None else Path(data_dir or ".").resolve()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = self.data_dir / "anvil.log"
        self.is_mended = mend_state(self.data_dir)
        """Whether the state was cut short, and the chain goes on from the copy of an earlier one."""
        self._state_copy = StateCopy(self.data_dir)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        temporary = self.data_dir / "tmp"
        temporary.mkdir(exist_ok=True)
        argv: list[str | Path] = [binary, "--host", host, "--port", str(port), "--chain-id", str(chain_id)]
        argv += ["--hardfork", "prague", "--gas-limit", str(GAS_LIMIT)]
        argv += ["--accounts", str(accounts), "--color", "never"]
        argv += ["--state", self.data_dir / STATE, "--state-interval", str(STATE_INTERVAL_S)]
        argv += ["--cache-path", self.data_dir / "cache"]
        if genesis_time is not None:
            argv += ["--timestamp", str(genesis_time)]
        # Whatever anvil writes beside its state (a home, spilled states) stays inside the data folder.
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.data_dir), "TMPDIR": str(temporary)}
        try:
            self.process = spawn(argv, log=self.log_path, env=env, cwd=self.data_dir)
            try:
                self.port = self._wait_until_listening(port, start_limit_s)
                self.url = f"http://{host}:{self.port}"
                self.dev_keys = tuple(bytes.fromhex(key) for key in _KEY.findall(self._log()))
                self._detach_from_the_wall_clock()
            except BaseException:
                stop([self.process])
                raise
        except BaseException:
            if self._scratch is not None:
                self._scratch.remove()
            raise

    def rpc(self, method: str, *params: object, timeout_s: float = 30.0) -> object:
        """One JSON-RPC call, for the few methods that are the node's own; contracts go through the client.

        Raises UnavailableError (NodeUnreachable, RpcError).
        """
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with direct().open(request, timeout=timeout_s) as response:
                answer = json.load(response)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise UnavailableError(
                f"The local chain at {self.url} does not answer ({error}).",
                code="NodeUnreachable",
                remedy=f"Its log is {self.log_path}.",
            ) from error
        if "error" in answer:
            raise UnavailableError(f"{method} failed: {answer['error'].get('message', '')}", code="RpcError")
        return answer["result"]

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process.poll() is None

    def keep(self) -> Path:
        """Leave the data folder in place after the end, and say where it is."""
        if self._scratch is not None:
            self._scratch.keep()
            self._scratch = None
        return self.data_dir

    def keep_copy(self) -> None:
        """Keeps a copy of the newest state that was written whole; for whoever looks some times a second."""
        self._state_copy.look()

    def close(self) -> None:
        """Stop the process (it writes its state first) and remove a private data folder; harmless when repeated."""
        stop([self.process])
        if self._scratch is not None:
            self._scratch.remove()

    def _detach_from_the_wall_clock(self) -> None:
        self.rpc("anvil_setBlockTimestampInterval", 1)
        head = self.rpc("eth_getBlockByNumber", "latest", False)
        # A node that loads a state starts its clock at the wall's time, which may lie before its own head. Nobody else
        # knows the port yet, so moving the clock here cannot meet another account's transaction.
        self.rpc("evm_setTime", int(head["timestamp"], 16))  # type: ignore[index]

    def _log(self) -> str:
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _wait_until_listening(self, wanted: int, limit_s: float) -> int:
        end = time.monotonic() + limit_s
        while True:
            ended = self.process.poll() is not None
            text = self._log()
            if match := _LISTENING.search(text):
                return int(match[2])
            if ended:
                raise self._start_error(text, wanted)
            if time.monotonic() > end:
                raise DeadlineError(
                    f"The local chain did not start within {limit_s:g} s.",
                    code="NodeSlow",
                    remedy="Close other programs and try again.",
                    log=text[-2000:],
                )
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.02)

    def _start_error(self, text: str, wanted: int) -> AssayError:
        if "in use" in text:
            return ConfigError(
                f"Port {wanted} is in use by another program.",
                code="PortInUse",
                remedy="Name a free port, or 0 to let the system choose.",
                port=wanted,
            )
        lines = text.strip().splitlines()
        last = [line for line in lines if line.startswith("error")] or lines[-1:] or ["no output"]
        return UnavailableError(
            f"The local chain ended at once (exit code {self.process.returncode}): {last[0]}",
            code="NodeFailed",
            remedy=f"Its log is {self.log_path}." if self._scratch is None else "",
            log=text[-2000:],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
