"""Owners and a guardian decide by commands, on a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.cli.govern import WORDS, decision_typed
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.explorer.words import when
from assay.protocol.errors import AssayError, ExitCode, InvariantError, UsageError
from assay.protocol.rounds.decisions import Decision, Verb, decoded
from assay.protocol.types import Address, Wei
from assay_ledger.chain.client import address_of
from assay_ledger.contract import Call, selector
from assay_ledger.event_forms import CODEC
from assay_ledger.rounds.index import RunIndex
from tests.harness.commands import assay_on
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.charters import GOVERNED
from tests.harness.rounds.samples import ETHER
from tests.unit.ledger.test_deploy import real_charter

OWNERS = (1, 2)
DAY = 86_400
MINT = bytes.fromhex("40c10f19")
"""The selector of mint(address,uint256)."""


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    """A run in which two accounts have a hundred shares each, and the first guards. What the contracts of a run would
    have shown over weeks of training is written into the chain: shares by the contract of grants, maturity into its
    place in the governor's storage."""
    economics = replace(real_charter().economics, shares_per_unit=Wei(1))
    terms = replace(GOVERNED.governance, timelock=30 * DAY)
    with paid_run(tmp_path_factory.mktemp("governed"), 3, economics=economics, governance=terms) as made:
        grants = "0x" + made.run.modules.grants.hex()
        made.chain.rpc("anvil_impersonateAccount", grants)
        made.chain.rpc("anvil_setBalance", grants, hex(10**20))
        for who in OWNERS:
            data = MINT + bytes(12) + address_of(made.keys[who]) + (100 * ETHER).to_bytes(32, "big")
            call = {"from": grants, "to": "0x" + made.run.modules.shares.hex(), "data": "0x" + data.hex()}
            made.chain.rpc("eth_sendTransaction", call | {"gas": hex(500_000)})
            made.chain.rpc("evm_mine")
            assert made.chain.ask(made.run.shares.balance_of(address_of(made.keys[who]))) == 100 * ETHER
        yield made


@pytest.fixture(autouse=True)
def _as_before(governed: PaidRun) -> Iterator[None]:
    snapshot = governed.chain.rpc("evm_snapshot")
    yield
    governed.chain.rpc("evm_revert", snapshot)


def words(run: PaidRun, who: int, *said: str) -> tuple[str, ...]:
    return ("govern", *run.words(who, *said)[1:])


def status(run: PaidRun, who: int = 0) -> dict[str, Any]:
    """What is shown of the run, and of an account, without its password."""
    return run.done("govern", "status", "--address", run.keys[who].address)


def explored(run: PaidRun) -> dict[str, Any]:
    """What an explorer makes of the events, after it was compared with what the governor itself answers."""
    client = TestClient(make_app(RunReader(run.run)))
    answer = client.get("/api/v1/governance")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    said = status(run)
    # Maturity was written into the storage here, where no event says it.
    assert (found["price_ppm"] / 1e6, found["sunset"]) == (said["price"], said["sunset"])
    assert int(found["vested"]) == said["vested"] and int(found["least_vested"]) == said["least_vested"]
    assert found["guardian_pauses_left"] == said["guardian_pauses_left"]
    listed = unescape(client.get("/governance").text)
    for shown, told in zip(found["proposals"][::-1], said["proposals"], strict=True):
        assert (shown["proposal"], shown["state"], shown["why"]) == (told["proposal"], told["state"], told["why"])
        assert (shown["next"], shown["until"]) == (told["next"], told["until"])
        for name in ("for", "against", "abstained"):
            assert int(shown[name]) == told[name], name
        assert shown["quorum"] is None or int(shown["quorum"]) == told["quorum"]
        page = client.get(f"/proposals/{shown['proposal']}")
        assert page.status_code == 200
        assert shown["decision"] in unescape(page.text) and shown["decision"] in listed
        assert (shown["next"] or "") in unescape(page.text).replace("<code>", "`").replace("</code>", "`")
        if shown["until"] is not None:
            assert when(shown["until"]) in listed and shown["until"] >= found["now"]
            assert f"{shown['proposal'][2:14]}: in " in run_status(run)
    return found


def run_status(run: PaidRun) -> str:
    """What `assay govern status` prints for people."""
    return str(assay_on(run.run, "govern", "status").stdout)


