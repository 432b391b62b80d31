"""A price, or the most that is signed for, means the same at every start, whatever the token says by then."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.amounts import UNKNOWN_MONEY, Currency
from assay.cli.noted_decimals import parse_as_noted
from assay.protocol.errors import RejectedError, UsageError
from tests.harness.payments.kept_samples import TOKEN


def test_an_amount_is_refused_once_its_token_says_other_decimals(tmp_path: Path) -> None:
    assert parse_as_noted(tmp_path, TOKEN, Currency(6), "1.5") == 1_500_000
    for decimals in (18, 2):
        with pytest.raises(RejectedError) as refused:
            parse_as_noted(tmp_path, TOKEN, Currency(decimals), "1.5")
        assert refused.value.code == "TokenChanged"
        assert parse_as_noted(tmp_path, TOKEN, Currency(decimals), "7wei") == 7
    assert parse_as_noted(tmp_path, TOKEN, Currency(6), "2") == 2_000_000
    with pytest.raises(UsageError):
        parse_as_noted(tmp_path, TOKEN, UNKNOWN_MONEY, "2")


def test_a_disk_that_takes_nothing_holds_up_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file where the folder should be, which refuses as a full disk does."""
    (tmp_path / "full").write_text("")
    assert parse_as_noted(tmp_path / "full" / "actor", TOKEN, Currency(6), "1.5") == 1_500_000
    assert "could not be noted" in caplog.text
    (tmp_path / "full").unlink()
    assert parse_as_noted(tmp_path / "full" / "actor", TOKEN, Currency(6), "1.5") == 1_500_000
    with pytest.raises(RejectedError):
        parse_as_noted(tmp_path / "full" / "actor", TOKEN, Currency(8), "1.5")
