"""Amounts as people type them: exact, or refused in one sentence, whatever was typed."""

from __future__ import annotations

import pytest

from assay.amounts import parse_amount
from assay.protocol.errors import UsageError

MOST = (1 << 256) - 1


@pytest.mark.parametrize(
    ("text", "wei"),
    [
        ("12.5", 12_500_000_000_000_000_000),
        ("0.000000000000000001", 1),
        ("1e-18", 1),
        ("1e3", 10**21),
        ("1_000", 10**21),
        (" 7 ", 7 * 10**18),
        (f"{MOST // 10**18}.{MOST % 10**18:018d}", MOST),
    ],
)
def test_an_amount_is_exact_to_the_last_unit(text: str, wei: int) -> None:
    assert parse_amount(text) == wei


@pytest.mark.parametrize(
    "text",
    [
        *("1e99999999", "1e999999999999999999999", "1e-99999999", "1e60", "inf", "-inf", "nan", "sNaN", "nan123"),
        *("0", "-1", "", " ", "1e", "1,5", "0x10", "twelve", "1e-19", "0.0000000000000000001", "9" * 5000),
        f"{(MOST + 1) // 10**18}.{(MOST + 1) % 10**18:018d}",
        "1." + "0" * 200 + "1",
    ],
)
def test_anything_else_is_no_amount(text: str) -> None:
    with pytest.raises(UsageError) as said_of:
        parse_amount(text)
    assert said_of.value.code == "AmountInvalid" and len(said_of.value.message) < 80
