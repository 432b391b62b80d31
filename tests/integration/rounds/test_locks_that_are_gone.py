"""What nothing stands behind any more becomes nothing: locks that came back, runs that were stopped."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from eth_abi.abi import encode
from eth_hash.auto import keccak

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round
from assay_ledger.agents import keeper
from assay_ledger.agents.round_actions import CloseOpening, Evict, FinalizeGeneration, RoundAction
from assay_ledger.agents.stalls import winds_down_at
from assay_ledger.rounds.nodes import over_of
from assay_ledger.rounds.view import BaseLists
from assay_solver import strategy
from assay_solver.actions import BackRoot
from assay_solver.pace import OwnPace
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.charters import HOUR, changed
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.integration.rounds.test_grouped_generations import TERMS, finalize_sums, party
from tests.integration.rounds.test_tenures import evict

UNTIL = 7
"""Its place in ClaimView."""

E = DENSE.economics
LONG_MERGE = staked(changed(DENSE, "timing", merge=40 * HOUR), seat_fee=E.seat_fee, merge_pay=E.merge_pay)
"""Merging outlasts the round's audits: a charter that a contract takes."""


def due(w: ToldMoneyWorld, who: Address) -> list[RoundAction]:
    """What somebody would do for the run by now, whoever's turn it is."""
    return [task.action for task in keeper.tasks(w.view(who)) if task.at <= w.now + HOUR]


def leave(w: MoneyWorld, who: Address) -> str:
    number = w.tenures[who]
    return w.do(lambda: w.model.tenures.leave(who, number), "Tenures", "leave", number, who=who)


@pytest.mark.parametrize("words", ["held", "unheld"])
def test_who_took_its_lock_back_before_the_merge_ends_says_nothing_more(words: str) -> None:
    """Attack: true work, audits that are over, the lock back, and then a false root with nothing behind it."""
    w = MoneyWorld(LONG_MERGE)
    people = w.start(tickets=8)
    liars = people[:3]
    w.commit_all(people)
    if words == "held":
        w.hold_all(people)
    until = w.model.commitments.merge_until(Round(0))
    own = w.own_epoch(0)
    while w.run.duties.number <= own or not w.run.duties.over_since(own):
        w.play_epoch()
        own = w.own_epoch(0)
    assert w.now < until
    for who in liars:
        assert w.settle_work(0, w.seat(who), own) == ""
        assert leave(w, who) == "" and w.release(who) == ""
        assert w.seal(who, "false") == "NotThePosition"
    assert w.vault.lock_amount(ids.tenure_lock(w.tenures[liars[0]])) == 0
    # Who is still there says what it has to say.
    assert w.seal(people[3], "root") == ""
    w.end()


@pytest.mark.parametrize(("late", "said"), [(0, "NotFinalizable"), (1, "")])
def test_a_root_whose_window_a_stop_cut_short_never_becomes_final(late: int, said: str) -> None:
    """Attack: a run that dies; open an invented root, stop the run, and nobody can challenge it any more."""
    w = ToldMoneyWorld()
    people = w.start(tickets=12)
    w.play_round(people)
    challenge = w.charter.timing.challenge
    w.tick(challenge + 1)
    assert w.finalize(1) == ""
    epoch, launched = w.run.duties.epochs[-1].start, w.run.escrow.launched_at
    stops_from = max(launched, min(w.model.generations.final_at, epoch)) + 2 * w.charter.timing.stall + 1
    w.at(stops_from - challenge)
    assert w.restart() == "" and w.round == 2
    w.commit_all(people)
    w.hold_all(people)
    w.merge(people, "root")
    (opened,) = {made.at for (node, _), made in w.model.generations.openings.items() if node == 3 and made.at}
    w.at(max(stops_from, opened + challenge + late))
    assert w.wind_down() == ""
    w.at(opened + challenge + 1)
    # Keepers ask for what the contract takes: the root, or that what is behind it goes free.
    asked = {a for a in due(w, people[0]) if isinstance(a, FinalizeGeneration | CloseOpening) and a.node == 3}
    assert {type(a) for a in asked} == ({FinalizeGeneration} if late else {CloseOpening})
    assert w.finalize(3, w.seat(people[0])) == said
    wanted = GenerationStatus.MERGED if said else GenerationStatus.FINAL
    assert w.call("Generations", "statusOf", 3) == wanted
    closes = [a for a in due(w, people[0]) if isinstance(a, CloseOpening) and a.node == 3]
    assert len(closes) == len(people)
    for action in closes:
        call = partial(w.model.generations.close, 3, action.party, w.now)
        assert w.do(call, "Generations", "close", 3, action.party) == ""
    assert not [a for a in due(w, people[0]) if isinstance(a, CloseOpening) and a.node == 3]
    w.end()


def test_a_root_of_after_the_stop_never_becomes_final() -> None:
    w = MoneyWorld()
    people = w.start(tickets=12)
    w.play_round(people)
    w.tick(w.charter.timing.challenge + 1)
    assert w.finalize(1) == ""
    for who in people:
        assert leave(w, who) == ""
    liar = w.add_person(10**5 * ETHER)
    assert w.join(liar) == ""
    epoch, launched = w.run.duties.epochs[-1].start, w.run.escrow.launched_at
    w.at(max(launched, min(w.model.generations.final_at, epoch)) + 2 * w.charter.timing.stall)
    assert w.restart() == "" and w.round == 2 and w.wind_down() == "RunMoves"
    w.tick(1)
    assert w.wind_down() == ""
    assert w.commit(liar) == ""
    w.hold_all([liar])
    w.merge([liar], "an invented root")
    w.tick(w.charter.timing.challenge + 1)
    assert w.finalize(3, w.seat(liar)) == "NotFinalizable"
    assert w.call("Generations", "newest") != 3 or w.call("Generations", "statusOf", 3) != GenerationStatus.FINAL
    w.end()


