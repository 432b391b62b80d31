"""What nobody foresaw is told to a relay's clients as every other refusal is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from assay.inference.relay.app import make_relay


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_that_nobody_foresaw_is_a_document_like_every_other(stream: bool) -> None:
    """Clients read a body as JSON whatever its status: of a sentence in plain text they showed their own failure."""

    def ask(_asked: object) -> None:
        raise ZeroDivisionError("a case that nobody thought of")

    app = make_relay(SimpleNamespace(ask=ask), 5.0)  # type: ignore[arg-type]
    asked = {"model": "assay", "prompt": [1], "max_tokens": 1, "stream": stream}
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.post("/v1/completions", json=asked)
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "ServerFailed"
    assert "nobody thought of" not in answer.text
