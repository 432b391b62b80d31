"""Every verb takes --json, and every wrong command line is one document and exit code 2."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.protocol.errors import ConfigError, ExitCode
from tests.harness.commands import CONFIGURED

ROOT = Path(__file__).parents[3]

PRODUCED = {
    ExitCode.OK: "commands/test_command_line.py::test_a_valid_configuration_is_a_document_too",
    ExitCode.ERROR: "commands/test_cli_bad_input.py::test_senseless_cheats_and_presets",
    ExitCode.USAGE: "commands/test_cli_bad_input.py::test_senseless_cheats_and_presets",
    ExitCode.CONFIG: "commands/test_cli_bad_input.py::test_no_run_no_store_no_key_named",
    ExitCode.NETWORK: "commands/test_cli_bad_input.py::test_an_error_is_a_document_too",
    ExitCode.FUNDS: "commands/test_cli_bad_input.py::test_a_key_without_coins_posts_nothing",
    ExitCode.REJECTED: "commands/test_cli_bad_input.py::test_an_address_without_a_run",
    ExitCode.NUMERICS: "commands/test_cli_program.py::test_the_command_line_says_it_and_exits_with_the_code",
    ExitCode.FRAUD: "commands/test_bundle.py::test_the_exit_code_says_whether_a_file_lies_or_is_none",
    ExitCode.DEADLINE: "actors/test_watchdog.py::test_a_deadline_that_is_missed_ends_a_look_at_a_run_with_9",
    ExitCode.CANCELLED: "commands/test_command_line.py::test_a_question_that_nobody_answers_is_cancelled",
    ExitCode.PARTED: "commands/test_cli_program.py::test_a_program_that_trains_something_else_ends_its_process_with_11",
    ExitCode.NO: "commands/test_run_commands.py::test_who_asks_whether_it_can_join_is_told_every_reason",
    ExitCode.INTERRUPTED: "commands/test_demo_endings.py",
}
"""A test for each exit code of the table: a file under tests (integration unless named), and its function."""


def verbs() -> dict[str, Any]:
    """Every verb of the command tree by its words, with typer's command."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, (*words, name))
        if not hasattr(command, "commands"):
            yield " ".join(words), command

    return dict(walk(main.command_tree(), ()))


