"""Somebody at a shell with `assay` commands in this process, on a real node, with a store and a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from assay.protocol.errors import AssayError, ExitCode
from assay.protocol.types import Address
from assay_ledger.rounds.run import Run
from tests.harness.actors.world import CONTRACTS, ETHER, SharedChain
from tests.harness.commands import assay
from tests.harness.contracts.fresh import fresh_artifacts


@dataclass(frozen=True)
class Desk:
    """Somebody at a shell: a node, a store, a key named `sponsor` with coins, and at last a run."""

    stage: SharedChain
    folder: Path
    run_words: tuple[str, ...] = ()

    def __call__(self, *words: str) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            return assay(patch, *words)

    @property
    def chain_words(self) -> tuple[str, ...]:
        """Where the chain is."""
        return ("--rpc-url", self.stage.chain.url)

    @property
    def store_words(self) -> tuple[str, ...]:
        """Where the store is."""
        return ("--store", str(self.folder / "store"))

    @property
    def key_words(self) -> tuple[str, ...]:
        """Who signs."""
        keys, password = str(self.folder / "keys"), str(self.folder / "password")
        return ("--key", "sponsor", "--keys-dir", keys, "--password-file", password)

    def json(self, *words: str, ends: ExitCode = ExitCode.OK) -> Any:
        """The document that a command prints, which ends with this exit code."""
        done = self(*words, "--json")
        assert done.exit_code == ends, (done.output, done.exception)
        return json.loads(done.stdout)

    def refused(self, *words: str) -> AssayError:
        """The error that a command ends with."""
        done = self(*words)
        assert isinstance(done.exception, AssayError), done.output
        assert done.exception.remedy
        return done.exception

    def opened(self, document: Any) -> Run:
        """The run that a command posted."""
        return Run(self.stage.chain, Address(bytes.fromhex(document["run"][2:])))

    def at(self, run: Run) -> Desk:
        """The same desk with a run named."""
        return Desk(self.stage, self.folder, (*self.chain_words, "--run", "0x" + run.address.hex()))

    def post(self, *words: str) -> Any:
        """Posts a run; what the command said of it."""
        return self.json("run", "post", *words, "--yes", *self.chain_words, *self.store_words, *self.key_words)


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    """A desk with a node of its own, contracts as the sources stand, an impostor's vault among them."""
    with fresh_artifacts(folder / "artifacts", [*CONTRACTS, "EvilVault"]):
        stage = SharedChain()
        try:
            (folder / "password").write_text("a password")
            found = Desk(stage, folder)
            at = ("--keys-dir", str(folder / "keys"), "--password-file", str(folder / "password"))
            made = found.json("key", "new", "sponsor", "--kdf", "pbkdf2", *at)
            stage.chain.transfer(stage.sponsor, made["address"], 10 * ETHER)
            yield found
        finally:
            stage.close()
