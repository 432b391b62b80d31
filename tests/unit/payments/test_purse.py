"""What a payer signs is on disk before it leaves, only grows, and stays below what it is to pay in all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.protocol.types import Wei
from assay_ledger.vouchers.purse import (
    Purse,
    PurseBehind,
    PurseDamaged,
    PurseEmpty,
    PurseInUse,
    PurseNotKept,
    PursePlace,
)
from assay_ledger.vouchers.signed import signer_of
from tests.harness.payments.kept_samples import DOMAIN, GATEWAY, TOKEN, payer

PLACE = PursePlace(DOMAIN, GATEWAY, TOKEN)


def opened(folder: Path, *, redeemed: int = 0, most: int = 1000) -> Purse:
    return Purse(folder, payer(0), PLACE, Wei(redeemed), Wei(most))


def test_amounts_grow_and_credit_is_used_before_more_is_signed(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    first = purse.sign(Wei(100))
    assert first.voucher.amount == 100 and signer_of(first, DOMAIN) == payer(0).address
    beside = purse.sign(Wei(50))
    assert beside.voucher.amount == 150, "the first may cost all of its most"
    purse.settle(first, Wei(10), Wei(60))
    purse.settle(beside, Wei(50), Wei(60))
    assert purse.spent == 60
    assert purse.sign(Wei(20)).voucher.amount == 151
    purse.close()


def test_no_more_is_signed_than_is_to_be_paid_in_all_however_often_it_starts(tmp_path: Path) -> None:
    for start in range(2):
        purse = opened(tmp_path, redeemed=500 * start, most=500)
        if not start:
            purse.settle(purse.sign(Wei(500)), Wei(500))
        with pytest.raises(PurseEmpty):
            purse.sign(Wei(1))
        assert purse.signed == 500
        purse.close()


def test_a_process_that_dies_counts_what_it_signed_as_spent(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    purse.settle(purse.sign(Wei(10)), Wei(4))
    lost = purse.sign(Wei(100))
    purse._guard.close()  # as a kill does
    purse = opened(tmp_path)
    again = purse.sign(Wei(10))
    assert again.voucher.amount == 114 and again.voucher.amount > lost.voucher.amount
    # The gateway gave back what it had not answered, and says so once nothing else is open.
    purse.settle(again, Wei(10), Wei(14))
    assert purse.spent == 14
    purse.close()


def test_an_end_that_is_read_late_does_not_lower_what_is_spent(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    early, late = purse.sign(Wei(10)), purse.sign(Wei(10))
    purse.settle(late, Wei(10), Wei(20))
    purse.settle(early, Wei(10), Wei(10))
    assert purse.spent == 20
    purse.close()


def test_a_gateway_speaks_of_the_time_before_to_a_new_purse_alone(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    purse.settle(purse.sign(Wei(10)), Wei(0), Wei(70))
    assert purse.spent == 0, "a gateway that says more is not believed"
    assert purse.begin(Wei(70), Wei(90)) and not purse.begin(Wei(70), Wei(90))
    assert purse.sign(Wei(10)).voucher.amount == 91
    purse.close()
    purse = opened(tmp_path)
    with pytest.raises(PurseBehind):
        purse.begin(Wei(500), Wei(500))
    purse.close()


def test_what_was_lost_and_goes_on_is_counted_once(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    broken = purse.sign(Wei(100))
    purse.lose(broken)
    assert purse.reopen(broken) and not purse.reopen(broken)
    assert purse.spent == 0 and purse.sign(Wei(10)).voucher.amount == 110
    purse.settle(broken, Wei(30))
    assert purse.spent == 30
    purse.close()


def test_what_was_lost_is_not_opened_again_behind_a_newer_voucher(tmp_path: Path) -> None:
    """Of it the gateway may have said less: a purse that then knows of less than its gateway is refused for good."""
    purse = opened(tmp_path)
    broken = purse.sign(Wei(100))
    purse.lose(broken)
    purse.settle(purse.sign(Wei(10)), Wei(0), Wei(40))
    assert purse.spent == 40, "what was drawn until it broke off"
    assert not purse.reopen(broken) and purse.spent == 40
    purse.close()


def test_what_was_settled_is_not_lost_by_whoever_ends_it_once_more(tmp_path: Path) -> None:
    """All that it might have cost would be taken from what is spent, of which its answer's cost alone is part."""
    purse = opened(tmp_path)
    answered = purse.sign(Wei(100))
    purse.settle(answered, Wei(30))
    purse.lose(answered)
    assert not purse.reopen(answered) and purse.spent == 30
    purse.close()


def test_a_purse_from_an_old_copy_says_which_file_to_move_away(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    purse.settle(purse.sign(Wei(10)), Wei(10), Wei(10))
    for spent, highest in ((500, 500), (500, 10), (10, 500)):
        with pytest.raises(PurseBehind) as told:
            purse.begin(Wei(spent), Wei(highest))
        assert str(purse._path) in told.value.message and "move that file away" in str(told.value.remedy)
    assert not purse.begin(Wei(10), Wei(10)), "what it knows itself is no old copy's"
    purse.close()
    purse._path.unlink()
    purse = opened(tmp_path)
    assert purse.begin(Wei(500), Wei(500)) and purse.sign(Wei(10)).voucher.amount == 510
    purse.close()


def test_a_purse_is_new_until_the_first_answer_however_often_it_is_opened(tmp_path: Path) -> None:
    """Who had signed by hand before, and ended a relay before its first answer, could not pay this gateway again."""
    for _ in range(2):
        purse = opened(tmp_path)
        purse.settle(purse.sign(Wei(10)), Wei(0), Wei(70))
        purse.close()
    purse = opened(tmp_path)
    assert purse.begin(Wei(70), Wei(90)) and purse.sign(Wei(10)).voucher.amount == 91
    purse._guard.close()  # as a kill does
    purse = opened(tmp_path)
    with pytest.raises(PurseBehind):
        purse.begin(Wei(500), Wei(500))
    purse.close()


def test_a_purse_that_was_answered_is_not_new_though_its_process_dies(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    purse.settle(purse.sign(Wei(10)), Wei(4), Wei(4))
    purse._guard.close()
    purse = opened(tmp_path)
    with pytest.raises(PurseBehind):
        purse.begin(Wei(500), Wei(500))
    purse.close()


def test_what_the_disk_does_not_take_was_not_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    purse = opened(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(PurseNotKept):
            purse.sign(Wei(10))
    assert purse.signed == 0 and purse.sign(Wei(10)).voucher.amount == 10
    purse.close()


def test_one_process_signs_and_a_damaged_file_is_not_guessed_at(tmp_path: Path) -> None:
    purse = opened(tmp_path)
    with pytest.raises(PurseInUse):
        opened(tmp_path)
    purse.close()
    (file,) = tmp_path.glob("*.json")
    breaks: list[Callable[[bytes], bytes]] = [lambda d: d[:20], lambda d: d.replace(b'"0"', b'"-1"'), lambda d: b"[]"]
    good = file.read_bytes()
    for broken in breaks:
        file.write_bytes(broken(good))
        with pytest.raises(PurseDamaged):
            opened(tmp_path)
