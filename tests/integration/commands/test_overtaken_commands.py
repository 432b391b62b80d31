"""Commands about a run in which others act first: what anybody may do, somebody may have done before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from assay.cli import acting, run_waits
from assay.cli.shares_owned import NobodyOwns
from assay.protocol.errors import ExitCode, RejectedError, UnavailableError
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import BeaconRound, Digest, Wei
from assay.sponsor.launching import mint_tokens, refund_all, stake_of
from assay_ledger.agents import keeper
from assay_ledger.chain.client import address_of
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.overtaken import overtaken
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import ETHER

TOKEN, WEEK = 10**18, 7 * 86_400


@dataclass
class SharedRun:
    """A run with its sponsor at a desk, the key on disk, and somebody else with coins."""

    made: WholeRun
    desk: Desk
    somebody: LocalAccount

    @property
    def run(self) -> Run:
        return self.made.run

    @property
    def at(self) -> tuple[str, ...]:
        """As its sponsor."""
        named = ("--key", str(self.made.folder / "sponsor.json"))
        return (*self.desk.run_words, *named, "--password-file", str(self.desk.folder / "password"))

    def mint(self, tokens: int, who: LocalAccount | None = None) -> None:
        """Tokens for an account, the sponsor's unless another is named."""
        who = who or self.made.stage.sponsor
        mint_tokens(self.run.chain, who, self.run.token, address_of(who), Wei(tokens * TOKEN))

    def credit(self, names: list[Digest], shares: int) -> None:
        """Grants for the sponsor, as the contract of payments makes them when work is settled."""
        chain, payments = self.run.chain, to_checksum_address(self.run.modules.payments)
        chain.rpc("anvil_impersonateAccount", payments)
        chain.rpc("anvil_setBalance", payments, hex(ETHER))
        for name in names:
            call = self.run.grants.credit(name, address_of(self.made.stage.sponsor), Wei(shares), 0, TicketId(0))
            where = {"from": payments, "to": to_checksum_address(call.to), "gas": hex(10**6)}
            chain.rpc("eth_sendTransaction", where | {"data": "0x" + call.data.hex()})
        chain.rpc("evm_mine", hex(chain.head().timestamp + self.run.charter.timing.vesting + 1))

    def held(self, who: LocalAccount) -> int:
        return self.run.chain.ask(self.run.token.balance_of(address_of(who)))

    def wind_down(self) -> None:
        """Nobody trains until somebody ends the run."""
        chain = self.run.chain
        chain.rpc("evm_mine", hex(chain.head().timestamp + self.run.charter.timing.stall + 1))
        chain.send(self.somebody, self.run.escrow.wind_down())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture
def posted(desk: Desk, tmp_path: Path) -> SharedRun:
    """Nobody takes part yet."""
    made, somebody = new_whole_run(desk.stage, tmp_path, seats=1), Account.create()
    made.chain.transfer(made.stage.sponsor, somebody.address, ETHER)
    (tmp_path / "sponsor.json").write_text(
        json.dumps(Account.encrypt(made.stage.sponsor.key, "a password", iterations=1 << 10))
    )
    return SharedRun(made, desk.at(made.run), somebody)


@pytest.fixture
def shared(posted: SharedRun) -> SharedRun:
    """It can be opened."""
    posted.made.solver("ada")
    posted.made.auditor("vera", tickets=5)
    posted.made.enrol()
    posted.made.fund()
    return posted


@pytest.mark.long
def test_who_opens_a_run_that_others_opened_is_told_that_it_is_open_already(shared: SharedRun) -> None:
    words, run, desk = ("run", "open", *shared.at), shared.run, shared.desk
    with overtaken(run.escrow.launch(), shared.made.launch):
        assert desk.json(*words) == {"opened": None}
    # Whoever types it again needs no key.
    for again in (words, ("run", "open", *desk.run_words)):
        assert desk.json(*again) == {"opened": None}
        assert desk(*again).stdout == "the run is open already\n"
    shared.wind_down()
    late = desk.refused(*words)
    assert late.code == "WrongPhase" and "is wound down" in late.message


