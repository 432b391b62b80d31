"""`assay run new`: what is missing is said before anything is captured, with what mends it; then a run is posted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from eth_account import Account
from safetensors.torch import load_file, save_file

from assay.cli import new_run, readiness
from assay.cli.new_run import Guide, fit_units
from assay.cli.posting_steps import PostWanted
from assay.cli.readiness import POST_GAS, TimeNotKept, check_coins, check_profile, check_time
from assay.cli.token_checks import STRANGER, check_token
from assay.node.keeper import KEEPER_SILENT_S, kept_since, say_kept
from assay.node.local import is_local
from assay.programs.factory import load_recipe
from assay.protocol.errors import AssayError, FundsError, UnavailableError, UsageError, UserError
from assay.protocol.types import Address, Wei
from assay.sponsor.charters import USUAL_COMMITTEE, Pace, escrow_ahead
from assay.sponsor.launching import escrow_of
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import address_of
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.world import ETHER
from tests.harness.contracts.fresh import write_artifact

RECIPE = "examples.own_run:factory"
NEEDED = Wei(1_000_003)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        for name in ("FeeToken", "OddToken", "SilentToken"):
            write_artifact(found.folder / "artifacts", name)
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


def test_the_terms_of_a_local_chain_are_posted_on_no_other(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual profile, typed where a node speaks for Ethereum; and the chain of the demo is no other."""
    assert check_profile(desk.stage.chain, "local") == check_profile(desk.stage.chain, "l1").replace("l1", "local")
    monkeypatch.setattr("assay.node.local.CLIENT", "not anvil")
    at = (*desk.chain_words, *desk.store_words, *desk.key_words)
    head = desk.stage.chain.head()
    for words in (("new",), ("post", "--beacon", "local")):
        found = desk.refused("run", *words, "--recipe", RECIPE, "--yes", *at)
        assert found.code == "UnfitProfile" and "--profile l1" in found.remedy
    assert desk.stage.chain.head() == head, "something was sent"


def test_a_node_that_does_not_say_what_it_is_is_no_local_one() -> None:
    def failing(code: str) -> Any:
        def rpc(*_: object) -> Any:
            raise UnavailableError("no", code=code)

        return SimpleNamespace(rpc=rpc, url="http://node", chain_id=1)

    assert not is_local(failing("RpcError"))
    with pytest.raises(UnavailableError):
        is_local(failing("NodeUnreachable"))


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


# --- a token of one's own


def code_of(desk: Desk, token: Address, needed: Wei = NEEDED) -> str:
    """By which a token is refused."""
    with pytest.raises(AssayError) as refused:
        check_token(desk.stage.chain, token, address_of(desk.stage.sponsor), needed)
    assert refused.value.remedy
    return refused.value.code


def deployed(desk: Desk, name: str, *arguments: object) -> Address:
    """A token of which the sponsor has a thousand."""
    chain, sponsor = desk.stage.chain, desk.stage.sponsor
    token = chain.deploy(sponsor, name, *arguments)[0]
    chain.send(sponsor, TokenContract(token).mint(address_of(sponsor), Wei(1000 * ETHER)))
    return token


def behaves(desk: Desk, token: Address, *, grows: bool = False, paused: bool = False) -> None:
    chain, odd = desk.stage.chain, TokenContract(token)
    call = odd._call("behave(bool,bool)", grows, paused)
    chain.send_data(desk.stage.sponsor, token, call.data)


def test_a_plain_token_is_taken_after_a_deposit_was_simulated_and_nothing_was_sent(desk: Desk) -> None:
    chain, token = desk.stage.chain, deployed(desk, "OddToken", 18)
    block, me = chain.head().number, address_of(desk.stage.sponsor)
    assert "keeps no fee" in check_token(chain, token, me, Wei(1000 * ETHER))
    assert chain.head().number == block and chain.ask(TokenContract(token).balance_of(Address(STRANGER))) == 0
    assert code_of(desk, token, Wei(1000 * ETHER + 1)) == "TokensShort"


@pytest.mark.parametrize("decimals", [0, 6, 24])
def test_a_token_of_any_decimals_is_taken_and_what_it_holds_is_said_by_them(desk: Desk, decimals: int) -> None:
    chain, token, me = desk.stage.chain, deployed(desk, "OddToken", decimals), address_of(desk.stage.sponsor)
    chain.send(desk.stage.sponsor, TokenContract(token).mint(me, Wei(5 * 10**decimals)))
    said = check_token(chain, token, me, Wei(5 * 10**decimals))
    assert f"{decimals} decimals" in said and f"the escrow takes 5 tokens ({5 * 10**decimals}wei)" in said


