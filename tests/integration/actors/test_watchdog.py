"""The watchdog over real games on a real node: what it says, when, and that it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from eth_account import Account
from typer.testing import Result
from web3 import HTTPProvider

from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import ExitCode
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Digest
from assay.watchdog.alarms import AlarmKind
from assay.watchdog.looking import WatchOptions
from assay.watchdog.watch import Watchdog
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.index.run import Run
from assay_ledger.store.blobs import open_store
from tests.harness.actors.claims import ClaimsRun, aside, open_claims
from tests.harness.actors.world import COMPUTE, SharedChain, new_world, small_work
from tests.harness.commands import assay

OWN = Digest(keccak(b"own"))


@pytest.fixture(scope="module")
def claims(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> ClaimsRun:
    world = new_world(stage, tmp_path_factory.mktemp("watched"), small_work(), rounds=1)
    return open_claims(world, {"mallory": [Family.DOT, Family.MAP]})


@pytest.fixture
def played(claims: ClaimsRun) -> Iterator[ClaimsRun]:
    with aside(claims):
        yield claims


def dog_of(claims: ClaimsRun, *names: str, **options: Any) -> Watchdog:
    """A watchdog on a connection of its own, with the run's store."""
    run = Run(Chain(claims.world.stage.chain.url, retry_for_s=0.2), claims.world.run.address)
    parties = frozenset(claims.world.address(n) for n in names)
    return Watchdog(run, claims.world.store, COMPUTE, WatchOptions(parties, **options))


def kinds(dog: Watchdog) -> set[AlarmKind]:
    return {alarm.kind for alarm in dog.look().values()}


def wait(claims: ClaimsRun, game_id: int, left: int) -> None:
    """Mines a block when so much of the clock of the side to move is left, in chain seconds."""
    deadline = claims.world.run.games.game(game_id).state.deadline
    claims.world.stage.chain.rpc("evm_mine", hex(deadline - left))


def command(claims: ClaimsRun, monkeypatch: pytest.MonkeyPatch, *words: str, once: bool = True) -> Result:
    """`assay dispute watch` without any key: `--once --json`, or without both."""
    url, run = claims.world.stage.chain.url, "0x" + claims.world.run.address.hex()
    base = ["dispute", "watch", *(("--once", "--json") if once else ()), "--rpc-url", url, "--run", run]
    return assay(monkeypatch, *base, *words)


def watch(claims: ClaimsRun, monkeypatch: pytest.MonkeyPatch, *between: Callable[[], object]) -> Result:
    """`assay dispute watch` for people, with something happening between each two looks, until it is interrupted."""
    from assay.cli import dispute

    steps = iter(between)

    def sleep(_: float) -> None:
        happen = next(steps, None)
        if happen is None:
            raise KeyboardInterrupt
        happen()

    # The command's own sleep alone: waiting for a receipt in `happen` sleeps too, and may not use up a step.
    monkeypatch.setattr(dispute, "time", SimpleNamespace(sleep=sleep))
    return command(claims, monkeypatch, "--store", str(claims.world.folder / "store"), once=False)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


class GarbledStates:
    """A run whose states on the way are not those that it went through; where it begins and ends is true."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trace, name)

    def state_root(self, t: int) -> Digest:
        """See Trace."""
        return self._trace.state_root(t) if t in (0, self._trace.steps) else Digest(keccak(bytes([t])))


def honest_defender_errs(claims: ClaimsRun) -> int:
    """A stranger disputes a true claim, and its claimant's first answer is garbage that it cannot defend."""
    ada, ref = claims.participant("ada"), claims.ref("ada", 0)
    job = claims.job(ref)
    game_id = claims.challenge_as_third_party(ref, OWN)
    garbled = cast(Trace, GarbledStates(ada.compute.trace(job.program, job.lists, job.steps)))
    assert claims.liar(ada.keys, garbled).move(claims.world.run.games.game(game_id)) is not None
    return game_id


