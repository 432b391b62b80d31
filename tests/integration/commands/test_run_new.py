"""`assay run new`: what is missing is said before anything is captured, with what mends it; then a run is posted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from eth_account import Account

from assay.cli import new_run, readiness
from assay.cli.new_run import Guide, fit_units
from assay.cli.posting_steps import PostWanted
from assay.cli.readiness import POST_GAS, TimeNotKept, check_coins, check_time
from assay.node.keeper import KEEPER_SILENT_S, kept_since, say_kept
from assay.protocol.errors import FundsError, UsageError, UserError
from assay_ledger.chain.client import address_of
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk

RECIPE = "examples.own_run:factory"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


def test_a_run_is_posted_with_usual_answers_and_takes_less_gas_than_is_asked_for(desk: Desk) -> None:
    chain, (sponsor,) = desk.stage.chain, desk.json("key", "list", "--keys-dir", str(desk.folder / "keys"))
    first = chain.head().number + 1
    at = (*desk.chain_words, *desk.store_words, *desk.key_words)
    document = desk.json("run", "new", "--recipe", RECIPE, "--steps", "4", "--yes", *at)
    run = desk.opened(document)
    assert (run.charter.rounds, run.charter.training.seats) == (new_run.USUAL_ROUNDS, new_run.USUAL_SEATS)
    assert run.charter.training.max_units == 4 and run.charter.training.steps_per_unit == 1
    assert run.chain.ask(run.escrow.balance()) == document["escrow"] > 0
    used = 0
    for number in range(first, chain.head().number + 1):
        for name in chain.w3.eth.get_block(number)["transactions"]:
            receipt = chain.w3.eth.get_transaction_receipt(name)  # type: ignore[arg-type]
            used += receipt["gasUsed"] if receipt["from"] == sponsor["address"] else 0
    assert POST_GAS / 3 < used < POST_GAS


def test_coins_a_wei_short_are_said_before_capture_with_what_mends_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, poor = desk.stage.chain, Account.create()
    needed = POST_GAS * int(chain.w3.eth.gas_price)
    chain.rpc("anvil_setBalance", poor.address, hex(needed - 1))
    with pytest.raises(FundsError, match="posting a run takes up to") as refused:
        check_coins(chain, address_of(poor))
    assert refused.value.remedy == f"`assay node fund {poor.address}`."
    chain.rpc("anvil_setBalance", poor.address, hex(needed))
    assert check_coins(chain, address_of(poor))
    monkeypatch.setattr("assay.programs.factory.load_recipe", lambda _: pytest.fail("it captures before it checks"))
    monkeypatch.setattr(readiness, "POST_GAS", 1 << 80)
    at = (*desk.chain_words, *desk.store_words, *desk.key_words)
    assert desk.refused("run", "new", "--recipe", RECIPE, "--yes", *at).code == "GasShort"
    assert desk.refused("run", "post", "--recipe", RECIPE, "--yes", *at).code == "GasShort"


def test_a_local_chain_whose_time_nobody_keeps_is_told(desk: Desk, tmp_path: Path) -> None:
    chain, store = desk.stage.chain, open_store(tmp_path)
    with pytest.raises(TimeNotKept):
        check_time(chain, store)
    say_kept(store, "http://127.0.0.1:1")
    with pytest.raises(TimeNotKept):
        check_time(chain, store)
    say_kept(store, chain.url)
    assert check_time(chain, store) == "kept by `assay node start`"
    say_kept(store, chain.url, lambda: 1000.0)
    assert kept_since(store, chain.url, lambda: 1000.0 + KEEPER_SILENT_S) == KEEPER_SILENT_S
    with pytest.raises(TimeNotKept):
        check_time(chain, store)


@pytest.mark.parametrize(("steps", "units", "least"), [(50, 5, 2), (12, 4, 2), (7, 1, 1), (2, 2, 2), (1, 1, 1)])
def test_a_round_is_cut_into_the_most_units_that_divide_its_steps(steps: int, units: int, least: int) -> None:
    found = fit_units(PostWanted(recipe=RECIPE, steps=steps))
    assert (found.units, found.least) == (units, least)


def test_what_does_not_fit_together_is_refused_before_anything_is_opened() -> None:
    for wanted, kind in (
        (PostWanted(recipe=RECIPE, preset="tiny"), UsageError),
        (PostWanted(steps=5), UsageError),
        (PostWanted(profile="moon"), UserError),
        (PostWanted(escrow="many"), UsageError),
    ):
        with pytest.raises(kind):
            fit_units(wanted)


def test_answers_are_asked_for_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def prompt(question: str, default: Any, **_: object) -> Any:
        asked.append(question)
        return 0 if isinstance(default, int) else "an answer"

    monkeypatch.setattr(typer, "prompt", prompt)
    assert Guide(asks=False).ask("Rounds", 3) == 3 and not asked
    assert Guide(asks=True).ask("Name", "usual") == "an answer" and asked == ["Name"]
    with pytest.raises(UsageError):
        Guide(asks=True).ask("Rounds", 3)
