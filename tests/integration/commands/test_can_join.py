"""Before anything is staked: this machine is measured by the run's own programs, and the sponsor must be known."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from eth_account import Account
from eth_utils.address import to_checksum_address

from assay.cli import acting, run_waits, sponsors
from assay.cli.common import archive_of
from assay.cli.joining import dear_gas
from assay.cli.terms_checks import UnfitTerms, unfit_terms
from assay.planning.measured import MARGIN, MachineReading, MachineVerdict, WindowNeed, measure
from assay.protocol.economics.chain_profiles import CHAINS
from assay.protocol.errors import ExitCode
from assay.protocol.run.layouts import zero_root
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Address, Digest, Wei
from assay.settings import Settings
from assay.sponsor.launching import deposit
from assay_ledger.agents.journal import Journal
from assay_ledger.chain.client import address_of
from assay_ledger.chain.fees import Market
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER
from tests.harness.commands import assay_on

NOBODY = "0x" + "77" * 20


@pytest.fixture(scope="module")
def posted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Any]]:
    """A desk with a small run."""
    with open_desk(tmp_path_factory.mktemp("desk")) as desk:
        document = desk.post("--preset", "tiny", "--seats", "2", "--rounds", "1", "--escrow", "5000")
        yield desk.at(desk.opened(document)), desk.opened(document)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The chain is no local one, and nobody is known; the file of those who are."""
    monkeypatch.setattr("assay.node.local.is_local", lambda _: False)
    monkeypatch.setattr(sponsors, "remembered_in", lambda: tmp_path / "assay" / "sponsors")
    return tmp_path / "assay" / "sponsors"


def test_this_machine_is_measured_by_the_runs_own_programs(posted: tuple[Desk, Any]) -> None:
    desk, run = posted
    words = ("run", "can-join", "--address", NOBODY, *desk.run_words, *desk.store_words)
    for role in ("solver", "verifier"):
        found = desk.json(*words, "--role", role, ends=ExitCode.NO)
        machine, day = found["machine"], found["income_per_day"]
        assert machine["meets_windows"] and not any("takes" in reason for reason in found["reasons"])
        assert machine["step_seconds"] > 0 and machine["store_bytes_per_second"] > 1e5
        assert 0 < machine["memory_needed"] < machine["memory_free"]
        assert 0 < machine["disk_needed"] < machine["disk_free"]
        steps = run.charter.training.max_units * run.charter.training.steps_per_unit
        assert machine["windows"][0]["seconds"] > steps * machine["step_seconds"]
        assert 0 <= day["low"] <= day["mean"] <= day["high"] and day["loses_stake"] == found["locks"]
        assert day["mean"] + day["shares"] > 0 and machine["took_seconds"] < 120
        price = found["fees_now"]["base"] + found["fees_now"]["tip"]
        assert price > 0 and found["gas_coins"] == found["gas"] * price and day["gas_coins"] == day["gas"] * price
        assert found["merge_pay"] == (run.charter.economics.merge_pay if role == "solver" else 0)
    plain = desk(*words).stdout
    assert "This machine, measured in" in plain and "At the worst" in plain and "of a window of" in plain
    assert "tokens for a merge that it opens" in plain and "of them for merges" in plain and "Assumed are" in plain
    assert plain.count("coins at the fees of now") == 2 and "gwei, and a tip of" in plain
    assert desk.json(*words, "--no-measure", ends=ExitCode.NO)["machine"] is None