def test_a_game_that_the_truth_wins_raises_no_alarm_from_challenge_to_verdict(played: ClaimsRun) -> None:
    dog, seen = dog_of(played), []
    game_id = played.accuse(played.lie_of(Family.DOT)[1])
    vera, mallory = played.participant("vera"), played.participant("mallory")

    def watch(*_: object) -> None:
        seen.append(kinds(dog))

    verdict, _ = played.play(game_id, played.player(mallory), played.player(vera), watch)
    seen.append(kinds(dog))
    assert verdict.side is Side.DEFENDER
    assert len(seen) > 8 and set().union(*seen) == set()
    # The same verdict is an alarm to a watchdog of the loser.
    assert kinds(dog_of(played, "mallory")) == {AlarmKind.HONEST_LOST}
    assert kinds(dog_of(played, "ada")) == set()


def test_an_honest_claimant_that_answers_wrongly_is_said_to_be_losing(
    played: ClaimsRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    dog = dog_of(played)
    game_id = honest_defender_errs(played)
    (alarm,) = dog.look().values()
    assert alarm.kind is AlarmKind.HONEST_LOSING and alarm.about == f"game {game_id}"
    assert dict(alarm.figures)["party"] == "0x" + played.world.address("ada").hex()
    done = command(played, monkeypatch, "--store", str(played.world.folder / "store"))
    assert done.exit_code == ExitCode.FRAUD
    (line,) = lines(done)
    assert (line["kind"], line["state"], line["level"], line["side"]) == (
        "honest-losing",
        "raised",
        "alarm",
        "defender",
    )
    # Without the run's data it is not known who is right, and nothing is reported about it.
    assert command(played, monkeypatch).exit_code == ExitCode.OK


def test_a_deadline_is_told_in_chain_seconds_and_share_and_then_missed(
    played: ClaimsRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = played.ref("ada", 0)
    game_id = played.challenge_as_third_party(ref, OWN)
    dog = dog_of(played)
    assert kinds(dog) == set()
    wait(played, game_id, left=100)
    (alarm,) = dog.look().values()
    assert alarm.kind is AlarmKind.DEADLINE_NEAR
    figures = dict(alarm.figures)
    state = played.world.run.games.game(game_id).state
    assert figures["seconds_left"] == 100
    assert figures["share_left"] == pytest.approx(100 / (state.deadline - state.turn_started), abs=1e-3)
    done = command(played, monkeypatch, "--party", "0x" + played.world.address("ada").hex())
    assert done.exit_code == ExitCode.DEADLINE and lines(done)[0]["kind"] == "deadline-near"
    wait(played, game_id, left=-1)
    assert kinds(dog) == {AlarmKind.DEADLINE_MISSED}
    chain, ada = played.world.stage.chain, played.participant("ada")
    chain.send(ada.account, played.world.run.game.timeout(game_id))
    assert kinds(dog) == {AlarmKind.HONEST_LOST}


def test_every_change_is_one_line_and_what_stays_is_not_said_again(
    played: ClaimsRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    game_id = played.challenge_as_third_party(played.ref("ada", 0), OWN)
    ada, games = played.participant("ada"), played.world.run.games
    done = watch(
        played,
        monkeypatch,
        lambda: wait(played, game_id, left=100),
        lambda: played.world.stage.chain.rpc("evm_mine"),
        lambda: played.player(ada).move(games.game(game_id)),
    )
    output = [line.split()[1:3] for line in done.stdout.splitlines()]
    assert output == [["ALARM", "deadline-near"], ["clear", "deadline-near"]]
    assert done.exit_code == ExitCode.INTERRUPTED


def test_the_clock_of_a_liar_alarms_nobody_until_it_can_be_ended(played: ClaimsRun) -> None:
    game_id = played.accuse(played.lie_of(Family.DOT)[1])
    dog = dog_of(played)
    wait(played, game_id, left=0)
    assert kinds(dog) == set()
    wait(played, game_id, left=-1)
    (note,) = dog.look().values()
    assert note.kind is AlarmKind.TIMEOUT_DUE and note.is_note


def test_what_cannot_be_fetched_is_not_known_and_is_nobodys_fraud(
    played: ClaimsRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest_defender_errs(played)
    run = played.world.run
    dog = Watchdog(run, open_store(tmp_path / "empty"), COMPUTE)
    (alarm,) = dog.look().values()
    assert alarm.kind is AlarmKind.CANNOT_CHECK
    done = command(played, monkeypatch, "--store", str(tmp_path / "empty"))
    assert done.exit_code == ExitCode.NETWORK
    # What the chain alone says is said all the same.
    wait(played, run.games.count(), left=1)
    assert kinds(dog) == {AlarmKind.CANNOT_CHECK, AlarmKind.DEADLINE_NEAR}


def test_a_chain_that_does_not_answer_is_unreachable_and_changes_no_finding(played: ClaimsRun) -> None:
    honest_defender_errs(played)
    dog = dog_of(played)
    assert kinds(dog) == {AlarmKind.HONEST_LOSING}
    w3 = dog.run.chain.w3
    alive, w3.provider = w3.provider, HTTPProvider("http://127.0.0.1:9")
    assert kinds(dog) == {AlarmKind.HONEST_LOSING, AlarmKind.CHAIN_UNREACHABLE}
    w3.provider = alive
    assert kinds(dog) == {AlarmKind.HONEST_LOSING}


def test_a_head_that_stands_still_or_is_old_is_said_and_cleared(played: ClaimsRun) -> None:
    now = [0.0]
    run = Run(Chain(played.world.stage.chain.url), played.world.run.address)
    dog = Watchdog(run, options=WatchOptions(stale_after=60), clock=lambda: now[0])
    assert kinds(dog) == set()
    now[0] = 61.0
    assert kinds(dog) == {AlarmKind.HEAD_STALE}
    run.chain.rpc("evm_mine")
    assert kinds(dog) == set()
    time = run.chain.head().timestamp
    for age, found in ((3599, set()), (3601, {AlarmKind.HEAD_STALE})):
        old = Watchdog(run, options=WatchOptions(max_age=3600), wall=lambda age=age: time + age)
        assert kinds(old) == found


def test_a_committed_challenge_without_the_bond_for_its_reveal_is_reported(
    played: ClaimsRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, poor = played.world, Account.create()
    chain, terms = world.stage.chain, world.run.charter.economics
    world.stage.rich(poor)
    token = world.run.token
    chain.send(poor, token.approve(world.run.vault.address, terms.challenge_deposit))
    chain.send(poor, world.run.vault.deposit(terms.challenge_deposit))
    commitment = challenge_commitment(played.ref("ada", 0), OWN, ZERO, address_of(poor))
    dog = dog_of(played)
    assert kinds(dog) == set()
    chain.send(poor, world.run.game.commit_challenge(commitment))
    assert kinds(dog) == {AlarmKind.BOND_SHORT}
    assert command(played, monkeypatch).exit_code == ExitCode.FUNDS
    assert kinds(dog_of(played, "ada")) == set()
    chain.rpc("evm_mine", hex(chain.head().timestamp + 3600))
    assert kinds(dog) == {AlarmKind.BOND_SHORT, AlarmKind.DEADLINE_NEAR}


def test_watching_changes_neither_chain_nor_store(played: ClaimsRun, monkeypatch: pytest.MonkeyPatch) -> None:
    honest_defender_errs(played)
    store, chain = played.world.folder / "store", played.world.stage.chain

    def files() -> dict[str, int]:
        return {str(p): p.stat().st_mtime_ns for p in sorted(store.rglob("*")) if p.is_file()}

    before, head = files(), chain.head()
    assert command(played, monkeypatch, "--store", str(store)).exit_code == ExitCode.FRAUD
    assert (files(), chain.head()) == (before, head)
    assert chain.rpc("txpool_status")["pending"] in ("0x0", 0)


def test_a_chain_that_is_down_from_the_start_has_the_code_of_the_network(
    played: ClaimsRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.protocol.errors import UnavailableError

    done = command(played, monkeypatch, "--rpc-url", "http://127.0.0.1:9")
    assert isinstance(done.exception, UnavailableError)
    assert done.exception.exit_code is ExitCode.NETWORK
