"""Evidence of real disputes replays offline to the verdict on chain; whatever is altered in it is found out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from eth_abi.abi import decode
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from assay.bundle.calls import decode_call, move_of
from assay.bundle.document import (
    Bundle,
    ClaimOrigin,
    MinedTransaction,
    Reused,
    decode_bundle,
    encode_bundle,
    to_document,
)
from assay.bundle.errors import BundleContradiction, BundleMalformed, GameNotOver, GameUnknown, NumberTooLarge
from assay.bundle.export import export_bundle
from assay.bundle.replay import VerdictValues, replay, verify
from assay.bundle.signed import read_signed
from assay.protocol.digests import keccak
from assay.protocol.errors import ExitCode
from assay.protocol.game.moves import PostDigests
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter
from assay.protocol.types import Address, Seat
from assay_ledger.chain.client import address_of
from assay_ledger.rounds.index import RunIndex
from tests.harness.demo.played_disputes import LOST, PlayedDisputes

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def bundles(disputes: PlayedDisputes) -> list[Bundle]:
    return [export_bundle(disputes.made.run, disputes.view.state, game_id) for game_id in sorted(disputes.view.games)]


def of_kind(bundles: list[Bundle], kind: ClaimKind, outcome: Outcome | None = None) -> Bundle:
    """The first game about a claim of a kind that was lost by its claimant, in this way if one is named."""
    return next(
        b for b in bundles
        if b.ref.kind is kind and b.verdict and b.verdict.side is Side.DEFENDER
        and outcome in (None, b.verdict.outcome)
    )  # fmt: skip


def false_challenge(bundles: list[Bundle]) -> Bundle:
    """The game of the first stranger, who challenged true work and fell silent."""
    return next(b for b in bundles if b.contracts.challenges is not None)


# --- what is true replays


def test_every_game_of_a_run_replays_to_the_verdict_on_chain(disputes: PlayedDisputes, bundles: list[Bundle]) -> None:
    assert len(bundles) == len(disputes.view.games) >= 6
    for bundle in bundles:
        record = disputes.view.games[bundle.game_id]
        found = verify(decode_bundle(encode_bundle(bundle)))
        assert found.verdict == record.verdict
        assert found.claim.id == record.claim_id
        assert [s.sent.hash for s in found.steps] == [m.tx_hash for m in record.moves[1:]]


def test_a_game_exported_again_is_the_same_file(disputes: PlayedDisputes, bundles: list[Bundle]) -> None:
    made, bundle = disputes.made, bundles[0]
    again = export_bundle(made.run, RunIndex(made.run).sync(), bundle.game_id)
    assert encode_bundle(again) == encode_bundle(bundle)


def test_each_kind_of_claim_was_disputed_and_the_liar_lost(disputes: PlayedDisputes, bundles: list[Bundle]) -> None:
    lost: dict[ClaimKind, set[str]] = {}
    for bundle in bundles:
        found = verify(bundle)
        assert found.verdict is not None
        if found.verdict.side is Side.DEFENDER:
            lost.setdefault(bundle.ref.kind, set()).add(disputes.name_of(found.verdict.loser))
    assert lost == LOST


def test_a_false_challenge_is_evidence_against_its_author(disputes: PlayedDisputes, bundles: list[Bundle]) -> None:
    found = verify(false_challenge(bundles))
    assert found.verdict is not None
    assert disputes.name_of(found.claim.claimant) == "ada"
    assert disputes.name_of(found.verdict.loser) == "stranger"
    assert found.verdict.loser == found.begin.challenger
    assert found.own_root == keccak(b"own") != found.claim.y


def test_a_game_lost_at_an_element_names_the_words_and_one_lost_by_silence_none(bundles: list[Bundle]) -> None:
    at_element = verify(of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF))
    assert at_element.values is VerdictValues.WORDS
    assert at_element.node is not None
    assert at_element.verdict is not None
    assert at_element.verdict.expected != at_element.verdict.claimed
    silent = verify(of_kind(bundles, ClaimKind.INTERVAL, Outcome.DEFAULT))
    assert silent.values is VerdictValues.NONE
    assert silent.steps[-1].name == "timeout"


def test_a_game_that_is_not_over_replays_so_far_and_is_not_exported(
    disputes: PlayedDisputes, bundles: list[Bundle]
) -> None:
    whole, state = of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF), disputes.view.state
    part = replace(whole, transactions=whole.transactions[:4], verdict=None)
    assert replay(part).verdict is None
    assert len(replay(part).steps) == 3
    record = replace(state.games[whole.game_id], verdict=None)
    open_ = replace(state, games={**state.games, whole.game_id: record})
    with pytest.raises(GameNotOver):
        export_bundle(disputes.made.run, open_, whole.game_id)
    with pytest.raises(GameUnknown):
        export_bundle(disputes.made.run, state, 999)


# --- what is altered is found out


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every scalar of a document with its place."""
    if isinstance(value, dict | list):
        for key, item in sorted(value.items()) if isinstance(value, dict) else enumerate(value):
            yield from leaves_of(item, (*path, key))
    else:
        yield path, value


