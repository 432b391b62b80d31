"""A signer elsewhere: what it signs is what was asked for, or it is named and nothing is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import Activity, Heartbeat, decode
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.chain.remote_signer import (
    RemoteSigner,
    SignerAltered,
    SignerRefused,
    SignerUnreachable,
    accounts_of,
)
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import (
    ActorKeys,
    KeyExists,
    SignerMissing,
    check_recovery,
    create_key,
    create_remote,
    describe_key,
    export_key,
    import_key,
    load_keys,
)
from assay_ledger.keys.ticket_seed import ticket_seed
from tests.harness.signers import LOGIN, SignerProcess

FAST = Kdf("pbkdf2", 1000)
PAYEE = "0x" + "12" * 20
OTHER = "0x" + "34" * 20


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignerProcess]:
    folder = tmp_path_factory.mktemp("signer")
    key = create_key(folder, "far", "pass", kdf=FAST)
    (folder / "password").write_text("pass")
    with SignerProcess(key.path / "evm.json", folder / "password") as made:
        yield made


@pytest.fixture
def signer(process: SignerProcess) -> SignerProcess:
    process.behave()
    return process


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with Anvil(accounts=1) as node:
        yield Chain(node.url, receipt_for_s=5.0)


@pytest.fixture
def far(signer: SignerProcess, chain: Chain) -> RemoteSigner:
    (account,) = accounts_of(signer.url)
    chain.rpc("anvil_setBalance", account, hex(10**18))
    return RemoteSigner(signer.url, account, seconds=2.0)


@pytest.mark.parametrize("clef", [False, True], ids=["web3signer", "clef"])
def test_a_transaction_that_is_signed_elsewhere_is_mined(
    signer: SignerProcess, far: RemoteSigner, chain: Chain, clef: bool
) -> None:
    signer.behave(clef=clef)
    before = chain.w3.eth.get_balance(PAYEE)  # type: ignore[arg-type]
    receipt = chain.transfer(far, PAYEE, 7)
    assert receipt["status"] == 1 and receipt["from"] == far.address
    assert chain.w3.eth.get_balance(PAYEE) == before + 7  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("to", OTHER),
        ("value", "0x8"),
        ("data", "0xff"),
        ("nonce", "0x63"),
        ("gas", "0x5209"),
        ("maxFeePerGas", "0x77359400ff"),
        ("maxPriorityFeePerGas", "0x1"),
        ("chainId", "0x1"),
        ("accessList", [{"address": OTHER, "storageKeys": []}]),
    ],
)
def test_a_field_that_was_altered_is_named_and_nothing_is_sent(
    signer: SignerProcess, far: RemoteSigner, chain: Chain, field: str, value: Any
) -> None:
    signer.behave(alter={field: value})
    before = chain.w3.eth.get_transaction_count(far.address, "pending")
    with pytest.raises(SignerAltered, match=field) as caught:
        chain.transfer(far, PAYEE, 7)
    assert caught.value.details["altered"] == [field]
    assert chain.w3.eth.get_transaction_count(far.address, "pending") == before
    signer.behave()
    assert chain.transfer(far, PAYEE, 7)["status"] == 1


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        pytest.param({"stranger": True}, SignerAltered, id="another-key"),
        pytest.param({"say": "0x02c0"}, SignerAltered, id="no-transaction"),
        pytest.param({"say": None}, SignerAltered, id="nothing"),
        pytest.param({"say": {"raw": [1]}}, SignerAltered, id="a-list"),
        pytest.param({"refuse": True}, SignerRefused, id="refusal"),
        pytest.param({"hang": 30}, SignerUnreachable, id="hang"),
    ],
)
def test_a_signer_that_fails_is_named_without_its_login(
    signer: SignerProcess, far: RemoteSigner, chain: Chain, how: dict[str, Any], kind: type[AssayError]
) -> None:
    signer.behave(**how)
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        chain.transfer(far, PAYEE, 7)
    assert time.monotonic() - began < 20
    for secret in (LOGIN, *LOGIN.split(":")[1:]):
        assert secret not in caught.value.explain()
    assert f"127.0.0.1:{signer.port}" in caught.value.message


def test_a_signer_that_is_gone_or_wants_another_login_is_unavailable(signer: SignerProcess) -> None:
    for url in ("http://127.0.0.1:1", signer.url.replace("sesame", "barley")):
        with pytest.raises(UnavailableError) as caught:
            accounts_of(url)
        assert "barley" not in caught.value.explain()


@pytest.mark.parametrize("clef", [False, True], ids=["web3signer", "clef"])
def test_what_is_secret_follows_from_the_local_key_and_the_account_stays_elsewhere(
    signer: SignerProcess, far: RemoteSigner, tmp_path: Path, clef: bool
) -> None:
    signer.behave(clef=clef)
    made = create_remote(tmp_path, "sol", far.address, "pass", far.sign_text, kdf=FAST)
    assert made.address == far.address == describe_key(tmp_path / "sol").address
    with pytest.raises(SignerMissing):
        load_keys(tmp_path / "sol", "pass")
    keys = load_keys(tmp_path / "sol", "pass", lambda address: RemoteSigner(signer.url, address))
    assert keys.address == address_of(far) and keys.local.address != far.address
    assert ticket_seed(keys.local) == ticket_seed(load_keys(tmp_path / "sol", "pass", lambda _: far).local)
    # Heartbeats are the account's, though the signer is not asked for each.
    signer.behave(refuse=True)
    beat = Heartbeat(Address(b"r" * 20), keys.address, "solver", 1, Activity.IDLE, None, "", 1)
    assert decode(beat.encode(keys.speaker)) == beat
    # Attack: a stranger's key, or a grant for another one, that speaks for the account.
    stranger = Account.create()
    assert decode(beat.encode(stranger)) is None
    assert decode(beat.encode(ActorKeys("x", far, stranger, keys.grant).speaker)) is None


def test_a_copy_of_a_key_whose_account_is_elsewhere_is_whole_and_is_taken_in(far: RemoteSigner, tmp_path: Path) -> None:
    """Bad luck: the machine is lost, and the copy is of the local key alone, which is nobody's account; a new one knows
    none of the secrets that tickets owe."""
    keys_dir, copy = tmp_path / "keys", tmp_path / "stick"
    made = create_remote(keys_dir, "sol", far.address, "pass", far.sign_text, kdf=FAST)
    export_key(made.path, copy)
    assert check_recovery(copy, "pass", expected=made).address == far.address
    back = import_key(tmp_path / "other", "sol", copy, "pass")
    first, again = (load_keys(info.path, "pass", lambda _: far) for info in (made, back))
    assert again.address == first.address == address_of(far) and again.grant == first.grant
    assert ticket_seed(again.local) == ticket_seed(first.local)
    (copy / "evm.json").unlink()
    with pytest.raises(KeyExists, match=r"account\.json"):
        export_key(made.path, copy)
    assert not (copy / "evm.json").exists()


def test_no_local_key_is_made_where_the_signer_refuses(
    signer: SignerProcess, far: RemoteSigner, tmp_path: Path
) -> None:
    signer.behave(refuse=True)
    with pytest.raises(SignerRefused):
        create_remote(tmp_path, "sol", far.address, "pass", far.sign_text, kdf=FAST)
    assert not list(tmp_path.iterdir())
