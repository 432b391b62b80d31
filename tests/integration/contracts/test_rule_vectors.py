"""The contract runs the published vectors: what it accepts, what it opens, and elements of ill-formed nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.protocol.game.errors import GameError
from assay.protocol.program.nodes import Family
from tests.harness.contracts.battles import HONEST, LIAR, fresh
from tests.harness.contracts.harness import Evm, EvmContract, Reverted
from tests.harness.contracts.leaf_cases import CONTRACTS
from tests.harness.games import ETHER
from tools import element_vectors, game_vectors, rule_vectors
from tools.game_definitions import definitions

RULES: dict[str, Any] = json.loads(rule_vectors.PATH.read_text())
ELEMENTS: dict[str, Any] = json.loads(element_vectors.PATH.read_text())


@pytest.fixture(scope="module")
def rules() -> EvmContract:
    return Evm().deploy("RulesHarness")


def test_descriptors_and_headers_mean_something_or_nothing(rules: EvmContract) -> None:
    for case in RULES["descriptors"]:
        valid, (family, dtype, rank, numel, _) = rules.call("descriptor", bytes.fromhex(case["bytes"]))
        assert valid is (case["rule"] is None), case["what"]
        head = case["head"]
        published = (head["family"], head["type"], len(head["dims"]), int(head["numel"]))
        assert (family, dtype, rank, numel) == published, case["what"]
    for case in RULES["headers"]:
        (nodes,) = rules.call("headers", [bytes.fromhex(case["bytes"])])
        assert (nodes > 0) is (case["rule"] is None), case["what"]


def test_openings_give_their_words_or_are_refused_by_name(rules: EvmContract) -> None:
    for case in RULES["openings"]:
        reads = [(r["node"], int(r.get("address", 0)), "fill" in r, int(r.get("fill", 0))) for r in case["reads"]]
        opened = [
            (
                o["dtype"],
                [int(d) for d in o["dims"]],
                bytes.fromhex(o["leaf"]),
                _digests(o["path"]),
                _digests(o["prefixPath"]),
            )
            for o in case["openings"]
        ]
        arguments = reads, opened, bytes.fromhex(case["root"]), case["k"]
        if case["rule"] is None:
            assert list(rules.call("load", *arguments)) == [int(w, 16) for w in case["words"]], case["what"]
        else:
            with pytest.raises(Reverted) as refusal:
                rules.call("load", *arguments)
            assert refusal.value.name == case["error"], case["what"]


def _digests(texts: list[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


@pytest.mark.parametrize("family", CONTRACTS, ids=lambda family: family.name.lower())
def test_a_leaf_computes_the_published_elements_step_by_step(family: Family, leaves: dict[Family, EvmContract]) -> None:
    contract = leaves[family]
    entries = [e for e in ELEMENTS["elements"] if int(e["descriptor"][:2], 16) == family]
    assert entries
    for entry in entries:
        node, element = bytes.fromhex(entry["descriptor"]), int(entry["element"])
        heads = [int(r["word"], 16) for r in entry["heads"]]
        assert contract.call("headReads", node, element) == _reads(entry["heads"])
        done, value, terms = contract.call("start", node, element, heads)
        assert (done, terms) == (entry["done"], len(entry["terms"]))
        parts = []
        for k, term in enumerate(entry["terms"]):
            assert contract.call("termReads", node, element, k, heads) == _reads(term["reads"])
            values = [int(r["word"], 16) for r in term["reads"]]
            parts.append(contract.call("term", node, element, k, heads, values))
            assert parts[-1] == int(term["part"])
        assert (value if done else contract.call("fold", node, heads, parts)) == int(entry["value"], 16)


def _reads(reads: list[dict[str, Any]]) -> tuple[tuple[int, int, bool, int], ...]:
    return tuple((r["node"], int(r.get("address", 0)), "fill" in r, int(r.get("fill", 0))) for r in reads)


def test_a_leaf_makes_of_posted_parts_what_is_published(leaves: dict[Family, EvmContract]) -> None:
    assert ELEMENTS["posted"]
    for entry in ELEMENTS["posted"]:
        node, parts = bytes.fromhex(entry["descriptor"]), [int(p) for p in entry["parts"]]
        contract = leaves[Family(node[0])]
        assert contract.call("combine", node, parts) == int(entry["part"]), entry["what"]
        heads = [int(h, 16) for h in entry["heads"]]
        assert contract.call("fold", node, heads, parts) == int(entry["value"], 16), entry["what"]


def test_a_malformed_descriptor_has_elements_of_0(leaves: dict[Family, EvmContract]) -> None:
    for entry in ELEMENTS["malformed"]:
        node = bytes.fromhex(entry["descriptor"])
        contract = leaves[Family(node[0])]
        assert contract.call("headReads", node, 0) in ((), None), entry["what"]
        assert contract.call("start", node, 0, []) == (True, 0, 0), entry["what"]


RECORDED: list[dict[str, Any]] = json.loads(game_vectors.PATH.read_text())["games"]
GAMES = {definition.what: definition for definition in definitions()}
"""Games at known positions are played on chain by test_game_openings.py."""


def test_every_recorded_game_is_defined_and_they_end_in_every_way() -> None:
    assert [g["what"] for g in RECORDED if not g["known"]] == list(GAMES)
    ends = {(g["turns"][-1]["move"], g["verdict"]["loser"]) for g in RECORDED}
    judged = {("selectElement", 1), ("selectElement", 2), ("proveTerm", 1), ("proveTerm", 2)}
    assert ends == judged | {("proveRoot", 1), ("proveRoot", 2), ("timeout", 1), ("timeout", 2)}
    assert {g["verdict"]["family"] for g in RECORDED} == {*range(13), 255}


@pytest.mark.parametrize("what", GAMES, ids=lambda what: what.replace(" ", "-"))
def test_a_recorded_game_is_played_on_chain_and_refuses_what_is_refused(what: str) -> None:
    (recorded,), definition = [g for g in RECORDED if g["what"] == what], GAMES[what]
    _, log = definition.play()
    twin = fresh(definition.example, recorded["arity"])
    game_id = twin.challenge(twin.claim(definition.defends, LIAR, 1000 * ETHER), HONEST)
    for turn, (_, move) in zip(recorded["turns"], log.moves, strict=False):
        state = twin.book.games[game_id].state
        mover, now = state.party(state.turn), state.turn_started
        assert (turn["stage"], turn["side"], turn["move"]) == (state.stage, state.turn, move.kind.function)
        assert turn["arguments"] == game_vectors.arguments(move)
        for refused in turn["refused"]:
            bad = game_vectors.changed(move, refused["field"], refused["value"])
            with pytest.raises(GameError) as refusal:  # by the contract too, by the same name: see TwinBook
                twin.book.move(game_id, mover, bad, now)
            assert refusal.value.code == refused["error"]
        twin.book.move(game_id, mover, move, now)
    state = twin.book.games[game_id].state
    if not state.is_over:
        assert recorded["turns"][-1]["move"] == "timeout"
        state = twin.book.timeout(game_id, state.deadline + 1)
    assert state.verdict is not None  # and the contract's event says the same: see TwinBook
    assert game_vectors.verdict_document(state.verdict) == recorded["verdict"]
