"""Findings outlive the process that made them."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.rounds.duty_types import ReplayFinding
from assay.protocol.types import Digest
from assay_ledger.agents.journal import Journal
from assay_verifier.finding_book import Ended, FindingBook, place_of


def digest(n: int) -> Digest:
    return Digest(bytes([n]) * 32)


PLACE = place_of(digest(1), digest(2))
ENDED = Ended((digest(3), digest(4), digest(5)), digest(6))


def test_a_finding_is_there_after_a_crash_under_each_set_of_its_keys(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    book = FindingBook(journal)
    book.add(PLACE, ENDED, {digest(7): digest(8), digest(9): digest(10)})
    book.confirm(PLACE, None)
    book.confirm(PLACE, digest(9))
    journal.close()
    again = FindingBook(Journal(tmp_path))
    wanted = ReplayFinding(ENDED.ends, ENDED.update, (digest(9), digest(7)), (digest(10), digest(8)))
    assert again.finding(PLACE, (digest(9), digest(7))) == wanted
    assert again.finding(PLACE, (digest(9), digest(11))) is None
    assert again.ended(PLACE) == ENDED
    assert again.is_confirmed(PLACE, None) and again.is_confirmed(PLACE, digest(9))
    assert not again.is_confirmed(PLACE, digest(7))


def test_each_key_is_traced_by_the_pass_that_ran_it(tmp_path: Path) -> None:
    book = FindingBook(Journal(tmp_path))
    book.add(PLACE, ENDED, {digest(7): digest(8), digest(9): digest(10)})
    book.add(PLACE, ENDED, {digest(11): digest(12)})
    assert book.pass_of(PLACE, digest(9)) == (digest(7), digest(9))
    assert book.pass_of(PLACE, digest(11)) == (digest(11),)
    assert book.pass_of(PLACE, None) == (digest(7), digest(9))
    assert book.pass_of(place_of(digest(2), digest(1)), None) == ()


def test_a_commitment_on_another_base_is_another_place(tmp_path: Path) -> None:
    book = FindingBook(Journal(tmp_path))
    book.add(PLACE, ENDED, {digest(7): digest(8)})
    assert not book.is_known(place_of(digest(20), digest(2)), digest(7))
    assert book.ended(place_of(digest(20), digest(2))) is None


def test_a_finding_that_is_withdrawn_counts_no_more_until_its_pass_is_done_again(tmp_path: Path) -> None:
    book = FindingBook(Journal(tmp_path))
    book.add(PLACE, ENDED, {digest(7): digest(8)})
    book.confirm(PLACE, None)
    book.withdraw(PLACE, (digest(7),))
    assert book.finding(PLACE, (digest(7),)) is None and not book.is_known(PLACE, digest(7))
    assert not book.is_confirmed(PLACE, None) and book.pass_of(PLACE, digest(7)) == ()
    book.add(PLACE, ENDED, {digest(7): digest(9)})
    found = book.finding(PLACE, (digest(7),))
    assert found is not None and found.accumulators == (digest(9),)


def test_of_passes_that_end_elsewhere_the_later_one_counts_alone(tmp_path: Path) -> None:
    """A journal holds passes that were begun anew: what a false one sampled must not stand beside a true end."""
    journal = Journal(tmp_path)
    book = FindingBook(journal)
    book.add(PLACE, Ended((digest(30), digest(4), digest(5)), digest(6)), {digest(7): digest(8)})
    book.add(PLACE, ENDED, {digest(9): digest(10)})
    journal.close()
    for known in (book, FindingBook(Journal(tmp_path))):
        assert known.passes_of(PLACE) == [(digest(9),)]
        assert known.ended(PLACE) == ENDED and not known.is_known(PLACE, digest(7))
