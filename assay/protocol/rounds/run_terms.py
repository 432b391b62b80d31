"""The parts of a charter that tickets, audits, games and the books of rounds are built with (RunCharter.sol)."""

from __future__ import annotations

from assay.protocol.economics.run_times import min_kept
from assay.protocol.game.clock import Clocks
from assay.protocol.game.state import GameConfig
from assay.protocol.rounds.duty_types import DutyTerms
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.run.run_charter import RunCharter


def ticket_terms(charter: RunCharter) -> TicketTerms:
    """What tickets are built with. Raises RejectedError (BadTicketTerms)."""
    e = charter.economics
    return TicketTerms(bond=e.ticket_bond, seasoning=charter.timing.seasoning, shifts=e.shifts)


def duty_terms(charter: RunCharter) -> DutyTerms:
    """What epochs and duties are built with."""
    e, t = charter.economics, charter.timing
    return DutyTerms(
        start=t.audits_from,
        length=t.epoch,
        delay=t.seed_delay,
        capacity=e.capacity,
        audit_ppm=e.audit_ppm,
        reaudit_ppm=e.reaudit_ppm,
        wage=e.wage,
    )


def round_terms(charter: RunCharter) -> RoundTerms:
    """What tenures, commitments and generations are built with."""
    w, t, e = charter.training, charter.timing, charter.economics
    return RoundTerms(
        seats=w.seats,
        group_size=w.group_size,
        positions=w.positions,
        top_positions=w.top_positions,
        min_units=w.min_units,
        max_units=w.max_units,
        steps_per_unit=w.steps_per_unit,
        learning_rate=w.learning_rate,
        shards=w.shards,
        shard_length=w.shard_length,
        rounds=charter.rounds,
        expiry=charter.expiry,
        commit=t.commit,
        inclusion=charter.chain.inclusion_delay,
        grace=t.grace,
        hold=t.hold,
        group_merge=t.group_merge,
        merge=t.merge,
        beacon_delay=t.beacon_delay,
        challenge=t.challenge,
        rescue=t.rescue,
        longest_dispute=t.longest_dispute,
        run=charter.run,
        step_program=charter.step.root,
        update_program=charter.update.root,
        partial_program=charter.partial_sum.root,
        outer_program=charter.merge.root,
        witness_program=charter.witness.root,
        data=w.data,
        zero_optimizer=w.zero_optimizer,
        zero_update=w.zero_update,
        zero_partial=w.zero_partial,
        parameters=w.parameters,
        momentum=w.momentum,
        seat_lock=e.seat_lock,
        seat_fee=e.seat_fee,
        drawn_bounty_ppm=e.drawn_bounty_ppm,
        third_bounty_ppm=e.third_bounty_ppm,
    )


def game_config(charter: RunCharter) -> GameConfig:
    """What a run's game is built with (Game.sol)."""
    e, k, c = charter.economics, charter.clocks, charter.chain
    return GameConfig(
        k.arity,
        Clocks(k.budget, k.replay, k.move),
        e.challenge_bond,
        e.challenge_deposit,
        e.third_bounty_ppm,
        c,
        min_kept(c, k.arity),
    )
