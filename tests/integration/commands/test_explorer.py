"""The explorer over a run that was really played: every page, every link, the same as JSON and CSV, and the books."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from assay.bundle.document import decode_bundle
from assay.bundle.replay import verify
from assay.explorer.api_parts import _stream
from assay.explorer.app import make_app
from assay.explorer.codes import event_meaning
from assay.explorer.documents import claims
from assay.explorer.run_reader import RunReader
from assay.explorer.search import search
from assay.explorer.tables import TABLES
from assay.protocol.errors import UnavailableError
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Status
from tests.harness.demo.played import SOLVERS, Played

LINK = re.compile(r'href="(/[^"]*)"')


@pytest.fixture(scope="module")
def reader(played: Played) -> RunReader:
    names = {player.agent.me: name for name, player in played.world.players.items()}
    return RunReader(played.run, played.world.store, names)


@pytest.fixture(scope="module")
def client(reader: RunReader) -> Iterator[TestClient]:
    with TestClient(make_app(reader)) as client:
        yield client


def get(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.json()


# --- pages


def test_every_link_on_every_page_leads_somewhere(client: TestClient) -> None:
    seen, queue = set(), ["/"]
    while queue:
        path = queue.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        if "text/html" in answer.headers["content-type"]:
            queue += [unescape(link).split("#")[0] for link in LINK.findall(answer.text)]
    kinds = {path.split("/")[1].split("?")[0] for path in seen}
    assert kinds >= {"rounds", "commitments", "claims", "games", "actors", "outers", "events", "run", "api"}
    assert len(seen) > 150


def test_pages_need_no_scripts_and_fetch_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/rounds/1", "/games/1", "/claims", "/events", "/run", "/nowhere"):
        answer = client.get(path)
        assert "<script" not in answer.text
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', answer.text)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert 'name="viewport"' in answer.text
    assert "prefers-color-scheme: dark" in client.get("/style.css").text


def test_the_first_page_shows_rounds_disputes_and_the_ledger(client: TestClient, played: Played) -> None:
    text = client.get("/").text
    for name in played.world.players:
        assert f">{name}</a>" in text
    for game_id in played.state.games:
        assert f'href="/games/{game_id}"' in text
    assert text.count("convicted") == 3


def test_the_page_of_events_says_what_each_means(client: TestClient) -> None:
    text = unescape(client.get("/events").text)
    for contract, name in (("settlement", "RoundSettled"), ("settlement", "WorkSettled")):
        assert f"{contract}.{name}" in text
        assert event_meaning(contract, name) in text


def test_a_dispute_s_page_shows_the_descent_and_what_our_own_replay_says(client: TestClient, played: Played) -> None:
    for game_id, record in played.state.games.items():
        text = client.get(f"/games/{game_id}").text
        assert record.claim_id.hex() in text
        assert "gives the same verdict" in text
        document = get(client, f"/api/v1/games/{game_id}")
        assert len(document["steps"]) == len(record.moves) - 1
        for step in document["steps"]:
            assert f"{step['agreed']}" in text
        assert document["gas"] == sum(s["gas"] for s in document["steps"]) + document["opened"]["gas"]


def test_a_dispute_that_is_open_shows_whose_clock_runs(played: Played) -> None:
    text, document = played.glimpse
    assert "The defender is to move" in text
    assert document["verdict"] is None
    assert document["replay"]["agrees"] is None
    assert (document["stage"], document["turn"], document["steps"]) == ("STEPS", "defender", [])
    assert document["deadline"] > document["opened"]["time"]


def test_a_chain_that_does_not_answer_is_a_sentence_and_not_a_trace(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RunReader(played.run)

    def fail() -> None:
        raise UnavailableError("The chain does not answer.", code="NodeUnreachable", remedy="Check the node.")

    monkeypatch.setattr(reader._index, "sync", fail)
    client = TestClient(make_app(reader), raise_server_exceptions=False)
    page, data = client.get("/"), client.get("/api/v1/run")
    assert (page.status_code, data.status_code) == (503, 503)
    assert "Check the node." in page.text
    assert data.json()["error"]["code"] == "NodeUnreachable"


def test_new_events_are_streamed_from_where_a_reader_left_off(reader: RunReader) -> None:
    class ImpatientReader:
        """Hangs up after the first look."""

        looks = 0

        async def is_disconnected(self) -> bool:
            self.looks += 1
            return self.looks > 1

    with reader.reading():
        last = reader.events[-3].number
    impatient: Any = ImpatientReader()

    async def read() -> list[str]:
        return [message async for message in _stream(reader, impatient, last)]

    messages = asyncio.run(read())
    assert [m.splitlines()[0] for m in messages] == [f"id: {last + 1}", f"id: {last + 2}"]
    assert all(json.loads(m.split("data: ")[1])["contract"] for m in messages)


def test_it_is_served_on_a_free_port_and_gone_when_closed(played: Played) -> None:
    from assay.explorer import serve

    names = {played.world.address("ada"): "ada"}
    with (
        serve(played.run, played.world.store, 0, names=names) as server,
        urllib.request.urlopen(server.url, timeout=30) as answer,
    ):
        assert b">ada</a>" in answer.read()
    with pytest.raises(OSError):
        urllib.request.urlopen(server.url, timeout=5)


def test_what_strangers_wrote_is_escaped(client: TestClient) -> None:
    answer = client.get("/search", params={"q": "<b onclick=x>"})
    assert answer.status_code == 404
    assert "<b onclick" not in answer.text


@pytest.mark.parametrize("path", ["/rounds/99", "/rounds/x", "/games/0", "/claims/0x12", "/actors/nobody", "/nowhere"])
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]


# --- JSON and tables


def test_lists_come_page_by_page_and_every_item_once(client: TestClient, reader: RunReader) -> None:
    with reader.reading():
        whole = [c["id"] for c in claims(reader)]
    found, cursor = [], None
    while True:
        page = get(client, "/api/v1/claims?limit=7" + (f"&cursor={cursor}" if cursor else ""))
        found += [c["id"] for c in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == whole
    assert len(set(found)) == len(found)


def test_every_claim_that_a_game_is_about_is_listed_under_its_id(client: TestClient, played: Played) -> None:
    for game in played.state.games.values():
        claim = get(client, f"/api/v1/claims/0x{game.claim_id.hex()}")
        assert claim["kind"] == game.ref.kind.name
        assert game.game_id in claim["games"]
        assert claim["status"] == ("fallen" if game.convicted else "stands")


def test_tables_have_a_row_for_every_item(client: TestClient) -> None:
    for name in TABLES:
        rows = list(csv.DictReader(io.StringIO(client.get(f"/api/v1/csv/{name}.csv").text)))
        count, cursor = 0, "0"
        while cursor is not None:
            page = get(client, f"/api/v1/{name}?limit=500&cursor={cursor}")
            count, cursor = count + len(page["items"]), page["next_cursor"]
        assert len(rows) == count > 0


def test_the_interface_describes_itself_and_refuses_nonsense(client: TestClient) -> None:
    paths = get(client, "/api/v1/openapi.json")["paths"]
    assert {"/api/v1/run", "/api/v1/games/{game}", "/api/v1/{table}", "/api/v1/search"} <= paths.keys()
    assert client.get("/api/v1/claims?limit=100000").status_code == 422
    assert client.get("/api/v1/claims?cursor=x").status_code == 422
    assert client.get("/api/v1/secrets").status_code == 404
    assert client.get("/api/v1/games/999").status_code == 404


def test_evidence_from_the_explorer_replays_offline(client: TestClient, played: Played) -> None:
    for game_id, record in played.state.games.items():
        data = client.get(f"/api/v1/games/{game_id}/bundle.json").content
        assert verify(decode_bundle(data)).verdict == record.verdict


# --- the books


def test_the_ledger_s_figures_are_the_contracts_own(client: TestClient, played: Played) -> None:
    run, ask = played.run, played.run.chain.ask
    actors = {a["address"]: a for a in get(client, "/api/v1/actors?limit=500")["items"]}
    for name in played.world.players:
        who = played.world.address(name)
        shown = actors["0x" + who.hex()]
        assert shown["name"] == name
        assert int(shown["free"]) == ask(run.vault.free(who))
        assert int(shown["free"]) + int(shown["locked"]) + int(shown["leaving"]) == played.world.wealth(name)
        assert int(shown["shares"]) == ask(run.shares.balance_of(who))
        assert int(shown["pending_shares"]) == ask(run.vesting.pending_of(who))
    free, locked, leaving, burned = ask(run.vault.totals())
    assert sum(int(a["free"]) for a in actors.values()) == free
    assert sum(int(a["locked"]) for a in actors.values()) == locked
    assert sum(int(a["leaving"]) for a in actors.values()) == leaving
    assert int(get(client, "/api/v1/run")["burned"]) == burned


def test_those_who_lied_are_shown_as_slashed_and_nobody_else(client: TestClient) -> None:
    actors = get(client, "/api/v1/actors?limit=500")["items"]
    slashed = {a["name"]: int(a["slashed"]) for a in actors if a["slashed"] != "0"}
    assert slashed.keys() == {"flip", "mute", "bent", "lazy", "bob"}
    won = sum(int(a["bounties"]) for a in actors)
    assert 0 < won < sum(slashed.values())


# --- search


def test_search_finds_whatever_has_a_name(client: TestClient, played: Played, reader: RunReader) -> None:
    commitment = played.state.rounds[1].commitments[0]  # type: ignore[index]
    game = played.state.games[1]
    wanted = {
        "game 1": "/games/1",
        "round 1": "/rounds/1",
        "ada": f"/actors/0x{played.world.address('ada').hex()}",
        "0x" + played.world.address("vera").hex(): f"/actors/0x{played.world.address('vera').hex()}",
        commitment.digest.hex(): "/commitments/1/0",
        "0x" + commitment.roots[2].hex(): "/commitments/1/0",
        "0x" + game.claim_id.hex(): f"/claims/0x{game.claim_id.hex()}",
        "0x" + game.opened_tx.hex(): "/games/1",
        game.claim_id.hex()[:20].upper(): f"/claims/0x{game.claim_id.hex()}",
        "0x" + played.run.run_id.hex(): "/run",
    }
    with reader.reading():
        for query, url in wanted.items():
            assert url in [hit.url for hit in search(reader, query)], query
    answer = client.get("/search", params={"q": "game 1"}, follow_redirects=False)
    assert answer.headers["location"] == "/games/1"


# --- explain


def explain(client: TestClient, name: str) -> dict[str, Any]:
    document: dict[str, Any] = get(client, f"/api/v1/explain/{name}")
    return document


def test_explain_says_of_each_commitment_whether_it_is_counted_and_paid_and_why_not(
    client: TestClient, played: Played
) -> None:
    for record in played.state.rounds:
        for c in record.commitments.values():
            answers = {a["question"]: a for a in explain(client, c.digest.hex())["answers"]}
            assert answers["known"]["yes"] is True
            assert answers["paid"]["yes"] is (c.status is Status.FINAL)
            if c.convicted:
                assert answers["paid"]["code"] == "Convicted"
                assert answers["counted"]["yes"] is False
                assert answers["counted"]["remedy"]
            else:
                assert answers["counted"]["yes"] is True


def test_explain_knows_codes_actors_games_and_says_when_it_does_not_know(client: TestClient, played: Played) -> None:
    code = explain(client, "startmismatch")
    assert (code["kind"], code["name"]) == ("code", "StartMismatch")
    assert code["remedy"]
    actor = explain(client, "0x" + played.world.address("flip").hex())
    assert actor["kind"] == "actor"
    assert any(a["code"] == "Convicted" for a in actor["answers"])
    assert explain(client, "game 1")["kind"] == "game"
    assert explain(client, "ab" * 32)["known"] is False


# --- the command line


def run_cli(played: Played, *words: str) -> Any:
    from assay.cli import main

    if not main.app.registered_groups:
        main._add_commands()
    environment = {
        "ETH_RPC_URL": played.run.chain.url,
        "ASSAY_RUN": "0x" + played.run.address.hex(),
        "ASSAY_CONFIG": "/dev/null",
    }
    return CliRunner().invoke(main.app, list(words), env=environment)


def test_disputes_are_listed_shown_and_followed_without_a_key(played: Played) -> None:
    listed = json.loads(run_cli(played, "dispute", "list", "--json").stdout)
    assert [g["game"] for g in listed] == sorted(played.state.games)
    assert json.loads(run_cli(played, "dispute", "list", "--open", "--json").stdout) == []
    interval = next(g for g in played.games(ClaimKind.INTERVAL) if g.convicted and g.outcome.name == "LEAF")
    shown = json.loads(run_cli(played, "dispute", "show", str(interval.game_id), "--json").stdout)
    assert shown["replay"]["agrees"] is True
    text = run_cli(played, "dispute", "show", str(interval.game_id)).stdout
    assert "the same verdict" in text
    watched = run_cli(played, "dispute", "follow", str(interval.game_id), "--json").stdout.splitlines()
    assert len(watched) == len(interval.moves) - 1 + 1
    assert json.loads(watched[-1])["verdict"]["outcome"] == "LEAF"
    missing = run_cli(played, "dispute", "show", "999")
    assert missing.exception is not None
    assert getattr(missing.exception, "code", "") == "GameUnknown"


def test_explain_on_the_command_line_answers_the_three_questions(played: Played) -> None:
    commitment = next(c for c in played.state.rounds[1].commitments.values() if c.convicted)
    text = run_cli(played, "explain", "0x" + commitment.digest.hex()).stdout
    assert "known: yes" in text
    assert "paid: no" in text
    assert "Convicted:" in text


def test_a_bundle_is_exported_by_a_command(played: Played, tmp_path: Path) -> None:
    file = tmp_path / "game.json"
    done = run_cli(played, "bundle", "export", "1", "--out", str(file), "--json")
    document = json.loads(done.stdout)
    assert document["bytes"] == file.stat().st_size
    assert verify(decode_bundle(file.read_bytes())).verdict == played.state.games[1].verdict


def test_names_of_the_cast_are_all_there(played: Played) -> None:
    assert set(SOLVERS) <= set(played.world.players)
    assert all(isinstance(p.agent.me, bytes) and len(Address(p.agent.me)) == 20 for p in played.world.players.values())
