"""The explorer over a run that was really played: every page, every link, the same as JSON and CSV, and the books."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from assay.bundle.document import decode_bundle
from assay.bundle.replay import verify
from assay.demo.lines import RunLines, parties
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.explorer.search import search
from assay.explorer.tables import TABLES
from assay.protocol.errors import ExitCode, UnavailableError
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round, Seat
from assay.sponsor.model_cards import model_card
from assay.watchdog.alarms import AlarmKind, exit_code_of
from assay.watchdog.looking import WatchOptions
from assay.watchdog.truths import Truths
from assay.watchdog.watch import Watchdog
from assay_ledger.bindings.attestations import Accused, Attested
from assay_ledger.bindings.tickets import TicketReclaimed
from assay_ledger.contract import Event, Logged
from assay_ledger.rounds.index import RunIndex
from tests.harness.actors.world import COMPUTE
from tests.harness.commands import assay_on
from tests.harness.demo.played_rounds import LIAR, REVENUE, SLANDERER, SOLVERS, PlayedRounds, play_rounds

LINK = re.compile(r'href="(/[^"]*)"')


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedRounds]:
    with play_rounds(tmp_path_factory.mktemp("played")) as found:
        yield found


@pytest.fixture(scope="module")
def reader(played: PlayedRounds) -> RunReader:
    return played.reader()


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
        # Of searches and events there are thousands, all alike.
        kind = path.split("/")[1].split("?")[0]
        if path in seen or (kind in ("search", "events") and sum(kind in p for p in seen) > 20):
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        if "text/html" in answer.headers["content-type"]:
            queue += [unescape(link).split("#")[0] for link in LINK.findall(answer.text)]
    kinds = {path.split("/")[1].split("?")[0] for path in seen}
    work = {"rounds", "commitments", "generations", "tenures", "games"}
    audits = {"tickets", "epochs", "findings", "accusations"}
    assert kinds >= work | audits | {"actors", "money", "events", "run", "api", "search"}


def test_pages_have_one_script_of_their_own_and_fetch_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/rounds/0", "/games/1", "/findings", "/epochs/1", "/money", "/run", "/events", "/nowhere"):
        answer = client.get(path)
        assert re.findall("<script[^>]*>", answer.text) == ['<script src="/live.js" defer>']
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', answer.text)
        assert "default-src 'none'" in (policy := answer.headers["content-security-policy"])
        assert "script-src 'self';" in policy and "unsafe" not in policy
        assert 'name="viewport"' in answer.text and ' style="' not in answer.text
    assert "prefers-color-scheme: dark" in client.get("/style.css").text


def test_the_first_page_tells_what_the_run_is_at(client: TestClient, played: PlayedRounds) -> None:
    text = client.get("/").text
    for name in played.made.players:
        assert f">{name}</a>" in text
    for number in played.view.games:
        assert f'href="/games/{number}"' in text
    for (round_, seat), work in played.view.state.works.items():
        assert f'href="/commitments/{round_}/{seat}"' in text
        assert f"{work.work.units}/{played.run.charter.training.max_units}</span>" in text
    assert "generation 0" not in text and 'href="/generations/0"' in text


def test_a_commitment_s_page_shows_the_marks_that_its_solver_published(
    client: TestClient, played: PlayedRounds
) -> None:
    work = played.view.state.works[Round(0), Seat(0)]
    text = client.get("/commitments/0/0").text
    marks = re.findall(r'<li><span class="digest">(0x[0-9a-f]{64})</span></li>', text)
    assert len(marks) == len(set(marks)) == work.work.units
    assert f'href="/actors/0x{played.view.books.tenures.tenures[work.tenure].holder.hex()}"' in text
    assert all(f"/findings/{found}" in text for found in get(client, "/api/v1/commitments/0/0")["audits"])


def test_a_game_that_is_open_shows_whose_clock_runs(played: PlayedRounds) -> None:
    text, document = played.glimpse.page, played.glimpse.document
    assert "is to move</b> until" in text
    assert (document["verdict"], document["kind"], document["what"]) == (None, "OUTER", "the merge of generation 2")
    assert document["replay"]["agrees"] is None
    assert document["turn"] in ("defender", "challenger") and document["deadline"] > 0


def test_a_game_that_is_over_shows_its_descent_and_what_our_own_replay_says(
    client: TestClient, played: PlayedRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = {number: game for number, game in played.view.games.items() if game.is_over}
    assert over
    for number, game in over.items():
        text, document = client.get(f"/games/{number}").text, get(client, f"/api/v1/games/{number}")
        assert game.claim_id.hex() in text and "gives the same verdict" in text
        made = [document["opened"], *document["steps"]]
        assert [step["tx"] for step in made] == ["0x" + move.tx_hash.hex() for move in game.moves]
        assert document["gas"] == sum(step["gas"] for step in made)
        for step in document["steps"]:
            assert step["agreed"] in text and escape(step["says"]) in text
        data = client.get(f"/api/v1/games/{number}/bundle.json").content
        assert verify(decode_bundle(data)).verdict == game.verdict
    monkeypatch.setattr(RunReader, "replay_of", Mock(side_effect=UnavailableError("The node is gone.")))
    text, document = client.get(f"/games/{min(over)}").text, get(client, f"/api/v1/games/{min(over)}")
    assert document["replay"]["agrees"] is None and "not give this verdict" not in text and "The node is gone" in text


# --- who did what


def test_the_liar_is_shown_as_convicted_and_its_root_as_fallen(client: TestClient, played: PlayedRounds) -> None:
    held = {t["holder"]: t for t in get(client, "/api/v1/tenures")["items"]}
    liar = "0x" + played.made.address(LIAR).hex()
    assert {who for who, t in held.items() if t["status"] == "convicted"} == {liar}
    openings = {o["who"]: o for o in get(client, "/api/v1/generations/2")["openings"]}
    assert (openings[liar]["status"], openings[liar]["leads"]) == ("fallen", False)
    others = [o for who, o in openings.items() if who != liar]
    assert len(others) == len(SOLVERS) - 1 and all(o["leads"] for o in others)


def test_each_finding_stands_with_its_epoch_ticket_and_commitment(client: TestClient, played: PlayedRounds) -> None:
    slanderer = "0x" + played.made.address(SLANDERER).hex()
    found = get(client, "/api/v1/findings?limit=500")["items"]
    assert len(found) == len(played.view.state.attestations)
    assert {f["owner"] for f in found if not f["agrees"]} == {slanderer}
    for finding in found:
        assert finding["id"] in {f["id"] for f in get(client, f"/api/v1/epochs/{finding['epoch']}")["findings"]}
        assert finding["id"] in get(client, f"/api/v1/commitments/{finding['round']}/{finding['seat']}")["audits"]
        ticket = get(client, f"/api/v1/tickets/{finding['ticket']}")
        assert any(call["epoch"] == finding["epoch"] and call["in_time"] for call in ticket["calls"])


def test_a_false_accusation_is_shown_with_its_game_and_its_end(client: TestClient, played: PlayedRounds) -> None:
    slanderer = "0x" + played.made.address(SLANDERER).hex()
    made = get(client, "/api/v1/accusations?limit=500")["items"]
    of_work = [a for a in made if a["is_work"]]
    assert {a["accuser"] for a in of_work} == {slanderer} and "UPHELD" not in {a["status"] for a in of_work}
    assert {a["status"] for a in of_work} & {"REJECTED", "LAPSED"}
    # Whoever re-audits what it said accuses it in turn.
    assert all(slanderer in (a["accuser"], a["accused"]) for a in made)
    for accusation in made:
        text = unescape(client.get(f"/accusations/{accusation['id']}").text)
        assert accusation["what"] in text and accusation["by"] in text
        for game in accusation["games"]:
            assert "0x" + played.view.games[game].challenger.hex() == accusation["accuser"]


def test_tables_have_a_row_for_every_item(client: TestClient) -> None:
    for name in TABLES:
        rows = list(csv.DictReader(io.StringIO(client.get(f"/api/v1/csv/{name}.csv").text)))
        count, cursor = 0, "0"
        while cursor is not None:
            page = get(client, f"/api/v1/{name}?limit=500&cursor={cursor}")
            count, cursor = count + len(page["items"]), page["next_cursor"]
        # Nobody pays for answers or governs in this run: test_explored_payments.py, test_govern_commands.py.
        assert len(rows) == count and (count > 0) != (name in ("gateways", "deposits", "proposals", "votes")), name


def test_the_ledger_s_figures_are_the_contracts_own(client: TestClient, played: PlayedRounds) -> None:
    run, ask = played.run, played.run.chain.ask
    actors = {a["address"]: a for a in get(client, "/api/v1/actors?limit=500")["items"]}
    for name in played.made.players:
        who = played.made.address(name)
        shown = actors["0x" + who.hex()]
        assert shown["name"] == name
        assert int(shown["free"]) == ask(run.vault.free(who))
        assert int(shown["free"]) + int(shown["locked"]) == played.made.wealth(name)
        assert int(shown["shares"]) == ask(run.shares.balance_of(who))
    _, _, _, burned = ask(run.vault.totals())
    money = get(client, "/api/v1/money")
    assert int(money["burned"]) == burned > 0
    assert int(money["revenue"]) == REVENUE
    assert int(money["escrow"]) == ask(run.escrow.balance())


def test_what_somebody_has_follows_from_what_it_earned_won_and_lost(reader: RunReader) -> None:
    for who, a in reader.money.accounts.items():
        came = a.deposited + a.refunded + a.pay + a.wages + a.merges + a.won
        assert a.free + a.locked + a.leaving == came - a.withdrawn - a.funded - a.lost, who.hex()
    assert sum(a.pay for a in reader.money.accounts.values()) == sum(reader.money.work_pay.values()) > 0
    assert sum(a.wages for a in reader.money.accounts.values()) == sum(reader.money.finding_pay.values()) > 0


# --- search and explain


def test_search_finds_whatever_has_a_name(client: TestClient, played: PlayedRounds, reader: RunReader) -> None:
    view = played.view
    work, game = view.state.works[Round(0), Seat(1)], view.games[1]
    finding, accusation = next(iter(view.state.attestations)), next(iter(view.state.accusations))
    wanted = {
        "game 1": "/games/1", "round 1": "/rounds/1", "ticket 2": "/tickets/2", "tenure 3": "/tenures/3",
        "epoch 0": "/epochs/0", "generation 2": "/generations/2",
        "ada": f"/actors/0x{played.made.address('ada').hex()}",
        work.digest.hex(): "/commitments/0/1",
        "0x" + work.work.update.hex(): "/commitments/0/1",
        "0x" + game.claim_id.hex(): "/games/1",
        "0x" + finding.hex(): f"/findings/0x{finding.hex()}",
        "0x" + accusation.hex()[:20].upper(): f"/accusations/0x{accusation.hex()}",
        "0x" + played.run.run_id.hex(): "/run",
    }  # fmt: skip
    with reader.reading():
        for query, url in wanted.items():
            assert url in [hit.url for hit in search(reader, query)], query
        assert "/rounds/1" not in [hit.url for hit in search(reader, "ticket 1")]
    answer = client.get("/search", params={"q": "game 1"}, follow_redirects=False)
    assert answer.headers["location"] == "/games/1"


def test_explain_says_of_each_commitment_whether_it_is_paid_and_why_not(
    client: TestClient, played: PlayedRounds
) -> None:
    for work in played.view.state.works.values():
        answers = {a["question"]: a for a in get(client, f"/api/v1/explain/0x{work.digest.hex()}")["answers"]}
        assert answers["known"]["yes"] is True
        assert answers["paid"]["yes"] is {WorkStatus.FINAL: True, WorkStatus.OPEN: None}.get(work.status, False)
        if answers["paid"]["yes"] is not True:
            assert answers["paid"]["remedy"]
    convicted = [w for w in played.view.state.works.values() if w.status is WorkStatus.CONVICTED]
    holders = {played.view.books.tenures.tenures[w.tenure].holder for w in convicted}
    assert holders <= {played.made.address(LIAR)}


def test_explain_knows_tickets_findings_accusations_games_and_people(client: TestClient, played: PlayedRounds) -> None:
    def kind(name: str) -> str:
        document = get(client, f"/api/v1/explain/{name}")
        assert document["known"] is True
        return str(document["kind"])

    finding, accusation = next(iter(played.view.state.attestations)), next(iter(played.view.state.accusations))
    assert kind("ticket 1") == "ticket"
    assert kind("game 1") == "game"
    assert kind("0x" + finding.hex()) == "finding"
    assert kind("0x" + accusation.hex()) == "accusation"
    assert kind("0x" + played.made.address(LIAR).hex()) == "actor"
    assert kind("NotAudited") == "code"
    assert get(client, "/api/v1/explain/" + "ab" * 32)["known"] is False


def test_whoever_loses_a_game_about_a_merge_is_the_liar(played: PlayedRounds) -> None:
    merges = [g for g in played.view.games.values() if g.ref.kind is ClaimKind.OUTER and g.verdict]
    assert any(g.convicted for g in merges)
    # It also challenges the true root, which is not its own.
    assert {g.verdict.loser for g in merges if g.verdict} == {played.made.address(LIAR)}


# --- the model card


def test_the_model_card_names_generations_false_roots_and_auditors(client: TestClient, played: PlayedRounds) -> None:
    view, card = played.view, model_card(played.view)
    assert get(client, "/api/v1/card")["run"] == card.run == "0x" + played.run.address.hex()
    assert [g.generation for g in card.generations] == list(range(len(view.books.commitments.rounds) + 1))
    for made in card.generations[1:]:
        assert made.status == view.status(made.generation).name.lower()
        assert made.updates == len(view.counted(Round(made.generation - 1))[0])
    assert {(r.generation, r.by, r.led) for r in card.false_roots} == {
        (2, "0x" + played.made.address(LIAR).hex(), False)
    }
    assert card.false_work == (), "nobody was convicted of false work"
    audits = card.audits
    assert audits.findings == len(view.state.attestations) > audits.differing > 0
    # What the slanderer signed shows that nobody replayed it, once it is convicted.
    trusted = [a for a in view.state.attestations.values() if not view.books.registry.is_convicted(a.ticket)]
    assert audits.audited == len({(a.round, a.seat) for a in trusted}) <= audits.commitments
    assert audits.upheld + audits.rejected + audits.lapsed > 0
    text = card.text()
    for line in (f"root {card.false_roots[0].root}", f"{audits.audited} of {audits.commitments} commitments"):
        assert line in text
    page = client.get("/card").text
    assert f'href="/games/{card.false_roots[0].game}"' in page


def test_a_watchdog_with_a_store_knows_who_is_losing_a_game_that_is_open(played: PlayedRounds) -> None:
    said = played.glimpse.alarms
    assert AlarmKind.HONEST_LOSING not in said["nobody"] and AlarmKind.CANNOT_CHECK not in said["nobody"]
    # Whoever is watched for is taken to be honest, and the liar's root is not what its merge gives.
    assert AlarmKind.HONEST_LOSING in said["liar"]
    assert AlarmKind.CANNOT_CHECK in said["stranger"] and AlarmKind.HONEST_LOSING not in said["stranger"]
    assert played.glimpse.written == set(), "watching writes nothing"
    assert AlarmKind.DEADLINE_NEAR in said["mover in time"]
    assert AlarmKind.DEADLINE_MISSED in said["mover too late"]
    # It saw who was right, and that one won.
    assert AlarmKind.HONEST_LOST not in {kind for kind, _ in played.glimpse.dog.look()}


def test_claims_that_fell_are_those_that_a_watchdog_computes_otherwise(played: PlayedRounds) -> None:
    truths = Truths(played.run, played.made.store, COMPUTE)
    over = {game.ref: game for game in played.view.games.values() if game.is_over}
    assert len({ref.kind for ref in over}) > 1
    for ref, game in over.items():
        assert truths.of(played.view, ref).holds is not game.convicted, ref


def test_a_watchdog_sees_the_games_of_who_it_watches(played: PlayedRounds) -> None:
    liar, ada = played.made.address(LIAR), played.made.address("ada")
    dog = Watchdog(played.run, options=WatchOptions(parties=frozenset({liar})))
    lost = {alarm.about for alarm in dog.look().values() if alarm.kind is AlarmKind.HONEST_LOST}
    assert lost == {f"game {n}" for n, g in played.view.games.items() if g.verdict and g.verdict.loser == liar}
    assert exit_code_of(dog.alarms.values()) is ExitCode.FRAUD
    alone = Watchdog(played.run, options=WatchOptions(parties=frozenset({ada})))
    told = {alarm.kind for alarm in alone.look().values()}
    assert AlarmKind.HONEST_LOST not in told and AlarmKind.CODE_UNKNOWN not in told
    assert alone.head == (played.run.chain.head().number, played.run.chain.head().timestamp)


def test_an_actor_that_is_started_anew_tells_of_tickets_it_did_not_see_registered(played: PlayedRounds) -> None:
    told: list[tuple[Event, str | None, list[Address]]] = []

    def tell(_contract: str, found: Logged[Event]) -> None:
        # Lines of its own for each event: as if the process began with it.
        line = RunLines(played.names, played.run.currency_of, played.run.charter.token).line(found.event, index.state)
        told.append((found.event, line, list(parties(found.event, index.state))))

    index = RunIndex(played.run, [tell])
    index.sync()
    findings = [(e, line, about) for e, line, about in told if isinstance(e, Attested)]
    owners = index.state.books.registry.tickets
    assert findings and {name for name in played.names.values() if name not in SOLVERS}
    for event, line, about in findings:
        held = owners.get(event.ticket)
        owner = index.state.books.registry.left[event.ticket] if held is None else held.owner
        assert line is not None and line.startswith(f"{played.names[owner]} replayed") and owner in about
    accused = [(e, about) for e, _, about in told if isinstance(e, Accused)]
    slanderer = next(address for address, name in played.names.items() if name == SLANDERER)
    assert accused and all(about for _, about in accused) and any(slanderer in about for _, about in accused)
    for event, line, about in told:
        if isinstance(event, TicketReclaimed):
            assert line is not None and "somebody" not in line and about


def test_disputes_are_listed_shown_and_followed_without_a_key(played: PlayedRounds) -> None:
    games = played.view.games
    listed = json.loads(assay_on(played.run, "dispute", "list", "--json").stdout)
    assert [g["game"] for g in listed] == sorted(games)
    still = json.loads(assay_on(played.run, "dispute", "list", "--open", "--json").stdout)
    assert [g["game"] for g in still] == [n for n, g in sorted(games.items()) if not g.is_over]
    over = next(g for g in games.values() if g.is_over)
    shown = json.loads(assay_on(played.run, "dispute", "show", str(over.game_id), "--json").stdout)
    assert len(shown["steps"]) == len(over.moves) - 1 and shown["replay"]["agrees"] is True
    assert "the same verdict" in assay_on(played.run, "dispute", "show", str(over.game_id)).stdout
    followed = assay_on(played.run, "dispute", "follow", str(over.game_id), "--json").stdout.splitlines()
    assert len(followed) == len(over.moves) - 1 + 1
    assert json.loads(followed[-1])["verdict"]["outcome"] == over.outcome.name
    missing = assay_on(played.run, "dispute", "show", "999")
    assert getattr(missing.exception, "code", "") == "GameUnknown"


def test_explain_and_watch_answer_on_the_command_line(played: PlayedRounds) -> None:
    work = played.view.state.works[Round(0), Seat(1)]
    text = assay_on(played.run, "explain", "0x" + work.digest.hex()).stdout
    assert "known: yes" in text and "counted: yes" in text
    liar = "0x" + played.made.address(LIAR).hex()
    watched = assay_on(played.run, "dispute", "watch", "--party", liar, "--once", "--json")
    assert watched.exit_code == int(ExitCode.FRAUD), watched.output
    kinds = {json.loads(line)["kind"] for line in watched.stdout.splitlines()}
    assert str(AlarmKind.HONEST_LOST) in kinds and str(AlarmKind.CODE_UNKNOWN) not in kinds