@contextmanager
def resting(*meanwhile: Callable[[], object]) -> Iterator[None]:
    """In this block a command that waits for a run sees this happen, one after the other, each while it rests."""
    to_come = list(meanwhile)

    def rest() -> None:
        assert to_come, "it goes on waiting"
        to_come.pop(0)()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_waits, "rest", rest)
        yield
    assert not to_come, "it does not wait"


@pytest.mark.long
def test_who_waits_for_what_a_run_lacks_opens_it_once_it_is_there(posted: SharedRun) -> None:
    made, chain = posted.made, posted.run.chain
    made.solver("ada")
    made.auditor("vera", tickets=5)
    with resting(made.enrol, lambda: None, made.fund):
        done = posted.desk("run", "open", "--wait", "--json", *posted.at)
    assert json.loads(done.stdout) == {"opened": chain.head().timestamp}
    waits = [line for line in done.stderr.splitlines() if line.startswith("waits: ")]
    assert len(waits) == 2 and "5 tickets" in waits[0] and "tickets" not in waits[1] and "of escrow" in waits[1]


@pytest.mark.long
def test_who_waits_while_others_open_the_run_is_told_so(posted: SharedRun) -> None:
    made = posted.made
    made.solver("ada")
    made.auditor("vera", tickets=5)
    made.enrol()
    with resting(lambda: (made.fund(), made.launch())):
        assert posted.desk.json("run", "open", "--wait", *posted.at) == {"opened": None}


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_who_waits_for_a_run_that_is_cancelled_waits_no_longer(posted: SharedRun, when: str) -> None:
    call = posted.run.escrow.cancel()
    steps = [lambda: posted.run.chain.send(posted.made.stage.sponsor, call)]
    if when == "before":
        steps.pop()()
    with resting(*steps):
        late = posted.desk.refused("run", "open", "--wait", *posted.at)
    assert late.code == "WrongPhase" and late.exit_code == ExitCode.REJECTED and "is cancelled" in late.message
    with resting():
        assert posted.desk.json("run", "show", "--wait", *posted.desk.run_words)["phase"] == "cancelled"


@pytest.mark.long
def test_who_waits_for_the_end_of_a_run_is_shown_how_it_ended(shared: SharedRun) -> None:
    with resting(shared.made.launch, lambda: None, shared.wind_down):
        done = shared.desk("run", "show", "--wait", "--json", *shared.desk.run_words)
    assert json.loads(done.stdout)["phase"] == "wound_down"
    assert [line[-7:] for line in done.stderr.splitlines() if "has ended" in line] == ["funding", "running"]


def test_who_waits_to_open_sends_and_a_multisig_sends_nothing(posted: SharedRun) -> None:
    refused = posted.desk.refused("run", "open", "--wait", "--multisig", "0x" + "11" * 20, *posted.desk.run_words)
    assert refused.code == "OptionsClash"


