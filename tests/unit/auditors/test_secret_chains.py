"""Chains of secrets: what the contract walks, each secret once, found again without a journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.rounds.ticket_types import chain_of, next_link
from assay.protocol.types import Digest
from assay_verifier.secret_chains import GAP, RESERVE, ChainInUse, SecretChain, TicketChains

SEED, RUN = b"seed" * 8, Digest(b"run".ljust(32, b"\0"))
LAST = Digest(b"last".ljust(32, b"\0"))


@given(st.integers(1, 300), st.data())
def test_a_chain_is_the_protocols_in_whatever_order_it_is_read(links: int, data: st.DataObject) -> None:
    chain, whole = SecretChain(LAST, links), chain_of(LAST, links)
    assert chain.anchor == whole[0]
    for number in data.draw(st.lists(st.integers(1, links), min_size=1, max_size=20)):
        assert chain.secret(number) == whole[number]


@pytest.mark.parametrize("number", [0, 51, -1])
def test_no_secret_is_shown_that_the_chain_does_not_have(number: int) -> None:
    with pytest.raises(InvariantError) as refused:
        SecretChain(LAST, 50).secret(number)
    assert refused.value.code == "NoSuchLink"


def test_a_long_chain_keeps_two_square_roots_of_its_links() -> None:
    chain = SecretChain(LAST, 1 << 12)
    chain.secret(1000)
    assert len(chain._kept) <= (1 << 6) + 1 and len(chain._block[1]) <= 1 << 6


def test_the_first_secret_of_a_ticket_hashes_to_its_anchor() -> None:
    chains = TicketChains(SEED, RUN, 40)
    # The ticket counts after seven calls of its shift: the eighth is its first.
    assert next_link(chains.secret(ChainInUse(0, base=7), call=8)) == chains.anchor(0)


def test_chains_differ_by_number_by_run_and_by_seed() -> None:
    other = Digest(b"other".ljust(32, b"\0"))
    anchors = {TicketChains(SEED, RUN, 8).anchor(k) for k in range(4)}
    anchors |= {TicketChains(SEED, other, 8).anchor(0), TicketChains(b"other" * 8, RUN, 8).anchor(0)}
    assert len(anchors) == 6


def test_a_number_that_was_sent_is_never_given_again() -> None:
    chains = TicketChains(SEED, RUN, 8)
    assert chains.next_number([], []) == 0
    # A crash between the journal's entry and the transaction leaves a number that no chain's event shows.
    assert chains.next_number([0, 1], [chains.anchor(0)]) == 2
    assert chains.next_number([], []) == 2, "what was given once stays given"


def test_without_a_journal_the_anchors_on_chain_say_which_numbers_are_used() -> None:
    before = TicketChains(SEED, RUN, 8)
    anchors = [before.anchor(k) for k in (3, 0)]
    assert TicketChains(SEED, RUN, 8).next_number([], anchors) == 4


def test_an_anchor_is_looked_for_a_gap_beyond_the_last_one_found() -> None:
    source = TicketChains(SEED, RUN, 8)
    assert TicketChains(SEED, RUN, 8).number_of(source.anchor(GAP - 1)) == GAP - 1
    chains = TicketChains(SEED, RUN, 8)
    assert chains.number_of(source.anchor(GAP)) is None
    assert chains.number_of(source.anchor(GAP - 1)) == GAP - 1
    assert chains.number_of(source.anchor(GAP)) == GAP


def test_an_anchor_is_looked_for_among_all_numbers_that_the_journal_knows() -> None:
    far = TicketChains(SEED, RUN, 8).anchor(3 * GAP)
    assert TicketChains(SEED, RUN, 8).number_of(far) is None
    assert TicketChains(SEED, RUN, 8, sent=range(3 * GAP + 1)).number_of(far) == 3 * GAP


def test_a_strangers_anchor_is_none_of_these_chains() -> None:
    chains = TicketChains(SEED, RUN, 8)
    assert chains.number_of(TicketChains(b"stranger", RUN, 8).anchor(0)) is None
    assert chains.next_number([], []) == 0


def test_a_chain_runs_low_while_enough_secrets_are_left_for_the_change() -> None:
    chains = TicketChains(SEED, RUN, links := RESERVE + 10)
    used = ChainInUse(0, base=5)
    assert not chains.runs_low(used, calls=5 + links - RESERVE)
    assert chains.runs_low(used, calls=5 + links - RESERVE + 1)
