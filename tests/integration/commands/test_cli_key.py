"""`assay key` as a script and as a person use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay.cli.key import app, unlock
from assay.cli.password import PasswordFileUnreadable, PasswordMissing, read_password
from assay_ledger.keys.kdf import KeystoreCorrupt, WrongPassword
from assay_ledger.keys.keystore import KeyExists, KeyMissing, KeyNamedTwice, KeyNameInvalid, load_keys


class Shell:
    """Runs commands with a keys folder and a password file, and never a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password_file = folder / "password"
        self.password_file.write_text("correct horse\n")

    def __call__(self, *arguments: str, password: bool = True) -> Result:
        env = {"ASSAY_KEYS_DIR": str(self.folder / "keys"), "COLUMNS": "80"}
        env |= {"ETH_PASSWORD": str(self.password_file)} if password else {}
        return CliRunner().invoke(app, arguments, env=env)

    def json(self, *arguments: str) -> object:
        result = self(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def new(shell: Shell, name: str, *more: str) -> object:
    return shell.json("new", name, "--kdf", "pbkdf2", *more)


def test_a_new_key_is_printed_as_json_and_listed(shell: Shell) -> None:
    made = new(shell, "verifier-1")
    assert isinstance(made, dict)
    assert made.keys() == {"name", "address", "path"}
    assert new(shell, "solver-1") != made
    listed = shell.json("list")
    assert isinstance(listed, list)
    assert [entry["name"] for entry in listed] == ["solver-1", "verifier-1"]
    assert listed[1] == made


def test_several_keys_are_made_at_once_under_one_password(shell: Shell) -> None:
    made = new(shell, "one", "two")
    assert isinstance(made, list) and [entry["name"] for entry in made] == ["one", "two"]
    assert len({entry["address"] for entry in made}) == 2
    assert shell.json("list") == made


@pytest.mark.parametrize(
    ("names", "kind"),
    [(("one", "taken"), KeyExists), (("one", "one"), KeyNamedTwice), (("one", "no/name"), KeyNameInvalid)],
)
def test_of_several_keys_none_is_made_where_one_cannot_be(shell: Shell, names: tuple[str, ...], kind: type) -> None:
    new(shell, "taken")
    refused = shell("new", *names, "--kdf", "pbkdf2")
    assert isinstance(refused.exception, kind) and refused.exception.remedy
    assert [entry["name"] for entry in shell.json("list")] == ["taken"]  # type: ignore[attr-defined]


def test_the_keys_made_open_with_the_line_in_the_password_file(shell: Shell) -> None:
    made = new(shell, "v")
    assert isinstance(made, dict)
    assert load_keys(Path(made["path"]), "correct horse").account.address == made["address"]


def test_commands_that_sign_unlock_a_key_by_name_or_path(shell: Shell) -> None:
    made = new(shell, "v")
    assert isinstance(made, dict)
    by_name = unlock("v", shell.folder / "keys", shell.password_file)
    by_path = unlock(made["path"], shell.folder / "elsewhere", shell.password_file)
    assert by_name.account.address == by_path.account.address == made["address"]


def test_the_table_shows_whole_keys_and_talk_stays_off_stdout(shell: Shell) -> None:
    result = shell("new", "v", "--kdf", "pbkdf2")
    made = shell.json("list")
    assert isinstance(made, list)
    assert made[0]["address"] in result.stdout
    assert "test-recovery" in result.stderr
    assert "test-recovery" not in result.stdout


def test_an_empty_list_says_how_to_make_a_key(shell: Shell) -> None:
    result = shell("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "assay key new" in result.stderr
    assert shell.json("list") == []


def test_a_key_goes_out_to_a_backup_is_tested_and_comes_back(shell: Shell) -> None:
    made = new(shell, "v")
    backup = shell.folder / "backup"
    assert shell.json("export", "v", str(backup)) == {"files": [str(backup / "evm.json")]}
    tested = shell.json("test-recovery", "v", "--backup", str(backup))
    assert isinstance(tested, dict)
    assert isinstance(made, dict)
    assert (tested["recovers"], tested["address"]) == (True, made["address"])
    again = shell.json("import", "again", str(backup / "evm.json"))
    assert isinstance(again, dict)
    assert again["address"] == made["address"]


def test_what_goes_wrong_is_an_error_with_a_code_and_a_remedy(shell: Shell) -> None:
    new(shell, "v")
    other = new(shell, "w")
    assert isinstance(other, dict)
    assert isinstance(shell("new", "v", "--kdf", "pbkdf2").exception, KeyExists)
    assert isinstance(shell("test-recovery", "nobody").exception, KeyMissing)
    assert isinstance(shell("test-recovery", "v", "--backup", other["path"]).exception, KeystoreCorrupt)
    shell.password_file.write_text("battery staple")
    assert isinstance(shell("test-recovery", "v").exception, WrongPassword)
    (Path(other["path"]) / "evm.json").write_text("{")
    assert isinstance(shell("list").exception, KeystoreCorrupt)


def test_without_a_password_file_or_a_terminal_nothing_is_asked(shell: Shell) -> None:
    result = shell("new", "v", password=False)
    assert isinstance(result.exception, PasswordMissing)
    assert "ETH_PASSWORD" in result.exception.remedy
    assert not (shell.folder / "keys").exists()


def test_no_command_takes_a_password_as_an_argument() -> None:
    for command in ("new", "import", "test-recovery"):
        text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        assert "--password-file" in text
        assert "--password " not in text
        assert "Example: assay key" in text


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines\n", b"\xff\xfe", b"x" * 5000])
def test_a_password_file_must_hold_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(PasswordFileUnreadable):
        read_password(file, what="a test")
    with pytest.raises(PasswordFileUnreadable):
        read_password(tmp_path / "absent", what="a test")


def test_only_the_line_end_is_cut_from_a_password_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b" spaces kept \r\n")
    assert read_password(file, what="a test") == " spaces kept "
