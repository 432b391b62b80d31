"""`assay explain` of addresses: contracts, the token, the run itself, people, and accounts that have no part in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from eth_utils.address import is_checksum_address, to_checksum_address
from starlette.testclient import TestClient

from assay.bench.imagined_run import ImaginedRun, ToldEvent, imagined_events
from assay.explorer.app import make_app
from assay.explorer.event_rows import ShownEvents
from assay.explorer.explain import explain
from assay.explorer.reader import RunReader
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.types import Wei
from assay.sponsor.launching import fund_run, mint_tokens
from assay.status.account import money_of
from assay_ledger.bindings.attestations import Attested
from assay_ledger.bindings.commitments import WorkCommitted
from assay_ledger.bindings.escrow import PhaseChanged
from assay_ledger.bindings.generations import Finalized, Merged
from assay_ledger.bindings.payments import FindingPaid, WorkPaid
from assay_ledger.chain.client import Head, address_of
from assay_ledger.contract import Event
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.commands import assay_on

NOBODY = "0x" + "77" * 20


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture(scope="module")
def made(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """A run that waits for auditors, with one solver that has its seat."""
    found = new_whole_run(desk.stage, tmp_path_factory.mktemp("run"))
    found.solver("ada")
    while found.sweep():
        pass
    return found


def said(made: WholeRun, name: str | bytes) -> tuple[str, str]:
    """What a name is, and every sentence about it."""
    with RunReader(made.run).reading() as reader:
        document = explain(reader, name if isinstance(name, str) else "0x" + name.hex())
    assert document["known"] is True
    return document["kind"], " ".join(answer["text"] for answer in document["answers"])


def test_contracts_of_a_run_and_its_token_are_known_by_what_they_are(made: WholeRun) -> None:
    assert said(made, made.run.vault.address) == ("run", "It is the run's vault contract.")
    assert said(made, made.run.charter.token) == ("token", "It is the token that this run locks and pays.")


def test_of_a_run_it_is_said_how_far_it_is_and_what_it_waits_for(made: WholeRun) -> None:
    kind, text = said(made, made.run.address)
    assert kind == "run" and text.startswith("It is a run of 3 rounds, which is funding.")
    assert "0 tickets of auditors count, 5 must" in text and "The escrow has 0 tokens free" in text
    shown = assay_on(made.run, "explain", "0x" + made.run.address.hex()).stdout
    assert "goes on: no." in shown and "TicketsMissing: Auditors for 5 more tickets" in shown


def test_people_are_known_by_their_part_and_what_they_hold(made: WholeRun) -> None:
    ada = "0x" + made.address("ada").hex()
    kind, text = said(made, ada)
    assert (kind, text) == ("actor", "Its role in this run: solver.")
    shown = assay_on(made.run, "explain", ada).stdout
    lock = made.run.charter.economics.seat_lock + made.run.charter.economics.seat_fee
    assert f"{lock / 1e18:.4f}"[:-1] in shown and "of locked stake" in shown


def test_an_account_without_a_part_is_told_how_it_could_have_one(made: WholeRun) -> None:
    kind, text = said(made, NOBODY)
    assert kind == "account" and "no seat, no ticket" in text
    shown = assay_on(made.run, "explain", NOBODY)
    assert shown.exit_code == 0 and "It holds 0 coins, 0 tokens" in shown.stdout
    assert f"assay run can-join --address {NOBODY}" in shown.stdout


def test_the_page_of_an_account_without_a_part_says_what_explain_says(made: WholeRun) -> None:
    client = TestClient(make_app(RunReader(made.run)))
    page = client.get(f"/search?q={NOBODY}").text
    assert "It has no seat, no ticket and no money in this run." in page and "It took part" not in page
    assert f"assay run can-join --address {NOBODY}" in page
    assert said(made, NOBODY)[1] in page


def test_a_wrong_digit_of_an_address_shows_nobody_elses_events(made: WholeRun) -> None:
    """Attack by chance: a wrong last digit, of which no checksum tells where all letters are small."""
    client = TestClient(make_app(RunReader(made.run)))
    right = "0x" + made.address("ada").hex()
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    assert "tenures.TenureBegan" in client.get(f"/actors/{right}").text
    for path in (f"/actors/{wrong}", f"/events?about={wrong}", f"/search?q={wrong}"):
        assert "TenureBegan" not in client.get(path).text, path
    assert said(made, wrong)[0] == "account"


def test_an_address_whose_letters_say_that_it_is_wrong_is_nobodys(made: WholeRun) -> None:
    client = TestClient(make_app(RunReader(made.run)))
    right = to_checksum_address(made.address("ada"))
    others = (right[:-1] + digit for digit in "0123456789" if digit != right[-1])
    wrong = next(each for each in others if not is_checksum_address(each))
    for path in ("/actors/", "/gateways/", "/search?q=", "/api/v1/actors/", "/api/v1/gateways/"):
        answer = client.get(path + wrong)
        assert answer.status_code == 404 and "no checksum" in answer.text, path
    (answer,) = client.get(f"/api/v1/explain/{wrong}").json()["answers"]
    assert answer["code"] == "AddressUnchecked"
    assert getattr(assay_on(made.run, "explain", wrong).exception, "code", "") == "AddressUnchecked"
    assert client.get(f"/actors/{right}").text == client.get(f"/actors/{right.lower()}").text


def test_the_first_page_says_why_a_run_stands_still(made: WholeRun) -> None:
    page = TestClient(make_app(RunReader(made.run))).get("/").text
    assert "<strong>It stands still.</strong> 0 tickets of auditors count, 5 must before a round opens" in page
    assert "assay run fund" in page


def test_a_transaction_is_told_by_its_events(made: WholeRun) -> None:
    with RunReader(made.run).reading() as reader:
        row = next(row for row in reader.events if row.name == "TenureBegan")
    kind, text = said(made, row.tx)
    assert kind == "events" and "TenureBegan" in text


def unpaid(told: ToldEvent) -> ToldEvent:
    """The same in a run that credits shares and pays no tokens."""
    contract, found, at = told
    if isinstance(found.event, WorkPaid | FindingPaid):
        return contract, replace(found, event=replace(found.event, pay=Wei(0))), at
    return told


def imagined(told: list[ToldEvent]) -> RunReader:
    reader = RunReader(ImaginedRun(4))
    reader.take(reader.known, told, Head(told[-1][1].block, told[-1][2]))
    reader.is_following = True
    return reader


def test_whoever_asks_about_one_thing_has_no_event_of_others_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a transaction looked for among a million events, while nobody else's page is made."""
    reader = imagined(list(islice(imagined_events(ImaginedRun(4), 4_000), 4_000)))
    rows = [row for row in reader.events if row.tx == reader.events[1_000].tx]
    monkeypatch.setattr(ShownEvents, "__iter__", lambda _: pytest.fail("all events are written out"))
    answers = explain(reader, rows[0].tx)["answers"]
    assert [a["text"] for a in answers[1:]] == [f"{row.contract}: {row.name}." for row in rows]
    assert money_of(reader, reader.money.people[1], {}).locks