def later(run: PaidRun, seconds: int) -> None:
    run.chain.rpc("evm_setNextBlockTimestamp", run.chain.head().timestamp + seconds)
    run.chain.rpc("evm_mine")


def shown_as_mature(run: PaidRun) -> None:
    """The flag lies beside the guardian's address: guardian, pauses left, price, maturity, from the right."""
    at, guardian = "0x" + run.run.modules.governor.hex(), GOVERNED.governance.guardian
    for slot in range(40):
        word = run.chain.rpc("eth_getStorageAt", at, hex(slot), "latest")
        value = int(str(word if isinstance(word, str) else word.hex()), 16)
        if value & ((1 << 160) - 1) == int.from_bytes(guardian, "big"):
            wanted = (value | 1 << 8 * 28).to_bytes(32, "big").hex()
            run.chain.rpc("anvil_setStorageAt", at, hex(slot), "0x" + wanted)
            assert run.chain.ask(run.run.governor.is_mature())
            return
    raise AssertionError("the guardian is not in the governor's storage")


def test_owners_delegate_propose_vote_queue_and_execute(governed: PaidRun) -> None:
    run = governed
    for who in OWNERS:
        assert run.done(*words(run, who, "delegate"))["votes"] == 100 * ETHER
    later(run, DAY + 60)
    early = run.refused(*words(run, 1, "propose", "price", "75", "--yes"))
    assert (early.code, early.exit_code) == ("TooEarlyToGovern", ExitCode.REJECTED)
    assert run.refused(*words(run, 1, "mature")).code == "NotMature"
    shown_as_mature(run)
    # The governor takes these, and carries them out for no vote.
    for what, value, code in (
        ("price", "0.75", "PriceOutOfBounds"),
        ("price", "7500", "PriceOutOfBounds"),
        ("pause", "86400000", "PauseOutOfBounds"),
    ):
        assert run.refused(*words(run, 1, "propose", what, value, "--yes")).code == code
    made = run.done(*words(run, 1, "propose", "price", "75", "--why", "less is enough", "--yes"))
    name = str(made["proposal"])[2:14]
    early = run.refused(*words(run, 1, "vote", name, "for", "--yes"))
    assert early.code == "GovernorUnexpectedProposalState"
    assert "The vote begins in 23 h" in early.message or "The vote begins in 1 d" in early.message
    assert [(p["state"], p["quorum"]) for p in explored(run)["proposals"]] == [("pending", None)]
    later(run, DAY + 60)
    assert f"`assay govern vote {name} for`" in run_status(run)
    for who, how in zip(OWNERS, ("for", "abstain"), strict=True):
        assert run.done(*words(run, who, "vote", name, how, "--yes"))["weight"] == 100 * ETHER
    document = status(run)
    assert document["price"] == 1.0 and document["mature"] and document["votes"] == 0
    (proposal,) = document["proposals"]
    assert (proposal["state"], proposal["why"]) == ("active", "less is enough")
    assert (proposal["for"], proposal["abstained"], proposal["against"]) == (100 * ETHER, 100 * ETHER, 0)
    assert explored(run)["open"] == 1
    assert "The vote ends in 2 d 23 h" in run.refused(*words(run, 1, "queue", name)).message
    votes = TestClient(make_app(RunReader(run.run))).get("/api/v1/votes").json()["items"]
    assert [(vote["vote"], int(vote["weight"])) for vote in votes] == [("for", 100 * ETHER), ("abstain", 100 * ETHER)]
    later(run, 3 * DAY)
    (carried,) = explored(run)["proposals"]
    assert (carried["state"], carried["until"]) == ("succeeded", carried["deadline"] + 14 * DAY)
    assert carried["next"] == f"Until then anybody may queue it, or it expires: `assay govern queue {name}`."
    assert "`assay govern queue`" in run.refused(*words(run, 1, "execute", name, "--yes")).message
    eta = run.done(*words(run, 0, "queue", name))["executable_at"]
    assert [(p["state"], p["eta"], p["until"]) for p in explored(run)["proposals"]] == [("queued", eta, eta)]
    assert run.refused(*words(run, 0, "execute", name, "--yes")).code == "TimelockRuns"
    later(run, eta - run.chain.head().timestamp)
    assert [p["until"] for p in explored(run)["proposals"]] == [eta + 14 * DAY]
    run.done(*words(run, 0, "execute", name, "--yes"))
    assert status(run)["price"] == 0.75
    shown = explored(run)
    assert (shown["open"], shown["price_ppm"], shown["proposals"][0]["state"]) == (0, 750_000, "executed")
    # Whoever reads the charter's price reads beside it what is paid by now.
    page = TestClient(make_app(RunReader(run.run))).get("/run").text
    assert "of which rounds that open now pay" in page and ">75 %</strong>" in page


