"""Bonded gateways by commands, on a node: bond, pledge, look, accuse, play, and leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.explorer.app import make_app
from assay.explorer.bond_documents import MOST_MODELS
from assay.explorer.reader import RunReader
from assay.inference.bonds import AnswerGames
from assay.inference.cover import LOOKED_UP_S, CoverWatch, NotCovered, accusing_time
from assay.inference.lies import catch_liar, claimed_trace, false_statement
from assay.inference.statement import AnswerStatement, read_statement, sign, statement_of
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.run.answers import MAX_TOKENS, answer_claim
from assay.protocol.types import Digest, Wei
from assay_ledger.chain.client import address_of
from assay_ledger.keys.keystore import ActorKeys
from tests.harness.inference.models import write_folder
from tests.harness.payments.bonded import BOND, MODEL, TERMS, as_inference, file_of, gates_at, own_model, true_answer
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.samples import ETHER


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("bonded"), payers=3) as made:
        write_folder(MODEL, made.folder / "pulled")
        yield made


@pytest.fixture(scope="module")
def bonds(paid: PaidRun) -> str:
    """The contract that payer 0 bonded itself at, and pledged the model."""
    made = paid.done(*paid.words(0, "bond", *own_model(paid), "--bond", BOND, "--yes"))
    assert made["bond"] == made["deposited"] == 100 * ETHER
    at = str(made["bonds"])
    until = paid.done(*as_inference(paid, 0, "pledge", *own_model(paid), "--bonds", at, "--for", "864000", "--yes"))
    assert 863_000 < until["until"] - paid.chain.head().timestamp <= 864_000
    return at


def test_a_bonded_gateway_is_listed_and_covers_what_it_signs(paid: PaidRun, bonds: str) -> None:
    listed = paid.done("gateway", "list", "--bonds", bonds)
    me = "0x" + address_of(paid.keys[0]).hex()
    (found,) = [g for g in listed["gateways"] if g["gateway"] == me]
    assert found["bonded"] and found["covers"] and not found["convicted"] and listed["bond"] == 100 * ETHER
    file = file_of(paid, true_answer(paid), paid.keys[0], "covered")
    covered = paid.done("inference", "covered", file, "--bonds", bonds)
    assert covered["covered"] and covered["gateway"] == me and covered["until"] == found["pledged_until"]
    stranger = file_of(paid, true_answer(paid), paid.keys[1], "stranger")
    assert paid.refused("inference", "covered", stranger, "--bonds", bonds).code == "NotCovered"
    for name, odd in (
        ("chainless", statement_of(MODEL, MODEL.encode("a"), TERMS, 1, [1])),
        ("long", longer(true_answer(paid))),
    ):
        refused = paid.refused("inference", "covered", file_of(paid, odd, paid.keys[0], name), "--bonds", bonds)
        assert refused.code == "NotCovered"


def explored(paid: PaidRun, bonds: str | None) -> TestClient:
    """An explorer that asks the node as it answers."""
    return TestClient(make_app(RunReader(paid.run, bonds=None if bonds is None else gates_at(paid, bonds))))


def test_a_root_that_is_none_is_wrong_usage(paid: PaidRun, bonds: str) -> None:
    for words in ("0x12", "no root"):
        assert paid.refused("gateway", "list", "--bonds", bonds, "--root", words).code == "RootInvalid"


def test_an_explorer_shows_the_bonds_of_the_contract_that_it_is_told_of(paid: PaidRun, bonds: str) -> None:
    me, client = "0x" + address_of(paid.keys[0]).hex(), explored(paid, bonds)
    found = client.get("/api/v1/bonds").json()
    (mine,) = found["gateways"]
    until = paid.done("gateway", "list", "--bonds", bonds)["gateways"][0]["pledged_until"]
    assert (found["contract"], found["bond"]) == (bonds.lower(), str(100 * ETHER))
    assert found["seen_at"] == mine["seen_at"] == paid.chain.head().timestamp
    assert mine["models"] == [{"model": "0x" + MODEL.root.hex(), "until": until, "covered": True}]
    counts = [mine[name] for name in ("pledged_models", "covered_models", "games", "accused", "lost")]
    assert (mine["gateway"], mine["state"], counts) == (me, "put up", [1, 1, 0, 0, 0])
    assert "put up" in client.get("/gateways").text
    # It is a gateway by its bond alone: nobody has deposited for it.
    assert client.get(f"/api/v1/gateways/{me}").json()["bond"] == mine
    assert "covered</span>, pledged until" in client.get(f"/gateways/{me}").text
    assert f'answers with 100 in token <code title="{found["token"]}"' in client.get("/gateways").text
    blind = explored(paid, None)
    assert blind.get("/api/v1/bonds").status_code == blind.get(f"/gateways/{me}").status_code == 404
    assert "Bonds" not in blind.get("/gateways").text


def test_a_pledge_covers_to_the_last_second_in_which_it_can_be_presented(paid: PaidRun, bonds: str) -> None:
    snapshot, gates, me = paid.chain.rpc("evm_snapshot"), gates_at(paid, bonds), address_of(paid.keys[0])
    until = paid.chain.ask(gates.gateways.pledge_of(me, MODEL.root))
    for late, covered in ((0, True), (1, False)):
        paid.chain.rpc("evm_mine", {"timestamp": until - accusing_time(gates) + late})
        (shown,) = explored(paid, bonds).get("/api/v1/bonds").json()["gateways"]
        assert (shown["models"][0]["covered"], shown["covered_models"]) == (covered, int(covered))
    assert paid.chain.rpc("evm_revert", snapshot)


def test_pledges_of_many_models_make_no_long_page(paid: PaidRun, bonds: str) -> None:
    reader = RunReader(paid.run, bonds=gates_at(paid, bonds))
    client, me = TestClient(make_app(reader)), address_of(paid.keys[0])
    assert client.get("/api/v1/bonds").status_code == 200 and reader.bonds is not None
    seen = reader.bonds._seen
    assert seen is not None
    one, until = seen.gateways[me], seen.at + seen.accusing_s
    many = {Digest(k.to_bytes(32, "big")): until + k - 10 for k in range(200)}
    reader.bonds._seen = replace(seen, gateways={me: replace(one, models=many)})
    (shown,) = client.get("/api/v1/bonds").json()["gateways"]
    assert (shown["pledged_models"], shown["covered_models"], len(shown["models"])) == (200, 190, MOST_MODELS)
    assert shown["models"][0]["until"] == until + 189
    assert f"{200 - MOST_MODELS}, pledged for less long" in client.get(f"/gateways/0x{me.hex()}").text


def test_pages_do_not_wait_for_a_look_at_bonds_and_say_of_when_it_is(
    paid: PaidRun, bonds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, later = paid.chain.rpc("evm_snapshot"), [0.0]
    reader = RunReader(paid.run, bonds=gates_at(paid, bonds), clock=lambda: later[0])
    assert reader.bonds is not None
    look, answers, looks = reader.bonds.look, threading.Semaphore(0), []

    def slow() -> Any:
        looks.append(reader.run.chain.head().timestamp)
        assert answers.acquire(timeout=60)
        return look()

    def seen_at() -> Any:
        later[0] += 60.0  # the reader asks for the newest block
        return client.get("/api/v1/bonds").json()["seen_at"]

    def wait_for(wanted: Callable[[Any], bool]) -> None:
        deadline = time.monotonic() + 60
        while not wanted(seen_at()):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    monkeypatch.setattr(reader.bonds, "look", slow)
    reader.node.start()
    try:
        client = TestClient(make_app(reader))
        assert seen_at() is None and "Being asked" in client.get("/gateways").text
        answers.release()
        wait_for(lambda at: at is not None)
        first = seen_at()
        assert first == seen_at() == looks[0] and len(looks) == 1
        # A day later the old look is shown with its time, and another one is begun: one, however often it is wanted.
        paid.chain.rpc("evm_mine", {"timestamp": first + 86_400})
        assert [seen_at() for _ in range(5)] == [first] * 5
        paid.chain.rpc("evm_mine", {"timestamp": first + 2 * 86_400})
        assert [seen_at() for _ in range(5)] == [first] * 5
        answers.release()
        wait_for(lambda at: at > first)
        assert len(looks) == 2
    finally:
        answers.release(10)
        reader.node.stop()
        assert paid.chain.rpc("evm_revert", snapshot)


def test_who_pays_looks_up_a_bond_before_it_signs(paid: PaidRun, bonds: str) -> None:
    seconds, snapshot = [0.0], paid.chain.rpc("evm_snapshot")
    gates, me = gates_at(paid, bonds), address_of(paid.keys[0])
    watch = CoverWatch(gates, me, MODEL.root, lambda: seconds[0])
    watch.check()
    assert watch.until == paid.chain.ask(gates.gateways.pledge_of(me, MODEL.root)) > 0
    for said, why in ((true_answer(paid), ""), (longer(true_answer(paid)), "can be presented")):
        found = watch.why_not(read_statement(sign(said, paid.keys[0]).encode()))
        assert why in found and bool(why) == bool(found)
    # Too late to present what it signs: that is seen with the next look, 30 s later.
    paid.chain.rpc("evm_mine", {"timestamp": watch.until})
    seconds[0] = LOOKED_UP_S - 1
    watch.check()
    seconds[0] = LOOKED_UP_S
    with pytest.raises(NotCovered, match="too soon"):
        watch.check()
    with pytest.raises(NotCovered, match="no bond"):
        CoverWatch(gates, address_of(paid.keys[1]), MODEL.root).check()
    paid.chain.rpc("evm_revert", snapshot)


def longer(statement: AnswerStatement) -> AnswerStatement:
    return replace(statement, prompt=(1,) * MAX_TOKENS)


def test_a_true_answer_is_not_accused(paid: PaidRun, bonds: str) -> None:
    file = file_of(paid, true_answer(paid), paid.keys[0], "true")
    words = as_inference(paid, 1, "accuse", file, "--bonds", bonds, *own_model(paid), "--yes")
    assert paid.refused(*words).code == "AnswerTrue"


def test_another_contract_is_not_bonded_at(paid: PaidRun, bonds: str) -> None:
    assert paid.refused("gateway", "list", "--bonds", "0x" + paid.token.hex()).code == "UnknownCode"
    assert paid.refused("gateway", "list", "--bonds", "0x" + "77" * 20).code == "GatewaysMissing"


def test_a_false_answer_is_accused_by_its_reader_and_costs_the_bond(paid: PaidRun, bonds: str) -> None:
    gates = gates_at(paid, bonds)
    false = false_statement(true_answer(paid), 5, MODEL.vocabulary)
    file = file_of(paid, false, paid.keys[0], "false")
    words = as_inference(paid, 1, "accuse", file, "--bonds", bonds, *own_model(paid), "--yes")
    liar = AnswerGames(gates, MODEL, ActorKeys("liar", paid.keys[0]), claimed_trace)
    reader = AnswerGames(gates, MODEL, ActorKeys("reader", paid.keys[1]))
    claim = answer_claim(false.digest, address_of(paid.keys[0]), 5)
    with ThreadPoolExecutor(1) as pool:
        accusing = pool.submit(paid.done, *words)
        while gates.games.count() == 0:
            if accusing.done():
                accusing.result()
            # Only once it has committed, and never beyond the moment from which it can reveal: it has an hour then.
            block, time = reader.reveals_at(claim) if reader.has_committed(claim) else (0, 0)
            head = paid.chain.head()
            if head.number < block or head.timestamp < time:
                paid.chain.rpc("evm_mine", {"timestamp": max(time, head.timestamp + 1)})
        assert not liar.play(1)
        said = accusing.result()
    assert (said["place"], said["game"], said["convicted"]) == (5, 1, True)
    found = paid.chain.ask(gates.gateways.bond_of(address_of(paid.keys[0])))
    assert found.is_convicted and not found.is_bonded and found.disputes == 0
    (shown,) = explored(paid, bonds).get("/api/v1/bonds").json()["gateways"]
    assert [shown[name] for name in ("state", "covered_models", "accused", "lost")] == ["lost", 0, 1, 1]
    assert "lost in a game about an answer" in explored(paid, bonds).get(f"/gateways/{shown['gateway']}").text
    # Who was interrupted, and begins again, has its game still, and stakes nothing for another.
    assert paid.done(*words) == said and gates.games.count() == 1
    won = paid.done(*paid.words(1, "unbond", "--bonds", bonds, "--yes"))
    assert not won["released"] and won["exiting"] > 5 * ETHER
    paid.chain.rpc("evm_mine", {"timestamp": won["not_before"]})
    before = paid.held(address_of(paid.keys[1]))
    assert paid.done(*paid.words(1, "unbond", "--bonds", bonds, "--yes"))["withdrawn"] == won["exiting"]
    assert paid.held(address_of(paid.keys[1])) == before + won["exiting"]


def test_a_scene_of_a_liar_ends_in_its_conviction(paid: PaidRun, bonds: str) -> None:
    gates = gates_at(paid, bonds)

    def pass_time(until: int) -> None:
        paid.chain.rpc("evm_mine", {"timestamp": until})

    liar, reader = (ActorKeys(name, paid.keys[k]) for name, k in (("liar", 2), ("reader", 1)))
    lie = catch_liar(gates, MODEL, liar, reader, true_answer(paid), pass_time)
    assert lie.is_convicted and lie.outcome is Outcome.LEAF and lie.place == 4
    assert lie.bounty + lie.burned == 100 * ETHER and lie.transactions < 20
    totals = paid.chain.ask(gates.vault.totals())
    assert sum(totals) == paid.held(gates.vault.address), "every token has a place"


def test_an_honest_gateway_defends_itself_by_command_and_leaves(paid: PaidRun, bonds: str) -> None:
    gates = gates_at(paid, bonds)
    gate = paid.gateway
    paid.chain.send(paid.keys[1], paid.run.token.mint(address_of(gate), Wei(1000 * ETHER)))
    words = (
        "--key",
        str(paid.folder / "gateway.json"),
        "--password-file",
        str(paid.folder / "password"),
    )
    paid.done("gateway", "bond", *own_model(paid), "--bond", BOND, "--yes", *words)
    pledged = paid.done("inference", "pledge", *own_model(paid), "--bonds", bonds, "--for", "864000", "--yes", *words)
    # The accuser stakes on a lie, and has no move that its own machine would not find false.
    true = sign(true_answer(paid), gate)
    accusers = [AnswerGames(gates, MODEL, ActorKeys("accuser", paid.keys[k])) for k in (1, 2)]
    at = max(accuser.reveals_at(accuser.commit(true, 2))[1] for accuser in accusers)
    paid.chain.rpc("evm_mine", {"timestamp": at})
    games = [accuser.present(true, 2) for accuser in accusers]

    def pass_time() -> None:
        """Accusers say nothing. A game that the gateway leaves to itself meanwhile is lost to it."""
        while left := [g.state for g in map(gates.games.game, games) if not g.state.is_over]:
            if all(state.turn is Side.CHALLENGER for state in left):
                deadline = min(state.deadline for state in left)
                paid.chain.rpc("evm_mine", {"timestamp": max(deadline, paid.chain.head().timestamp) + 1})

    with ThreadPoolExecutor(1) as pool:
        passing = pool.submit(pass_time)
        said = paid.done("gateway", "defend", *own_model(paid), "--bonds", bonds, "--once", *words)
        passing.result()
    assert said == {"games": games, "won": 2, "lost": 0}
    assert paid.refused("gateway", "unbond", "--bonds", bonds, "--yes", *words).code == "BondInUse"
    over = pledged["until"] + paid.run.charter.timing.challenge + 1
    paid.chain.rpc("evm_mine", {"timestamp": over})
    assert paid.done("gateway", "unbond", "--bonds", bonds, "--yes", *words)["released"]


def test_games_that_are_over_or_of_others_are_looked_at_once(
    paid: PaidRun, bonds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates, looked, strangers, now = gates_at(paid, bonds), list[int](), {2}, [1000]
    depth = paid.run.charter.chain.reorg_depth

    def look(number: int) -> Any:
        """The first is over, the second somebody else's, the third goes on."""
        looked.append(number)
        side = Side.NONE if number in strangers else Side.DEFENDER
        return SimpleNamespace(state=SimpleNamespace(is_over=number == 1), side_of=lambda _: side)

    monkeypatch.setattr(gates.games, "count", lambda: 3)
    monkeypatch.setattr(gates.games, "game", look)
    games = AnswerGames(gates, MODEL, ActorKeys("gate", paid.keys[2]))
    monkeypatch.setattr(games, "_chain", SimpleNamespace(head=lambda: SimpleNamespace(timestamp=now[0])))

    def own(at: int) -> int:
        now[0] = at
        looked.clear()
        return len(games.own())

    assert own(1000) == 1 and looked == [1, 2, 3]
    # A reorganization gives its number to a game against this gateway, in the last second in which one may.
    strangers.clear()
    assert own(1000 + depth) == 2 and looked == [1, 2, 3]
    strangers.add(2)
    assert own(1001 + depth) == 1 and looked == [2, 3], "the first was over for longer"
    assert own(1001 + 2 * depth) == 1 and looked == [2, 3]
    assert own(1002 + 2 * depth) == 1 and looked == [3]


def test_a_gateway_of_no_run_pledges_nothing(paid: PaidRun, bonds: str) -> None:
    key = ("--key", str(paid.folder / "gateway.json"), "--password-file", str(paid.folder / "password"))
    refused = paid.refused("gateway", "start", *own_model(paid), "--bonds", bonds, "--port", "0", *key)
    assert refused.code == "ModelOfNoRun"