@pytest.mark.parametrize("pays", [True, False])
def test_settled_work_and_findings_say_the_tokens_and_shares_that_they_brought(pays: bool) -> None:
    told = islice(imagined_events(ImaginedRun(4), 4_000), 4_000)
    reader = imagined([each if pays else unpaid(each) for each in told])
    work = next(work for work in reader.shelves.works if work.status is WorkStatus.FINAL)
    finding = next(iter(reader.state.money.findings_paid))
    terms = reader.run.charter.economics
    tokens = f"{8 * terms.unit_price / 1e18:g} tokens and ", f"{terms.wage / 1e18:g} tokens and "
    shares = f"{terms.shares_per_unit / 1e18:g} shares.", f"{terms.shares_per_duty / 1e18:g} shares."
    said = [explain(reader, "0x" + name.hex())["answers"][-1]["text"] for name in (work.digest, finding)]
    assert said[0] == f"It is final: {tokens[0] * pays}{shares[0]}"
    assert said[1] == f"It was paid {tokens[1] * pays}{shares[1]}"
    page = TestClient(make_app(reader)).get(f"/rounds/{work.round}").text
    assert f'<td class="n">{terms.shares_per_unit / 1e18:.2f}</td>' in page


def test_what_a_run_that_is_wound_down_has_not_settled_is_said_to_be_unpaid_for_good() -> None:
    """Who waits for it keeps a machine on for nothing."""
    made, told = ImaginedRun(4), list[ToldEvent]()
    for each in imagined_events(made, 4_000):
        told.append(each)
        if len(told) > 400 and isinstance(each[1].event, Attested):
            break
    reader = imagined(told)
    work = next(work for work in reader.shelves.works if work.status is WorkStatus.OPEN)
    finding = next(name for name in reader.state.attestations if name not in reader.state.money.findings_paid)
    names = [*("0x" + name.hex() for name in (work.digest, finding))]
    assert {explain(reader, name)["answers"][-1]["code"] for name in names} == {"NotAuditedYet"}
    ended = replace(told[-1][1], event=PhaseChanged(RunPhase.WOUND_DOWN, made.charter.sponsor))
    reader = imagined([*told, ("escrow", ended, told[-1][2] + 1)])
    said = [explain(reader, name)["answers"][-1] for name in names]
    assert {(each["yes"], each["code"]) for each in said} == {(False, "NeverSettled")}
    assert all("unpaid for good" in each["text"] for each in said)
    newest = len(reader.view.epochs) - 1
    assert int(TestClient(make_app(reader)).get("/api/v1/money").json()["escrow"]) > 0
    assert "assay run refund" in TestClient(make_app(reader)).get("/money").text
    assert TestClient(make_app(reader)).get(f"/api/v1/epochs/{newest}").json()["phase"] == "ended with the run"