def test_nobody_votes_on_about_the_rounds_of_a_run_that_has_ended(governed: PaidRun) -> None:
    """Bad luck: a week of votes and a time lock that were begun before the run ended, and move nothing any more."""
    run = governed
    run.done(*words(run, 1, "delegate"))
    later(run, DAY + 60)
    shown_as_mature(run)
    idle = str(run.done(*words(run, 1, "propose", "price", "75", "--yes"))["proposal"])
    moves = str(run.done(*words(run, 1, "propose", "sunset", "--yes"))["proposal"])
    later(run, DAY + 60)
    for name in (idle, moves):
        run.done(*words(run, 1, "vote", name, "for", "--yes"))
    sponsor, ends = "0x" + run.run.charter.sponsor.hex(), run.run.escrow.cancel()
    call = {"from": sponsor, "to": "0x" + ends.to.hex(), "data": "0x" + ends.data.hex(), "gas": hex(500_000)}
    run.chain.rpc("eth_sendTransaction", call)
    run.chain.rpc("evm_mine")
    assert run.chain.ask(run.run.escrow.phase()).has_ended
    for what, *rest in (
        *(("vote", "against", "--yes"), ("vote", "against", "--multisig", "0x" + "11" * 20)),
        *(("queue",), ("execute", "--yes")),
    ):
        refused = run.refused(*words(run, 2, what, idle, *rest))
        assert (refused.code, refused.exit_code) == ("DecisionInVain", ExitCode.REJECTED)
    later(run, 3 * DAY)
    of_idle, of_moves = explored(run)["proposals"][::-1]
    assert of_idle["state"] == of_moves["state"] == "succeeded"
    assert of_idle["until"] is None and of_idle["next"].startswith("Nothing is left to do about it")
    assert "`assay govern queue" in of_moves["next"]
    assert f"{idle[2:14]}: Nothing is left to do about it" in run_status(run)
    run.done(*words(run, 2, "queue", moves))


def test_a_voters_bytes_that_are_no_text_stop_nobody(governed: PaidRun) -> None:
    """Attack: one vote without weight, whose reason is no UTF-8, and nobody can read the run's events any more."""
    run = governed
    run.done(*words(run, 1, "delegate"))
    later(run, DAY + 60)
    shown_as_mature(run)
    run.done(*words(run, 1, "propose", "sunset", "--yes"))
    later(run, DAY + 60)
    (name,) = (proposal["proposal"] for proposal in status(run)["proposals"])
    data = selector("castVoteWithReason(uint256,uint8,string)")
    data += CODEC.encode(["uint256", "uint8", "bytes"], [int(name, 16), 0, b"for \xff\x00\x1b[2J" + b"!" * 60_000])
    call = Call(run.run.modules.governor, data, "RunGovernor.castVoteWithReason", ())
    run.chain.send(run.keys[0], call)
    actor = RunIndex(run.run)
    actor.sync()
    assert actor.state.head.number == run.chain.head().number
    assert explored(run)["proposals"][0]["voters"] == 1
    client = TestClient(make_app(RunReader(run.run)))
    (vote,) = client.get("/api/v1/votes").json()["items"]
    assert vote["weight"] == "0" and vote["reason"].startswith("for \\xff\x00\x1b[2J!!!")
    assert vote["reason"].endswith("(60013 characters)"), "the rest of a long one fills no page"
    for path in ("/api/v1/votes", "/api/v1/events", "/api/v1/csv/votes.csv", f"/proposals/{name}"):
        assert len(client.get(path).text) < 40_000, path


def test_a_proposal_is_taken_back_by_who_made_it(governed: PaidRun) -> None:
    run = governed
    run.done(*words(run, 1, "delegate"))
    later(run, DAY + 60)
    shown_as_mature(run)
    name = str(run.done(*words(run, 1, "propose", "sunset", "--yes"))["proposal"])
    assert run.refused(*words(run, 2, "cancel", name)).code == "GovernorUnableToCancel"
    run.done(*words(run, 1, "cancel", name))
    assert status(run, 1)["proposals"][0]["state"] == "cancelled"
    assert [p["state"] for p in explored(run)["proposals"]] == ["cancelled"]
    assert run.refused(*words(run, 1, "vote", "ffff", "for", "--yes")).code == "ProposalUnknown"