def test_tokens_that_a_vault_cannot_count_on_are_refused_each_by_its_reason(desk: Desk) -> None:
    chain = desk.stage.chain
    odd = deployed(desk, "OddToken", 18)
    assert code_of(desk, deployed(desk, "OddToken", 37)) == "TokenUnreadable"
    assert code_of(desk, deployed(desk, "FeeToken")) == "TokenTakesFee"
    behaves(desk, odd, grows=True)
    assert code_of(desk, odd) == "TokenRebases"
    behaves(desk, odd, paused=True)
    assert code_of(desk, odd) == "TokenRefuses"
    nobody, lent = Address(b"\7" * 20), Address(b"\x08" * 20)
    chain.rpc("anvil_setCode", "0x" + lent.hex(), "0xef0100" + odd.hex())
    assert [code_of(desk, a) for a in (nobody, lent)] == ["TokenMissing", "TokenMissing"]
    assert code_of(desk, chain.deploy(desk.stage.sponsor, "PrevrandaoSeed")[0]) == "TokenUnreadable"


def test_a_token_that_returns_nothing_is_taken_and_one_that_blocks_its_payer_is_not(desk: Desk) -> None:
    """Such a token cannot be told before it blocks somebody: what was found is that it lets this payer pay now."""
    chain, token, me = desk.stage.chain, deployed(desk, "SilentToken"), address_of(desk.stage.sponsor)
    assert "keeps no fee" in check_token(chain, token, me, NEEDED)
    for who, code in ((Address(STRANGER), "TokenRefuses"), (me, "TokenRefuses")):
        silent = deployed(desk, "SilentToken")
        chain.send_data(desk.stage.sponsor, silent, TokenContract(silent)._call("blockHolder(address)", who).data)
        assert code_of(desk, silent) == code


@pytest.mark.parametrize("answer", [None, [], [{"calls": []}], "0x", [{"calls": [{"status": "0x1"}] * 5}]])
def test_a_node_that_simulates_nothing_is_said_and_not_believed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    def rpc(*_: object) -> object:
        if answer is None:
            raise UnavailableError("unknown method", code="RpcError")
        return answer

    chain, token = desk.stage.chain, deployed(desk, "OddToken", 18)
    monkeypatch.setattr(type(chain), "rpc", rpc)
    assert "simulates nothing" in check_token(chain, token, address_of(desk.stage.sponsor), NEEDED)


def test_a_run_is_posted_in_a_token_of_ones_own_from_a_file_and_takes_what_it_said(desk: Desk, tmp_path: Path) -> None:
    chain, me = desk.stage.chain, desk.json("key", "list", "--keys-dir", str(desk.folder / "keys"))[0]["address"]
    who, token = Address(bytes.fromhex(me[2:])), TokenContract(deployed(desk, "OddToken", 18))
    start = {name: t.detach() + 1 for name, t in load_recipe(RECIPE).module.state_dict().items()}
    save_file(start, tmp_path / "model.safetensors")
    at = (*desk.chain_words, *desk.store_words, *desk.key_words)
    words = ("run", "new", "--recipe", RECIPE, "--steps", "4", "--rounds", "1", "--yes", "--pay", *at)
    words += ("--token", "0x" + token.address.hex(), "--start-from", str(tmp_path / "model.safetensors"))
    assert desk.refused(*words).code == "TokensShort"
    mint_for(desk, token, who)
    document = desk.json(*words)
    run = desk.opened(document)
    assert run.charter.token == token.address and run.chain.ask(run.escrow.balance()) == document["escrow"]
    assert chain.ask(token.balance_of(who)) == 1000 * ETHER - document["escrow"]
    pulled = tmp_path / "pulled.safetensors"
    desk.json("model", "pull", "--out", str(pulled), *desk.at(run).run_words, *desk.store_words)
    found = load_file(pulled)
    assert found.keys() == start.keys() and all(found[name].equal(t) for name, t in start.items())
    terms, steps = run.charter.training, 4
    pace = Pace(terms.max_units, terms.min_units, steps // terms.max_units, run.charter.timing.commit)
    ahead = escrow_ahead(run.charter.chain, rounds=1, seats=terms.seats, pace=pace, committee=USUAL_COMMITTEE)
    assert ahead == escrow_of(run.charter) == document["escrow"]


def mint_for(desk: Desk, token: TokenContract, who: Address) -> None:
    desk.stage.chain.send(desk.stage.sponsor, token.mint(who, Wei(1000 * ETHER)))
