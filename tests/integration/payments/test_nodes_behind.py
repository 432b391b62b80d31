"""Games on a gateway's answers behind nodes that do not have the newest events yet, of a chain with many blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from assay.inference.bonds import AnswerGames
from assay.inference.lies import claimed_trace, false_statement
from assay.inference.statement import SignedStatement, sign
from assay.protocol.errors import UnavailableError
from assay.protocol.game.table import Side
from assay_ledger.chain.client import Chain
from assay_ledger.deployment.answers import AnswerGates, check_answers
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from tests.harness.inference.models import write_folder
from tests.harness.payments.bonded import BOND, MODEL, as_inference, gates_at, own_model, true_answer
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.providers import ProviderNode, said

LOGS = ["eth_getLogs"]


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("behind"), payers=4) as made:
        write_folder(MODEL, made.folder / "pulled")
        yield made


@dataclass
class AccusedGame:
    """A gateway, payer `gate`, that is accused by payer `reader`."""

    gates: AnswerGates
    reader: AnswerGames
    number: int

    @property
    def turn(self) -> Side:
        return self.gates.games.game(self.number).state.turn


def open_game(paid: PaidRun, gate: int, reader: int, signed: SignedStatement) -> AccusedGame:
    """A game on a false token, or on one of which the reader says so, as the gateway is to answer."""
    bonds = str(paid.done(*paid.words(gate, "bond", *own_model(paid), "--bond", BOND, "--yes"))["bonds"])
    words = (*own_model(paid), "--bonds", bonds, "--for", "864000", "--yes")
    paid.done(*as_inference(paid, gate, "pledge", *words))
    gates = gates_at(paid, bonds)
    games = AnswerGames(gates, MODEL, ActorKeys("reader", paid.keys[reader]))
    paid.chain.rpc("evm_mine", {"timestamp": games.reveals_at(games.commit(signed, 5))[1]})
    return AccusedGame(gates, games, games.present(signed, 5))


def behind(paid: PaidRun, node: ProviderNode, gates: AnswerGates, key: int) -> AnswerGames:
    """A payer's games, over that node."""
    run = Run(Chain(node.url), paid.run.address)
    return AnswerGames(check_answers(run, gates.gateways.address), MODEL, ActorKeys("own", paid.keys[key]))


def test_a_node_that_has_no_logs_yet_does_not_end_a_defence(paid: PaidRun) -> None:
    made = open_game(paid, 0, 1, sign(true_answer(paid), paid.keys[0]))
    assert made.turn is Side.DEFENDER
    failed: list[tuple[int, Exception]] = []
    with ProviderNode(paid.chain.url) as node:
        own = behind(paid, node, made.gates, 0)
        # One answer of a node behind the same address that has not imported the block with the accusation.
        node.turn(said([]), times=1, methods=LOGS)
        assert own.step_all(lambda number, error: failed.append((number, error))) == ({made.number}, False)
        ((number, error),) = failed
        assert number == made.number and isinstance(error, UnavailableError) and error.code == "EventsMissing"
        assert own.step_all(lambda *_: pytest.fail("the node has it by now")) == ({made.number}, True)
    assert made.turn is Side.CHALLENGER


def test_an_accuser_reads_no_chain_before_each_of_its_moves(paid: PaidRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain with four hundred million blocks; and a node that is behind has it read none either."""
    monkeypatch.setattr("assay_ledger.index.games.BLOCKS_PER_QUERY", 10)
    paid.chain.rpc("anvil_mine", hex(300))
    made = open_game(paid, 2, 3, sign(false_statement(true_answer(paid), 5, MODEL.vocabulary), paid.keys[2]))
    with ProviderNode(paid.chain.url) as node:
        accuser = behind(paid, node, made.gates, 3)

        def searches() -> int:
            return sum(method in LOGS for method, _ in node.asked)

        node.turn()
        assert accuser.has_won(made.number) is None and searches() == 0
        liar = AnswerGames(made.gates, MODEL, ActorKeys("liar", paid.keys[2]), claimed_trace)
        while made.turn is Side.DEFENDER:
            liar.step(made.number)
        accuser._player._trace(made.gates.games.game(made.number))  # the run behind the claim is known by now
        node.turn(said([]), times=1, methods=LOGS)
        with pytest.raises(UnavailableError) as behind_once:
            accuser.step(made.number)
        assert behind_once.value.code == "EventsMissing" and searches() < 5
        assert accuser.step(made.number)
        while not made.gates.games.game(made.number).state.is_over:
            assert liar.step(made.number) or accuser.step(made.number)
        node.turn(said([]), times=1, methods=LOGS)
        with pytest.raises(UnavailableError):
            accuser.has_won(made.number)
        assert searches() < 5 and accuser.has_won(made.number) is True