def altered(document: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> bytes:
    """The file with one scalar changed, canonical as ever."""
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = change(at[path[-1]])
    return rfc8785.dumps(copy)


def bent(value: Any) -> Any:
    """Another value of the same form."""
    if isinstance(value, int):
        return value + 1
    if value.startswith("0x"):
        middle = len(value) // 2
        return value[:middle] + format(int(value[middle], 16) ^ 1, "x") + value[middle + 1 :]
    return str(int(value) + 1) if value.lstrip("-").isdigit() else {"LEAF": "DEFAULT"}.get(value, "LEAF")


def test_every_field_of_a_bundle_is_bound(bundles: list[Bundle]) -> None:
    kinds = [of_kind(bundles, kind) for kind in LOST]
    silent = of_kind(bundles, ClaimKind.INTERVAL, Outcome.DEFAULT)
    for bundle in (*kinds, silent, false_challenge(bundles)):
        places = list(leaves_of(document := to_document(bundle)))
        assert len(places) >= 40
        for path, _ in places:
            # Order and time come from the chain; nothing that is signed says them.
            if path[-1] in ("block", "time"):
                continue
            with pytest.raises((BundleMalformed, BundleContradiction)):
                verify(decode_bundle(altered(document, path, bent)))
                pytest.fail(f"{path} may be anything")


def with_reused_list(disputes: PlayedDisputes, bundle: Bundle) -> Bundle:
    """The same game, had its claimant posted its first list in another game before this one was opened."""
    opening, posted, *moves = bundle.transactions
    found = move_of(decode_call(read_signed(posted.raw).data))
    assert found is not None and isinstance(found[1], PostDigests)
    call = disputes.made.run.game.post_digests(bundle.game_id + 100, found[1].digests)
    account = disputes.made.players[disputes.name_of(posted.sender)].agent.account
    return replace(bundle, transactions=(opening, *moves), reused=(Reused(0, signed_by(account, bundle, call.data)),))


def test_a_list_that_counted_is_there_as_its_claimant_signed_it(
    disputes: PlayedDisputes, bundles: list[Bundle]
) -> None:
    bundle = with_reused_list(disputes, of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF))
    found = verify(decode_bundle(encode_bundle(bundle)))
    assert found.begin.turn is Side.CHALLENGER
    (one,), own = bundle.reused, next(s.sent for s in found.steps if s.name == "openNode")
    for reused in (
        (),
        (one, one),
        (replace(one, after=len(bundle.transactions)),),
        (replace(one, after=one.after + 1),),
        (Reused(one.after, own),),
        (replace(one, sent=signed_by(Account.create(), bundle, read_signed(one.sent.raw).data)),),
    ):
        with pytest.raises((BundleMalformed, BundleContradiction)):
            verify(replace(bundle, reused=tuple(reused)))
    for path, _ in leaves_of(document := to_document(bundle)):
        if path[:2] == ("game", "reused") and path[-1] not in ("block", "time"):
            with pytest.raises((BundleMalformed, BundleContradiction)):
                verify(decode_bundle(altered(document, path, bent)))