def on_party(w: MoneyWorld, function: str, generation: int, who: Address) -> str:
    """Something that anybody does with who opened a generation's root."""
    party, made = ids.seat_party(w.seat(who)), w.model.generations
    call = partial(getattr(made, function), generation, party, w.now)
    return w.do(call, "Generations", function, generation, party)


def in_rescue(w: ToldMoneyWorld) -> tuple[Address, int]:
    """Generation 2 stands on one whose openers all lost their seats, shortly before the run may be wound down: an
    opener of generation 2 alone, and that time."""
    *convicted, last = people = w.start(tickets=12)
    w.commit_all(people)
    w.hold_all(people)
    w.at(w.model.commitments.hold_until(Round(0), 0) + 1)
    assert w.abstain(last) == ""
    w.merge(convicted, ("root", 0))
    w.play_round(people)
    third, ends = w.add_person(10**5 * ETHER), winds_down_at(w.view(last))
    w.at(ends - w.terms.rescue // 2)
    for who in convicted:
        w.prepare_work(Round(0), w.seat(who))
        ref = (int(ClaimKind.INTERVAL), 0, w.seat(who), 0, bytes(20), ZERO)
        assert w.open_verdict(ref, third) == ""
        w.end_verdict(ref, True, False, third)
        assert [on_party(w, "drop", generation, who) for generation in (1, 2)] == ["", ""]
    return last, ends


def test_what_stands_on_a_root_that_a_stop_left_in_its_rescue_goes_free() -> None:
    """Attack: a root is backed just before a stop. It never falls and is never final, nor is what stands on it, and
    above 64 seats the stakes of who opened that stay locked."""
    w = ToldMoneyWorld(replace(DENSE, rounds=2))
    (last, ends), rescuer = in_rescue(w), w.add_person(10**5 * ETHER)
    root, made = w.root_of(("root", 0))[2], w.model.generations
    backs = partial(made.back, rescuer, 1, root, w.now)
    assert w.do(backs, "Generations", "back", 1, root, who=rescuer) == ""
    w.at(ends)
    assert w.wind_down() == "" and w.call("Generations", "statusOf", 2) == GenerationStatus.MERGED
    w.tick(w.charter.timing.challenge + 1)
    asked = {action for action in due(w, last) if isinstance(action, CloseOpening)}
    assert {(action.node, action.party) for action in asked} >= {
        (1, ids.backer_party(root, rescuer)),
        (2, ids.seat_party(w.seat(last))),
    }
    assert not [action for action in due(w, last) if isinstance(action, FinalizeGeneration)]
    for action in asked:
        call = partial(made.close, action.node, action.party, w.now)
        assert w.do(call, "Generations", "close", action.node, action.party) == ""
    w.end()


def test_nobody_backs_a_root_in_a_run_that_was_stopped() -> None:
    """Its backer stakes S for a root that never becomes final, and that never falls by it."""
    w = ToldMoneyWorld(replace(DENSE, rounds=2))
    last, ends = in_rescue(w)
    parameters, momentum, _ = w.root_of(("root", 0))

    def backs() -> bool:
        view = w.view(last)
        merges = {(Round(0), over_of(view, 1)): BaseLists(parameters, momentum)}
        own = strategy.OwnRounds(OwnPace(0.0), lead=0, merges=merges)
        return any(isinstance(action, BackRoot) for action in strategy.candidates(view, own, []))

    w.at(ends)
    assert backs() and w.wind_down() == "" and not backs()
    w.end()


def test_nobody_has_the_fee_of_who_is_in_a_seat_when_a_run_stops() -> None:
    """Attack: evict who missed two rounds before a stop, for half of its fee; nobody waits for its seat any more."""
    w = ToldMoneyWorld(replace(DENSE, rounds=2))
    *people, away = w.start(tickets=12)
    for _ in range(2):
        w.play_round(people)
    w.at(w.view(away).commit_until(Round(1)) + 1)
    evicts = [action for action in due(w, people[0]) if isinstance(action, Evict)]
    assert [action.tenure for action in evicts] == [w.tenures[away]]
    w.at(winds_down_at(w.view(away)))
    assert w.wind_down() == ""
    assert not [action for action in due(w, people[0]) if isinstance(action, Evict)]
    assert evict(w, away, people[0], 1) == "RunStopped"
    assert leave(w, away) == "" and w.release(away) == ""
    assert w.vault.free_of(away) == 10**5 * ETHER
    w.end()


def test_an_opening_that_is_closed_and_whose_ticket_is_gone_is_no_claim() -> None:
    """Else a reveal about it could not end, and the deposit behind it would burn."""
    w = GroupedWorld(RoundChain(TERMS))
    w.play_round(w.start())
    last, node, top = w.now, w.node(0, Round(0)), next(iter(w.committee(w.top(Round(0)))))
    opener = next(iter(w.committee(node)))
    assert w.prepare_node(node) == ""
    claim = w.claim(node, opener)
    assert w.call("Generations", "claimOf", claim)[UNTIL] > last
    w.at(last + TERMS.challenge + 1)
    finalize_sums(w, Round(0))
    assert w.on_node("finalize", 1, party(top)) == ""
    assert w.on_node("close", node, party(opener)) == ""
    tickets = w.chain.contracts["Tickets"].address
    first = int.from_bytes(keccak(encode(["uint256", "uint256"], [opener, 1])), "big")
    for k in range(4):  # what `reclaim` deletes
        w.chain.evm.evm.insert_account_storage(tickets, first + k, 0)
    assert w.refusal("Tickets", "ownerOf", opener) == "TicketNotFound"
    assert w.call("Generations", "claimOf", claim)[UNTIL] == 0
