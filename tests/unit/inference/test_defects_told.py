"""What nobody foresaw is told to a relay's clients as every other refusal is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from eth_account import Account
from openai import APIError, OpenAI
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from assay.datasets.streamed_text import StreamedText
from assay.inference.gateway.app import GatewayTerms, make_app
from assay.inference.gateway.batcher import TextBatch
from assay.inference.relay.app import make_relay
from assay.inference.relay.upstream import GatewayAway
from assay.inference.rows import WindowRows
from tests.harness.inference.models import small_gpt

ASKED = {"model": "assay", "prompt": [1], "max_tokens": 1}
PIECE = {"id": "1", "object": "text_completion", "created": 1, "model": "assay", "choices": [{"index": 0, "text": "a"}]}


def asker(app: ASGIApp) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def relay(ask: object, seconds: float = 5.0) -> ASGIApp:
    return make_relay(SimpleNamespace(ask=ask), seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_that_nobody_foresaw_is_a_document_like_every_other(stream: bool) -> None:
    """Clients read a body as JSON whatever its status: of a sentence in plain text they showed their own failure."""

    def ask(_asked: object, _has_left: object) -> None:
        raise ZeroDivisionError("a case that nobody thought of")

    with asker(relay(ask)) as client:
        answer = client.post("/v1/completions", json=ASKED | {"stream": stream})
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "ServerFailed"
    assert "nobody thought of" not in answer.text


def test_a_stream_that_fails_for_what_nobody_foresaw_says_so_to_openais_library() -> None:
    """It ended without a word, which the library shows as a lost connection, if at all."""

    def ask(_asked: object, _has_left: object) -> Iterator[dict[str, object]]:
        yield PIECE
        raise ZeroDivisionError("a case that nobody thought of")

    with asker(relay(ask)) as client, OpenAI(base_url="http://127.0.0.1/v1", api_key="-", http_client=client) as openai:
        pieces = openai.completions.create(model="assay", prompt=[1], max_tokens=1, stream=True)
        assert next(pieces).choices[0].text == "a"
        with pytest.raises(APIError, match="The server failed") as told:
            next(pieces)
    assert told.value.code == "ServerFailed"


def test_a_gateways_stream_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamedText, "add", lambda _self, _token: 1 // 0)
    batch = TextBatch(WindowRows(small_gpt()))
    with asker(make_app(GatewayTerms(small_gpt(), Account.from_key(b"\x05" * 32), "assay"), batch)) as client:
        answer = client.post("/v1/completions", json=ASKED | {"stream": True})
    batch.close()
    assert '"ServerFailed"' in answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_relay_says_what_became_of_an_answer_whose_time_is_over(stream: bool) -> None:
    """Its own time was over in the same moment as the gateway's: the stream was cut, the document plain text."""

    def ask(_asked: object, _has_left: object) -> Iterator[dict[str, object]]:
        yield PIECE
        time.sleep(0.4)
        raise GatewayAway("The gateway's answer broke off (Timeout).")

    with asker(relay(ask, 0.2)) as client:
        answer = client.post("/v1/completions", json=ASKED | {"stream": stream})
    assert answer.status_code == (200 if stream else 503) and '"GatewayAway"' in answer.text


def test_whoever_waits_too_long_for_a_document_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.inference.relay.app.BESIDE_S", 0.0)

    def ask(_asked: object, _has_left: object) -> Iterator[dict[str, object]]:
        time.sleep(0.4)
        yield PIECE

    with asker(relay(ask, 0.2)) as client:
        answer = client.post("/v1/completions", json=ASKED)
    assert answer.status_code == 504 and answer.json()["error"]["code"] == "AnswerLate"
