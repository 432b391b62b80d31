"""Actors whose accounts' keys are in a signer's process, through a round and a game, also when the signer fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.chain.remote_signer import RemoteSigner, accounts_of
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import create_remote, import_key, load_keys
from assay_ledger.rounds.run import Run
from assay_solver.cheats import solver_cheat_named
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.disputed import RATES, check_judged, is_judged
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain
from tests.harness.signers import SignerProcess

FAST = Kdf("pbkdf2", 1000)


def move_key(made: WholeRun, name: str, folder: Path) -> SignerProcess:
    """An actor's account moves into a signer's process; the actor has a local key, and a connection of its own."""
    folder.mkdir()
    (folder / "password").write_text("pass")
    (folder / "secret").write_text(made.players[name].agent.keys.local.key.hex())
    key = import_key(folder, "far", folder / "secret", "pass", kdf=FAST)
    signer = SignerProcess(key.path / "evm.json", folder / "password")
    (account,) = accounts_of(signer.url)
    far = RemoteSigner(signer.url, account, seconds=1.0)
    create_remote(folder, "near", account, "pass", far.sign_text, kdf=FAST)
    player = made.players[name]
    old = player.agent
    old.close()
    options: dict[str, Any] = {"tickets": old.tickets_wanted} if isinstance(old, AuditorAgent) else {}

    def make() -> Agent:
        run, keys = Run(Chain(made.chain.url), made.run.address), load_keys(folder / "near", "pass", lambda _: far)
        return type(old)(run, keys, made.store, made.folder / name, compute=COMPUTE, **options)

    player.make, player.agent = make, make()
    return signer


@pytest.fixture
def signed(stage: SharedChain, tmp_path: Path) -> Iterator[tuple[WholeRun, list[SignerProcess]]]:
    made = new_whole_run(stage, tmp_path, seats=2, rounds=1, rates=RATES)
    made.solver("ada")
    made.solver("mallory", solver_cheat_named("false-step", 0))
    made.auditor("vera", tickets=5)
    with ExitStack() as signers:
        yield made, [signers.enter_context(move_key(made, name, tmp_path / f"far-{name}")) for name in ("ada", "vera")]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_actors_with_keys_elsewhere_win_though_their_signers_fail_for_a_while(
    signed: tuple[WholeRun, list[SignerProcess]],
) -> None:
    made, signers = signed
    made.enrol()
    made.fund()
    made.launch()
    for how in ({"refuse": True}, {"hang": 1.5}, {"alter": {"value": "0x1"}}):
        for signer in signers:
            signer.behave(**how)
        for _ in range(2):
            made.sweep()
    for signer in signers:
        signer.behave()
    check_judged(made, made.settle(is_judged))
    assert not made.fines("vera")
