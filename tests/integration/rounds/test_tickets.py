"""Tickets on model and contract: who counts when, who sits where, what a chain must show, what a fine takes."""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest
from eth_hash.auto import keccak

from assay.protocol.digests import ZERO
from assay.protocol.rounds.ticket_types import MAX_BOND, TicketId, TicketTerms
from assay.protocol.types import Digest, Wei
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import Evm, Reverted
from tests.harness.rounds.stage import ETHER, refused, text
from tests.harness.rounds.staged import deploy_charter, modules_at
from tests.harness.rounds.tickets import TERMS, TicketStage, chain

SEED, NODE = Digest(keccak(b"seed")), Digest(keccak(b"node"))


@pytest.fixture
def stage() -> TicketStage:
    return TicketStage(contracts=True)


def seasoned(stage: TicketStage, count: int) -> list[int]:
    """Register tickets of the first person and wait until they count."""
    made = [stage.register(0) for _ in range(count)]
    stage.pass_time(TERMS.seasoning)
    return list(made)


def positions(stage: TicketStage, time: int, count: int) -> list[int]:
    """The tickets at the first positions of a node, by the model; equal to the contract's."""
    found = [int(stage.tickets.position_of(SEED, NODE, j, time, stage.now)) for j in range(count)]
    contract = stage.contracts["tickets"]
    assert [contract.call("positionOf", SEED, NODE, j, time) for j in range(count)] == found
    return found


# --- who counts


def test_a_ticket_counts_from_the_last_second_of_its_seasoning_on(stage: TicketStage) -> None:
    ticket = stage.register(0)
    counts_from = stage.now + TERMS.seasoning
    assert stage.members(counts_from - 1) == []
    contract = stage.contracts["tickets"]
    with pytest.raises(Reverted, match="TimeNotSettled"):
        contract.call("countAt", counts_from)
    assert refused(stage.tickets.count_at, counts_from, stage.now) == "TimeNotSettled"
    stage.pass_time(1)
    assert stage.members(counts_from) == [ticket]
    assert [contract.call("isServing", ticket, counts_from - k) for k in (1, 0)] == [False, True]
    assert not stage.tickets.is_serving(ticket, counts_from - 1, stage.now)
    assert stage.tickets.is_serving(ticket, counts_from, stage.now)
    with pytest.raises(Reverted, match="NoTickets"):
        contract.call("positionOf", SEED, NODE, 0, counts_from - 1)
    assert refused(stage.tickets.position_of, SEED, NODE, 0, counts_from - 1, stage.now) == "NoTickets"


def test_who_retired_before_a_time_has_no_position_then_and_keeps_those_before(stage: TicketStage) -> None:
    tickets = seasoned(stage, 4)
    before = stage.now
    drawn = positions(stage, before, 60)
    assert set(drawn) == set(tickets)
    stage.retire(0, tickets[0])
    until = stage.now + TERMS.seasoning
    stage.pass_time(TERMS.seasoning)
    # Attack: sit in a committee with a stake that has left. The last ticket moved into the free slot.
    assert tickets[0] not in positions(stage, until, 60)
    assert stage.members(until) == [tickets[3], tickets[1], tickets[2]]
    assert tickets[0] in stage.members(until - 1)
    assert positions(stage, before, 60) == drawn
    contract = stage.contracts["tickets"]
    with pytest.raises(Reverted, match="SlotEmpty"):
        contract.call("ticketAt", 3, until)
    assert refused(stage.tickets.ticket_at, 3, until, stage.now) == "SlotEmpty"


def test_positions_of_a_share_of_tickets_are_binomial() -> None:
    stage = TicketStage(contracts=True)
    tickets = seasoned(stage, 9)
    hostile, size, committees = set(tickets[:3]), 15, 3000
    counts: Counter[int] = Counter()
    for number in range(committees):
        node = Digest(number.to_bytes(32, "big"))
        drawn = [stage.tickets.position_of(SEED, node, j, stage.now, stage.now) for j in range(size)]
        counts[sum(ticket in hostile for ticket in drawn)] += 1
    expected = {k: committees * comb(size, k) * 2 ** (size - k) / 3**size for k in range(size + 1)}
    cells = [k for k in expected if expected[k] >= 5]
    rest = committees - sum(expected[k] for k in cells)
    statistic = sum((counts[k] - expected[k]) ** 2 / expected[k] for k in cells)
    statistic += (sum(counts[k] for k in expected if k not in cells) - rest) ** 2 / rest
    # 99.9 % of a chi-square of 11 degrees of freedom lies below; seed and nodes are fixed, so this never flickers.
    assert len(cells) == 11
    assert statistic < 31.3
    positions(stage, stage.now, 40)


