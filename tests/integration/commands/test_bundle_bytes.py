"""Signed transactions and calldata are read as everybody else reads them, whatever their bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from eth_abi import encode
from eth_account import Account
from eth_account.signers.local import LocalAccount
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.bundle.calls import CALLS, MOVES, OPENINGS, SIGNATURES, decode_call, move_of
from assay.bundle.claim import DerivedClaim
from assay.bundle.document import Bundle, ClaimOrigin, Contracts, MinedTransaction, Reused
from assay.bundle.errors import BundleContradiction, BundleMalformed
from assay.bundle.replay import _list_of, _read
from assay.bundle.signed import FeeMarketCall, read_signed
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import AssayError
from assay.protocol.game.table import Move
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.types import Address, Round
from assay_ledger.chain.client import address_of
from assay_ledger.contract import selector, types_of
from tests.harness.contracts import harness

TO = "0x" + "51" * 20
GAME = Address(b"g" * 20)
KEY = "0x" + "11" * 32


def fields(kind: int, data: bytes, **changes: Any) -> dict[str, Any]:
    """A transaction of a type."""
    price = {"gasPrice": 7} if kind < 2 else {"maxFeePerGas": 9, "maxPriorityFeePerGas": 1}
    typed = {"type": kind} if kind else {}
    return {
        "chainId": 31337,
        "nonce": 3,
        "value": 0,
        "gas": 90_000,
        "to": TO,
        "data": data,
        **typed,
        **price,
        **changes,
    }


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 1, 54, 55, 56, 300, 70_000])
def test_a_signed_transaction_says_who_calls_whom_with_what(kind: int, size: int) -> None:
    rng = random.Random(size)
    data = rng.randbytes(size)
    account = Account.create()
    changes = {} if kind == 0 else {"accessList": [{"address": TO, "storageKeys": ["0x" + "00" * 32] * 2}]}
    signed = account.sign_transaction(fields(kind, data, **changes))
    found = read_signed(bytes(signed.raw_transaction))
    assert found.hash == bytes(signed.hash)
    assert "0x" + found.sender.hex() == account.address.lower()
    assert (found.to, found.data, found.chain_id) == (bytes.fromhex(TO[2:]), data, 31337)


def test_a_legacy_transaction_for_any_chain_names_none() -> None:
    values = fields(0, b"abc")
    del values["chainId"]
    signed = Account.from_key(KEY).sign_transaction(values)
    assert read_signed(bytes(signed.raw_transaction)).chain_id is None


def test_a_transaction_put_together_again_has_the_same_bytes() -> None:
    access = [{"address": TO, "storageKeys": ["0x" + "07" * 32]}]
    signed = Account.from_key(KEY).sign_transaction(fields(2, b"xyz" * 40, accessList=access))
    parity = signed.v
    to = bytes.fromhex(TO[2:])
    keys = ((to, (bytes.fromhex("07" * 32),)),)
    call = FeeMarketCall(31337, 3, 1, 9, 90_000, to, 0, b"xyz" * 40, keys, parity, signed.r, signed.s)
    assert call.encode() == bytes(signed.raw_transaction)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_altered_transactions_are_another_s_or_none(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([0, 1, 2]))
    raw = bytearray(Account.from_key(KEY).sign_transaction(fields(kind, b"move" * 20)).raw_transaction)
    before = read_signed(bytes(raw))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        after = read_signed(bytes(raw))
    except BundleMalformed:
        return
    assert after.hash != before.hash
    assert after.sender != before.sender


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_no_transaction_and_nothing_worse(raw: bytes) -> None:
    for data in (raw, b"\x02" + raw, b"\x02\xf8" + raw, b"\xc1" * 200 + raw):
        with pytest.raises(BundleMalformed):
            read_signed(data)


def test_the_signatures_are_the_contracts_own() -> None:
    assert {move.function for move in Move} == MOVES.keys()
    assert SIGNATURES.keys() == {(place, name) for place, (_, names) in CALLS.items() for name in names}
    for (place, name), signature in SIGNATURES.items():
        entry = harness.artifact(place.capitalize() if place != "game" else "Game").entry("function", name)
        assert signature == f"{name}({','.join(harness._type(i) for i in entry['inputs'])})"


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SIGNATURES)), st.binary(max_size=600))
def test_arbitrary_calldata_is_a_call_or_malformed(place: tuple[str, str], body: bytes) -> None:
    try:
        call = decode_call(selector(SIGNATURES[place]) + body)
    except BundleMalformed:
        return
    assert (call.contract, call.name) == place
    move_of(call)


def test_many_results_of_the_same_bytes_are_refused_before_they_are_read() -> None:
    count = 2000
    called, array = selector(SIGNATURES["duties", "open"]), [32 * count] * count
    head = [1, 2, 96, count, *array]
    with pytest.raises(BundleMalformed, match="results"):
        decode_call(called + b"".join(word.to_bytes(32, "big") for word in head) + bytes(60_000))


def test_many_openings_of_the_same_bytes_are_refused_before_they_are_read() -> None:
    types = ["uint256", "bytes", OPENINGS]
    assert types_of(SIGNATURES["game", "proveTerm"]) == types
    called = selector(SIGNATURES["game", "proveTerm"])
    honest = called + encode(types, (1, b"node", [(0, [2], b"leaf", [bytes(32)], [bytes(32)] * 20)] * 2))
    found = move_of(decode_call(honest))
    assert found is not None
    assert len(found[1].reads) == 2  # type: ignore[union-attr]
    # 3,000 offsets that all point to one opening of 30,000 bytes: 90 MB of copies from 130 kB.
    count = 3000
    opening = encode(["(uint8,uint64[],bytes,bytes32[],bytes32[])"], [(0, [], b"x" * 30_000, [], [])])[32:]
    head = [1, 96, 128, 0, count, *[32 * count] * count]
    bomb = called + b"".join(word.to_bytes(32, "big") for word in head) + opening
    with pytest.raises(BundleMalformed, match="openings"):
        decode_call(bomb)


def posting(account: LocalAccount, game: int, to: Address) -> MinedTransaction:
    """A list of two digests, posted in a game."""
    body = encode(["uint256", "bytes32[]"], [game, [b"\1" * 32, b"\2" * 32]])
    data = selector(SIGNATURES["game", "postDigests"]) + body
    raw = bytes(account.sign_transaction(fields(2, data, to="0x" + to.hex())).raw_transaction)
    return MinedTransaction(keccak(raw), address_of(account), 1, 1, raw)


def disputed_by(account: LocalAccount) -> tuple[Bundle, DerivedClaim]:
    """Game 7 about a claim of this account's, of which nothing else is known."""
    contracts = Contracts(charter=Address(b"c" * 20), game=GAME)
    origin = ClaimOrigin((), ZERO, ZERO)
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0))
    bundle = Bundle(31337, contracts, ZERO, b"", ZERO, ref, origin, 7, (), None)
    program = ProgramRef(ZERO, ZERO, b"")
    return bundle, DerivedClaim(ZERO, address_of(account), ZERO, ZERO, program, 1)


