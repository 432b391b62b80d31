"""Seeds of tickets follow from accounts, and from nothing else."""

from __future__ import annotations

import hmac
from hashlib import sha256
from pathlib import Path

from eth_account import Account

from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import create_key, export_key, load_keys
from assay_ledger.keys.ticket_seed import ticket_seed

FAST = Kdf("pbkdf2", 1000)


def test_a_restored_account_has_the_seed_that_it_had(tmp_path: Path) -> None:
    made = create_key(tmp_path / "keys", "vera", "password", kdf=FAST)
    export_key(made.path, tmp_path / "backup")
    before, after = (load_keys(path, "password").account for path in (made.path, tmp_path / "backup"))
    assert ticket_seed(before) == ticket_seed(after)
    assert len(ticket_seed(before)) == 32


def test_two_accounts_have_two_seeds_and_neither_is_the_key() -> None:
    first, second = Account.create(), Account.create()
    assert len({ticket_seed(first), ticket_seed(second), bytes(first.key), bytes(second.key)}) == 4


def test_a_seed_is_what_rfc_5869_makes_of_a_key_written_out() -> None:
    account = Account.from_key(b"\x07" * 32)
    extracted = hmac.new(bytes(32), b"\x07" * 32, sha256).digest()
    assert ticket_seed(account) == hmac.new(extracted, b"assay ticket seed v1\x01", sha256).digest()
