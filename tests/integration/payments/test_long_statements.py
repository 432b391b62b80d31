"""The longest statement that a bond answers for can be presented: by nodes' pools, and by the gas of a transaction."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from pyrevm import BlockEnv

from assay.protocol.digests import ZERO
from assay.protocol.run.answers import MAX_TOKENS, SaidAnswer
from assay.protocol.types import Digest
from assay_ledger.chain.client import TRANSACTION_GAS_CAP
from tests.harness.contracts.game_chain import START
from tests.harness.contracts.harness import transaction_gas
from tests.harness.payments import answer_stage

POOL = 128 * 1024
"""Bytes of a transaction that geth and others take into their pools (txMaxSize); its fields and signature take 200."""

MODEL = Digest(b"\x01" * 32)


@pytest.mark.parametrize("window", [256, 1024, 16_384])
def test_the_longest_statement_is_presented_in_one_transaction(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    terms = answer_stage.answer_terms
    monkeypatch.setattr(
        answer_stage, "answer_terms", lambda model, bond: replace(terms(model, bond), window=window, vocabulary=50_257)
    )
    chain = answer_stage.AnswerChain(answer_stage.own_model())
    gate = answer_stage.KEYS[0]
    chain.chain.evm.set_block_env(BlockEnv(number=2, timestamp=START + 60, gas_limit=60_000_000, prevrandao=bytes(32)))
    chain.chain.evm.set_balance(gate.address, 10**24)
    chain.deposit(answer_stage.account(gate), 100 * answer_stage.ETHER)
    chain.gateways.call("bond", caller=gate.address)
    chain.gateways.call("pledge", MODEL, START + 86_400, caller=gate.address)
    for answer in (64, MAX_TOKENS // 2):
        prompt = tuple(1_000 + k % 40_000 for k in range(MAX_TOKENS - answer))
        said = SaidAnswer(MODEL, ZERO, prompt, 7, 1_000_000, 0, answer, 50_256, tuple(2_000 + k for k in range(answer)))
        digest = chain.gateways.call("digestOf", astuple(said), gas=50_000_000)
        arguments = (astuple(said), answer - 1, bytes(gate.unsafe_sign_hash(digest).signature))
        data = chain.gateways.calldata("accuse", *arguments)
        chain.gateways.call("accuse", *arguments, gas=50_000_000)
        assert len(data) + 200 < POOL
        assert transaction_gas(data, chain.gateways.gas) <= TRANSACTION_GAS_CAP
