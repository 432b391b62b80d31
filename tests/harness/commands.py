"""`assay` commands in this process, configured by their own options alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from assay_ledger.rounds.run import Run

CONFIGURED = (
    "ETH_RPC_URL",
    "ASSAY_STORE",
    "ASSAY_RUN",
    "ASSAY_KEYS_DIR",
    "ETH_KEYSTORE",
    "ETH_PASSWORD",
    "ASSAY_ALLOW_CODE",
)


def assay(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    """What a command printed and how it ended; the tests may run in an environment of its own."""
    from assay.cli import main

    for name in CONFIGURED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSAY_CONFIG", "/dev/null")
    if not main.app.registered_groups:
        main._add_commands()
    return CliRunner().invoke(main.app, list(words))


def assay_on(run: Run, *words: str) -> Result:
    """The same of a command that is told of a run by the environment."""
    from assay.cli import main

    if not main.app.registered_groups:
        main._add_commands()
    environment = {
        "ETH_RPC_URL": run.chain.url,
        "ASSAY_RUN": "0x" + run.address.hex(),
        "ASSAY_CONFIG": "/dev/null",
    }
    return CliRunner().invoke(main.app, list(words), env=environment)