# --- chains of secrets


def test_a_chain_is_shown_link_by_link_and_a_skipped_call_counts(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    secrets = stage.chains[ticket]
    stage.begin(1)
    assert refused(stage.show, ticket, secrets[2]) == "WrongSecret"
    assert stage.show(ticket, secrets[1]) == 0
    assert refused(stage.show, ticket, secrets[1]) == "CallShown"
    stage.begin(1)
    stage.begin(2)
    stage.begin(1)
    assert stage.show(ticket, secrets[3]) == 1
    stage.compare()


@pytest.mark.parametrize("skipped", [31, 32])
def test_one_call_walks_32_links_and_no_more(stage: TicketStage, skipped: int) -> None:
    (ticket,) = seasoned(stage, 1)
    for _ in range(skipped + 1):
        stage.begin(1)
    if skipped < 32:
        assert stage.show(ticket, stage.chains[ticket][32]) == 31
        return
    assert refused(stage.show, ticket, stage.chains[ticket][33]) == "ChainTooLong"
    assert stage.show(ticket, stage.chains[ticket][1], call=1) == 0
    assert stage.show(ticket, stage.chains[ticket][33]) == 31


def test_calls_before_a_ticket_counts_are_not_its_own(stage: TicketStage) -> None:
    stage.begin(1)
    ticket = stage.register(0)
    stage.begin(1)
    stage.pass_time(TERMS.seasoning)
    stage.begin(1)
    assert stage.show(ticket, stage.chains[ticket][1]) == 0


def test_another_chain_answers_from_its_seasoning_on(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    other = chain("other")
    stage.replace(0, ticket, other[0])
    counts_from = stage.now + TERMS.seasoning
    assert refused(stage.replace, 0, ticket, other[0]) == "AnchorPending"
    stage.begin(1, TERMS.seasoning - 1)
    # Attack: a chain chosen after its seed is known.
    assert stage.calls.start == counts_from - 1
    assert refused(stage.show, ticket, other[1]) == "WrongSecret"
    stage.show(ticket, stage.chains[ticket][1])
    stage.begin(1, 1)
    assert refused(stage.show, ticket, stage.chains[ticket][2]) == "WrongSecret"
    stage.show(ticket, other[1])
    stage.compare()


def test_a_new_chain_begins_only_after_every_secret_of_the_old_one(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    other = chain("other")
    stage.begin(1)
    skipped = stage.calls.start
    stage.replace(0, ticket, other[0])
    stage.begin(1, TERMS.seasoning)
    # Attack: skip a call, and replace the chain before its secret is shown (E3).
    assert refused(stage.show, ticket, other[1]) == "SecretsOwed"
    assert refused(stage.show, ticket, other[2]) == "SecretsOwed"
    stage.show(ticket, stage.chains[ticket][1], call=1, time=skipped)
    assert stage.show(ticket, other[1]) == 0


# --- leaving


def test_a_stake_leaves_when_its_last_attestations_are_past_dispute_and_owes_none(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    assert refused(stage.reclaim, 0, ticket) == "TicketServes"
    stage.retire(0, ticket)
    assert refused(stage.retire, 0, ticket) == "TicketRetires"
    until = stage.now + TERMS.seasoning
    stage.begin(1, TERMS.seasoning - 1)
    called = stage.calls.start
    stage.begin(2, 1)
    assert stage.calls.start == until
    # Attack: miss the last call before leaving, whose secret nobody would ever see (E3).
    assert refused(stage.reclaim, 0, ticket) == "SecretsOwed"
    stage.show(ticket, stage.chains[ticket][1], call=1, time=called)
    stage.begin(1)
    stage.begin(1)
    stage.begin(1)
    assert stage.epoch == stage.tickets.tickets[TicketId(ticket)].last_epoch + 3
    # Attack: bribe who re-audits to miss it, and be gone before the miss is drawn again.
    assert refused(stage.reclaim, 0, ticket) == "TicketObliged"
    stage.begin(1)
    stage.oblige(ticket)
    assert refused(stage.reclaim, 0, ticket) == "TicketObliged"
    stage.acquit(ticket)
    assert stage.reclaim(0, ticket) == TERMS.bond
    assert refused(stage.reclaim, 0, ticket) == "TicketNotFound"
    stage.compare()


def test_the_newest_epoch_must_begin_no_earlier_than_a_retirement(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    stage.retire(0, ticket)
    for _ in range(3):
        stage.begin(2, 1)
    stage.begin(2, TERMS.seasoning - 4)
    assert refused(stage.reclaim, 0, ticket) == "TicketServes"
    stage.begin(2, 1)
    assert stage.reclaim(0, ticket) == TERMS.bond


def test_a_ticket_is_its_owners_alone(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    for call in (stage.retire, stage.reclaim, stage.top_up):
        assert refused(call, 1, ticket) == "NotTheTicketsOwner"
    assert refused(stage.replace, 1, ticket, chain(1)[0]) == "NotTheTicketsOwner"
    assert refused(stage.replace, 0, ticket, ZERO) == "AnchorZero"
    assert refused(stage.register, 0, ZERO) == "AnchorZero"
    assert refused(stage.retire, 0, 99) == "TicketNotFound"


def test_a_ticket_needs_the_whole_bond(stage: TicketStage) -> None:
    for _ in range(10):
        stage.register(1)
    assert refused(stage.register, 1) == "InsufficientFree"
    assert stage.vault.free_of(stage.people[1]) == 0


# --- fines and convictions


def test_half_of_a_fine_goes_to_who_proved_it_and_never_more_than_there_is(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    free = stage.vault.free_of(stage.people[1])
    assert stage.fine(ticket, 7, to=1) == 7
    assert stage.vault.free_of(stage.people[1]) == free + 3
    assert stage.vault.burned == 4
    assert stage.fine(ticket, 500 * ETHER, to=1) == TERMS.bond - 7
    assert stage.fine(ticket, 1, to=1) == 0
    stage.top_up(0, ticket)
    assert refused(stage.top_up, 0, ticket) == "TicketWhole"
    stage.compare()


@pytest.mark.parametrize("taken", [1, TERMS.bond // 2 + 1, TERMS.bond], ids=["a-wei", "half", "all"])
def test_what_fines_left_of_a_stake_comes_back_without_a_top_up(stage: TicketStage, taken: int) -> None:
    (ticket,) = seasoned(stage, 1)
    free = stage.vault.free_of(stage.people[0])
    assert stage.fine(ticket, taken, to=1) == taken
    stage.retire(0, ticket)
    stage.begin(2, TERMS.seasoning)
    for _ in range(4):
        stage.begin(2)
    assert stage.reclaim(0, ticket) == TERMS.bond - taken
    assert stage.vault.free_of(stage.people[0]) == free + TERMS.bond - taken
    stage.compare()


def test_a_ticket_left_short_is_removed_after_its_owner_could_know(stage: TicketStage) -> None:
    (ticket,) = seasoned(stage, 1)
    assert refused(stage.remove_short, 2, ticket) == "TicketWhole"
    stage.fine(ticket, ETHER)
    stage.pass_time(TERMS.seasoning)
    stage.fine(ticket, ETHER)
    assert refused(stage.remove_short, 2, ticket) == "TopUpDue"
    stage.pass_time(1)
    stage.remove_short(2, ticket)
    assert refused(stage.remove_short, 2, ticket) == "TicketRetires"
    assert stage.members(stage.now + TERMS.seasoning - 1) == [ticket]
    stage.pass_time(1)
    assert stage.members(stage.now + TERMS.seasoning - 1) == []


def test_a_conviction_takes_the_whole_lock_once_and_the_ticket_for_good(stage: TicketStage) -> None:
    ticket, other = seasoned(stage, 2)
    assert stage.forfeit(ticket)
    assert not stage.forfeit(ticket)
    assert stage.vault.burned == TERMS.bond
    for _ in range(4):
        stage.begin(0, TERMS.seasoning)
    assert stage.members(stage.now) == [other]
    assert refused(stage.reclaim, 0, ticket) == "TicketConvicted"
    assert refused(stage.top_up, 0, ticket) == "TicketConvicted"
    stage.compare()


def test_fines_of_a_disputed_ticket_wait_for_its_last_dispute_and_hold_its_stake(stage: TicketStage) -> None:
    ticket, _ = seasoned(stage, 2)
    free = stage.vault.free_of(stage.people[2])
    stage.dispute(ticket)
    stage.dispute(ticket)
    assert stage.fine(ticket, 3 * ETHER, to=2) == 0
    assert stage.fine(ticket, 2 * TERMS.bond, to=2) == 0
    assert (stage.forfeit(ticket), stage.tickets.tickets[TicketId(ticket)].obligations) == (False, 5)
    stage.compare()
    stage.undispute(ticket)
    assert refused(stage.collect, ticket, 0) == "TicketDisputed"
    stage.undispute(ticket)
    stage.retire(0, ticket)
    for _ in range(4):
        stage.begin((ticket + 1) % TERMS.shifts, TERMS.seasoning)
    # Attack: accused by a puppet, leave in the second of the verdict with what was proven meanwhile unpaid.
    assert refused(stage.reclaim, 0, ticket) == "TicketObliged"
    assert refused(stage.collect, ticket, 3) == "NothingOwed"
    stage.collect(ticket, 0)
    assert stage.vault.free_of(stage.people[2]) == free + 3 * ETHER // 2
    assert refused(stage.collect, ticket, 0) == "NothingOwed"
    stage.compare()
    # A conviction meanwhile leaves nothing for what was owed.
    burned = stage.vault.burned
    stage.collect(ticket, 2)
    assert stage.vault.burned == burned + TERMS.bond - 3 * ETHER
    stage.collect(ticket, 1)
    assert stage.vault.free_of(stage.people[2]) == free + 3 * ETHER // 2
    assert stage.tickets.tickets[TicketId(ticket)].obligations == 0
    stage.compare()


def test_who_earned_something_is_known_after_its_stake_went_back(stage: TicketStage) -> None:
    ticket, other = seasoned(stage, 2)
    stage.retire(0, ticket)
    for _ in range(4):
        stage.begin((ticket + 1) % TERMS.shifts, TERMS.seasoning)
    stage.reclaim(0, ticket)
    stage.forfeit(other)
    assert [stage.tickets.payee_of(TicketId(n)) for n in (ticket, other, 99)] == [stage.people[0], None, None]
    stage.compare()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("advance", (1, 0, 1, 1, ZERO)),
        ("fine", (1, 1, text(bytes(20)))),
        ("forfeit", (1,)),
        ("oblige", (1,)),
        ("acquit", (1,)),
        ("dispute", (1,)),
        ("undispute", (1, True)),
    ],
)
def test_strangers_move_no_chain_fine_or_conviction(function: str, args: tuple[object, ...]) -> None:
    stage = TicketStage(contracts=True)
    seasoned(stage, 1)
    with pytest.raises(Reverted, match="NotAPeer"):
        stage.contracts["tickets"].call(function, *args, caller=text(stage.people[0]))
    stage.compare()


@pytest.mark.parametrize(
    ("bond", "shifts", "good"),
    [(0, 1, False), (1, 0, False), (1, 1, True), (MAX_BOND, 1, True), (MAX_BOND + 1, 1, False)],
)
def test_terms_are_held_to_their_bounds(bond: int, shifts: int, good: bool) -> None:
    evm = Evm()
    charter = deploy_charter(evm, modules_at(), tickets=(bond, 1, shifts))
    if good:
        TicketTerms(Wei(bond), 1, shifts)
        evm.deploy("Tickets", charter.address)
        return
    assert refused(TicketTerms, Wei(bond), 1, shifts) == "BadTicketTerms"
    with pytest.raises(RuntimeError):
        evm.deploy("Tickets", charter.address)


# --- gas


@pytest.mark.timeout(600)
def test_gas_of_tickets_does_not_grow_with_their_number() -> None:
    stage = TicketStage(people=1, contracts=True, stake=1_000_000 * ETHER)
    table: dict[str, dict[str, int]] = {name: {} for name in ("register", "advance", "fine", "positionOf", "retire")}
    contract, secrets = stage.contracts["tickets"], chain("all")
    # The first fine of a run writes slots that are zero.
    stage.fine(stage.register(0), 2)
    for count in (8, 64, 1024, 9999):
        while stage.tickets._last < count:
            stage.register(0, secrets=secrets)
            stage.pass_time(12)
        ticket = count - 3
        stage.pass_time(TERMS.seasoning)
        stage.begin(ticket % TERMS.shifts)
        stage.show(ticket, stage.secret(ticket, stage.calls.calls_at(ticket % TERMS.shifts, stage.now)))
        row = {"register": stage.gas["register"], "advance": stage.contracts["calls"].gas}
        stage.fine(ticket, ETHER)
        row["fine"] = stage.contracts["calls"].gas
        contract.call("positionOf", SEED, NODE, 0, stage.now)
        row["positionOf"] = contract.gas
        stage.retire(0, ticket)
        row["retire"] = stage.gas["retire"]
        for name, gas in row.items():
            table[name][f"{count} tickets"] = gas
    for name in ("register", "advance", "fine", "retire"):
        least, *_, most = sorted(table[name].values())
        assert most < 1.15 * least, name
    snapshots.check("tickets", table)
