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
EARLIER = (
    "7b22666f726d6174223a20226173736179206261636b7570222c202276657273696f6e223a20312c20226e223a2031303234"
    "2c202272223a20382c202270223a20312c202273616c74223a20223437346266393862623362356531336666346262656537"
    "3839353631336134656564663934346437346330306134396437346238353533643832336339343563222c20226e6f6e6365"
    "223a2022633766663031613530636132326135663066343331626239227d0a63ae709b9dba17c63973e47a1439b3d05971f4"
    "db667c7c97d6ba3c18711e1b199ab47d46e766e24dc442f2762a2ba124c335883563dc09ed54864986c18e24773e400ea9cf"
    "ddcf185af157641412057fce3bb0207023c78993df0562f4cc7ca7"
)


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


def test_a_copy_that_was_cut_short_is_not_taken_for_a_wrong_password() -> None:
    """Bad luck: a copy onto a full stick; its owner looks for a password that was right."""
    begins = SEALED.index(b"\n") + 1
    for damaged in (SEALED[:-1], SEALED[: begins + 20], SEALED[:begins], SEALED + b"\0"):
        with pytest.raises(BackupCorrupt, match=f"not whole: {len(damaged) - begins} bytes"):
            unseal(damaged, "pass word")


def test_a_backup_of_an_earlier_release_opens() -> None:
    """It does not say its size."""
    data = bytes.fromhex(EARLIER)
    assert unseal(data, "pass word") == SealedBackup("sol", 7, {}, {"key/evm.json": b"{}"})
    with pytest.raises(WrongPassword, match="or the file is damaged"):
        unseal(data[:-1], "pass word")


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
        pytest.param({"size": "much"}, id="no-size"),
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
