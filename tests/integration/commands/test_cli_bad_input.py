"""What goes wrong is said in one sentence with a remedy, under a documented exit code, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_ledger.chain.node import Anvil

ADDRESS = "0x" + "11" * 20

_MAY_NOT = "-dac_override,-dac_read_search"
PLAIN_USER = () if os.geteuid() else ("setpriv", f"--bounding-set={_MAY_NOT}", f"--inh-caps={_MAY_NOT}")
"""What takes root's right to read everything away."""


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


def _assay(
    folder: Path, *words: str, before: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    names = {"HOME": str(folder), "ASSAY_CONFIG": str(folder / "none.toml"), "XDG_DATA_HOME": str(folder / "data")}
    return subprocess.run(
        [*before, sys.executable, "-m", "assay", *words],
        env=kept | names | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=150,
    )


def _check(done: subprocess.CompletedProcess[str], exit_code: int, code: str) -> None:
    assert done.returncode == exit_code, done.stderr
    (sentence,) = [row for row in done.stderr.splitlines() if row.startswith(f"{code}: ")]
    assert sentence.count(".") >= 2, "what happened, and what to do"
    assert "Traceback" not in done.stderr


def test_a_node_that_is_down(tmp_path: Path) -> None:
    done = _assay(tmp_path, "run", "show", "--run", ADDRESS, "--rpc-url", "http://127.0.0.1:1")
    _check(done, 4, "NodeUnreachable")


def test_a_node_whose_url_holds_a_key_is_named_without_it(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:1/v3/SECRETSECRET", "http://me:SECRETSECRET@127.0.0.1:1"):
        for words in (("run", "show", "--run", ADDRESS), ("run", "show", "--run", ADDRESS, "--json")):
            done = _assay(tmp_path, *words, ETH_RPC_URL=url)
            _check(done, 4, "NodeUnreachable")
            assert "SECRET" not in done.stdout + done.stderr and "127.0.0.1:1" in done.stderr


def test_an_amount_with_any_exponent_is_refused_in_a_sentence(tmp_path: Path, node: Anvil) -> None:
    at = ("--run", ADDRESS, "--rpc-url", node.url, "--key", "me")
    for words in (("ledger", "stake"), ("gateway", "deposit", "--gateway", ADDRESS)):
        _check(_assay(tmp_path, *words, "1e99999999", *at), 2, "AmountInvalid")


def test_a_key_without_coins_posts_nothing(tmp_path: Path, node: Anvil) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse")
    assert _assay(tmp_path, "key", "new", "poor", "--kdf", "pbkdf2", ETH_PASSWORD=str(password)).returncode == 0
    post = ("run", "post", "--preset", "tiny", "--key", "poor", "--rpc-url", node.url, "--store", str(tmp_path / "s"))
    done = _assay(tmp_path, *post, "--yes", "--json", ETH_PASSWORD=str(password))
    _check(done, 5, "GasShort")
    assert json.loads(done.stdout)["error"]["code"] == "GasShort"


def test_a_chain_whose_number_is_beyond_doubles_is_spoken_to_like_any(tmp_path: Path) -> None:
    with Anvil(chain_id=(1 << 53) + 1) as odd:
        words = ("run", "show", "--run", ADDRESS, "--rpc-url", odd.url, "--json")
        _check(_assay(tmp_path, *words), 6, "NotARun")
        done = _assay(tmp_path, "doctor", "--json", ETH_RPC_URL=odd.url)
        (row,) = [row for row in json.loads(done.stdout) if row["name"] == "chain"]
        assert str((1 << 53) + 1) in row["found"]


@pytest.mark.parametrize("inside", ["", "names"], ids=["store", "folder"])
def test_a_folder_that_is_denied_is_named_as_denied_and_not_as_unreachable(
    tmp_path: Path, node: Anvil, inside: str
) -> None:
    denied = tmp_path / "store" / inside
    denied.mkdir(parents=True)
    denied.chmod(0)
    try:
        words = ("run", "list", "--rpc-url", node.url, "--store", str(tmp_path / "store"), "--json")
        done = _assay(tmp_path, *words, before=PLAIN_USER)
    finally:
        denied.chmod(0o700)
    _check(done, 4, "StoreDenied")
    assert "permission" in json.loads(done.stdout)["error"]["remedy"]


def test_an_address_without_a_run(tmp_path: Path, node: Anvil) -> None:
    _check(_assay(tmp_path, "run", "show", "--run", ADDRESS, "--rpc-url", node.url), 6, "NotARun")


def test_no_run_no_store_no_key_named(tmp_path: Path, node: Anvil) -> None:
    _check(_assay(tmp_path, "run", "show", "--rpc-url", node.url), 3, "RunMissing")
    _check(_assay(tmp_path, "run", "list", "--rpc-url", node.url), 3, "StoreMissing")
    _check(_assay(tmp_path, "run", "post", "--rpc-url", node.url, "--store", str(tmp_path / "s")), 3, "KeyNotNamed")


@pytest.mark.parametrize("words", [("status",), ("solver", "status")])
def test_a_status_that_cannot_be_had_says_why_and_ends_in_no_traceback(
    tmp_path: Path, node: Anvil, words: tuple[str, ...]
) -> None:
    asked, store = (*words, "--address", ADDRESS, "--json"), str(tmp_path / "s")
    there = {"ASSAY_RUN": ADDRESS, "ETH_RPC_URL": node.url, "ASSAY_STORE": store}
    down = there | {"ETH_RPC_URL": "http://127.0.0.1:1"}
    cases = (
        ((*words, "--address", "0x12", "--json"), there, 2, "AddressInvalid"),
        (asked, {"ETH_RPC_URL": node.url}, 3, "RunMissing"),
        (asked, down, 4, "NodeUnreachable"),
        (asked, there, 6, "NotARun"),
    )
    for typed, environment, exit_code, code in cases:
        done = _assay(tmp_path, *typed, **environment)
        _check(done, exit_code, code)
        assert json.loads(done.stdout)["error"]["code"] == code


def test_a_status_of_nobody_is_asked_for_wrongly(tmp_path: Path, node: Anvil) -> None:
    _check(_assay(tmp_path, "status", "--run", ADDRESS, "--rpc-url", node.url), 2, "AddressMissing")


def test_a_wrong_password_and_one_that_nobody_can_type(tmp_path: Path, node: Anvil) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("correct horse")
    wrong.write_text("battery staple")
    made = _assay(tmp_path, "key", "new", "me", "--kdf", "pbkdf2", ETH_PASSWORD=str(right))
    assert made.returncode == 0, made.stderr
    post = ("run", "post", "--preset", "tiny", "--key", "me", "--rpc-url", node.url, "--store", str(tmp_path / "s"))
    _check(_assay(tmp_path, *post, ETH_PASSWORD=str(wrong)), 3, "WrongPassword")
    _check(_assay(tmp_path, *post), 3, "PasswordMissing")


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "EmptyData"), (b"\xff\xfe\x00not text", "DataNotUtf8"), (b"short", "EmptyData")]
)
def test_a_data_file_that_cannot_be_trained_on(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    _check(_assay(tmp_path, "demo", "--preset", "tiny", "--data", str(path)), 1, code)


def test_senseless_cheats_and_presets(tmp_path: Path) -> None:
    _check(_assay(tmp_path, "demo", "--cheat", "none", "--cheat", "squatter"), 2, "CheatNone")
    _check(_assay(tmp_path, "demo", "--preset", "gigantic"), 1, "UnknownPreset")
    assert _assay(tmp_path, "demo", "--cheat", "magic").returncode == 2


def test_an_error_is_a_document_too(tmp_path: Path) -> None:
    done = _assay(tmp_path, "run", "show", "--run", ADDRESS, "--rpc-url", "http://127.0.0.1:1", "--json")
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["exit_code"]) == ("NodeUnreachable", 4)
    assert error["remedy"]


def test_a_missing_node_is_named_with_the_remedy(tmp_path: Path) -> None:
    done = _assay(tmp_path, "demo", "--preset", "tiny", ASSAY_ANVIL=str(tmp_path / "nowhere"))
    _check(done, 3, "ToolMissing")
