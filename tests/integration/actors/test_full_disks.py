"""A disk that is full while a game is played: who is honest answers from memory, and goes on once there is room."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from assay_ledger.agents.journal import FILE
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.store.blobs import open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects
from assay_solver.actions import ServeBase
from assay_solver.agent import Solver
from tests.harness.actors.disputed import Puppet, again, aside, check_judged, is_judged
from tests.harness.actors.whole_run import WholeRun
from tests.harness.full_disks import writing_nothing


def test_whoever_is_challenged_answers_though_its_disk_takes_nothing(
    disputed: WholeRun, caplog: pytest.LogCaptureFixture
) -> None:
    with aside(disputed), caplog.at_level(logging.WARNING):
        puppet, before = Puppet(disputed), disputed.wealth("ada")
        game_id = puppet.challenge()
        ada = again(disputed, "ada")
        with writing_nothing():
            while not (view := disputed.view).games[game_id].is_over:
                if not ada.step():
                    assert ada.deadline is not None
                    disputed.chain.rpc("evm_mine", hex(ada.deadline))
        game = view.games[game_id]
        assert not game.convicted and game.verdict is not None and game.verdict.loser == puppet.address
        assert disputed.wealth("ada") >= before


def test_a_disk_that_is_full_for_a_while_ends_no_actor_and_saves_no_lie(
    disputed: WholeRun, caplog: pytest.LogCaptureFixture
) -> None:
    with aside(disputed), caplog.at_level(logging.WARNING):
        vera = again(disputed, "vera")
        before = (disputed.folder / "vera" / FILE).read_bytes()
        with writing_nothing():
            # Results of replays are computed, games opened and played to the leaf, with nothing written.
            check_judged(disputed, disputed.settle(is_judged))
        assert (disputed.folder / "vera" / FILE).read_bytes() == before
        assert "goes on from memory" in caplog.text
        vera.close()
        assert len((disputed.folder / "vera" / FILE).read_bytes()) > len(before)


def test_whoever_kept_no_copy_of_a_generation_serves_it_all_the_same(
    disputed: WholeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one is the trained model, and nobody else's turn comes."""
    with aside(disputed):
        view = disputed.settle(lambda view: view.newest > 0)
        shutil.copytree(disputed.store.location, tmp_path / "store")
        store, wanted = open_store(tmp_path / "store"), view.lists(view.newest)
        ada = again(disputed, "ada", store=store)
        assert isinstance(ada, Solver) and wanted is not None
        for root in (wanted.parameters, wanted.momentum):
            shutil.rmtree(tmp_path / "store" / "names" / "lists" / root.hex(), ignore_errors=True)
        monkeypatch.setattr(LocalCache, "get", lambda *_: None)
        monkeypatch.setattr(LocalCache, "put", lambda *_: None)
        ada.do_serve_base(ServeBase(view.newest), ada.see())
        monkeypatch.undo()
        objects = Objects(store)
        stranger = Archive(ada.archive.charter, ada.archive.facts, objects, Publications(disputed.chain, objects))
        assert stranger.base_roots(stranger.fetch_base(view, view.newest)) == wanted