@pytest.mark.parametrize(
    ("last", "before", "after"),
    [
        (WorkCommitted, "training", "ended with the run"),
        (Merged, "merged, not yet final", "merged, never final"),
        (Finalized, "final", "final, never settled"),
    ],
)
def test_of_a_round_that_a_stop_cut_short_nobody_is_told_that_it_goes_on(
    last: type[Event], before: str, after: str
) -> None:
    made, told = ImaginedRun(4), list[ToldEvent]()
    for each in imagined_events(made, 4_000):
        told.append(each)
        if len(told) > 400 and isinstance(each[1].event, last):
            break

    def said(*more: ToldEvent) -> str:
        reader = imagined([*told, *more])
        newest = len(reader.state.books.commitments.rounds) - 1
        return str(TestClient(make_app(reader)).get(f"/api/v1/rounds/{newest}").json()["phase"])

    ended = replace(told[-1][1], event=PhaseChanged(RunPhase.WOUND_DOWN, made.charter.sponsor))
    assert (said(), said(("escrow", ended, told[-1][2] + 1))) == (before, after)


def fund(made: WholeRun, amount: int) -> None:
    sponsor = made.stage.sponsor
    mint_tokens(made.chain, sponsor, made.run.token, address_of(sponsor), Wei(amount))
    fund_run(made.chain, sponsor, made.run, Wei(amount))


def test_the_page_of_money_says_how_many_rounds_the_escrow_is_enough_for(made: WholeRun) -> None:
    def shown() -> tuple[Any, str]:
        client = TestClient(make_app(RunReader(made.run)))
        return client.get("/api/v1/money").json()["next_round"], client.get("/money").text

    costs = cost_of(made.run.charter, 1)
    found, page = shown()
    assert found == {"seats": 1, "costs": str(costs), "enough_for": 0, "left": 3} and "enough for 0 of the 3" in page
    fund(made, 2 * costs + 1)
    found, page = shown()
    assert found["enough_for"] == 2 and "enough for 2 of the 3" in page and "assay run fund" in page
    assert "assay run refund" not in page, "it goes on"
    fund(made, 7 * costs)
    found, page = shown()
    assert found["enough_for"] == 9 and "enough for 3 of the 3" in page and "assay run fund" not in page


def test_the_page_of_money_promises_no_round_that_cannot_open_any_more() -> None:
    reader = imagined(list(islice(imagined_events(ImaginedRun(4), 400), 400)))
    last = reader.run.charter.expiry
    reader.take(reader.known, [], Head(reader.state.head.number + 1, last))
    assert "rounds that are left" in TestClient(make_app(reader)).get("/money").text
    reader.take(reader.known, [], Head(reader.state.head.number + 1, last + 1))
    client = TestClient(make_app(reader))
    assert client.get("/api/v1/money").json()["next_round"] is None
    assert "assay run fund" not in client.get("/money").text
