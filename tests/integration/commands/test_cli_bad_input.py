"""What goes wrong is said in one sentence with a remedy, under a documented exit code, and nothing is lost.

Command lines that wait for a node that is down are processes, which wait together; the others end in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from assay.cli.endings import run_to_its_end
from assay.protocol.errors import ExitCode
from assay_ledger.chain.node import Anvil
from tests.harness.commands import EndedCommand, end_in_process

ADDRESS = "0x" + "11" * 20

_MAY_NOT = "-dac_override,-dac_read_search"
PLAIN_USER = () if os.geteuid() else ("setpriv", f"--bounding-set={_MAY_NOT}", f"--inh-caps={_MAY_NOT}")
"""What takes root's right to read everything away."""


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


DOWN, KEY = "http://127.0.0.1:1", "SECRETSECRET"
SHOW = ("run", "show", "--run", ADDRESS)
STATUSES = [("status",), ("solver", "status")]
URLS_WITH_A_KEY = (f"http://127.0.0.1:1/v3/{KEY}", f"http://me:{KEY}@127.0.0.1:1")

UNREACHED: dict[tuple[str, ...], dict[str, str]] = {
    (*SHOW, "--rpc-url", DOWN): {},
    (*SHOW, "--rpc-url", DOWN, "--json"): {},
    **{
        (*words, "--address", ADDRESS, "--json"): {"ASSAY_RUN": ADDRESS, "ETH_RPC_URL": DOWN, "ASSAY_STORE": "s"}
        for words in STATUSES
    },
}
"""Command lines about a node that is down, with what is configured for each."""


def _configured(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "ASSAY_CONFIG": str(folder / "none.toml"),
        "XDG_DATA_HOME": str(folder / "data"),
    } | environment


def _begin(folder: Path, *words: str, before: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    return subprocess.Popen(
        [*before, sys.executable, "-m", "assay", *words],
        env=kept | _configured(folder, environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _end(process: subprocess.Popen[str]) -> EndedCommand:
    output, said = process.communicate(timeout=150)
    return EndedCommand(process.returncode, output, said)


def _assay(folder: Path, *words: str, **environment: str) -> EndedCommand:
    return end_in_process(words, _configured(folder, environment))


@pytest.fixture(scope="module", autouse=True)
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], subprocess.Popen[str]]]:
    """The processes of command lines about a node that is down, by their words: begun before the first test, read by
    the last ones."""
    folder = tmp_path_factory.mktemp("waiting")
    begun = {words: _begin(folder, *words, **environment) for words, environment in UNREACHED.items()}
    for url in URLS_WITH_A_KEY:
        for words in (SHOW, (*SHOW, "--json")):
            begun[(url, *words)] = _begin(folder, *words, ETH_RPC_URL=url)
    yield begun
    for process in begun.values():
        process.kill()
        process.communicate()


def _check(done: EndedCommand, exit_code: int, code: str) -> None:
    assert done.returncode == exit_code, done.stderr
    (sentence,) = [row for row in done.stderr.splitlines() if row.startswith(f"{code}: ")]
    assert sentence.count(".") >= 2, "what happened, and what to do"
    assert "Traceback" not in done.stderr


def test_an_amount_with_any_exponent_is_refused_in_a_sentence(tmp_path: Path, node: Anvil) -> None:
    at = ("--run", ADDRESS, "--rpc-url", node.url, "--key", "me")
    for words in (("ledger", "stake"), ("gateway", "deposit", "--gateway", ADDRESS)):
        _check(_assay(tmp_path, *words, "1e99999999", *at), 2, "AmountInvalid")


def test_an_address_with_one_digit_wrong_is_paid_nothing(tmp_path: Path, node: Anvil) -> None:
    """Bad luck: a digit is lost on the way from a wallet, and nobody has the key of what is typed."""
    right = to_checksum_address("0x" + "ab" * 20)
    wrong = right[:-1] + ("1" if right[-1] != "1" else "2")
    for words in (("node", "fund", wrong), ("ledger", "faucet", right, wrong, "--run", ADDRESS, "--key", "me")):
        _check(_assay(tmp_path, *words, "--rpc-url", node.url), 2, "AddressUnchecked")
    for typed in (right, right.lower(), "0x" + right[2:].upper()):
        assert _assay(tmp_path, "node", "fund", typed, "--rpc-url", node.url).returncode == 0


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
        done = _end(_begin(tmp_path, *words, before=PLAIN_USER))
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


