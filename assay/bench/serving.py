"""What being paid costs a gateway: tokens by HTTP with vouchers against the same batch asked in its own process.

Both sides give the same answers by one batch, in one alternating run. Twice as many ask at once as the batch has rows,
so that a row that ends is filled at once: that is saturation. Compared are the gateway's own processor time a token and
the wall's clock; askers by HTTP are a process of their own, and vouchers are signed before. Deposits come from memory
here: a gateway asks the chain once a minute for each payer.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, cast

import requests
import torch
from eth_account import Account

from assay.bench.inference import SHAPES
from assay.datasets.tokenizers import Characters
from assay.inference.gateway.app import GatewayTerms
from assay.inference.gateway.batcher import TextBatch, TextWish
from assay.inference.gateway.limits import AskerLimits
from assay.inference.gateway.server import serve_batch
from assay.inference.gateway.till import HEADER, Till, TillTerms
from assay.inference.generate import NO_END
from assay.inference.model import gpt
from assay.inference.rows import rows_of
from assay.inference.sampling import SamplingTerms
from assay.protocol.errors import AssayError, UsageError
from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay.training.initialize import initialize
from assay.web.listening import listen
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.vouchers.cashier import Cashier
from assay_ledger.vouchers.kept import KeptVouchers
from assay_ledger.vouchers.signed import sign_voucher

PRICE: Final = Wei(10)
TOKEN: Final = Address(b"\x70" * 20)
DOMAIN: Final = VoucherDomain(31_337, Address(b"\xc0" * 20))
PROMPT: Final = 32
ASKERS: Final = 2
"""For each row of the batch."""
TURNS: Final = 4
"""Answers of each asker in a round."""


@dataclass(frozen=True, slots=True)
class ServingRates:
    """cpu_ratio, wall_ratio: time a token, paid over bare, the median of rounds. Tokens a second of each side by the
    wall's clock. p50_ms, p99_ms: of paid answers, each of `tokens`, for which `askers` wait at `rows` of a batch.
    """

    model: str
    rows: int
    askers: int
    tokens: int
    rounds: int
    cpu_ratio: float
    wall_ratio: float
    paid_per_s: float
    bare_per_s: float
    p50_ms: float
    p99_ms: float


class _Deposits:
    """A chain on which everybody has deposited."""

    def ask(self, _question: object) -> PayerDeposit:
        return PayerDeposit(balance=Wei(1 << 60))


def measure(folder: Path, model: str, rows: int, tokens: int, rounds: int) -> ServingRates:
    """Rounds of TURNS answers for each asker, vouchers kept in an empty folder.

    Raises UsageError (UnknownModel).
    """
    torch.set_num_threads(1)
    if model not in SHAPES:
        raise UsageError(
            f"There is no model {model!r} to measure.", code="UnknownModel", remedy=f"Choose from {', '.join(SHAPES)}."
        )
    shape = SHAPES[model]
    letters = Characters("".join(map(chr, range(32, 32 + shape.vocabulary))))
    own = gpt(shape, initialize(shape.module(), 1), letters)
    account = Account.from_key(b"\x05" * 32)
    kept = KeptVouchers(folder, DOMAIN, address_of(account))
    cashier = Cashier(cast(Chain, _Deposits()), VouchersContract(DOMAIN.contract), kept, [TOKEN])
    till = Till(cashier, TillTerms(DOMAIN, address_of(account), TOKEN, PRICE))
    limits = AskerLimits(rate=1e6, burst=1_000_000, open=256)
    terms = GatewayTerms(own, account, "assay", tokens=tokens, limits=limits, till=till)
    batch, listener, ready = (
        TextBatch(rows_of(own, rows), 256),
        listen("The bench", "127.0.0.1", 0),
        threading.Event(),
    )
    served = threading.Thread(target=serve_batch, args=(terms, batch, listener), kwargs={"ready": ready.set})
    served.start()
    try:
        ready.wait()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/completions"
        return _measured(url, batch, address_of(account), model, rows, tokens, rounds)
    finally:
        batch.close()
        served.join()
        till.close()
        kept.close()


def _measured(
    url: str, batch: TextBatch, gateway: Address, model: str, rows: int, tokens: int, rounds: int
) -> ServingRates:
    askers = ASKERS * rows
    payers = [ActorKeys("payer", Account.from_key((0xB0B + k).to_bytes(32, "big"))) for k in range(askers)]
    paid, bare, waits = [], [], list[float]()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        for turn in range(rounds + 1):
            work = [_signed(keys, gateway, turn, tokens) for keys in payers]
            start = time.process_time(), time.perf_counter()
            found = process.submit(_ask, url, work, tokens).result()
            middle = time.process_time(), time.perf_counter()
            _give(batch, askers, tokens)
            end = time.process_time(), time.perf_counter()
            # The first one captures programs and opens connections.
            if turn:
                paid.append((middle[0] - start[0], middle[1] - start[1]))
                bare.append((end[0] - middle[0], end[1] - middle[1]))
                waits += found
    given = TURNS * askers * tokens

    def ratio(part: int) -> float:
        return round(median(p[part] / b[part] for p, b in zip(paid, bare, strict=True)), 3)

    cuts = quantiles(waits, n=100, method="inclusive")
    return ServingRates(
        model,
        rows,
        askers,
        tokens,
        rounds,
        ratio(0),
        ratio(1),
        round(given / median(p[1] for p in paid), 1),
        round(given / median(b[1] for b in bare), 1),
        round(1e3 * cuts[49], 1),
        round(1e3 * cuts[98], 1),
    )


def _signed(keys: ActorKeys, gateway: Address, turn: int, tokens: int) -> list[str]:
    """Vouchers for a round."""
    each = PRICE * (PROMPT + tokens)
    amounts = [Wei((TURNS * turn + k + 1) * each) for k in range(TURNS)]
    return [sign_voucher(keys, Voucher(keys.address, gateway, TOKEN, amount), DOMAIN).to_text() for amount in amounts]


def _ask(url: str, work: Sequence[Sequence[str]], tokens: int) -> list[float]:
    """In a process of its own: seconds of each answer, every payer's one after another."""
    body = json.dumps({"model": "assay", "prompt": [5] * PROMPT, "max_tokens": tokens, "seed": 7}).encode()

    def pay(vouchers: Sequence[str]) -> list[float]:
        waits = []
        with requests.Session() as session:
            session.trust_env = False
            for voucher in vouchers:
                start = time.perf_counter()
                headers = {"Content-Type": "application/json", HEADER: voucher}
                session.post(url, data=body, headers=headers, timeout=600).raise_for_status()
                waits.append(time.perf_counter() - start)
        return waits

    with ThreadPoolExecutor(len(work)) as pool:
        return [wait for waits in pool.map(pay, work) for wait in waits]


def _give(batch: TextBatch, askers: int, tokens: int) -> None:
    """The same answers by the same batch, without a server, a voucher or a statement."""

    def one(_: int) -> None:
        for _turn in range(TURNS):
            done, errors = threading.Event(), list[AssayError]()

            def said(event: Any, done: threading.Event = done, errors: list[AssayError] = errors) -> None:
                if not isinstance(event, int):
                    errors.extend([] if event is None else [event])
                    done.set()

            terms, deadline = SamplingTerms(7, 1_000_000, 0), time.monotonic() + 600
            batch.submit(TextWish((5,) * PROMPT, terms, tokens, NO_END, deadline, said))
            done.wait()
            if errors:
                raise errors[0]

    with ThreadPoolExecutor(askers) as pool:
        list(pool.map(one, range(askers)))
