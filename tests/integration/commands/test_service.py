"""A service of real roles in a real run: it works, a killed child comes back, and SIGTERM ends all of it in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay.cli.noted_settings import noted_settings
from assay.protocol.errors import ExitCode
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import stake_of
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.scraping import free_place, judged, one, page, scrape
from tests.harness.actors.shells import SOURCE, ActorShells
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER

SOON_S = 180.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


def wait_for(place: str, path: str, status: int, process: subprocess.Popen[str]) -> None:
    end, found = time.monotonic() + SOON_S, (0, b"")
    while found[0] != status:
        assert time.monotonic() < end and process.poll() is None, found
        time.sleep(0.2)
        try:
            found = page(place, path)
        except OSError:
            continue


@pytest.mark.timeout(300)
def test_roles_of_one_file_work_come_back_and_end_together(desk: Desk, tmp_path: Path) -> None:
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=12, rates=AuditRates(audit_ppm=900_000))
    shells = ActorShells(desk, made)
    shells.add("sol")
    deposit = stake_of(made.run.charter, seats=1) // ETHER + 100
    whole, solver, explorer = free_place(), free_place(), free_place()
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "sol").write_text((desk.folder / "password").read_text())
    (tmp_path / "service.toml").write_text(
        f"""
[service]
status = "{whole}"
stop_s = 30

[common]
rpc_url = "{made.chain.url}"
store = "{made.folder / "store"}"
run = "0x{made.run.address.hex()}"
keys_dir = "{desk.folder / "keys"}"

[[role]]
role = "solver"
key = "sol"
password_credential = "sol"
data_dir = "{tmp_path / "sol"}"
deposit = "{deposit}"
metrics = "{solver}"

[[role]]
role = "explorer"
port = 0
metrics = "{explorer}"
"""
    )
    environment = os.environ | {"PYTHONPATH": SOURCE, "ASSAY_CONFIG": "/dev/null", "OMP_NUM_THREADS": "1"}
    service = subprocess.Popen(
        [sys.executable, "-m", "assay", "service", "start", "--config", str(tmp_path / "service.toml"), "--json"],
        env=environment | {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(whole, "/health", 200, service)
        wait_for(explorer, "/ready", 200, service)
        # No seat is taken yet, or just now: ready is what each child says, and the whole waits for all.
        wait_for(whole, "/ready", 200, service)
        assert judged(whole, "/ready")[1] == {"solver": True, "explorer": True}
        assert one(scrape(solver), "assay_ready", condition="enrolled") == 1
        assert made.view.free_seats == 1

        # Killed: it is started again by the file, and goes on from its journal.
        children = psutil.Process(service.pid).children()
        killed = next(c for c in children if "solver" in c.cmdline())
        assert all(secret not in " ".join(killed.cmdline()) for secret in (made.chain.url, "password"))
        killed.kill()
        end = time.monotonic() + SOON_S
        while one(scrape(whole), "assay_service_starts_total", child="solver") < 2:
            assert time.monotonic() < end
            time.sleep(0.2)
        wait_for(whole, "/ready", 200, service)
        children = psutil.Process(service.pid).children(recursive=True)
    finally:
        service.send_signal(signal.SIGTERM)
        printed, said = service.communicate(timeout=60)
    assert service.returncode == ExitCode.INTERRUPTED, said
    roles = {"solver": ["assay", "solver", "start", "--deposit", str(deposit)]}
    roles["explorer"] = ["assay", "service", "start", "--host", "127.0.0.1", "--port", "0"]
    assert json.loads(printed) == {"status": f"http://{whole}", "roles": roles}
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    ended = [line["child"] for line in lines if " has ended (exit code " in line["event"]]
    assert ended == ["explorer", "solver"], said
    assert any("signal 9; started again in 1 s" in line["event"] for line in lines), said
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    # What the file said stands in the actor's folder, for a backup.
    noted = noted_settings(tmp_path / "sol")
    where = {"rpc_url": made.chain.url, "store": str(made.folder / "store"), "run": f"0x{made.run.address.hex()}"}
    assert where.items() <= noted.items()