def test_a_reused_list_counts_only_as_its_claimant_signed_it() -> None:
    claimant, stranger = Account.from_key(KEY), Account.create()
    bundle, claim = disputed_by(claimant)
    assert _list_of(bundle, Reused(0, posting(claimant, 6, GAME)), claim) == (b"\1" * 32, b"\2" * 32)
    for forged in (posting(stranger, 6, GAME), posting(claimant, 7, GAME)):
        with pytest.raises(BundleContradiction):
            _list_of(bundle, Reused(0, forged), claim)


def test_a_call_counts_only_where_it_was_addressed_to_the_run_s_contract() -> None:
    bundle, _ = disputed_by(account := Account.from_key(KEY))
    assert _read(bundle, posting(account, 7, GAME))[1].name == "postDigests"
    with pytest.raises(BundleContradiction, match="not addressed to the run's game"):
        _read(bundle, posting(account, 7, Address(b"x" * 20)))
    # Generations are none of this claim's contracts.
    backing = fields(2, selector(SIGNATURES["generations", "back"]) + bytes(64))
    raw = bytes(account.sign_transaction(backing).raw_transaction)
    with pytest.raises(BundleContradiction, match="not addressed to the run's generations"):
        _read(bundle, MinedTransaction(keccak(raw), address_of(account), 1, 1, raw))


def test_padding_that_solidity_ignores_is_ignored() -> None:
    body = bytearray(encode(types_of(SIGNATURES["game", "openLeaf"]), (1, b"leaf")))
    body[-1] = 0xFF
    found = move_of(decode_call(selector(SIGNATURES["game", "openLeaf"]) + bytes(body)))
    assert found is not None
    assert found[1].leaf == b"leaf"  # type: ignore[union-attr]


def test_errors_of_bundles_say_what_to_do() -> None:
    for error in (BundleMalformed("x"),):
        assert isinstance(error, AssayError)
        assert error.remedy
