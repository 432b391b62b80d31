"""What a model's card says was replayed, after the conviction of who says so."""

from __future__ import annotations

import pytest

from assay.provenance.books import history_of
from assay.provenance.document import NO_STORE, card_document
from tests.harness.actors.disputed import aside
from tests.harness.actors.whole_run import WholeRun


@pytest.mark.long
def test_what_a_convicted_auditor_signed_was_replayed_by_nobody(disputed: WholeRun) -> None:
    """Attack: an auditor that signs without looking, and a card that vouches for work which nobody saw."""
    with aside(disputed):
        disputed.settle(lambda view: bool(view.state.attestations))
        view, books = history_of(disputed.run)

    def audited() -> tuple[int, int]:
        card = card_document(view, books, NO_STORE)
        return card["audited"]["audited"], card["audits"]["audited"]

    assert all(audited())
    for ticket in {found.ticket for found in view.state.attestations.values()}:
        view.books.registry.tickets[ticket].convicted_at = view.now
    assert audited() == (0, 0)
