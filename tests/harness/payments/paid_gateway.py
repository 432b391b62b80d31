"""`assay gateway start` as a process that is paid, and what payers send it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from assay.protocol.types import Wei
from tests.harness.inference.models import small_gpt, write_folder
from tests.harness.inference.served import Served
from tests.harness.payments.paid_run import PaidRun

PRICE = Wei(10**12)
"""Wei for each token of prompt and answer."""


def gateway_words(paid: PaidRun, *more: str) -> list[str]:
    """`assay gateway start` of the small model, for this run's money."""
    model = paid.folder / "pulled"
    if not model.exists():
        write_folder(small_gpt(), model)
    key = ["--key", str(paid.folder / "gateway.json"), "--password-file", str(paid.folder / "password")]
    words = ["gateway", "start", "--model", str(model), "--port", "0", "--rows", "4", "--rate", "10000", "--json", *key]
    words += ["--run", "0x" + paid.run.address.hex(), "--rpc-url", paid.chain.url, "--tokens", "20000"]
    folder = [] if "--vouchers" in more else ["--vouchers", str(paid.folder / "kept")]
    return [*words, "--price", "0.000001", *folder, *more]


@contextmanager
def paid_gateway(paid: PaidRun, *more: str) -> Iterator[Served]:
    """The gateway, until it is told to end."""
    served = Served(gateway_words(paid, *more), paid.folder / "gateway.log")
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.stop()


def body(**more: Any) -> bytes:
    """A request of 7 tokens that asks for 12 more."""
    return json.dumps({"model": "assay", "prompt": "the cat", "max_tokens": 12} | more).encode()


def asked(served: Served, voucher: str | None, content: bytes | None = None) -> httpx.Response:
    """The answer to a request with a voucher."""
    headers = {"Content-Type": "application/json"} | ({} if voucher is None else {"X-Assay-Voucher": voucher})
    return served.client.post("/v1/completions", content=body() if content is None else content, headers=headers)