@pytest.mark.parametrize(
    "kind, change",
    [
        (ClaimKind.OUTER, lambda o: replace(o, counted=o.counted[::-1])),
        (ClaimKind.OUTER, lambda o: replace(o, counted=o.counted[1:])),
        (ClaimKind.OUTER, lambda o: replace(o, counted=o.counted[1:], updates=o.updates[1:])),
        (ClaimKind.OUTER, lambda o: replace(o, transactions=o.transactions * 2)),
        (ClaimKind.UPDATE, lambda o: replace(o, counted=(Seat(0),))),
        (ClaimKind.UPDATE, lambda o: replace(o, transactions=())),
        (ClaimKind.INTERVAL, lambda o: replace(o, base_momentum=o.base_parameters)),
        (ClaimKind.ATTESTATION, lambda o: replace(o, transactions=o.transactions[::-1])),
        (ClaimKind.ATTESTATION, lambda o: replace(o, transactions=o.transactions[:1])),
        (ClaimKind.ATTESTATION, lambda o: replace(o, epoch=o.epoch + 1)),
    ],
)
def test_a_claim_follows_from_its_own_origin_alone(
    bundles: list[Bundle], kind: ClaimKind, change: Callable[[ClaimOrigin], ClaimOrigin]
) -> None:
    bundle = of_kind(bundles, kind)
    with pytest.raises(BundleContradiction):
        verify(replace(bundle, origin=change(bundle.origin)))


def test_true_words_said_to_another_contract_are_found_out(bundles: list[Bundle]) -> None:
    bundle = of_kind(bundles, ClaimKind.ATTESTATION)
    for name, address in bundle.contracts.named().items():
        elsewhere = replace(bundle.contracts, **{name: Address(bytes(20)[:-1] + address[-1:])})
        with pytest.raises(BundleContradiction):
            verify(replace(bundle, contracts=elsewhere))


@pytest.mark.parametrize("field", ["arity", "shards", "seats"])
def test_terms_that_no_run_has_are_refused_at_once(bundles: list[Bundle], field: str) -> None:
    bundle = of_kind(bundles, ClaimKind.OUTER)
    (values,) = decode([RUN_TERMS_TYPE], bundle.terms)
    charter = RunCharter.from_tuple(values)
    part = {"arity": "clocks"}.get(field, "training")
    most = {"arity": 1, "shards": 0, "seats": 2**32 - 1}[field]
    changed = replace(charter, **{part: replace(getattr(charter, part), **{field: most})})
    with pytest.raises((BundleMalformed, BundleContradiction)):
        replay(replace(bundle, terms=changed.encoded, run=changed.run))


def test_words_put_into_a_party_s_mouth_are_found_out(bundles: list[Bundle]) -> None:
    bundle = of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF)
    at, sent = 2, bundle.transactions[2]
    forged = replace(signed_by(Account.create(), bundle, read_signed(sent.raw).data), time=sent.time)
    with pytest.raises(BundleContradiction, match="not signed by its sender"):
        verify(with_move(bundle, at, replace(forged, sender=sent.sender)))
    with pytest.raises(BundleContradiction, match="NotYourTurn"):
        verify(with_move(bundle, at, forged))


def signed_by(account: LocalAccount, bundle: Bundle, data: bytes) -> MinedTransaction:
    """A call of the run's game, as this account would send it."""
    fees = {"gas": 100_000, "maxFeePerGas": 1, "maxPriorityFeePerGas": 1}
    call = {"to": to_checksum_address(bundle.contracts.game), "data": "0x" + data.hex()}
    signed = account.sign_transaction({"chainId": bundle.chain_id, "type": 2, "nonce": 0, "value": 0, **fees, **call})
    raw = bytes(signed.raw_transaction)
    return MinedTransaction(keccak(raw), address_of(account), 1, 1, raw)


def with_move(bundle: Bundle, at: int, sent: Any) -> Bundle:
    """The bundle with one transaction exchanged."""
    return replace(bundle, transactions=(*bundle.transactions[:at], sent, *bundle.transactions[at + 1 :]))


def test_a_move_left_out_repeated_or_too_late_is_found_out(bundles: list[Bundle]) -> None:
    bundle = of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF)
    moves = bundle.transactions
    late = replace(moves[3], time=moves[3].time + 10**9)
    for changed in (
        moves[:-1],
        (*moves[:3], *moves[4:]),
        (*moves[:3], moves[2], *moves[3:]),
        (*moves[:3], late, *moves[4:]),
        moves[1:],
        (),
    ):
        with pytest.raises((BundleContradiction, BundleMalformed)):
            verify(replace(bundle, transactions=tuple(changed)))