@pytest.mark.long
@pytest.mark.parametrize("again", ["12.5", "20"])
def test_who_funds_again_after_the_node_failed_in_between_pays_once(posted: SharedRun, again: str) -> None:
    run, sponsor, first = posted.run, posted.made.stage.sponsor, Wei(25 * TOKEN // 2)
    posted.mint(100)
    held, wanted = posted.held(sponsor), run.currency.parse(again)

    def fail() -> None:
        raise UnavailableError("The node is gone.", code="NodeUnreachable", remedy="Try again.")

    with overtaken(run.escrow.fund(first), fail):
        assert posted.desk.refused("run", "fund", "12.5", "--yes", *posted.at).code == "NodeUnreachable"
    assert held - posted.held(sponsor) == first == posted.made.free(address_of(sponsor))
    done = posted.desk("run", "fund", again, "--yes", "--json", *posted.at)
    assert json.loads(done.stdout) == {"funded": wanted, "from_stake": first, "escrow": wanted}
    assert "12.5 tokens (12500000000000000000wei) of it come from the free stake" in done.stderr
    assert held - posted.held(sponsor) == wanted and posted.made.free(address_of(sponsor)) == 0
    done = posted.desk("run", "fund", "1", "--yes", "--json", *posted.at)
    assert json.loads(done.stdout)["from_stake"] == 0 and "free stake" not in done.stderr


def test_who_holds_too_little_beside_its_free_stake_pays_nothing(posted: SharedRun) -> None:
    run, sponsor = posted.run, posted.made.stage.sponsor
    posted.mint(10)
    held = posted.held(sponsor)
    posted.desk.json("ledger", "stake", "4", "--yes", *posted.at)
    late = posted.desk.refused("run", "fund", f"{held + 1}wei", "--yes", *posted.at)
    assert late.code == "TokensShort" and "and 4 of free stake" in late.message
    assert posted.desk.json("run", "fund", f"{held}wei", "--yes", *posted.at)["from_stake"] == 4 * TOKEN
    assert posted.held(sponsor) == 0 == posted.made.free(address_of(sponsor))
    assert run.chain.ask(run.escrow.balance()) == held


@pytest.mark.long
def test_who_opens_a_run_twice_opened_it_once(shared: SharedRun) -> None:
    words, chain = ("run", "open", *shared.at), shared.run.chain
    assert shared.desk.json(*words) == {"opened": chain.head().timestamp}
    head = chain.head()
    assert shared.desk.json(*words) == {"opened": None} and chain.head() == head


@pytest.mark.long
def test_who_funds_a_run_that_ends_meanwhile_is_told_where_the_tokens_are(shared: SharedRun) -> None:
    made, run, sponsor = shared.made, shared.run, shared.made.stage.sponsor
    made.launch()
    shared.mint(100)
    held, free = shared.held(sponsor), made.free(address_of(sponsor))
    words = ("run", "fund", "12.5", "--yes", *shared.at)
    with overtaken(run.escrow.fund(Wei(25 * TOKEN // 2)), shared.wind_down):
        late = shared.desk.refused(*words)
    assert late.code == "WrongPhase" and f"free stake of {sponsor.address}" in late.message
    assert "`assay ledger unstake 12.5`" in late.remedy and "withdraw`" in late.remedy
    assert made.free(address_of(sponsor)) - free == held - shared.held(sponsor) == 25 * TOKEN // 2
    asked = shared.desk.json("ledger", "unstake", "12.5", "--yes", *shared.at)
    assert asked["leaving"] == 25 * TOKEN // 2
    # From then on nothing moves, and nothing is asked: no --yes, and no password either.
    head = run.chain.head()
    early = shared.desk.refused("run", "fund", "1", *shared.desk.run_words)
    assert early.code == "WrongPhase" and "is wound down" in early.message
    assert shared.desk.refused("run", "fund", "1", "--yes", *shared.at).code == "WrongPhase"
    assert run.chain.head() == head


def test_revenue_of_a_run_that_ended_is_paid_only_where_somebody_can_claim_it(shared: SharedRun) -> None:
    sponsor, words = shared.made.stage.sponsor, ("ledger", "pay", "10", "--yes", *shared.at)
    shared.made.launch()
    shared.mint(20)
    shared.wind_down()
    held = shared.held(sponsor)
    unowned = shared.desk.refused(*words)
    assert isinstance(unowned, NobodyOwns) and "is wound down" in unowned.message and shared.held(sponsor) == held
    shared.credit([Digest(b"\x07" * 32)], shares=5)
    assert shared.desk.json(*words)["paid"] == held - shared.held(sponsor) == 10 * TOKEN


def test_an_actor_that_is_started_again_brings_nothing_to_a_run_that_ended(
    shared: SharedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, run, somebody = shared.made, shared.run, shared.somebody
    keys, needed = ActorKeys("eve", somebody), stake_of(run.charter, seats=1)
    amount = -(-needed // TOKEN)
    shared.mint(amount, somebody)
    made.launch()
    shared.wind_down()
    capsys.readouterr()
    for typed in (str(amount), str(2 * amount), None):
        acting.bring(run, keys, tmp_path, typed, seats=1)
        said = capsys.readouterr().err
        assert "deposits nothing: the run is wound down" in said and "missing" not in said
    assert shared.held(somebody) == amount * TOKEN and made.free(keys.address) == 0


@pytest.mark.parametrize("others", [1, 2])
def test_rounds_that_others_bring_first_keep_nobody_from_bringing_the_next(
    posted: SharedRun, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    run, chain = posted.run, posted.run.chain
    now = chain.head().timestamp
    due = [BeaconRound(now - 1), BeaconRound(now)]  # of the chain's own randomness a round is a second
    monkeypatch.setattr(keeper, "missing_beacons", lambda _: ((wanted, 0) for wanted in due))
    theirs = [run.beacon.submit(wanted, b"") for wanted in due[:others]]
    with overtaken(theirs[0], lambda: [chain.send(posted.somebody, call) for call in theirs]):
        done = posted.desk.json("run", "bring-beacon", *posted.at)
    assert done == {"brought": due[others:], "waits_until": None}
    assert all(chain.ask(run.beacon.is_known(wanted)) for wanted in due)


def test_a_grant_that_others_release_first_keeps_nobody_from_claiming_the_rest(posted: SharedRun) -> None:
    run, chain, sponsor = posted.run, posted.run.chain, posted.made.stage.sponsor
    who, names = address_of(sponsor), [Digest(bytes([k]) * 32) for k in (1, 2)]
    posted.credit(names, 10 * TOKEN)
    posted.mint(7)
    held = posted.held(sponsor)
    posted.desk.json("ledger", "pay", "7", "--yes", *posted.at)
    chain.rpc("evm_mine", hex(chain.head().timestamp + 5 * WEEK))
    release = run.grants.release(names[0])
    with overtaken(release, lambda: chain.send(posted.somebody, release)):
        found = posted.desk.json("ledger", "claim", *posted.at)
    assert found["vested"] == 10 * TOKEN and found["tx"]
    assert chain.ask(run.shares.balance_of(who)) == 20 * TOKEN
    # The seven streamed while there was no share; they stream anew to whoever has some.
    chain.rpc("evm_mine", hex(chain.head().timestamp + 5 * WEEK))
    call = run.revenue.claim_for(run.charter.revenue_tokens[0], who)
    with overtaken(call, lambda: chain.send(sponsor, call)):
        done = posted.desk("ledger", "claim", *posted.at)
    assert done.exit_code == 0 and "somebody else claimed it first" in done.stderr
    assert held - posted.held(sponsor) < 10
    assert posted.desk.json("ledger", "claim", *posted.at) == {"vested": 0, "claimed": {}, "tx": None}


def test_what_was_claimed_is_said_in_tokens(posted: SharedRun) -> None:
    """As every other amount that people read, and not in wei."""
    run, chain = posted.run, posted.run.chain
    posted.credit([Digest(bytes([3]) * 32)], 10 * TOKEN)
    chain.rpc("evm_mine", hex(chain.head().timestamp + 5 * WEEK))
    assert posted.desk.json("ledger", "claim", *posted.at)["vested"] == 10 * TOKEN
    posted.mint(7)
    posted.desk.json("ledger", "pay", "7", "--yes", *posted.at)
    chain.rpc("evm_mine", hex(chain.head().timestamp + 6 * WEEK))
    said = posted.desk("ledger", "claim", *posted.at).stdout.splitlines()
    (line,) = (line for line in said if line.startswith("claimed"))
    token = "0x" + run.charter.revenue_tokens[0].hex()
    assert line.startswith(f"claimed of {token}") and 6 < float(line.split()[-1]) <= 7


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_funder_whom_others_refund_first_has_everything_back(posted: SharedRun, when: str) -> None:
    run, chain, sponsor = posted.run, posted.run.chain, posted.made.stage.sponsor
    posted.made.fund()
    paid = chain.ask(run.escrow.funded_of(address_of(sponsor)))
    chain.send(sponsor, run.escrow.cancel())
    call = run.escrow.refund(address_of(sponsor))
    if when == "before":
        chain.send(posted.somebody, call)
        found = posted.desk.json("run", "refund", *posted.at)
    else:
        with overtaken(call, lambda: chain.send(posted.somebody, call)):
            found = posted.desk.json("run", "refund", *posted.at)
    assert found == {"refunded": 0 if when == "before" else paid}
    assert posted.made.free(address_of(sponsor)) == paid
    with pytest.raises(RejectedError) as refused:
        refund_all(chain, posted.somebody, run)
    assert refused.value.code == "NothingToRefund"