def test_a_solvers_day_is_bounded_by_what_the_runs_own_rounds_show(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, _ = posted
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=400)
    made.begin_with("ada", "bob")
    words = ("run", "can-join", "--address", NOBODY, "--role", "solver", "--json")
    fresh = json.loads(assay_on(made.run, *words).stdout)
    made.settle(lambda view: len(view.books.commitments.rounds) == 4)
    begun = [round_.t0 for round_ in made.view.books.commitments.rounds]
    spans, told = [b - a for a, b in pairwise(begun)], json.loads(assay_on(made.run, *words).stdout)
    each, day, longest = told["pay"] + told["merge_pay"], told["income_per_day"], told["round_at_most_seconds"]
    assert max(spans) < longest and told["merge_pay"] == made.run.charter.economics.merge_pay > 0
    assert day["mean"] == pytest.approx(min(396, 86_400 * 3 / sum(spans)) * each)
    assert day["high"] == pytest.approx(min(396, 86_400 / min(spans)) * each)
    assert day["low"] == pytest.approx((86_400 / longest - 1) * told["pay"])
    assert day["low"] == fresh["income_per_day"]["low"] < fresh["income_per_day"]["mean"] < day["mean"]
    assert "the longest that they may last" in fresh["income_per_day"]["assumes"]
    assert "the mean of the last 3" in day["assumes"]