@pytest.mark.parametrize("words", STATUSES)
def test_a_status_that_cannot_be_had_says_why_and_ends_in_no_traceback(
    tmp_path: Path, node: Anvil, words: tuple[str, ...]
) -> None:
    asked, store = (*words, "--address", ADDRESS, "--json"), str(tmp_path / "s")
    there = {"ASSAY_RUN": ADDRESS, "ETH_RPC_URL": node.url, "ASSAY_STORE": store}
    cases = (
        ((*words, "--address", "0x12", "--json"), there, 2, "AddressInvalid"),
        (asked, {"ETH_RPC_URL": node.url}, 3, "RunMissing"),
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


def test_a_missing_node_is_named_with_the_remedy(tmp_path: Path) -> None:
    done = _assay(tmp_path, "demo", "--preset", "tiny", ASSAY_ANVIL=str(tmp_path / "nowhere"))
    _check(done, 3, "ToolMissing")


def test_a_node_that_is_down(waiting: dict[tuple[str, ...], subprocess.Popen[str]]) -> None:
    _check(_end(waiting[(*SHOW, "--rpc-url", DOWN)]), 4, "NodeUnreachable")


def test_an_error_is_a_document_too(waiting: dict[tuple[str, ...], subprocess.Popen[str]]) -> None:
    done = _end(waiting[(*SHOW, "--rpc-url", DOWN, "--json")])
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["exit_code"]) == ("NodeUnreachable", 4)
    assert error["remedy"]


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("words", STATUSES)
def test_a_status_of_a_node_that_is_down_is_a_document(
    waiting: dict[tuple[str, ...], subprocess.Popen[str]], words: tuple[str, ...]
) -> None:
    done = _end(waiting[(*words, "--address", ADDRESS, "--json")])
    _check(done, 4, "NodeUnreachable")
    assert json.loads(done.stdout)["error"]["code"] == "NodeUnreachable"


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("url", URLS_WITH_A_KEY)
def test_a_node_whose_url_holds_a_key_is_named_without_it(
    waiting: dict[tuple[str, ...], subprocess.Popen[str]], url: str
) -> None:
    for words in (SHOW, (*SHOW, "--json")):
        done = _end(waiting[(url, *words)])
        _check(done, 4, "NodeUnreachable")
        assert KEY not in done.stdout + done.stderr and "127.0.0.1:1" in done.stderr


def test_a_terminal_that_lacks_a_sign_ends_no_command(tmp_path: Path) -> None:
    """Bad luck: the locale of an older system, and a name, a reason or an ellipsis that its letters do not hold."""
    settings = {"ASSAY_STORE": "д…", "PYTHONIOENCODING": "latin-1"}
    lines, document = (_begin(tmp_path, "config", "show", *more, **settings) for more in ((), ("--json",)))
    shown, said = _end(lines), _end(document)
    assert (shown.returncode, said.returncode) == (0, 0)
    assert "\\u0434\\u2026" in shown.stdout and "д…" in str(json.loads(said.stdout))


def test_a_disk_that_takes_nothing_more_is_named_and_no_command_ends_in_a_traceback(tmp_path: Path) -> None:
    """A table or a document that is kept in a file, on a disk that fills up; and a stdout that was closed."""
    shell = ("sh", "-c", 'exec "$@" >/dev/full', "sh"), ("sh", "-c", 'exec "$@" >&-', "sh")
    words = ("config", "show"), ("config", "show", "--json"), ("--help",)
    full, closed = ([_begin(tmp_path, *more, before=to) for more in words] for to in shell)
    for ended in map(_end, full):
        assert ended.returncode == ExitCode.CONFIG, ended.stderr
        assert ended.stderr.startswith("DiskFull: ") and "Make room there" in ended.stderr
        assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert [(ended.returncode, ended.stderr) for ended in map(_end, closed)] == [(0, "")] * 3


def test_where_another_file_is_on_a_full_disk_a_script_is_told_on_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        with open("/dev/full", "w", encoding="utf-8") as file:
            file.write("whatever is kept there")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["assay", "--json"])
        assert run_to_its_end(command) == ExitCode.CONFIG
    sys.stdout.flush()
    said = capfd.readouterr()
    assert json.loads(said.out)["error"]["code"] == "DiskFull" and said.err.startswith("DiskFull: ")


@pytest.mark.parametrize(
    "words",
    [
        ("node", "start", "--port", "0", "--state"),
        ("economics", "simulate", "--epochs", "20", "--seeds", "4", "--blind-runs", "0", "--plots"),
    ],
    ids=["node", "simulate"],
)
def test_a_folder_that_cannot_be_made_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    (place := tmp_path / "file").write_text("")
    ended = end_in_process([*words, str(place / "folder")], _configured(tmp_path, {}))
    assert ended.returncode == ExitCode.CONFIG
    assert ended.stderr.splitlines()[-1].startswith("PathUnusable: ") and str(place) in ended.stderr
    assert "squatter" not in ended.stderr, "a minute of plays whose curves nothing can take"
