"""A machine is lost: from a backup its actors go on amid a round and a game and lose nothing, from an old one too."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.cli.backups import open_backup, restore, write_backup
from assay.protocol.game.table import Side
from assay.protocol.types import Round
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import import_key, load_keys
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.disputed import Puppet, check_judged, is_judged, launched_run
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import COMPUTE, SharedChain

FAST = Kdf("scrypt", 1 << 10)
HOUR = 3600


class Machines:
    """Homes of a run's actors: keys and folders, what is backed up of them, and what is lost."""

    def __init__(self, made: WholeRun, folder: Path) -> None:
        self.made, self.folder, self.count = made, folder, 0

    def back_up(self, name: str) -> Path:
        """A backup of an actor that is at work."""
        home = self._new()
        secret = home / "secret"
        secret.write_text(self.made.players[name].agent.account.key.hex())
        import_key(home / "keys", name, secret, "pass", kdf=Kdf("pbkdf2", 1000))
        write_backup(home / "keys" / name, [self._place(name)], "pass", home / "backup", kdf=FAST)
        return home / "backup"

    def lose(self, name: str) -> None:
        """The process is killed, and the disk with everything on it is gone."""
        self.made.players[name].agent.close()
        shutil.rmtree(self._place(name))

    def restore(self, name: str, backup: Path) -> Agent:
        """Another machine, with nothing but the backup and its password."""
        home, player = self._new(), self.made.players[name]
        _, (folder,) = restore(open_backup(backup, "pass"), "pass", home / "keys", home / "actors")
        old = player.agent
        options: dict[str, Any] = {"tickets": old.tickets_wanted} if isinstance(old, AuditorAgent) else {}

        def make() -> Agent:
            run, keys = Run(Chain(self.made.chain.url), self.made.run.address), load_keys(home / "keys" / name, "pass")
            return type(old)(run, keys, self.made.store, folder, compute=COMPUTE, **options)

        player.make, player.agent = make, make()
        return player.agent

    def _place(self, name: str) -> Path:
        return self.made.players[name].agent.journal.path.parent

    def _new(self) -> Path:
        self.count += 1
        home = self.folder / f"machine-{self.count}"
        home.mkdir()
        return home


@pytest.fixture
def machines(stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "none.toml"))
    return Machines(launched_run(stage, tmp_path), tmp_path)


def first_unit_of(made: WholeRun, name: str) -> Callable[[RunView], bool]:
    """Whether an actor has trained something of a round, and not committed."""
    return lambda view: (made.folder / name / "rounds").exists() and not view.works(Round(0))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_who_loses_its_machine_amid_a_round_and_a_game_goes_on_from_a_backup(machines: Machines) -> None:
    made = machines.made
    made.settle(first_unit_of(made, "ada"))
    backup = machines.back_up("ada")
    machines.lose("ada")
    machines.restore("ada", backup)
    made.settle(lambda view: len(view.works(Round(0))) == 2)
    # A stranger challenges ada's honest work; amid the game the machine is lost, in which everything was.
    puppet = Puppet(made)
    number = puppet.challenge()
    while made.sweep():
        pass
    puppet.select(number)
    game = made.run.games.game(number).state
    assert not game.is_over and game.turn is Side.DEFENDER and len(made.view.games[number].moves) > 2
    backup = machines.back_up("ada")
    machines.lose("ada")
    machines.restore("ada", backup)
    while made.sweep() or puppet.select(number):
        pass
    assert made.run.games.game(number).state.is_over
    lost = [g.verdict.loser for g in made.view.games.values() if g.verdict]
    assert lost == [puppet.address]
    check_ends(made)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_from_a_backup_of_an_hour_ago_nobody_equivocates_or_loses(machines: Machines) -> None:
    made = machines.made
    backups = {name: machines.back_up(name) for name in ("ada", "vera")}
    taken = made.chain.head().timestamp
    made.settle(lambda view: any(not game.is_over for game in view.games.values()))
    assert made.chain.head().timestamp > taken + HOUR
    before = commitments(made)
    for name, backup in backups.items():
        machines.lose(name)
        machines.restore(name, backup)
    check_judged(made, made.settle(is_judged))
    assert commitments(made) == before
    check_ends(made)


def commitments(made: WholeRun) -> dict[Any, Any]:
    """What stands committed of each seat."""
    return {place: work.work for place, work in made.view.state.works.items()}


def check_ends(made: WholeRun) -> None:
    """Everybody honest comes out with what was brought, and more; nobody was fined."""
    made.end()
    for name in ("ada", "vera"):
        assert made.wealth(name) > made.players[name].brought, name
    assert not made.fines("vera")
    view = made.view
    convicted = {t.holder for t in view.books.tenures.tenures.values() if t.convicted_at}
    assert convicted == {made.address("mallory")}
