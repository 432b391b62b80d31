"""`assay bench links`: a link carries what is sent, no faster than it may, and shares add up."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench.limited_link import PIECE, LimitedLink
from assay.bench.links import STEPS, share
from assay.cli.bench import app
from tests.unit.bench.test_compare import TEXT

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_link_carries_every_byte_each_way_and_no_sooner_than_it_may() -> None:
    up, down, rate = bytes(range(256)) * 1200, b"back" * 50_000, 20e6
    far = socket.create_server(("127.0.0.1", 0))
    heard = bytearray()

    def serve() -> None:
        near, _ = far.accept()
        with near:
            while len(heard) < len(up):
                heard.extend(near.recv(1 << 16))
            near.sendall(down)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with far, LimitedLink(far.getsockname()[1], rate) as link, socket.create_connection(("127.0.0.1", link.port)) as me:
        begun = time.monotonic()
        me.sendall(up)
        got = bytearray()
        while piece := me.recv(1 << 16):
            got.extend(piece)
        took = time.monotonic() - begun
    thread.join(10)
    assert bytes(heard) == up and bytes(got) == down
    assert took >= 8 * (len(up) + len(down) - 2 * PIECE) / rate


def test_shares_are_of_a_whole_round() -> None:
    assert share(1.0, 3.0) == 0.25 and share(2.0, 0.0) == 1.0 and share(0.0, 1.0) == 0.0


@pytest.mark.long
def test_the_command_says_how_much_of_a_round_is_training(tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    options = ["links", "--preset", "tiny", "--data", str(data), "--method", "f32,sparse", "--mbps", "5,100", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    rows = {(row["method"], row["mbps"]): row for row in json.loads(result.stdout)["rows"]}
    assert list(rows) == [("f32", 5.0), ("f32", 100.0), ("sparse", 5.0), ("sparse", 100.0)]
    for row in rows.values():
        sent = 8 * row["bytes"] / row["mbps"] / 1e6
        # The last piece of each way may be ahead of the link.
        assert min(row["up_s"], row["down_s"]) >= sent * (1 - PIECE / row["bytes"]) - 1e-3
        of_round = {n: share(n * row["step_s"], row["up_s"] + row["down_s"]) for n in STEPS}
        assert {int(n): used for n, used in row["used"].items()} == pytest.approx(of_round, abs=0.03)
    assert rows["sparse", 5.0]["bytes"] < rows["f32", 5.0]["bytes"] / 3


@pytest.mark.parametrize(("option", "value"), [("--mbps", "0"), ("--mbps", "fast"), ("--method", "lofi")])
def test_what_is_no_link_and_no_rule_is_refused(option: str, value: str) -> None:
    result = CliRunner().invoke(app, ["links", "--preset", "tiny", option, value])
    assert result.exit_code != 0
