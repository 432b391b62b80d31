"""What `assay watch` tells of one address in a run that real actors play: each notice as it begins, and as it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.types import Address
from assay.watchdog.alarms import AlarmKind, Standing, changes
from assay.watchdog.looking import WatchOptions
from assay.watchdog.personal import SILENT_S, PersonalWatch
from assay.watchdog.webhooks import WatchedPlace, notice_of
from assay_ledger.agents.heartbeat import MAX_BYTES, SLOT, Activity, HeartbeatWriter
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import BlobStore, open_store
from tests.harness.actors.disputed import Puppet, again, aside, is_judged
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import ETHER
from tests.harness.providers import ProviderNode, Reply, said

pytestmark = pytest.mark.long


@dataclass
class ToldNotices:
    """A watch for one address, as the command keeps one, and every notice so far."""

    made: WholeRun
    name: str
    store: BlobStore | None = None
    now: float = 1000.0
    standing: Standing = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    who: Address | None = None
    url: str = ""

    def __post_init__(self) -> None:
        made, who = self.made, self.who or self.made.address(self.name)
        run = Run(Chain(self.url or made.chain.url), made.run.address, made.run.first_block)
        options = WatchOptions(frozenset({who}))
        self.dog = PersonalWatch(run, who, self.store, ETHER, options=options, clock=lambda: self.now)
        self.place = WatchedPlace("0x" + run.address.hex(), "0x" + who.hex())

    def look(self) -> set[AlarmKind]:
        """What stands now; what began or ended is told."""
        after = dict(self.dog.look())
        self.told += [notice_of(self.place, a, raised, *self.dog.head) for raised, a in changes(self.standing, after)]
        self.standing = after
        return {kind for kind, _ in after}

    def states(self, kind: AlarmKind) -> list[str]:
        """What was told of a kind, in order."""
        return [notice["state"] for notice in self.told if notice["kind"] == kind]


def tenure_of(made: WholeRun, name: str) -> int:
    held = made.view.books.tenures.tenures
    return next(number for number, tenure in held.items() if tenure.holder == made.address(name))


def test_who_is_challenged_and_convicted_is_told_each_once(disputed: WholeRun) -> None:
    with aside(disputed):
        watched = ToldNotices(disputed, "mallory")
        assert watched.look() == set()

        def is_over(view: Any) -> bool:
            watched.look()
            return is_judged(view)

        disputed.settle(is_over)
        watched.look()
        about = {notice["about"]: notice for notice in watched.told if notice["kind"] == AlarmKind.CHALLENGED}
        assert list(about) == ["game 1"] and watched.states(AlarmKind.CHALLENGED) == ["raised", "cleared"]
        assert "round 0" in about["game 1"]["text"] and about["game 1"]["figures"]["deadline"] > 0
        assert watched.states(AlarmKind.STAKE_AT_RISK)[0] == "raised"
        assert watched.states(AlarmKind.HONEST_LOST) == watched.states(AlarmKind.CONVICTED) == ["raised"]
        assert (AlarmKind.CONVICTED, f"tenure {tenure_of(disputed, 'mallory')}") in watched.standing


def test_a_node_that_has_no_game_yet_has_nobody_told_of_its_clock_or_bond(disputed: WholeRun) -> None:
    with aside(disputed), ProviderNode(disputed.chain.url) as node:
        watched, puppet = ToldNotices(disputed, "ada", url=node.url), Puppet(disputed)
        watched.look()
        asked, none_yet = (disputed.run.game.game_of(number).data for number in (puppet.challenge(), 1 << 40))

        def is_behind(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
            if params[0]["data"] != "0x" + asked.hex():
                return None
            return said(ask(params[0] | {"data": "0x" + none_yet.hex()}, *params[1:]))

        node.turn(is_behind, methods=["eth_call"])
        assert watched.look() == {AlarmKind.CHALLENGED, AlarmKind.STAKE_AT_RISK}


def test_whoever_lets_a_clock_run_out_is_told_before_and_after(disputed: WholeRun) -> None:
    with aside(disputed):
        watched, puppet, chain, run = ToldNotices(disputed, "ada"), Puppet(disputed), disputed.chain, disputed.run
        game_id = puppet.challenge()
        # Its process is down.
        assert watched.look() == {AlarmKind.CHALLENGED, AlarmKind.STAKE_AT_RISK}
        deadline = run.games.game(game_id).state.deadline
        for at, kind in ((deadline - 60, AlarmKind.DEADLINE_NEAR), (deadline + 1, AlarmKind.DEADLINE_MISSED)):
            chain.rpc("evm_mine", hex(at))
            assert watched.look() == {AlarmKind.CHALLENGED, AlarmKind.STAKE_AT_RISK, kind}
        chain.send(disputed.stage.sponsor, run.game.timeout(game_id))
        assert watched.look() == {AlarmKind.CONVICTED, AlarmKind.HONEST_LOST}
        for kind in (AlarmKind.CHALLENGED, AlarmKind.STAKE_AT_RISK, AlarmKind.DEADLINE_NEAR, AlarmKind.DEADLINE_MISSED):
            assert watched.states(kind) == ["raised", "cleared"]


def test_a_call_that_is_not_answered_and_an_epoch_that_nobody_closes_are_told(disputed: WholeRun) -> None:
    with aside(disputed):
        watched, chain = ToldNotices(disputed, "vera"), disputed.chain

        def is_called(view: Any) -> bool:
            number = len(view.epochs) - 1
            epoch = view.epochs[number]
            mine = [ticket for ticket, _ in view.tickets_of(disputed.address("vera"))]
            return epoch.seed is not None and any(view.is_called(ticket, number) for ticket in mine)

        view = disputed.settle(is_called)
        epoch, delay = view.epochs[-1], view.charter.chain.inclusion_delay
        assert not watched.look() & {AlarmKind.DUTY_DUE, AlarmKind.DEADLINE_MISSED, AlarmKind.EPOCH_OVERDUE}
        # Everybody is away.
        for at, kinds in (
            (epoch.deadline - 1, {AlarmKind.DUTY_DUE}),
            (epoch.deadline + 1, {AlarmKind.DEADLINE_MISSED}),
            (epoch.deadline + delay + 1, {AlarmKind.DEADLINE_MISSED, AlarmKind.EPOCH_OVERDUE}),
        ):
            chain.rpc("evm_mine", hex(at))
            assert watched.look() == kinds
        assert watched.states(AlarmKind.DUTY_DUE) == ["raised", "cleared"]


def test_a_process_that_is_silent_and_a_store_that_is_gone_are_told(
    disputed: WholeRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("beats") / "store"
    store = open_store(folder)
    with aside(disputed):
        ada = again(disputed, "ada", store=store)
        watched = ToldNotices(disputed, "ada", store)
        ada.step()
        assert watched.look() == set()
        watched.now += SILENT_S
        assert watched.look() == set()
        watched.now += 1
        assert watched.look() == {AlarmKind.PROCESS_SILENT}
        gone = folder.with_name("gone")
        folder.rename(gone)
        folder.write_bytes(b"")
        assert watched.look() == {AlarmKind.PROCESS_SILENT, AlarmKind.STORE_DARK}
        folder.unlink()
        gone.rename(folder)
        assert AlarmKind.STORE_DARK not in watched.look()
        assert watched.states(AlarmKind.STORE_DARK) == ["raised", "cleared"]
        folder.rename(gone)
        folder.write_bytes(b"")
        assert AlarmKind.STORE_DARK in watched.look()
        ids = [notice["id"] for notice in watched.told]
        assert len(set(ids)) == len(ids), "a receiver takes what happens twice within a block for one notice"
        assert watched.states(AlarmKind.PROCESS_SILENT) == ["raised"], "a store that is gone does not revive it"


def spoken(store: BlobStore, run: Run, account: LocalAccount) -> HeartbeatWriter:
    """The heartbeats of an account, written one by one."""
    return HeartbeatWriter(store, account, run.address, "solver", lambda: 0.0)


def test_a_store_that_shows_old_messages_in_turn_hides_no_silence(disputed: WholeRun, tmp_path: Path) -> None:
    store, old = open_store(tmp_path / "store"), list[bytes]()
    with aside(disputed):
        writer = spoken(store, disputed.run, disputed.players["ada"].agent.keys.local)
        slot = f"{SLOT}/{disputed.address('ada').hex()}"
        for head in range(3):
            writer.report(head, Activity.BUSY)
            writer.beat()
            old.append(store.read_slot(slot, MAX_BYTES))
        watched = ToldNotices(disputed, "ada", store)
        assert watched.look() == set()
        for turn in range(4):
            watched.now += SILENT_S / 2
            store.write_slot(slot, old[turn % 2])
            watched.look()
        assert watched.states(AlarmKind.PROCESS_SILENT) == ["raised"]


def test_whose_process_is_done_is_told_only_where_something_is_at_stake(disputed: WholeRun, tmp_path: Path) -> None:
    store, stranger = open_store(tmp_path / "store"), Account.create()
    with aside(disputed):
        disputed.chain.transfer(disputed.stage.sponsor, stranger.address, 10 * ETHER)
        seated = disputed.players["ada"].agent.keys.local
        for account, wanted in ((seated, {AlarmKind.PROCESS_SILENT}), (stranger, set())):
            writer = spoken(store, disputed.run, account)
            writer.report(1, Activity.DONE, None, "stopped")
            writer.beat()
            watched = ToldNotices(disputed, "", store, who=address_of(account))
            watched.look()
            watched.now += SILENT_S + 1
            assert watched.look() == wanted


def test_a_process_that_nobody_ever_heard_of_is_not_missed(disputed: WholeRun, tmp_path: Path) -> None:
    """A sponsor, or an address with a digit wrong, is told to start again what it never had."""
    store, newcomer = open_store(tmp_path / "store"), Account.create()
    with aside(disputed):
        disputed.chain.transfer(disputed.stage.sponsor, newcomer.address, 10 * ETHER)
        watched = ToldNotices(disputed, "", store, who=address_of(newcomer))
        watched.look()
        watched.now += SILENT_S + 1
        assert watched.look() == set()
        # Who waits at the gate has nothing at stake, and wants its process.
        writer = spoken(store, disputed.run, newcomer)
        writer.report(1, Activity.IDLE, None, "waits for a seat")
        writer.beat()
        assert watched.look() == set()
        watched.now += SILENT_S + 1
        assert watched.look() == {AlarmKind.PROCESS_SILENT}