@pytest.mark.long
def test_a_machine_that_is_too_small_or_too_slow_is_told_why(
    posted: tuple[Desk, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desk, run = posted
    archive = archive_of(run, open_store(desk.folder / "store"))
    read = measure(archive, run.chain, "solver", tmp_path / "not" / "there").reading
    assert isinstance(read, MachineReading)
    assert min(read.witness_seconds, read.again_seconds, read.state_seconds, read.nodes_seconds) > 0
    assert read.again_seconds > read.witness_seconds and read.whole_merge_seconds == read.merge_seconds
    slow = MachineVerdict(read, (WindowNeed("a round's work", 10.0, 10.0 * MARGIN - 0.1),))
    assert slow.reasons and "a round's work takes 10.0 s here" in slow.reasons[0]
    assert not MachineVerdict(read, (WindowNeed("a round's work", 10.0, 10.0 * MARGIN),)).reasons
    words = ("run", "can-join", "--address", NOBODY, *desk.run_words, *desk.store_words)
    monkeypatch.setenv("ASSAY_MEMORY", "1KiB")
    found = desk.json(*words, ends=ExitCode.NO)
    assert any("memory" in reason for reason in found["reasons"]) and found["machine"] is None


def test_terms_of_a_local_chain_are_believed_of_no_other(
    posted: tuple[Desk, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = posted
    assert run.charter.chain.inclusion_delay == CHAINS["local"].inclusion_delay and not unfit_terms(run)
    monkeypatch.setattr("assay.node.local.is_local", lambda _: False)
    told = unfit_terms(run)
    assert [seconds in line for seconds, line in zip(("780 s", "600 s", "86400 s"), told, strict=True)] == [True] * 3
    for name, kind in CHAINS.items():
        for price in (0, 1):
            charter = replace(run.charter, chain=kind.chain(Wei(price), Wei(0)))
            found = unfit_terms(cast(Any, SimpleNamespace(chain=run.chain, charter=charter)))
            assert len(found) == 3 * (name == "local") + (not price)
            assert price or "pays nothing" in found[-1]


def test_a_game_leaves_as_much_time_as_a_round_for_the_same_work(posted: tuple[Desk, Any]) -> None:
    _, run = posted
    for less, expected in ((0, 0), (1, 1)):
        clocks = replace(run.charter.clocks, replay=run.charter.timing.commit - less)
        said = SimpleNamespace(chain=run.chain, charter=replace(run.charter, clocks=clocks))
        assert len(unfit_terms(cast(Any, said))) == expected


def test_nobody_begins_in_terms_that_do_not_fit_the_chain_and_who_is_in_goes_on(
    posted: tuple[Desk, Any], elsewhere: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, run = posted
    sponsor = to_checksum_address(run.charter.sponsor)
    refused = desk.refused("ledger", "stake", "1", "--yes", "--key", "sponsor", "--sponsor", sponsor, *desk.run_words)
    assert isinstance(refused, UnfitTerms) and "780 s" in refused.message
    keys = ActorKeys("ada", Account.create())
    desk.stage.chain.transfer(desk.stage.sponsor, keys.account.address, ETHER)
    with pytest.raises(UnfitTerms):
        acting.bring(run, keys, tmp_path, None, seats=1)
    run.chain.send(keys.account, run.token.mint(keys.address, 1))
    deposit(run.chain, keys.account, run, Wei(1))
    capsys.readouterr()
    acting.bring(run, keys, tmp_path, None, seats=1)
    assert "in the vault" in capsys.readouterr().err


def test_gas_above_the_runs_cap_is_a_reason_to_stay_away(posted: tuple[Desk, Any]) -> None:
    _, run = posted
    cap = run.charter.chain.fee_cap
    assert not dear_gas(run, Market(cap, 0))
    assert dear_gas(run, Market(cap + 1, 0)) == [
        "gas costs 1,000.000000001 gwei now, above the run's cap of 1,000.000000000, up to which games pay for it"
    ]


@pytest.mark.long
def test_a_slow_store_is_slow_though_parameters_are_zeros(
    posted: tuple[Desk, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody asks a store for zeros: what it gives of the data counts."""
    desk, run = posted
    archive, waited = archive_of(run, open_store(desk.folder / "store")), [0.0]
    zeros = zero_root(archive.specs(TrainingList.PARAMETERS))
    archive.facts = replace(archive.facts, rounds=replace(archive.facts.rounds, parameters=zeros))
    get = archive.objects.store.get

    def slowly(digest: Digest, max_bytes: int) -> bytes:
        waited[0] += 100.0
        return get(digest, max_bytes)

    monkeypatch.setattr(archive.objects.store, "get", slowly)
    read = measure(archive, run.chain, "solver", tmp_path, clock=lambda: perf_counter() + waited[0]).reading
    assert 0 < read.store_bytes_per_second < len(archive.data) / 100


def test_an_unknown_sponsor_is_refused_unless_named(
    posted: tuple[Desk, Any], elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, run = posted
    sponsor = to_checksum_address(run.charter.sponsor)
    monkeypatch.setenv("ASSAY_KEYS_DIR", str(tmp_path))
    look = ("run", "can-join", "--address", NOBODY, *desk.run_words, "--keys-dir", str(tmp_path))
    reasons = desk.json(*look, ends=ExitCode.NO)["reasons"]
    assert any(f"its sponsor {sponsor} is not known here" in reason for reason in reasons)
    named = desk.json(*look, "--sponsor", sponsor, ends=ExitCode.NO)["reasons"]
    assert not any("sponsor" in reason for reason in named)
    assert not elsewhere.exists()
    # A run of one's own needs no word: the key lies here.
    assert sponsors.is_known(run, Settings(keys_dir=desk.folder / "keys"))
    strange = Settings(keys_dir=tmp_path)
    with pytest.raises(sponsors.UnknownSponsor, match=sponsor) as refused:
        sponsors.check_sponsor(run, strange)
    assert refused.value.exit_code is ExitCode.REJECTED and f"--sponsor {sponsor}" in refused.value.remedy


def test_who_is_asked_at_a_terminal_is_asked_once(
    posted: tuple[Desk, Any], elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = posted
    strange, asked = Settings(keys_dir=tmp_path), list[str]()

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return len(asked) > 1

    monkeypatch.setattr(typer, "confirm", confirm)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    with pytest.raises(sponsors.CancelledError):
        sponsors.check_sponsor(run, strange)
    assert not elsewhere.exists()
    sponsors.check_sponsor(run, strange)
    sponsors.check_sponsor(run, strange)
    assert len(asked) == 2 and to_checksum_address(run.charter.sponsor) in asked[0]
    assert elsewhere.read_text() == f"{run.chain.chain_id} 0x{run.charter.sponsor.hex()}\n"
    elsewhere.write_text(elsewhere.read_text().replace(str(run.chain.chain_id), "1"))
    assert not sponsors.is_known(run, strange), "a sponsor is known on its chain"


def test_a_file_of_sponsors_that_cannot_be_used_is_said_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is a folder, or lies behind a file: root may read and write what another user may not."""
    sponsor = Address(bytes(20))
    for place in (tmp_path, tmp_path / "file" / "sponsors"):
        (tmp_path / "file").touch()
        monkeypatch.setattr(sponsors, "remembered_in", lambda place=place: place)
        for call in (lambda: sponsors.remember(1, sponsor), sponsors._remembered):
            with pytest.raises(sponsors.SponsorsUnusable, match=str(place)) as refused:
                call()
            assert refused.value.exit_code is ExitCode.CONFIG and "--sponsor" in refused.value.remedy


@pytest.mark.parametrize("role", ["solver", "verifier", "whistleblower"])
def test_no_actor_starts_for_a_sponsor_that_is_not_known(
    role: str, posted: tuple[Desk, Any], elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay_ledger.agents.heartbeat import HeartbeatWriter

    desk, _ = posted
    monkeypatch.setattr(sponsors, "list_keys", lambda _: (), raising=False)
    monkeypatch.setattr("assay_ledger.keys.keystore.list_keys", lambda _: ())
    monkeypatch.setattr(HeartbeatWriter, "beating", lambda _: pytest.fail("the actor has started"))
    at = (*desk.run_words, *desk.store_words, *desk.key_words, "--data-dir", str(tmp_path / "data"))
    assert desk.refused(role, "start", *at).code == "UnknownSponsor"
    stake = ("ledger", "stake", "1", "--yes", *desk.run_words, *desk.key_words)
    assert desk.refused(*stake).code == "UnknownSponsor"


def test_who_types_a_start_twice_pays_nothing_in_by_the_second(
    posted: tuple[Desk, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: --deposit was raised, the first process lives, and what the second one paid in waits for its exit."""
    desk, run = posted
    monkeypatch.setattr("signal.signal", lambda *_: None)
    at = (*desk.run_words, *desk.store_words, *desk.key_words, "--data-dir", str(tmp_path))
    with closing(Journal(tmp_path)):
        assert desk.refused("verifier", "start", "--deposit", "1", *at).code == "JournalInUse"
    assert run.chain.ask(run.vault.free(address_of(desk.stage.sponsor))) == 0


def test_a_folder_is_held_from_the_deposit_until_its_actor_ends(
    posted: tuple[Desk, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a second start came while the first was loading what computes: it paid in, and one of them ended."""
    desk, _ = posted
    monkeypatch.setattr("signal.signal", lambda *_: None)
    at = (*desk.run_words, *desk.store_words, *desk.key_words, "--data-dir", str(tmp_path))
    brought = []

    def try_beside(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(acting, "make", lambda *_, **__: pytest.fail("a second process works in the folder"))
        assert desk.refused("verifier", "start", "--deposit", "2", *at).code == "JournalInUse"
        raise typer.Exit

    monkeypatch.setattr(acting, "bring", lambda *_, amount, **__: brought.append(amount))
    monkeypatch.setattr(acting, "make", try_beside)
    assert desk("verifier", "start", "--deposit", "1", *at).exit_code == 0
    assert brought == ["1"]
    Journal(tmp_path).close()  # who ends lets it go


def test_nobody_stakes_in_a_run_that_nobody_opened_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_desk(tmp_path) as empty:
        document = empty.post("--preset", "tiny", "--seats", "2", "--rounds", "1", "--escrow", "5000")
        run = empty.opened(document)
        desk = empty.at(run)
        desk.stage.chain.rpc("evm_mine", hex(run.charter.expiry + 1))
        words = ("run", "can-join", "--address", NOBODY, *desk.run_words, *desk.store_words)
        reasons = desk.json(*words, ends=ExitCode.NO)["reasons"]
        assert "nobody opened the run while a round could begin" in reasons
        at = (*desk.run_words, *desk.key_words)
        assert desk.refused("ledger", "stake", "1", "--yes", *at).code == "RunEnded"
        # What waits for its opening, and who pays for its rounds, would do so in vain.
        monkeypatch.setattr(run_waits, "rest", lambda: pytest.fail("it waits for what never comes"))
        words = (("open",), ("open", "--wait"), ("fund", "1", "--yes"))
        assert [desk.refused("run", *each, *at).code for each in words] == ["NeverOpened"] * 3
        shown = desk("run", "show", *desk.run_words)
        assert "assay run cancel" in shown.output and "assay run open" not in shown.output
        assert desk.json("run", "cancel", "--yes", *at) == {"phase": "cancelled"}
