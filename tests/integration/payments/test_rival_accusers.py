"""An accuser by `assay inference accuse` where somebody else is first, or time has passed: its deposit comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from assay.cli.common import send_unless_done
from assay.inference.bonds import AnswerGames, deposit_for
from assay.inference.cover import NotCovered
from assay.inference.lies import claimed_trace, false_statement
from assay.inference.statement import SignedStatement, sign
from assay.protocol.errors import UsageError
from assay.protocol.game.state import reveal_window
from assay.protocol.run.answers import answer_claim
from assay.protocol.types import Digest, Wei
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.keys.keystore import ActorKeys
from tests.harness.commands import assay_on
from tests.harness.inference.models import write_folder
from tests.harness.payments.bonded import BOND, MODEL, as_inference, file_of, gates_at, own_model, true_answer
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.samples import ETHER

PLACE = 5
"""Of the false token."""

PLEDGED_S = 86_400


@dataclass
class AccusedGateway:
    """A gateway, payer 0, that lied; a reader, payer 1, that accuses it by command; a rival, payer 2."""

    paid: PaidRun
    gates: AnswerGates
    signed: SignedStatement
    words: tuple[str, ...]
    liar: AnswerGames
    reader: AnswerGames
    rival: AnswerGames

    @property
    def claim(self) -> Digest:
        return answer_claim(self.signed.statement.digest, self.signed.signer, PLACE)

    @property
    def pledged_until(self) -> int:
        return self.paid.chain.ask(self.gates.gateways.pledge_of(self.liar.keys.address, MODEL.root))

    def free(self, who: AnswerGames) -> int:
        return self.paid.chain.ask(self.gates.vault.free(who.keys.address))

    def pass_time(self, until: int) -> None:
        """Until a chain time, or a block further."""
        self.paid.chain.rpc("evm_mine", {"timestamp": max(until, self.paid.chain.head().timestamp + 1)})

    def wait_to_reveal(self, who: AnswerGames) -> None:
        who.wait_to_reveal(self.claim, lambda: self.pass_time(who.reveals_at(self.claim)[1]))

    def play(self, game: int, who: AnswerGames) -> None:
        """A game to its end, which the liar loses."""
        while who.has_won(game) is None:
            assert self.liar.step(game) or who.step(game)
        assert who.has_won(game)


@pytest.fixture(scope="module")
def bonded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PaidRun, str]]:
    """A run, and the contract that payer 0 bonded itself at, and pledged the model."""
    with paid_run(tmp_path_factory.mktemp("rivals"), payers=3) as paid:
        write_folder(MODEL, paid.folder / "pulled")
        bonds = str(paid.done(*paid.words(0, "bond", *own_model(paid), "--bond", BOND, "--yes"))["bonds"])
        words = ("pledge", *own_model(paid), "--bonds", bonds, "--for", str(PLEDGED_S), "--yes")
        paid.done(*as_inference(paid, 0, *words))
        yield paid, bonds


@pytest.fixture
def accused(bonded: tuple[PaidRun, str]) -> Iterator[AccusedGateway]:
    paid, bonds = bonded
    snapshot, gates = paid.chain.rpc("evm_snapshot"), gates_at(paid, bonds)
    false = false_statement(true_answer(paid), PLACE, MODEL.vocabulary)
    file = file_of(paid, false, paid.keys[0], "false")
    words = as_inference(paid, 1, "accuse", file, "--bonds", bonds, *own_model(paid), "--yes")
    liar, reader, rival = (ActorKeys(f"payer-{k}", paid.keys[k]) for k in range(3))
    games = [AnswerGames(gates, MODEL, keys) for keys in (reader, rival)]
    yield AccusedGateway(
        paid, gates, sign(false, paid.keys[0]), words, AnswerGames(gates, MODEL, liar, claimed_trace), *games
    )
    assert paid.chain.rpc("evm_revert", snapshot)


def rival_wins(accused: AccusedGateway) -> None:
    accused.rival.commit(accused.signed, PLACE)
    accused.wait_to_reveal(accused.rival)
    accused.play(accused.rival.present(accused.signed, PLACE), accused.rival)


def pledge_ends(accused: AccusedGateway) -> None:
    accused.pass_time(accused.pledged_until + 1)


def commit_and_be_late(accused: AccusedGateway) -> None:
    """A reader that is interrupted until it can reveal no more."""
    terms, reader = accused.paid.run.charter, accused.reader
    reader.commit(accused.signed, PLACE)
    committed_at = reader.reveals_at(accused.claim)[1] - terms.chain.reorg_depth
    for late in (1, 2):
        accused.pass_time(committed_at + reveal_window(terms.chain) + late)
    assert reader.is_late(accused.claim)


@pytest.mark.parametrize("first", [rival_wins, pledge_ends])
def test_who_comes_too_late_gets_the_deposit_back(
    accused: AccusedGateway, first: Callable[[AccusedGateway], None]
) -> None:
    accused.pass_time(accused.pledged_until - 1200)
    accused.reader.commit(accused.signed, PLACE)
    assert accused.free(accused.reader) < accused.reader.stake()
    first(accused)
    accused.wait_to_reveal(accused.reader)
    said = accused.paid.done(*accused.words)
    assert (said["game"], said["convicted"]) == (0, False)
    assert accused.free(accused.reader) == accused.reader.stake()
    assert not accused.reader.has_committed(accused.claim)


def test_a_commitment_that_a_stranger_sent_first_is_revealed_by_its_accuser(accused: AccusedGateway) -> None:
    chain, gates = accused.paid.chain, accused.gates
    for who in (accused.reader, accused.rival):
        deposit_for(gates, who.keys, accused.reader.stake())
    chain.rpc("evm_setAutomine", False)
    try:
        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(accused.reader.commit, accused.signed, PLACE)
            while not (pending := chain.rpc("txpool_content")["pending"]):
                assert not committing.done()
            ((taken,),) = (by_nonce.values() for by_nonce in pending.values())
            copied = {name: taken[name] for name in ("to", "input", "gas")}
            tip = hex(100 * int(taken["maxFeePerGas"], 16))
            stranger = accused.rival.keys.account.address
            fees = {"maxFeePerGas": tip, "maxPriorityFeePerGas": tip}
            chain.rpc("eth_sendTransaction", copied | fees | {"from": stranger})
            chain.rpc("evm_mine")
            assert committing.result() == accused.claim
    finally:
        chain.rpc("evm_setAutomine", True)
    commitment = accused.reader._commitment(accused.claim)
    assert chain.ask(gates.challenges.committed_challenge(commitment))[0] == accused.rival.keys.address
    accused.wait_to_reveal(accused.reader)
    accused.play(accused.reader.present(accused.signed, PLACE), accused.reader)
    assert accused.free(accused.rival) == accused.reader.stake(), "the deposit went back to who had paid it"


def test_who_was_interrupted_for_too_long_is_told_and_commits_anew(accused: AccusedGateway) -> None:
    chain, gates, reader = accused.paid.chain, accused.gates, accused.reader
    terms = accused.paid.run.charter
    commit_and_be_late(accused)
    with ThreadPoolExecutor(1) as pool:
        accusing = pool.submit(assay_on, accused.paid.run, *accused.words)
        while not (game := gates.games.count()):
            assert not accusing.done(), accusing.result().exception
            if not reader.is_late(accused.claim) and reader.has_committed(accused.claim):
                block, at = reader.reveals_at(accused.claim)
                if (head := chain.head()).number < block or head.timestamp < at:
                    accused.pass_time(at)
        assert not accused.liar.play(game)
        said = accusing.result()
    assert said.exception is None
    assert said.stderr.index("its deposit, ") < said.stderr.index("it is committed to anew")
    economics, bond = terms.economics, gates.terms.bond
    burned = bond - bond * economics.third_bounty_ppm // 10**6 + economics.challenge_deposit
    assert chain.ask(gates.vault.totals())[3] == burned


@pytest.mark.parametrize("first", [rival_wins, pledge_ends])
def test_who_is_late_and_uncovered_is_told_of_the_deposit(
    accused: AccusedGateway, first: Callable[[AccusedGateway], None]
) -> None:
    commit_and_be_late(accused)
    first(accused)
    said = assay_on(accused.paid.run, *accused.words)
    assert isinstance(said.exception, NotCovered)
    assert "its deposit, " in said.stderr and "burns" in said.stderr and "anew" not in said.stderr


def test_two_accusations_of_one_account_at_once_find_a_bond_each(accused: AccusedGateway) -> None:
    paid, reader = accused.paid, accused.reader
    paid.chain.send(paid.keys[1], paid.run.token.mint(reader.keys.address, reader.stake()))
    places = (PLACE, PLACE + 1)
    claims = [reader.commit(accused.signed, place) for place in places]
    accused.pass_time(max(reader.reveals_at(claim)[1] for claim in claims))
    assert [reader.present(accused.signed, place) for place in places] == [1, 2]


def test_what_was_won_first_is_paid_out_before_more_is_asked_for(accused: AccusedGateway) -> None:
    paid, gates, reader = accused.paid, accused.gates, accused.reader
    unbond = paid.words(1, "unbond", "--bonds", "0x" + gates.gateways.address.hex())
    deposit_for(gates, reader.keys, Wei(5 * ETHER))
    first = paid.done(*unbond, "--yes")
    deposit_for(gates, reader.keys, Wei(3 * ETHER))
    asked = assay_on(paid.run, *unbond)
    assert "starts the delay of all of it anew" in asked.stderr and isinstance(asked.exception, UsageError)
    accused.pass_time(first["not_before"])  # the first second that the vault takes
    second = paid.done(*unbond, "--yes")
    assert (first["exiting"], second["withdrawn"], second["exiting"]) == (5 * ETHER, 5 * ETHER, 3 * ETHER)
    # Anybody may pay it out: that is no reason to end before what is free is asked for.
    accused.pass_time(second["not_before"])
    paid.chain.send(paid.keys[2], gates.vault.withdraw_for(reader.keys.address))
    withdraw = gates.vault.withdraw()
    assert send_unless_done(paid.chain, reader.keys.account, withdraw, "NothingExiting") is None
    assert accused.free(reader) == 0
