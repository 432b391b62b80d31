"""The run, its rounds, commitments, generations and seats as JSON documents. Units as in `documents`."""

from __future__ import annotations

from dataclasses import asdict

from assay.explorer.documents import Document, hexed, plain, wei
from assay.explorer.merged_seats import SeatsCounted, held_seats, merged_seats, sums_document
from assay.explorer.reader import RunReader
from assay.protocol.rounds.terms import NEVER, GenerationStatus, WorkStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.agents.keeper import may_be_final
from assay_ledger.agents.money_keeper import epoch_of
from assay_ledger.rounds import nodes
from assay_ledger.rounds.records import OpeningRecord, RunState, WorkRecord


def run_document(reader: RunReader) -> Document:
    """What the run promises and how far it has come."""
    run, state, view = reader.run, reader.state, reader.view
    c, money = run.charter, state.money
    registry = state.books.registry
    return {
        "run": hexed(run.address),
        "run_id": hexed(run.run_id),
        "chain_id": run.chain.chain_id,
        "head": {"block": state.head.number, "time": state.head.timestamp, "silent_s": reader.silent_s},
        "sponsor": hexed(c.sponsor),
        "token": {
            "address": hexed(c.token),
            "decimals": run.currency.decimals,
            "symbol": run.currency.symbol,
        },
        "phase": money.phase.words,
        "contracts": {name: hexed(contract.address) for name, contract in run.all_contracts().items()},
        "code": code_document(reader),
        "programs": {name: hexed(program.root) for name, program in c.programs.items()},
        "genesis": hexed(run.facts.genesis),
        "data": hexed(c.training.data),
        "rounds": {"planned": c.rounds, "opened": len(state.books.commitments.rounds)},
        "newest": view.newest,
        "cut": [g for g in generations(reader) if view.status(g) is GenerationStatus.CUT],
        "units": {"least": c.training.min_units, "most": c.training.max_units, "steps": c.training.steps_per_unit},
        "seats": {"all": c.training.seats, "free": view.free_seats},
        "tickets": {
            "registered": len(registry.anchors),
            "owners": len({t.owner for t in registry.tickets.values()} | set(registry.left.values())),
        },
        "epochs": len(view.epochs),
        "accusations": len(state.accusations),
        "games": {"all": len(state.games), "open": sum(not g.is_over for g in state.games.values())},
        "economics": plain({name: wei(v) if _is_amount(name) else v for name, v in _fields(c.economics).items()}),
        "price_ppm": reader.votes.price_ppm,
        "governed": c.governance.is_named,
        "timing": _fields(c.timing),
        "launch": _fields(c.launch),
        "burned": wei(reader.money.burned),
        "revenue": wei(reader.money.revenue),
    }


def code_document(reader: RunReader) -> Document | None:
    """What is at the run's addresses; None while the node is being asked."""
    code = reader.code()
    if code is None:
        return None
    unknown = [found.name for found in code.unknown]
    return {"status": code.status(), "digest": hexed(code.digest), "unknown": unknown, "token": code.token_words}


def _fields(terms: object) -> Document:
    return asdict(terms)  # type: ignore[call-overload,no-any-return]


def _is_amount(name: str) -> bool:
    return not name.endswith("_ppm") and name not in ("pays", "capacity", "shifts")


def generations(reader: RunReader) -> range:
    """Generations of which anything is known; 0 is the genesis."""
    return range(len(reader.state.books.commitments.rounds) + 1)


# --- rounds and commitments


def round_document(reader: RunReader, round_: Round, *, is_whole: bool = True) -> Document:
    """One round with everything that was done in it; unless whole, commitments and who holds what are counted."""
    view, money = reader.view, reader.state.money
    made = view.round_of(round_)
    counted, is_closed = merged_seats(reader, round_)
    made_in, given = sorted(reader.shelves.works_of_round[round_], key=_seat), (counted, is_closed)
    merged = generation_document(reader, round_ + 1)
    return {
        "round": int(round_),
        "phase": phase(reader, round_, is_closed),
        "t0": made.t0,
        "mask_at": made.mask_at,
        "commit_until": view.commit_until(round_),
        "merge_until": view.merge_until(round_),
        "sums_until": None if view.rules.by_seats else nodes.groups_until(view, round_),
        "base": {"generation": made.parent, "root": hexed(made.base), "status": view.status(made.parent).name.lower()},
        "seated": made.seated,
        "commitments": [work_document(reader, work, given) for work in made_in] if is_whole else len(made_in),
        "holds": [
            {"position": position, "holds": [int(view.seat_at(group, k)) for k in sorted(held)], "group": group}
            for group in view.groups()
            for position, held in sorted(view.group(round_, group).words.items())
        ]
        if is_whole
        else sum(len(view.group(round_, group).words) for group in view.groups()),
        "counted": {"seats": sorted(map(int, counted)), "is_closed": is_closed},
        "generation": merged if is_whole else merged | {name: len(merged[name]) for name in ("openings", "sums")},
        "epoch": epoch_of(view, round_),
        "reserved": wei(money.reserves[round_].total if round_ in money.reserves else 0),
        "settled": sum(work.status is not WorkStatus.OPEN for work in made_in),
        "games": games_of_round(reader, round_),
    }