def test_a_proposal_that_is_copied_from_the_pool_is_refused_to_whoever_copied_it(governed: PaidRun) -> None:
    """Attack: make what an owner proposes before it does, and take it back: nobody could make it again."""
    run = governed
    for who in OWNERS:
        run.done(*words(run, who, "delegate"))
    later(run, DAY + 60)
    shown_as_mature(run)
    before = run.chain.rpc("evm_snapshot")
    sent = run.done(*words(run, 1, "propose", "sunset", "--why", "it is done", "--yes"))["tx"]
    data = bytes.fromhex(run.chain.rpc("eth_getTransactionByHash", sent)["input"].removeprefix("0x"))
    run.chain.rpc("evm_revert", before)
    copied = Call(run.run.modules.governor, data, "RunGovernor.propose", ())
    with pytest.raises(AssayError) as refused:
        run.chain.send(run.keys[2], copied)
    assert refused.value.code == "GovernorRestrictedProposer"
    run.done(*words(run, 1, "propose", "sunset", "--why", "it is done", "--yes"))
    # Who signs it is not a part of the reason that people read.
    assert [p["why"] for p in explored(run)["proposals"]] == ["it is done"]
    again = run.refused(*words(run, 1, "propose", "sunset", "--why", "it is done", "--yes"))
    assert (again.code, "pending" in again.message) == ("GovernorUnexpectedProposalState", True)
    assert again.remedy is not None and "--why" in again.remedy


def test_only_the_guardian_pauses(governed: PaidRun) -> None:
    run = governed
    assert run.refused(*words(run, 1, "pause", "--yes")).code == "NotTheGuardian"
    shown = status(run, 1)
    assert (shown["paused"], shown["guardian_pauses_left"], shown["sunset"]) == (0, 3, False)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (("pause", "3600"), Decision(Verb.PAUSE, (3600,))),
        (("pause", "2d"), Decision(Verb.PAUSE, (172_800,))),
        (("resume", None), Decision(Verb.RESUME)),
        (("sunset", None), Decision(Verb.SUNSET)),
        (("price", "62.5"), Decision(Verb.PRICE, (625_000,))),
        (("delist", "0x" + "11" * 20), Decision(Verb.LIST, (Address(b"\x11" * 20), True))),
        (("relist", "0x" + "11" * 20), Decision(Verb.LIST, (Address(b"\x11" * 20), False))),
        (("dismiss-guardian", None), Decision(Verb.DISMISS)),
        (("successor", "0x" + "22" * 20), Decision(Verb.SUCCESSOR, (Address(b"\x22" * 20),))),
    ],
)
def test_a_decision_is_typed_encoded_and_read_back(said: tuple[str, str | None], wanted: Decision) -> None:
    assert decision_typed(*said) == wanted == decoded(wanted.calldata)


@pytest.mark.parametrize(
    ("what", "value", "code"),
    [
        ("stop", None, "DecisionUnknown"),
        ("pause", None, "ValueInvalid"),
        ("sunset", "1", "ValueInvalid"),
        ("pause", "-1", "ValueInvalid"),
        ("pause", "soon", "ValueInvalid"),
        ("price", "nan", "ValueInvalid"),
        ("price", "inf", "ValueInvalid"),
        ("delist", "0x1", "AddressInvalid"),
    ],
)
def test_what_is_no_decision_is_refused_before_anything_is_asked(what: str, value: str | None, code: str) -> None:
    with pytest.raises(UsageError) as refused:
        decision_typed(what, value)
    assert refused.value.code == code


def test_every_verb_of_the_governor_can_be_typed() -> None:
    assert {verb for verb, _ in WORDS.values()} == set(Verb)
    for wrong in (b"", Decision(Verb.PAUSE, (1,)).calldata[:4], Decision(Verb.SUNSET).calldata + bytes(32)):
        with pytest.raises(InvariantError):
            decoded(wrong)


def test_a_run_without_governance_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with paid_run(tmp_path_factory.mktemp("plain"), 1) as plain:
        refused = plain.refused("govern", "status")
        assert isinstance(refused, AssayError) and refused.code == "NotGoverned"