VERBS = verbs()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line as its process would; its exit code, the document on stdout, and stderr."""
    for name in CONFIGURED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSAY_CONFIG", "/dev/null")

    def run(*words: str) -> tuple[int, Any, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *words])
        with pytest.raises(SystemExit) as end:
            main.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), json.loads(said.out), said.err

    return run


def check_wrong(found: tuple[int, Any, str], code: str, words: str) -> None:
    exit_code, document, said = found
    error = document["error"]
    assert (exit_code, error["exit_code"], error["code"]) == (ExitCode.USAGE, 2, code), said
    assert error["message"].endswith((".", "?")) and f"`{words} --help`" in error["remedy"]
    assert f"{code}: " in said and "Traceback" not in said


def test_the_tree_is_the_whole_of_it() -> None:
    assert len(VERBS) > 50 and {"demo", "run can-join", "solver start", "ledger claim", "dispute watch"} <= set(VERBS)


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words.replace(" ", "-"))
def test_every_verb_takes_json_and_shows_an_example(words: str) -> None:
    command = VERBS[words]
    assert any("--json" in parameter.opts for parameter in command.params), words
    assert f"assay {words.split()[0]}" in (command.epilog or ""), "no example"


def test_an_option_that_no_verb_has_is_a_document_of_every_verb(ended: Any) -> None:
    for words in VERBS:
        check_wrong(ended(*words.split(), "--json", "--no-such-thing"), "NoSuchOption", f"assay {words}")


def test_what_is_missing_is_named_of_every_verb_that_needs_something(ended: Any) -> None:
    needing = [words for words, command in VERBS.items() if any(p.required for p in command.params)]
    assert len(needing) > 15
    for words in needing:
        check_wrong(ended(*words.split(), "--json"), "MissingParameter", f"assay {words}")


def test_one_argument_too_many_is_named_of_every_verb(ended: Any) -> None:
    taking = [w for w, c in VERBS.items() if all(p.param_type_name != "argument" for p in c.params)]
    for words in taking:
        given = [w for p in VERBS[words].params if p.required for w in (p.opts[0], "1")]
        check_wrong(ended(*words.split(), *given, "--json", "one-too-many"), "WrongUsage", f"assay {words}")


@pytest.mark.parametrize(
    ("words", "code", "helped"),
    [
        (("frobnicate", "--json"), "NoSuchCommand", "assay"),
        (("run", "frobnicate", "--json"), "NoSuchCommand", "assay run"),
        (("--json",), "NoSuchOption", "assay"),
        (("run", "--json"), "NoSuchOption", "assay run"),
        (("verifier", "start", "--tickets", "many", "--json"), "BadParameter", "assay verifier start"),
        (("verifier", "start", "--tickets", "0", "--json"), "BadParameter", "assay verifier start"),
        (("run", "show", "--json", "--run"), "BadOptionUsage", "assay"),
    ],
    ids=["noun", "verb", "option-alone", "option-of-a-noun", "value", "range", "no-value"],
)
def test_a_wrong_word_is_a_document(ended: Any, words: tuple[str, ...], code: str, helped: str) -> None:
    check_wrong(ended(*words), code, helped)


def test_an_address_or_a_setting_that_is_none_is_a_document(ended: Any) -> None:
    exit_code, document, _ = ended("run", "show", "--run", "0x12", "--json")
    assert (exit_code, document["error"]["code"]) == (ConfigError.exit_code, "ConfigInvalid")


def test_a_valid_configuration_is_a_document_too(ended: Any) -> None:
    exit_code, document, _ = ended("config", "validate", "--json")
    assert (exit_code, document["valid"]) == (ExitCode.OK, True)


def test_what_nobody_foresaw_is_a_document_and_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_settings: object = None) -> None:
        raise ZeroDivisionError("by nobody's fault")

    monkeypatch.setattr("assay.cli.config.resolve", fail)
    monkeypatch.setattr(sys, "argv", ["assay", "config", "validate", "--json"])
    with pytest.raises(ZeroDivisionError):
        main.main()
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["exit_code"]) == ("Unforeseen", 1) and "nobody's fault" in error["message"]


def test_a_process_that_ends_does_not_look_through_all_that_it_holds() -> None:
    code = (
        "import atexit, gc, sys\nfrom assay.cli.main import main\n"
        "atexit.register(lambda: print('frozen:', gc.get_freeze_count() > 0))\n"
        "sys.argv = ['assay', '--version']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("frozen: True\n"), done.stderr


def test_a_question_that_nobody_answers_is_cancelled(tmp_path: Path) -> None:
    # A key needs a password; whoever ends the input at a terminal has said no.
    here, there = pty.openpty()
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "key", "new", "me", "--kdf", "pbkdf2", "--keys-dir", str(tmp_path), "--json"],
        env=kept | {"ASSAY_CONFIG": "/dev/null"},
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=there,
        text=True,
        start_new_session=True,
    )
    os.close(there)
    said = b""
    while b"assword" not in said:
        said += os.read(here, 1000)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        os.write(here, b"\x04")  # again: what is typed before the terminal stops showing it is dropped
        time.sleep(0.05)
    output, _ = process.communicate(timeout=1)
    os.close(here)
    assert process.returncode == ExitCode.CANCELLED, said
    assert json.loads(output)["error"]["code"] == "Cancelled" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name.lower())
def test_every_documented_exit_code_is_produced_by_some_test(code: ExitCode) -> None:
    file, _, function = PRODUCED[code].partition("::")
    path = ROOT / "tests" / (file if file.startswith("unit") else f"integration/{file}")
    text = path.read_text(encoding="utf-8")
    if function:
        start = text.index(f"def {function}(")
        text = text[start : (text.find("\ndef ", start) + 1) or None]
    number = rf"(?<![\w.]){int(code)}(?![\w.])"
    assert f"ExitCode.{code.name}" in text or re.search(number, text), f"{PRODUCED[code]} does not produce {code.name}"