def round_line(reader: RunReader, round_: Round, most: int) -> Document:
    """A round as a line of a table, with `most` of its commitments."""
    counted, is_closed = merged_seats(reader, round_)
    works = sorted(reader.shelves.works_of_round[round_], key=_seat)
    return {
        "round": int(round_),
        "phase": phase(reader, round_, is_closed),
        "commitments": [work_document(reader, work, (counted, is_closed)) for work in works[:most]],
        "more": max(0, len(works) - most),
        "counted": len(counted),
        "seated": reader.view.round_of(round_).seated,
        "games": games_of_round(reader, round_),
    }


def games_of_round(reader: RunReader, round_: Round) -> list[int]:
    """Games about work, findings and merges of a round."""
    return [game.game_id for game in reader.shelves.games_of_round[round_]]


def _seat(work: WorkRecord) -> Seat:
    return work.seat


def phase(reader: RunReader, round_: Round, is_closed: bool) -> str:
    """What a round is at, in a few words."""
    view, status = reader.view, reader.view.status(round_ + 1)
    if status is GenerationStatus.CUT:
        return "cut"
    if status is GenerationStatus.FINAL:
        if not any(place[0] == round_ for place in reader.state.unsettled):
            return "settled"
        return "final, never settled" if reader.state.money.is_stopped else "final"
    if status is GenerationStatus.MERGED:
        return "merged, not yet final" if may_be_final(view, round_ + 1) else "merged, never final"
    if reader.state.money.is_stopped:
        return "ended with the run"
    if not view.is_mask_closed(round_):
        return "training"
    if not is_closed:
        # Above 64 seats what is held is summed by groups, and the sums are merged.
        return "sums of groups" if held_seats(reader, round_)[1] else "who holds what"
    return "merging" if view.now <= view.merge_until(round_) else "without a majority"


def work_document(reader: RunReader, work: WorkRecord, counted: SeatsCounted | None = None) -> Document:
    """A commitment, and what became of it; `counted` is what its round counts, where that is known already."""
    state, view = reader.state, reader.view
    tenure = state.books.tenures.existing(work.tenure)
    seats, is_closed = counted or merged_seats(reader, work.round)
    audits = reader.shelves.findings_of_work[work.round, work.seat]
    against = [name for name in reader.shelves.accusations_against[work.digest] if state.accusations[name].is_work]
    games = [
        game.game_id
        for game in reader.shelves.games_of_round[work.round]
        if game.ref.kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE) and game.ref.seat == work.seat
    ]
    return {
        "round": int(work.round),
        "seat": int(work.seat),
        "tenure": work.tenure,
        "solver": hexed(tenure.holder),
        "digest": hexed(work.digest),
        "units": work.work.units,
        "late": work.late,
        "marks_digest": hexed(work.work.marks),
        "ends": [hexed(end) for end in work.work.ends],
        "update": hexed(work.work.update),
        "base": view.round_of(work.round).parent,
        "at": work.at,
        "tx": hexed(work.tx_hash),
        "counted": int(work.seat) in seats if is_closed else None,
        "convicted": any(state.games[g].convicted for g in games),
        "disputed": any(not state.games[g].is_over for g in games),
        "status": work.status.name,
        "pay": wei(reader.money.work_pay.get((work.round, work.seat), 0)),
        "shares": wei(reader.money.work_shares.get((work.round, work.seat), 0)),
        "audits": [hexed(a.id) for a in audits],
        "accusations": [hexed(name) for name in against],
        "games": games,
    }


# --- generations


