"""A gateway as a process of its own: answers with statements, to many at once, and refusals that say what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.inference.generate import generate
from assay.inference.rows import WindowRows
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import read_statement
from assay.inference.verify import replay
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import create_key
from tests.harness.inference.models import LETTERS, small_gpt, write_folder

ASKED = {"model": "assay", "prompt": "the cat", "max_tokens": 12, "seed": 7}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A gateway of two rows in which two may wait."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "password").write_text("not a secret")
    create_key(folder / "keys", "gate", "not a secret", kdf=Kdf("scrypt", 1 << 12))
    write_folder(small_gpt(), folder / "pulled")
    words = [*("gateway", "start", "--model", folder / "pulled", "--port", "0", "--rows", "2", "--waiting", "2")]
    words += ["--key", "gate", "--keys-dir", folder / "keys", "--password-file", folder / "password"]
    words += ["--tokens", "20000", "--rate", "1000", "--json"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "assay", *map(str, words)],
            cwd=Path(__file__).resolve().parents[3],
            env=os.environ | {"ASSAY_CONFIG": "/dev/null"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, (folder / "log").read_text()
        with httpx.Client(base_url=json.loads(first)["url"], timeout=60.0) as client:
            yield client
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130), (folder / "log").read_text()


def answer(client: httpx.Client, **more: Any) -> dict[str, Any]:
    response = client.post("/v1/completions", json=ASKED | more)
    assert response.status_code == 200, response.text
    return response.json()


def test_an_answer_carries_a_statement_that_replays(gateway: httpx.Client) -> None:
    model, found = small_gpt(), answer(gateway)
    signed = read_statement(found["statement"].encode())
    assert replay(model, signed.statement).tokens == signed.statement.answer
    (choice,) = found["choices"]
    assert (choice["text"], choice["finish_reason"]) == (LETTERS.decode(signed.statement.answer), "length")
    assert found["usage"] == {"prompt_tokens": 7, "completion_tokens": 12, "total_tokens": 19}
    (served,) = gateway.get("/v1/models").json()["data"]
    assert served["id"] == "assay" and served["parameters"] == "0x" + model.root.hex()
    assert served["signer"] == "0x" + signed.signer.hex()
    assert gateway.get("/health").json()["alive"] is True


def test_a_stream_gives_the_same_text_and_the_same_statement(gateway: httpx.Client) -> None:
    whole = answer(gateway)
    with gateway.stream("POST", "/v1/completions", json=ASKED | {"stream": True}) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    pieces = [json.loads(line) for line in lines]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == whole["choices"][0]["text"]
    assert len(pieces) == 13 and pieces[-1]["statement"] == whole["statement"]
    assert [piece["choices"][0]["finish_reason"] for piece in pieces] == [None] * 12 + ["length"]


def test_who_asks_beside_others_gets_the_answer_of_one_alone(gateway: httpx.Client) -> None:
    prompts = ["a", "the dog", "zz"]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda p: answer(gateway, prompt=p, temperature=0.8), prompts))
    model = small_gpt()
    for prompt, own in zip(prompts, found, strict=True):
        alone = generate(model, WindowRows(model), model.encode(prompt), SamplingTerms(7, 800_000), 12)
        assert own["choices"][0]["text"] == LETTERS.decode(alone)


def test_an_answer_ends_with_its_end(gateway: httpx.Client) -> None:
    end = read_statement(answer(gateway)["statement"].encode()).statement.answer[3]
    found = answer(gateway, end=end)
    assert found["choices"][0]["finish_reason"] == "stop"
    assert read_statement(found["statement"].encode()).statement.answer[-1] == end


@pytest.mark.long
def test_more_than_may_wait_are_told_when_to_come_again(gateway: httpx.Client) -> None:
    long = ASKED | {"max_tokens": 300}
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: gateway.post("/v1/completions", json=long), range(12)))
    statuses = sorted(response.status_code for response in found)
    assert set(statuses) == {200, 429} and statuses.count(200) >= 4
    for response in found:
        if response.status_code == 429:
            assert int(response.headers["Retry-After"]) >= 1
            assert response.json()["error"]["code"] == "GatewayBusy"
        else:
            assert response.json()["usage"]["completion_tokens"] == 300


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"model": "other"}, 404, "ModelUnknown"),
        ({"max_tokens": 20001}, 400, "TokensAbove"),
        ({"prompt": "THE CAT"}, 400, "UnknownCharacter"),
        ({"prompt": []}, 400, "BadRequest"),
        ({"prompt": "a" * 49}, 400, "PromptTooLong"),
        ({"prompt": [5] * 49}, 400, "PromptTooLong"),
        ({"prompt": [5, 999]}, 400, "UnknownToken"),
        ({"n": 2}, 400, "BadRequest"),
        ({"stop": ["x"]}, 400, "BadRequest"),
        ({"temperature": -1}, 400, "BadRequest"),
        ({"seed": 1 << 64}, 400, "BadRequest"),
        ({"surprise": True}, 400, "BadRequest"),
    ],
    ids=[
        *("model", "tokens", "letters", "nothing", "long", "long-tokens", "no-token", "several", "stop", "cold"),
        *("seed", "surprise"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(
    gateway: httpx.Client, more: dict[str, Any], status: int, code: str
) -> None:
    refused = gateway.post("/v1/completions", json=ASKED | more)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)


def test_bodies_that_are_no_request_are_refused(gateway: httpx.Client) -> None:
    assert gateway.post("/v1/completions", content=b"{").status_code == 400
    # As `curl -d` sends it, which says that it is a form.
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    refused = gateway.post("/v1/completions", content=json.dumps(ASKED), headers=form).json()["error"]
    assert refused["code"] == "BadRequest" and "Content-Type: application/json" in refused["message"]
    large = gateway.post("/v1/completions", content=b" " * ((1 << 20) + 1))
    assert (large.status_code, large.json()["error"]["code"]) == (413, "BodyTooLarge")
    assert gateway.get("/v1/nothing").json()["error"]["code"] == "NoSuchPath"
    assert gateway.get("/v1/completions").json()["error"]["code"] == "NoSuchMethod"


def test_a_prompt_of_four_windows_is_answered(gateway: httpx.Client) -> None:
    assert answer(gateway, prompt="a" * 48, max_tokens=1)["usage"]["prompt_tokens"] == 48


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        ("[" * 400_000).encode("utf-16-le"),
        ("[" * 200_000).encode("utf-32"),
        json.dumps(ASKED).encode("utf-16"),
        b'{"a":' * 17 + b"1" + b"}" * 17,
        b"[]" * 17 + b'"' + b'\\"' * 500_000,
    ],
    ids=["brackets", "utf-16", "utf-32", "whole-utf-16", "one-too-deep", "quotes-without-end"],
)
def test_no_body_ends_the_gateway(gateway: httpx.Client, body: bytes) -> None:
    refused = gateway.post("/v1/completions", content=body, headers={"Content-Type": "application/json"}, timeout=10.0)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "BadRequest")
    assert gateway.get("/health").json()["alive"] is True


def test_what_clients_send_without_meaning_it_is_taken(gateway: httpx.Client) -> None:
    usual = {"n": 1, "top_p": 1.0, "stop": None, "echo": False, "presence_penalty": 0.0, "logit_bias": None}
    assert answer(gateway, **usual)["choices"] == answer(gateway)["choices"]


def test_a_description_of_the_interface_is_served(gateway: httpx.Client) -> None:
    document = gateway.get("/openapi.json").json()
    assert set(document["paths"]) == {"/v1/completions", "/v1/models", "/health"}
    bounds = document["components"]["schemas"]["CompletionAsked"]["properties"]
    assert (bounds["model"]["enum"], bounds["max_tokens"]["maximum"]) == (["assay"], 20_000)
    assert bounds["seed"]["anyOf"][0]["maximum"] == (1 << 64) - 1
    assert bounds["prompt"]["anyOf"][1]["items"]["maximum"] == LETTERS.size - 1
