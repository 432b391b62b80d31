"""What may be said at a command line may be said in a service's file, and reaches the child that it is for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from assay.cli.main import command_tree
from assay.cli.sponsors import UnknownSponsor, check_sponsor
from assay.service.config import Common, RoleEntry, ServiceFile, ServiceFileInvalid, read_service_file
from assay.service.keeping import Children
from assay.settings import ENVIRONMENT, Settings, resolve

SPONSOR: Final = "0x" + "5b" * 20

OUTSIDE: Final = {
    "log_format": "[service] says it for all",
    "again": "is said once, by a person who has looked; a file would say it at every start",
    "cheat": "is for demonstrations",
    "standby": "waits on another machine for as long as the first lives, and /health asks for a loop that turns",
    "config": "a service runs no other service",
    "json": "nobody reads what a child prints",
    "help": "",
}
"""What a file of a service deliberately cannot say, and why."""

NAMED: Final = {"gateway": "gateways"}
"""Options that are called otherwise in the file, where they are said once."""

FILE: Final = f"""
[common]
rpc_url = "http://127.0.0.1:1"
run = "0x{"ab" * 20}"
sponsor = "{SPONSOR}"

[[role]]
role = "verifier"
key = "ver"
password_file = "/run/secrets/ver"
data_dir = "/var/lib/assay/ver"
"""

VALUES: Final[dict[str, object]] = {
    "rpc_url": "https://node.example",
    "rpc_per_second": 12.5,
    "ws_url": "wss://node.example",
    "store": "/srv/store",
    "run": "0x" + "ab" * 20,
    "keys_dir": "/srv/keys",
    "allow_code": "0x" + "cd" * 32,
    "sponsor": SPONSOR,
    "tip_floor": 7,
    "drand_relays": "https://relay.example",
    "signer": "http://signer.example",
    "index_url": "sqlite:////srv/events.sqlite",
}


def options_of(role: str) -> set[str]:
    """The options of a role's `start`, by their long names."""
    command: Any = command_tree()
    for word in ("service" if role == "explorer" else role, "start"):
        command = command.commands[word]
    return {option.opts[0].removeprefix("--").replace("-", "_") for option in command.params}


def written(folder: Path, text: str) -> ServiceFile:
    path = folder / "service.toml"
    path.write_text(text)
    return read_service_file(path)


def environment_in(folder: Path, text: str) -> dict[str, str]:
    """What the file's one child is started with, and nothing of what the tests were."""
    [child] = Children(written(folder, text)).all
    return {name: child.environment[name] for name in ENVIRONMENT.values() if name in child.environment}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "none.toml"))


@pytest.mark.parametrize("role", ["solver", "verifier", "whistleblower", "explorer"])
def test_a_file_says_whatever_the_command_line_of_a_role_says(role: str) -> None:
    options = options_of(role)
    assert {"rpc_url", "run"} < options
    missing = {NAMED.get(name, name) for name in options - set(OUTSIDE)} - set(RoleEntry.model_fields)
    assert not missing, "add them to the service's file, or to those that it deliberately leaves out"


def test_a_file_says_whatever_the_settings_say() -> None:
    assert set(Settings.model_fields) - set(OUTSIDE) <= set(RoleEntry.model_fields)
    assert {"log_format"} <= set(ServiceFile.model_fields)


def test_every_common_setting_reaches_the_child(tmp_path: Path) -> None:
    assert set(VALUES) == set(Common.model_fields)
    entry = FILE[FILE.index("[[role]]") :]
    lines = "".join(f"{name} = {value!r}\n" for name, value in VALUES.items())
    for text in (f"[common]\n{lines}{entry}", entry + lines):
        settings = resolve({}, environment_in(tmp_path, text)).settings
        assert {name: getattr(settings, name) for name in VALUES} == VALUES | {"keys_dir": Path("/srv/keys")}


def test_a_child_works_for_the_sponsor_that_the_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child has no terminal to be asked at: on any chain but a local one it would be refused for ever."""
    monkeypatch.setattr("assay.node.local.is_local", lambda _chain: False)
    monkeypatch.setattr("assay.cli.sponsors.remembered_in", lambda: tmp_path / "sponsors")
    run: Any = SimpleNamespace(
        charter=SimpleNamespace(sponsor=bytes.fromhex(SPONSOR[2:])), chain=SimpleNamespace(chain_id=1)
    )
    keys = f'keys_dir = "{tmp_path}"\n'
    given = resolve({}, environment_in(tmp_path, FILE + keys)).settings
    check_sponsor(run, given)
    without = FILE.replace(f'sponsor = "{SPONSOR}"\n', "") + keys
    with pytest.raises(UnknownSponsor) as caught:
        check_sponsor(run, resolve({}, environment_in(tmp_path, without)).settings)
    assert "setting `sponsor`" in caught.value.remedy


@pytest.mark.parametrize("amount", ["12500000wei", "120", "12.5", "1_000"])
def test_a_deposit_is_what_the_command_line_takes(tmp_path: Path, amount: str) -> None:
    """TokenChanged asks for the smallest unit: a file that refused it would leave its actor down."""
    [child] = Children(written(tmp_path, FILE + f'deposit = "{amount}"\n')).all
    assert list(child.argv[-2:]) == ["--deposit", amount]


@pytest.mark.parametrize("amount", ["0", "-1", "many", "1e9999999", "12 000wei", ""])
def test_a_deposit_that_is_no_amount_is_refused_with_what_is_one(tmp_path: Path, amount: str) -> None:
    with pytest.raises(ServiceFileInvalid, match=r"deposit: .*12500000wei") as caught:
        written(tmp_path, FILE + f'deposit = "{amount}"\n')
    assert not amount or repr(amount) not in caught.value.message
