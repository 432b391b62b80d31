"""Amounts as people type and read them, at any decimals: exact, or refused in one sentence, whatever was typed."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.amounts import (
    COIN,
    MOST_DECIMALS,
    SHARES,
    SYMBOL_SHOWN,
    UNKNOWN_MONEY,
    Currency,
    check_typed,
    shown_symbol,
)
from assay.protocol.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
MOST = (1 << 256) - 1
DECIMALS = st.integers(0, MOST_DECIMALS)
AMOUNTS = st.one_of(st.integers(1, 10**9), st.integers(1, MOST))


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
    assert COIN.parse(text) == SHARES.parse(text) == wei


@pytest.mark.parametrize(
    ("decimals", "text", "wei"),
    [
        (0, "12", 12),
        (0, "12.0", 12),
        (6, "12.5", 12_500_000),
        (6, "0.000001", 1),
        (8, "21000000", 21 * 10**14),
        (24, "0.5", 5 * 10**23),
        (36, "1e-36", 1),
        (6, "12500000wei", 12_500_000),
        (6, "12_500_000 WEI", 12_500_000),
        (None, "12500000wei", 12_500_000),
        (36, f"{MOST}wei", MOST),
    ],
)
def test_an_amount_is_of_the_decimals_of_its_token(decimals: int | None, text: str, wei: int) -> None:
    assert Currency(decimals).parse(text) == wei


@pytest.mark.parametrize(
    "text",
    [
        *("1e99999999", "1e999999999999999999999", "1e-99999999", "1e60", "inf", "-inf", "nan", "sNaN", "nan123"),
        *("0", "-1", "", " ", "1e", "1,5", "0x10", "twelve", "1e-19", "0.0000000000000000001", "9" * 5000),
        *("0wei", "wei", "_wei", "-1wei", "1.5wei", "1e3wei", "1wei1", "1 w ei", "9" * 90 + "wei", "9" * 500 + "wei"),
        f"{(MOST + 1) // 10**18}.{(MOST + 1) % 10**18:018d}",
        f"{MOST + 1}wei",
        "1." + "0" * 200 + "1",
        "\u0661",  # a digit of another script, which reads as one to Python
    ],
)
def test_anything_else_is_no_amount(text: str) -> None:
    if text == "\u0661":
        text += "wei"
    with pytest.raises(UsageError) as said_of:
        COIN.parse(text)
    assert said_of.value.code == "AmountInvalid" and len(said_of.value.message) < 80


def test_what_a_token_cannot_be_cut_into_is_refused_with_how_far_it_can() -> None:
    for decimals, text, said in ((6, "0.0000001", "at most 6 decimals"), (0, "1.5", "no decimals")):
        with pytest.raises(UsageError) as refused:
            Currency(decimals).parse(text)
        assert refused.value.code == "AmountInvalid" and said in refused.value.remedy


def test_of_a_token_that_says_no_decimals_only_smallest_units_are_taken() -> None:
    for text in ("12.5", "12", "1e18"):
        with pytest.raises(UsageError) as refused:
            UNKNOWN_MONEY.parse(text)
        assert refused.value.code == "AmountUnclear" and "12500000wei" in refused.value.remedy
    assert UNKNOWN_MONEY.parse(UNKNOWN_MONEY.show(77)) == 77
    assert (UNKNOWN_MONEY.both(7), UNKNOWN_MONEY.about(7000), UNKNOWN_MONEY.at_least(7)) == ("7wei", "7,000wei", "7wei")


def test_what_may_be_an_amount_of_some_token_is_told_before_the_token_is_known() -> None:
    for text in ("12.5", "1e-36", "5wei"):
        check_typed(text)
    for text in ("many", "0", "1e-37", "-1"):
        with pytest.raises(UsageError):
            check_typed(text)


@given(DECIMALS, AMOUNTS)
def test_what_is_shown_is_typed_back_exactly_at_any_decimals(decimals: int, wei: int) -> None:
    money = Currency(decimals)
    text = money.show(wei)
    assert money.parse(text) == wei == money.parse(f"{wei}wei")
    assert Fraction(text) * 10**decimals == wei
    assert "." not in text or not text.endswith("0")
    assert money.show(-wei) == f"-{text}" and f"({wei}wei)" in money.both(wei)


@given(DECIMALS, AMOUNTS, st.integers(0, 4))
def test_a_rounded_amount_is_near_and_never_reads_as_nothing(decimals: int, wei: int, places: int) -> None:
    text = Currency(decimals).about(wei, places).replace(",", "")
    off = abs(Fraction(text) - Fraction(wei, 10**decimals))
    assert Fraction(text) > 0 or (places == 0 and wei == 0)
    # Half of the last place, or of the second digit of what is smaller.
    assert off <= Fraction(1, 2 * 10**places) and 20 * off <= max(Fraction(wei, 10**decimals), Fraction(10, 10**places))


@given(DECIMALS, AMOUNTS)
def test_an_amount_that_suffices_is_no_less_and_hardly_more(decimals: int, wei: int) -> None:
    money = Currency(decimals)
    text = money.at_least(wei)
    found = int(Fraction(text) * 10**decimals)
    assert wei <= found and 100 * (found - wei) <= wei
    if wei >= 100 * 10**decimals:
        assert "." not in text


@pytest.mark.parametrize(
    ("decimals", "wei", "about", "at_least"),
    [
        (18, 1_234_567 * 10**15, "1,234.57", "1235"),
        (6, 49_200_000, "49.20", "49.2"),
        (6, 5_123_456, "5.12", "5.13"),
        (6, 1, "0.000001", "0.000001"),
        (8, 42_000, "0.00042", "0.00042"),
        (8, 30_000_000, "0.30", "0.3"),
        (0, 7, "7", "7"),
        (0, 1234, "1,234", "1234"),
        (24, 0, "0.00", "0"),
    ],
)
def test_short_forms_of_amounts_read_as_people_write_them(decimals: int, wei: int, about: str, at_least: str) -> None:
    money = Currency(decimals)
    assert (money.about(wei), money.at_least(wei)) == (about, at_least)
    assert money.about(-wei) == ("-" if wei else "") + about


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("USDC", "USDC"),
        ("USD\u0421", "USD"),  # a Cyrillic letter that looks like a C
        ("\x1b[31mETH\x1b[0m", "31mETH0m"),
        ("a" * 10**6, "a" * SYMBOL_SHOWN),
        ("<b>X</b>", "bXb"),
        ("USD\u202e", "USD"),
        ("1 000 000", "1000000"),
        ("", ""),
    ],
    ids=["plain", "look-alike", "terminal", "long", "markup", "direction", "spaces", "empty"],
)
def test_of_a_symbol_only_plain_letters_are_shown(said: str, shown: str) -> None:
    assert shown_symbol(said) == shown


# --- in one place


def test_no_contract_of_a_run_counts_in_whole_tokens() -> None:
    """10^18 stands in them as the scale of chances, and in what is minted of a test token at a time."""
    sources = [path for path in (ROOT / "contracts").rglob("*.sol") if "test" not in path.relative_to(ROOT).parts]
    found = {path.name for path in sources if re.search(r"1e18|\bether\b|10 ?\*\* ?18|decimals", path.read_text())}
    assert len(sources) > 50 and found == {"RunPrices.sol", "TestToken.sol"}


def test_nothing_that_people_type_or_read_knows_another_scale_of_tokens() -> None:
    """Attack on the next change: a second place that writes amounts, and takes all of them for 18 decimals."""
    shown = ("cli", "demo", "explorer", "node", "service", "sponsor", "status", "watchdog")
    sources = [path for room in shown for path in (ROOT / "assay" / room).rglob("*.py")]
    sources += (ROOT / "ledger" / "assay_ledger").rglob("*.py")
    found = [path.name for path in sources if re.search(r"10 ?\*\* ?18|1e18", path.read_text())]
    assert len(sources) > 200 and not found
