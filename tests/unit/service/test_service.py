"""A service's file, its children and its unit: what is refused, started again, given up, stopped in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from assay.protocol.errors import ExitCode
from assay.service.backoff import MOST_S, STEADY_S, ChildState, after_end
from assay.service.config import ServiceFile, ServiceFileInvalid, arguments_of, environment_of, read_service_file
from assay.service.keeping import Children
from assay.service.status import ServiceStatus
from assay.service.unit import unit_of
from tests.harness.actors.scraping import one, samples_of

RUN = "0x" + "ab" * 20
TWO = f"""
[service]
status = "127.0.0.1:0"
stop_s = 5

[common]
rpc_url = "https://user:hunter22@node.example/v3/sekretsekret"
store = "/srv/store"
run = "{RUN}"

[[role]]
role = "solver"
key = "sol"
password_credential = "sol-password"
data_dir = "/var/lib/assay/sol"
deposit = "120"

[[role]]
role = "explorer"
port = 0
store = "/srv/other"
bonds = "0x00000000000000000000000000000000000000b0"
gateways = ["http://one:8000", "https://two"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "service.toml"
    path.write_text(text)
    return path


def test_settings_go_by_the_environment_and_no_secret_by_arguments(tmp_path: Path) -> None:
    file = read_service_file(written(tmp_path, TWO))
    solver, explorer = file.roles
    outer = {"CREDENTIALS_DIRECTORY": "/run/credentials/assay", "ETH_KEYSTORE": "another", "PATH": "/bin"}
    found = environment_of(file, solver, outer)
    assert found["ETH_PASSWORD"] == "/run/credentials/assay/sol-password" and found["ETH_KEYSTORE"] == "sol"
    assert found["ASSAY_STORE"] == "/srv/store" and found["ASSAY_LOG_FORMAT"] == "json" and found["PATH"] == "/bin"
    shown = environment_of(file, explorer, outer)
    assert shown["ASSAY_STORE"] == "/srv/other" and "ETH_KEYSTORE" not in shown and "ETH_PASSWORD" not in shown
    assert arguments_of(solver) == ["solver", "start", "--deposit", "120"]
    bonds = "0x" + "b0".rjust(40, "0")
    words = ["service", "start", "--host", "127.0.0.1", "--port", "0", "--bonds", bonds]
    words += ["--gateway", "http://one:8000", "--gateway", "https://two"]
    assert arguments_of(explorer) == words
    assert arguments_of(explorer.model_copy(update={"device": "cpu"})) == [*words, "--device", "cpu"]
    assert "hunter22" not in str([arguments_of(entry) for entry in file.roles])


WRONG = {
    "unknown key": (TWO + "\ntikets = 2\n", "tikets"),
    "no key": (TWO.replace('key = "sol"\n', ""), "key"),
    "no password": (TWO.replace('password_credential = "sol-password"\n', ""), "password_file"),
    "no folder": (TWO.replace('data_dir = "/var/lib/assay/sol"\n', ""), "data_dir"),
    "no roles": ("[service]\n", "role"),
    "roles by another word": (TWO.replace("[[role]]", "[[roles]]", 1), "roles"),
    "roles of the service": (TWO.replace("stop_s = 5", "stop_s = 5\nroles = []"), "roles"),
    "service is no table": (TWO.replace('[service]\nstatus = "127.0.0.1:0"\nstop_s = 5', 'service = "x"'), "service"),
    "place twice": (
        TWO.replace('status = "127.0.0.1:0"', 'status = "127.0.0.1:9640"') + 'metrics = "127.0.0.1:9640"\n',
        "two would listen at 127.0.0.1:9640",
    ),
    "port twice": (
        (TWO[: TWO.index("bonds =")] + '[[role]]\nrole = "explorer"\n').replace("port = 0", "port = 8080"),
        "two would listen at 127.0.0.1:8080",
    ),
    "unknown role": (TWO.replace('"explorer"', '"sponsor"'), "role"),
    "credential that climbs": (TWO.replace('"sol-password"', '"../x"'), "password_credential"),
    "bonds of an actor": (TWO.replace('deposit = "120"', 'bonds = "0x' + "b0" * 20 + '"'), "bonds"),
    "gateways of an actor": (TWO.replace('deposit = "120"', 'gateways = ["http://x"]'), "gateways"),
    "bonds that are no address": (TWO.replace("000000b0", "000000b"), "bonds"),
    "no TOML": ("[service", "cannot be read"),
    "folder twice": (TWO + TWO[TWO.index("[[role]]") : TWO.index("deposit")], "data_dir"),
    "role is no table": ("role = 5\n", "role"),
}


@pytest.mark.parametrize(("text", "named"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_by_what_is_wrong_and_quotes_no_value(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ServiceFileInvalid) as caught:
        read_service_file(written(tmp_path, text))
    assert named in caught.value.message and "hunter22" not in caught.value.message


def test_a_setting_that_a_child_would_refuse_is_refused_before_any_starts(tmp_path: Path) -> None:
    text = TWO.replace(RUN, "0x12").replace("password_credential", "password_file")
    file = read_service_file(written(tmp_path, text))
    with pytest.raises(ServiceFileInvalid, match="run"):
        Children(file)


def test_a_credential_without_systemd_is_refused(tmp_path: Path) -> None:
    file = read_service_file(written(tmp_path, TWO))
    with pytest.raises(ServiceFileInvalid, match="sol-password"):
        environment_of(file, file.roles[0], {})


def test_waits_double_up_to_a_minute_and_a_steady_run_forgives() -> None:
    waits = [after_end(1, 1.0, ends).wait_s for ends in range(9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60] and max(waits) == MOST_S
    assert after_end(1, STEADY_S, 50).wait_s == 1
    assert after_end(-9, 1.0, 0).why.startswith("signal 9")


@pytest.mark.parametrize("code", [*(c for c in ExitCode if c not in (ExitCode.OK, ExitCode.USAGE)), -6, -9, -15])
def test_an_actor_is_started_again_however_often_it_ends(code: int) -> None:
    """Attacks: a node kept away for ten minutes, a port or a folder that another process holds, memory that others
    took, a SIGTERM of somebody else's: an actor that is left down for any of it loses the game that it stands in."""
    for ends in (0, 9, 10, 1000, 10**6):
        found = after_end(code, 1.0, ends)
        assert found.state is ChildState.WAITING and 0 < found.wait_s <= MOST_S


def test_what_another_start_cannot_help_is_given_up_at_once() -> None:
    assert after_end(ExitCode.USAGE, 1.0, 0).state is ChildState.GIVEN_UP


def test_what_serves_is_never_done() -> None:
    assert after_end(ExitCode.OK, 1.0, 0, serves=True).state is ChildState.WAITING
    assert after_end(ExitCode.OK, 1.0, 0).state is ChildState.DONE


SCRIPT = """
import os, signal, sys, time
log = open(sys.argv[1], "a", buffering=1)
what = sys.argv[2]
print(f"{what} is here", flush=True)
if what == "solver":
    def end(*_):
        time.sleep(0.3)
        log.write("end solver\\n")
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
elif what == "verifier":
    log.write("start verifier\\n")
    sys.exit(2)
elif what == "whistleblower":
    log.write("start whistleblower\\n")
    sys.exit(4)
else:
    signal.signal(signal.SIGTERM, lambda *_: (log.write("end explorer\\n"), sys.exit(0)))
log.write(f"start {what}\\n")
while True:
    time.sleep(0.05)
"""


def role(name: str, folder: Path) -> str:
    entry = f'[[role]]\nrole = "{name}"\n'
    if name != "explorer":
        entry += f'key = "k"\npassword_file = "/x"\ndata_dir = "{folder / name}"\n'
    return entry


def test_real_children_are_started_again_given_up_and_stopped_in_order(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    roles = ("solver", "verifier", "whistleblower", "explorer")
    file = read_service_file(written(tmp_path, "".join(role(name, tmp_path) for name in roles)))
    (tmp_path / "child.py").write_text(SCRIPT)
    log = tmp_path / "log"
    children = Children(file, program=[sys.executable, str(tmp_path / "child.py"), str(log)])
    stop, status = threading.Event(), ServiceStatus(children)
    # `service start` is the explorer's command: the script is told "service", and takes it for one that serves.
    thread = threading.Thread(target=children.run, args=(stop,))
    thread.start()
    end = time.monotonic() + 120
    # Who says that it starts hears from then on that it is to end.
    begun = Counter[str]()
    states = dict[str, ChildState]()
    while begun["start whistleblower"] < 3 or len(begun) < 4 or states["verifier"] is ChildState.RUNNING:
        assert time.monotonic() < end
        time.sleep(0.05)
        begun = Counter(log.read_text().splitlines() if log.exists() else [])
        states = {child.entry.name: child.state for child in children.all}
    assert (states["solver"], states["verifier"]) == (ChildState.RUNNING, ChildState.GIVEN_UP)
    assert not status.is_alive and status.conditions()["solver"] and not status.conditions()["verifier"]
    found = samples_of(status.text())
    assert one(found, "assay_service_child_up", child="solver") == 1
    assert one(found, "assay_service_child_up", child="verifier") == 0
    assert one(found, "assay_service_starts_total", child="whistleblower") >= 3
    stop.set()
    thread.join(timeout=60)
    assert not thread.is_alive()
    lines = log.read_text().splitlines()
    assert [line for line in lines if line.startswith("end")] == ["end explorer", "end solver"]
    assert lines.count("start verifier") == 1
    assert all(child.process is None or child.process.poll() is not None for child in children.all)
    printed = capfd.readouterr()
    assert printed.out == "" and "solver is here" in printed.err, "stdout is the service's own, for its document"


def written_by_the_unit(file: ServiceFile) -> list[str]:
    text = unit_of(file, Path("/etc/assay/service.toml"), Path("/bin/assay"), Path("/etc/assay/credentials"))
    return re.findall(r"^ReadWritePaths=(.*)$", text, re.MULTILINE)


def test_the_unit_may_write_to_every_mirror_and_to_the_file_of_events(tmp_path: Path) -> None:
    own = 'index_url = "sqlite:////srv/events/of-sol.sqlite"\ndeposit = "120"'
    text = TWO.replace('deposit = "120"', own).replace('"/srv/other"', '"s3://bucket/run"')
    text = text.replace('"/srv/store"', '"/srv/a,file:/' + '//srv/b%2Cc,s3://bucket/run,/var/lib/assay/store"')
    file = read_service_file(written(tmp_path, text))
    assert written_by_the_unit(file) == ["/srv/a", "/srv/b,c", "/srv/events"]


@pytest.mark.parametrize("setting", ['store = "file://[half"', 'index_url = "sqlite:nothing"'])
def test_a_unit_is_refused_where_an_address_cannot_be_read(tmp_path: Path, setting: str) -> None:
    file = read_service_file(written(tmp_path, TWO.replace('deposit = "120"', setting)))
    with pytest.raises(ServiceFileInvalid, match="address"):
        written_by_the_unit(file)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if (verify := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    file = read_service_file(written(tmp_path, TWO))
    text = unit_of(file, Path("/etc/assay/service.toml"), Path(sys.executable), Path("/etc/assay/credentials"))
    assert "LoadCredential=sol-password:/etc/assay/credentials/sol-password\n" in text
    assert "ReadWritePaths=/srv/other\nReadWritePaths=/srv/store\n" in text and "/var/lib/assay/sol" not in text
    assert "hunter22" not in text and "TimeoutStopSec=40\n" in text
    # Ended in order by somebody else than systemd, whom it would stay down for.
    assert f"RestartForceExitStatus={ExitCode.INTERRUPTED:d} SIGHUP SIGTERM\n" in text
    assert f"SuccessExitStatus={ExitCode.INTERRUPTED:d}\n" in text and "WantedBy=multi-user.target\n" in text
    unit = tmp_path / "assay.service"
    unit.write_text(text)
    done = subprocess.run(
        [verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, env=os.environ, check=False
    )
    said = [line for line in done.stderr.splitlines() if "assay" in line]
    assert done.returncode == 0 and said == [], done.stderr


def test_a_role_whose_run_is_over_is_no_role_that_is_down(tmp_path: Path) -> None:
    file = read_service_file(written(tmp_path, "".join(role(name, tmp_path) for name in ("solver", "verifier"))))
    children = Children(file)
    status, (done, gone) = ServiceStatus(children), children.all
    done.state, gone.state = ChildState.DONE, ChildState.GIVEN_UP
    found = samples_of(status.text())["assay_service_child_up"]
    assert [(has["child"], value) for has, value in found] == [("verifier", 0)]
    assert status.conditions() == {"solver": True, "verifier": False}