def generation_document(reader: RunReader, generation: int) -> Document:
    """A generation: who opened which root of it, and what became of it."""
    view, state = reader.view, reader.state
    votes, lists = view.votes(generation), view.lists(generation)
    charter = reader.run.charter.training
    genesis = generation == 0
    return {
        "generation": generation,
        "round": None if genesis else generation - 1,
        "status": "genesis" if genesis else view.status(generation).name.lower(),
        "root": hexed(reader.run.facts.genesis) if genesis else None if votes.root is None else hexed(votes.root),
        "parameters": hexed(charter.parameters) if genesis else None if lists is None else hexed(lists.parameters),
        "momentum": hexed(charter.momentum) if genesis else None if lists is None else hexed(lists.momentum),
        "sealed": sum(seal is not None for seal in votes.seals.values()),
        "abstained": sorted(position for position, seal in votes.seals.items() if seal is None),
        "openings": [] if genesis else [opening_document(reader, o) for o in reader.shelves.openings[generation]],
        "sums": sums_document(reader, generation),
        "merged_at": state.merged.get(generation),
        "final_at": state.final_at.get(generation),
        "games": [] if genesis else merge_games(reader, generation),
    }


def merge_games(reader: RunReader, generation: int) -> list[int]:
    """Games about roots of a generation."""
    games = reader.shelves.games_of_round[generation - 1]
    return [game.game_id for game in games if game.ref.kind is ClaimKind.OUTER]


def opening_document(reader: RunReader, record: OpeningRecord) -> Document:
    """Somebody's word for a root."""
    opening = reader.state.books.generations.openings[record.node, record.party]
    root = reader.view.votes(record.node).root
    status = "standing"
    if opening.fallen:
        status = "fallen"
    elif opening.closed:
        status = "closed"
    return {
        "party": hexed(record.party),
        "seat": record.position if reader.run.charter.by_seats else None,
        "ticket": None if reader.run.charter.by_seats else record.position,
        "who": hexed(opener_of(reader, record)),
        "root": hexed(record.root),
        "leads": record.root == root,
        "status": status,
        "at": record.at,
        "tx": hexed(record.tx_hash),
        "pay": wei(reader.money.opening_pay.get((record.node, record.party), 0)),
    }


def opener_of(reader: RunReader, record: OpeningRecord) -> Address:
    """Who stands behind an opening: its backer, the holder of its tenure, above 64 seats the owner of its ticket."""
    books = reader.state.books
    opening = books.generations.openings[record.node, record.party]
    if opening.opener == 0:
        return opening.backer
    if reader.run.charter.by_seats:
        return books.tenures.existing(opening.opener).holder
    held = books.registry.tickets.get(opening.opener)  # type: ignore[call-overload]
    return opening.backer if held is None else held.owner


def marks_of(reader: RunReader, work: WorkRecord) -> tuple[Digest, ...]:
    """The marks of progress of a commitment: state roots, one a unit; none without a store.

    Raises UnavailableError.
    """
    from assay_ledger.store.objects import Objects

    store = reader.store
    if store is None:
        return ()
    return reader.files.get(work.work.marks, lambda: Objects(store).marks(work.work.marks, work.work.units))


# --- seats


def tenure_document(reader: RunReader, number: int) -> Document:
    """One holder's time in one seat."""
    books = reader.state.books
    t = books.tenures.existing(number)
    mine = reader.shelves.works_of_tenure[number]
    return {
        "tenure": number,
        "seat": int(t.seat),
        "holder": hexed(t.holder),
        "from": int(t.from_),
        "until": None if t.until == NEVER else t.until,
        "status": tenure_status(reader.state, number),
        "lock": wei(0 if t.released or t.convicted_at else reader.run.charter.economics.seat_lock),
        "unsettled": t.unsettled,
        "open_games": t.games,
        "open_accusations": t.accusations,
        "commitments": len(mine),
        "units": sum(work.work.units for work in mine),
        "final": sum(work.status is WorkStatus.FINAL for work in mine),
        "pay": wei(sum(reader.money.work_pay.get((work.round, work.seat), 0) for work in mine)),
        "convicted_at": t.convicted_at or None,
        "fee_lost": t.fee_gone,
    }


def tenure_status(state: RunState, number: int) -> str:
    """What became of a tenure, in a word."""
    t = state.books.tenures.existing(number)
    if t.convicted_at:
        return "convicted"
    if t.fee_gone and t.until != NEVER:
        return "evicted"
    if t.released:
        return "released"
    if t.suspensions:
        return "suspended"
    return "seated" if t.until == NEVER else "left"
