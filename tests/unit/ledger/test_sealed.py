"""A backup's file: it opens to what went in, and to nothing else whatever is done to it."""

from __future__ import annotations

import json
import time

import pytest

from assay.protocol.errors import ConfigError
from assay_ledger.keys.kdf import Kdf, WrongPassword
from assay_ledger.keys.sealed import BackupCorrupt, SealedBackup, seal, unseal

FAST = Kdf("scrypt", 1 << 10)
HELD = SealedBackup(
    "solver-1", 1_700_000_000, {"run": "0x12"}, {"key/evm.json": b"{}", "actors/solver-1/journal.jsonl": b"salt" * 1000}
)
SEALED = seal(HELD, "pass word", FAST)


def test_a_backup_opens_to_what_it_was_made_of_and_shows_none_of_it_before() -> None:
    assert unseal(SEALED, "pass word") == HELD
    assert seal(HELD, "pass word", FAST) != SEALED
    for word in (b"solver-1", b"salt" * 4, b"0x12", b"key/evm.json"):
        assert word not in SEALED
    with pytest.raises(WrongPassword):
        unseal(SEALED, "pass word ")


def test_every_altered_byte_is_noticed() -> None:
    for at in range(0, len(SEALED), 7):
        altered = bytearray(SEALED)
        altered[at] ^= 1
        with pytest.raises(ConfigError):
            unseal(bytes(altered), "pass word")
    for size in range(0, len(SEALED), 11):
        with pytest.raises(ConfigError):
            unseal(SEALED[:size], "pass word")


def header(**changes: object) -> bytes:
    line, rest = SEALED.split(b"\n", 1)
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n" + rest


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"n": 1 << 40}, id="memory-without-end"),
        pytest.param({"p": 1 << 30}, id="work-without-end"),
        pytest.param({"n": 1000}, id="no-power-of-two"),
        pytest.param({"n": "1024"}, id="text"),
        pytest.param({"salt": ""}, id="no-salt"),
        pytest.param({"nonce": None}, id="no-nonce"),
        pytest.param({"version": 2}, id="another-version"),
    ],
)
def test_a_hostile_first_line_costs_no_work(changes: dict[str, object]) -> None:
    began = time.process_time()
    with pytest.raises(BackupCorrupt):
        unseal(header(**changes), "pass word")
    assert time.process_time() - began < 1


@pytest.mark.parametrize("place", ["../evm.json", "/etc/passwd", "key/../../x", "a/b/c/d", ".hidden", ""])
def test_a_place_outside_of_its_folder_is_refused(place: str) -> None:
    with pytest.raises(BackupCorrupt):
        unseal(seal(SealedBackup("n", 0, {}, {place: b"x"}), "pass word", FAST), "pass word")
