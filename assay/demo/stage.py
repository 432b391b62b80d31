"""The stage of a demo: a chain, a store, keys, and the commands that act on them, in one private folder."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import (
    AssayError,
    CancelledError,
    ConfigError,
    DeadlineError,
    FundsError,
    InvariantError,
    NumericsError,
    RejectedError,
    UnavailableError,
    UsageError,
    UserError,
)
from assay_ledger.processes.children import spawn, stop

if TYPE_CHECKING:
    from assay_ledger.keys.keystore import ActorKeys

COMMAND_LIMIT_S: Final = 240.0
PARALLEL: Final = 2
TORCH_CACHE: Final = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch makes a folder for its compiler, used or not: in the common place for temporary files unless told."""

PASSWORD: Final = "demo"
"""The demo's keys protect nothing: test tokens on a private chain."""

Environment = dict[str, str]


@dataclass(frozen=True, slots=True)
class DemoActor:
    """An actor of the demo: its role, the name of its key, and what it does wrong."""

    role: str
    name: str
    cheat: str = "none"
    tickets: int = 1
    """Of an auditor."""


class CommandFailed(UserError):
    """A command of the demo ended without saying why."""

    remedy = "Run the demo with -v to see every command; `make setup` repairs an installation."


_FAMILIES: Final[tuple[type[AssayError], ...]] = (
    *(UserError, UsageError, ConfigError, FundsError, RejectedError, NumericsError, CancelledError),
    *(UnavailableError, DeadlineError),
)


def _error_of(words: Sequence[str], done: subprocess.CompletedProcess[str]) -> AssayError:
    """The error that a command ended with, as it said it: same code, words, remedy and exit code."""
    kinds = [kind for kind in _FAMILIES if int(kind.exit_code) == done.returncode]
    try:
        error = json.loads(done.stdout.strip().splitlines()[-1])["error"]
        return (kinds or [UserError])[0](error["message"], code=error["code"], remedy=error["remedy"])
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return CommandFailed(f"`assay {shlex.join(words)}` ended with exit code {done.returncode}: {last}")


class DemoStage:
    """Runs `assay` commands in the demo's environment, each printed first where asked for."""

    def __init__(self, folder: Path, rpc_url: str, talk: Any = None) -> None:
        self.folder = folder
        self.keys_dir = folder / "keys"
        self.store = folder / "store"
        self.logs = folder / "logs"
        for path in (self.keys_dir, self.store, self.logs):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._password = folder / "password"
        self._password.write_text(PASSWORD)
        self._password.chmod(0o600)
        self._talk = talk
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_halted = False
        self._numbers = count(1)
        self.environment: Environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "ETH_"))},
            **{
                name: os.environ[name]
                for name in ("ASSAY_ANVIL", "ASSAY_ARTIFACTS", "ASSAY_CACHE")
                if name in os.environ
            },
            "ASSAY_CONFIG": str(folder / "no-config.toml"),
            "ETH_RPC_URL": rpc_url,
            "ETH_PASSWORD": str(self._password),
            "ASSAY_KEYS_DIR": str(self.keys_dir),
            "ASSAY_STORE": str(self.store),
            # Every process uses one thread: they share the cores, and bits do not depend on it.
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            TORCH_CACHE: str(folder / "torch"),
        }

    def name_run(self, address: str) -> None:
        """Later commands are about this run."""
        self.environment["ASSAY_RUN"] = address

    def keys(self, name: str) -> ActorKeys:
        """The keys of a name, for what this process does itself."""
        from assay_ledger.keys.keystore import find_key, load_keys

        return load_keys(find_key(self.keys_dir, name), PASSWORD)

    def run(self, *words: str) -> Any:
        """The JSON that a command prints. Raises the error that the command ended with, or CommandFailed."""
        self._show(words)
        done = self._complete(words)
        if done.returncode != 0:
            raise _error_of(words, done)
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise InvariantError(f"`assay {shlex.join(words)}` printed no JSON.", code="NoJson") from error

    def run_all(self, commands: Sequence[Sequence[str]]) -> list[Any]:
        """Several independent commands, a few at a time; the results in their order."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            try:
                return list(pool.map(lambda words: self.run(*words), commands))
            except BaseException:
                # Leaving the pool waits for its threads, and they for their commands.
                self._is_halted = True
                stop(list(self._running))
                raise

    def _complete(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; it ends at once where this is interrupted, and with this process."""
        log = self.logs / f"{next(self._numbers):02}-{words[0]}-{words[1]}.log"
        start = log.stat().st_size if log.exists() else 0
        argv = [sys.executable, "-m", "assay", *words, "--json"]
        child = spawn(argv, log=log, env=self.environment, cwd=self.folder, pipe_stdout=True)
        self._running.add(child)
        try:
            if self._is_halted:
                raise CancelledError("The demo was interrupted.", code="Halted")
            output, _ = child.communicate(timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            limit = f"{COMMAND_LIMIT_S:g} s"
            raise DeadlineError(f"`assay {shlex.join(words)}` took longer than {limit}.", code="CommandSlow") from None
        finally:
            stop([child])
            self._running.discard(child)
        errors = log.read_bytes()[start:].decode(errors="replace")
        return subprocess.CompletedProcess(argv, child.returncode, output.decode(errors="replace"), errors)

    def start(self, player: DemoActor, *options: str) -> subprocess.Popen[bytes]:
        """Starts an actor by the command a person would type; it ends with this process, however that ends."""
        words = [player.role, "start", "--key", player.name, "--data-dir", str(self.folder / "actors" / player.name)]
        words += options
        if player.cheat != "none":
            words += ["--cheat", player.cheat]
        self._show(words)
        log = self.logs / f"{player.name}.log"
        return spawn([sys.executable, "-m", "assay", *words], log=log, env=self.environment, cwd=self.folder)

    def serve(self, running: dict[str, subprocess.Popen[bytes]], name: str, *words: str) -> dict[str, Any]:
        """Starts a server by its command, and gives what it says once it listens. Raises CommandFailed."""
        self._show(words)
        log = self.logs / f"{name}.log"
        argv = [sys.executable, "-m", "assay", *words, "--json"]
        running[name] = child = spawn(argv, log=log, env=self.environment, cwd=self.folder, pipe_stdout=True)
        assert child.stdout is not None
        try:
            document: dict[str, Any] = json.loads(child.stdout.readline())
        except ValueError:
            said = (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]
            raise CommandFailed(f"`assay {shlex.join(words)}` does not serve: {said}") from None
        return document

    def log_tail(self, player: DemoActor, lines: int = 5) -> str:
        """The last lines that an actor said."""
        try:
            return "\n".join((self.logs / f"{player.name}.log").read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def join_commands(self, stake: str) -> list[str]:
        """What a stranger types to take part as a solver; `stake` is an amount of tokens that lasts for the run."""
        exports = ("ETH_RPC_URL", "ASSAY_STORE", "ASSAY_RUN")
        return [
            "export " + " ".join(f"{name}={shlex.quote(self.environment[name])}" for name in exports),
            "assay key new me --kdf pbkdf2 --json",
            f"ETH_PASSWORD={shlex.quote(str(self._password))} assay ledger faucet ADDRESS --tokens {stake} "
            f"--key faucet --keys-dir {shlex.quote(str(self.keys_dir))}",
            f"assay ledger stake {stake} --key me --yes",
            "assay solver start --key me --data-dir ./me",
        ]

    def _show(self, words: Sequence[str]) -> None:
        if self._talk is not None:
            self._talk(f"$ assay {shlex.join(words)}")
