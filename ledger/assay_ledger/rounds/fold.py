"""Which event changes what: one step of the fold from a run's events to its state. Pure."""

from __future__ import annotations

from assay.protocol.economics.limits import PPM
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.types import Digest
from assay_ledger.bindings import (
    attestations,
    beacon,
    commitments,
    duties,
    generations,
    governor,
    payments,
    tenures,
    tickets,
)
from assay_ledger.bindings.grouped_generations import NodeOpened, NodeSealed
from assay_ledger.contract import Event
from assay_ledger.index.game_fold import fold_game
from assay_ledger.rounds.records import (
    AccusationRecord,
    AttestationRecord,
    OpeningRecord,
    RunState,
    WorkRecord,
)


def fold(state: RunState, event: Event, now: int, transaction: bytes) -> None:
    """Applies an event of a block at chain time `now`, in seconds; `transaction` is the hash of what brought it.

    Raises InvariantError (EventOutOfOrder), LookupError for events that make no sense together.
    """
    state.books.now = max(state.books.now, now)
    _fold_rounds(state, event, now, transaction)
    _fold_audits(state, event, now, transaction)
    _fold_games(state, event, transaction)
    state.money.fold(event, now, lambda name: state.attestations[name].round)
    state.books.stop.at = state.money.stopped_at
    match event:
        case payments.OpeningPaid():
            state.unpaid_openings.pop((event.node, event.party), None)
        case payments.FindingPaid():
            state.unpaid_findings.pop(event.attestation, None)


def _fold_rounds(state: RunState, event: Event, now: int, transaction: bytes) -> None:
    books = state.books
    match event:
        case tenures.TenureBegan():
            books.tenures.on_began(event)
        case tenures.TenureEnded():
            books.tenures.on_ended(event, now)
        case tenures.Evicted():
            books.tenures.on_evicted(event)
        case tenures.TenureReleased():
            books.tenures.on_released(event)
        case commitments.RoundBegan():
            books.commitments.on_round(event, books.generations.on_round(event.round, event.parent))
            if books.price_ppm != PPM:
                books.prices[event.round] = books.price_ppm
        case commitments.WorkCommitted():
            digest = books.commitments.on_committed(event)
            work = WorkRecord(event.round, event.seat, event.tenure, digest, event.work, event.late, now, transaction)
            state.works[event.round, event.seat] = state.unsettled[event.round, event.seat] = work
        case commitments.MaskClosing():
            books.commitments.on_mask(event)
        case commitments.Held():
            books.commitments.on_held(event, now)
        case commitments.ClaimPrepared():
            books.commitments.on_prepared(event)
        case commitments.WorkSettled():
            books.commitments.on_settled(event)
            state.unsettled.pop((event.round, event.seat)).status = event.status
        case generations.RootSealed() | generations.Abstained() | NodeSealed():
            books.generations.on_said(event, now)
        case generations.RootOpened() | NodeOpened():
            node, position = books.generations.on_opening(event, now)
            _opened(state, node, ids.party_of(position), event.root, position, transaction)
        case generations.Merged():
            books.generations.on_merged(event)
            state.merged[event.generation] = now
        case generations.RoundWaits():
            state.halted_at = now
        case generations.RootBacked():
            party = books.generations.on_backed(event, now)
            _opened(state, event.node, party, event.root, None, transaction)
        case generations.ClaimFell():
            books.generations.on_fell(event)
        case generations.OpeningClosed():
            books.generations.on_closed_opening(event)
            del state.unclosed[event.node, event.party]
        case generations.Finalized():
            books.generations.on_final(event)
            if not ids.is_group(event.node):
                del state.merged[event.node]
            state.final_at[event.node] = now
        case generations.Cut():
            books.generations.on_cut(event)
            state.halted_at = now
        case generations.MergePrepared():
            books.generations.on_prepared(event)
        case governor.SunsetDecided():
            books.sunset = True
        case governor.RoundsPaused():
            books.paused_until = event.until
        case governor.PriceChanged():
            books.price_ppm = event.ppm
        case governor.RoundsResumed():
            books.paused_until = now
        case beacon.BeaconSubmitted():
            books.randomness.learn(event.beacon_round, event.randomness, now)


def _fold_audits(state: RunState, event: Event, now: int, transaction: bytes) -> None:
    books = state.books
    match event:
        case tickets.TicketRegistered():
            books.registry.on_registered(event)
        case tickets.TicketRetired():
            books.registry.on_retired(event)
        case tickets.TicketReclaimed():
            books.registry.on_reclaimed(event)
        case tickets.AnchorReplaced():
            books.registry.on_replaced(event)
        case tickets.SecretShown():
            books.duties.on_secret(event)
        case tickets.TicketFined():
            books.registry.on_fined(event, now)
        case tickets.FineOwed():
            books.registry.on_owed(event)
        case tickets.FineCollected():
            books.registry.on_collected(event)
        case tickets.TicketToppedUp():
            books.registry.on_topped_up(event)
        case tickets.TicketConvictedNow():
            books.registry.on_convicted(event, now)
        case duties.EpochBegan():
            books.duties.on_epoch(event)
        case duties.EpochRepeated():
            books.duties.on_repeated(event)
        case duties.EpochClosed():
            books.duties.on_epoch_closed(event, now)
        case duties.DutiesEnd():
            books.duties.on_end(event)
        case duties.DutyLeftOut():
            books.duties.on_left_out(event)
        case duties.DutyFined():
            books.duties.on_duty_fined(event)
        case attestations.Attested():
            work = state.works[event.round, event.seat].work
            differs = (event.finding.ends, event.finding.update) != (work.ends, work.update)
            kind = books.duties.on_attested(event, differs)
            made = AttestationRecord(
                *(event.attestation, event.epoch, event.ticket, kind, event.target, event.round, event.seat),
                *(event.finding, transaction),
            )
            state.attestations[event.attestation] = state.unpaid_findings[event.attestation] = made
            state.attestations_of.setdefault(event.epoch, []).append(made)
        case attestations.Accused():
            books.duties.attestations.on_accused(event, now)
            state.accusations[event.id] = AccusationRecord(event.id, event.attestation, event.against, event.is_work)
        case attestations.AccusationMoved():
            books.duties.attestations.on_accusation(event, now)
        case attestations.FindingPrepared():
            books.duties.attestations.on_prepared(event)


def _fold_games(state: RunState, event: Event, transaction: bytes) -> None:
    moved = fold_game(state.games, event, transaction)
    if moved is not None:
        state.books.on_games(moved.ref, -1 if moved.is_over else 1)


def _opened(state: RunState, node: Node, party: Digest, root: Digest, position: int | None, transaction: bytes) -> None:
    made = state.books.generations.openings[node, party]
    backer = made.backer if position is None else None
    record = OpeningRecord(node, party, root, position, backer, made.at, transaction)
    state.openings[node, party] = state.unclosed[node, party] = state.unpaid_openings[node, party] = record
    state.openings_of.setdefault(node, []).append(record)
