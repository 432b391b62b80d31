"""A relay that is told to end while an answer comes: whoever started it does not wait for the rest of that."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.inference.relay import server
from assay.inference.relay.app import make_relay
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Wei
from assay.web.listening import listen
from assay_ledger.vouchers.purse import Purse, PursePlace
from tests.harness.payments.kept_samples import DOMAIN, TOKEN, payer
from tests.unit.inference.test_relay_books import ASKED, ME, SlowGateway, answers


@pytest.mark.parametrize("stream", [False, True])
def test_whoever_waits_when_a_relay_ends_is_told_and_no_more_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    """A connection that is cut says nothing, and the log had a traceback for it."""
    servers: list[server._RelayServer] = []
    made = server._RelayServer.__init__

    def noted(one: server._RelayServer, *arguments: Any) -> None:
        made(one, *arguments)
        servers.append(one)

    monkeypatch.setattr(server._RelayServer, "__init__", noted)
    monkeypatch.setattr(server, "ENDING_S", 3)
    slow, purse = SlowGateway(), Purse(tmp_path, payer(0), PursePlace(DOMAIN, ME, TOKEN), Wei(0), Wei(10_000))
    asker, listener, ready = answers(slow, purse), listen("The relay", "127.0.0.1", 0), threading.Event()
    words: dict[str, Any] = {"ready": ready.set, "end": asker.end}
    serving = threading.Thread(target=server.serve_relay, args=(make_relay(asker, 300.0), listener), kwargs=words)
    serving.start()
    assert ready.wait(120)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/completions"
    body = ASKED.model_dump(exclude_unset=True) | {"stream": stream}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, url, json=body, timeout=300.0)
        deadline = time.monotonic() + 120
        while slow.given < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        servers[0].should_exit = True
        answer = asked.result()
    serving.join(120)
    assert not serving.is_alive() and slow.given < 5_000 and slow.closed == 1
    last = answer.text.strip().splitlines()[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "RelayEnds" and answer.status_code == (200 if stream else 503)
    assert purse.spent == 50, "nobody knows what was charged"
    assert not [record for record in caplog.records if record.exc_info]
    with pytest.raises(UnavailableError, match="The relay ends"):
        asker.ask(ASKED)
    purse.close()
