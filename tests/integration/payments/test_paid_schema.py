"""What the description of a paid gateway allows is answered and charged, and what it does not allow costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from assay_ledger.vouchers.kept import read_vouchers
from tests.harness.inference.models import bytes_gpt, write_folder
from tests.harness.inference.served import ROOTS
from tests.harness.payments.paid_gateway import PRICE, paid_gateway
from tests.harness.payments.paid_run import PaidRun, paid_run

TOKENS = 64


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("paid"), 2) as made:
        write_folder(bytes_gpt(), made.folder / "pulled")  # it takes any text
        made.done(*made.words(0, "deploy"))
        for who in range(2):
            made.done(*made.words(who, "deposit", "10", *made.at(), "--yes"))
        yield made


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_any_paid_request_that_the_description_allows_is_answered(paid: PaidRun, seed: int) -> None:
    """By schemathesis: bounds of every field, values beside them, and random requests, each with a voucher."""
    terms = {
        "key": paid.keys[seed].key.hex(),
        "chain_id": paid.chain.chain_id,
        "contract": paid.contract.address.hex(),
        "gateway": paid.gateway.address.removeprefix("0x"),
        "token": paid.token.hex(),
        "grows": TOKENS * PRICE,
    }
    (paid.folder / "pays.json").write_text(json.dumps(terms))
    hooks = {"SCHEMATHESIS_HOOKS": "tests.harness.payments.paying_asker", "ASSAY_PAYS": str(paid.folder / "pays.json")}
    with paid_gateway(paid, "--tokens", str(TOKENS), "--vouchers", str(paid.folder / f"kept-{seed}")) as served:
        asker = [
            "-m",
            "schemathesis.cli",
            "run",
            f"{served.said['url']}openapi.json",
            "--no-color",
            "--seed",
            str(seed),
        ]
        found = subprocess.run(
            [sys.executable, *asker, "--max-examples", "200"],
            cwd=paid.folder,
            env=os.environ | hooks | {"PYTHONPATH": ROOTS},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert served.client.get("/health").json()["alive"] is True
    assert found.returncode == 0, found.stdout
    (kept,) = read_vouchers(paid.folder / f"kept-{seed}")[1]
    assert kept.voucher.amount >= 200 * TOKENS * PRICE, "hardly anything was paid for"