def test_a_timeout_before_the_deadline_convicts_nobody(bundles: list[Bundle]) -> None:
    bundle = of_kind(bundles, ClaimKind.INTERVAL, Outcome.DEFAULT)
    last = bundle.transactions[-1]
    early = replace(last, time=bundle.transactions[0].time + 1)
    with pytest.raises(BundleContradiction, match="TooEarly"):
        verify(with_move(bundle, len(bundle.transactions) - 1, early))


# --- hostile files


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"null",
        b'"assay-evidence-2"',
        b"\xff\xfe",
        b'{"format":"assay-evidence-2"}',
        b'{"format":"assay-evidence-1"}',
    ],
)
def test_no_hostile_file_is_more_than_malformed(data: bytes) -> None:
    with pytest.raises(BundleMalformed):
        decode_bundle(data)


def test_a_file_is_read_in_one_spelling_only(bundles: list[Bundle]) -> None:
    data = encode_bundle(bundles[0])
    document = json.loads(data)
    for other in (data + b"\n", json.dumps(document).encode(), data.replace(b'"0x', b'"0X', 1)):
        with pytest.raises(BundleMalformed):
            decode_bundle(other)
    document["comment"] = "hello"
    with pytest.raises(BundleMalformed, match="unknown field"):
        decode_bundle(rfc8785.dumps(document))


def test_a_number_that_canonical_json_has_not_is_refused_by_name(bundles: list[Bundle]) -> None:
    far = replace(bundles[0], chain_id=1 << 53)
    with pytest.raises(NumberTooLarge):
        encode_bundle(far)
    assert decode_bundle(encode_bundle(replace(far, chain_id=(1 << 53) - 1))).chain_id == (1 << 53) - 1
    with pytest.raises(BundleMalformed):
        decode_bundle(json.dumps(to_document(far), separators=(",", ":"), sort_keys=True).encode())


def test_a_file_beyond_the_bound_is_not_parsed() -> None:
    with pytest.raises(BundleMalformed, match="more than"):
        decode_bundle(b'"' + b"a" * (17 << 20) + b'"')


# --- as people meet it


def run_verify(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`assay bundle verify` in a process of its own, which tells whether torch was loaded."""
    code = (
        "import sys; sys.argv = ['assay', 'bundle', 'verify', *sys.argv[1:]]\n"
        "import atexit; from assay.cli.main import main\n"
        "atexit.register(lambda: print('torch loaded:', 'torch' in sys.modules, file=sys.stderr))\n"
        "main()"
    )
    env = {**os.environ, "ETH_RPC_URL": "http://127.0.0.1:1"}
    return subprocess.run(
        [sys.executable, "-c", code, str(file), *options], capture_output=True, text=True, env=env, cwd=ROOT, timeout=60
    )


def test_a_stranger_verifies_a_file_without_a_chain_and_without_torch(bundles: list[Bundle], tmp_path: Path) -> None:
    bundle = of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF)
    file = tmp_path / "game.json"
    file.write_bytes(encode_bundle(bundle))
    done = run_verify(file, "--json")
    assert done.returncode == 0, done.stderr
    assert "torch loaded: False" in done.stderr
    document = json.loads(done.stdout)
    assert document["agrees"] is True
    assert document["verdict"]["outcome"] == "LEAF"
    text = run_verify(file)
    assert bundle.verdict is not None
    for word in (bundle.verdict.expected, bundle.verdict.claimed):
        assert f"0x{word % (1 << 256):064x}" in text.stdout


def test_the_exit_code_says_whether_a_file_lies_or_is_none(bundles: list[Bundle], tmp_path: Path) -> None:
    bundle = of_kind(bundles, ClaimKind.INTERVAL, Outcome.LEAF)
    assert bundle.verdict is not None
    file = tmp_path / "game.json"
    file.write_bytes(encode_bundle(replace(bundle, verdict=replace(bundle.verdict, expected=12345))))
    lying = run_verify(file)
    assert lying.returncode == ExitCode.FRAUD
    assert "expected" in lying.stderr
    file.write_bytes(b"nothing of the kind")
    assert run_verify(file).returncode == ExitCode.CONFIG
    assert run_verify(tmp_path / "missing.json").returncode == ExitCode.CONFIG
