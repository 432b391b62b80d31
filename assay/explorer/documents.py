"""The run as JSON documents: the one source of pages, of the API and of tables for download.

Amounts are wei as decimal strings, digests and addresses full lower-case hex, times seconds of chain time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from assay.bundle.words import family_text, ref_text
from assay.explorer.chain_reader import ChainReader
from assay.explorer.run_reader import RunReader
from assay.protocol.economics import formulas
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import SEATS, Address, Digest, Role, Seat, Status
from assay_ledger.index.records import CommitmentRecord, GameRecord, OuterRecord, RoundRecord
from assay_ledger.index.view import Duty

Document = dict[str, Any]


def hexed(value: bytes) -> str:
    """Bytes as the documents show them."""
    return "0x" + value.hex()


def wei(value: int) -> str:
    """An amount as the documents show it: exact whatever reads it."""
    return str(value)


# --- the run


def run_document(reader: RunReader) -> Document:
    """What the run promises and how far it has come."""
    run, state = reader.run, reader.state
    c = run.charter
    t, e, w = c.training, c.economics, c.windows
    return {
        "run": hexed(run.address),
        "run_id": hexed(run.run_id),
        "chain_id": run.chain.chain_id,
        "head": {"block": state.head.number, "time": state.head.timestamp},
        "sponsor": hexed(c.sponsor),
        "contracts": {name: hexed(contract.address) for name, contract in run.contracts().items()},
        "code": {
            "status": reader.code.status(),
            "digest": hexed(reader.code.digest),
            "unknown": [found.name for found in reader.code.unknown],
            "token": reader.code.token_words,
        },
        "programs": {name: hexed(program.root) for name, program in c.programs.items()},
        "genesis": hexed(reader.facts.genesis),
        "data": hexed(t.data),
        "rounds": {"planned": c.rounds, "opened": len(state.rounds)},
        "intervals": t.intervals,
        "steps_per_interval": t.steps_per_interval,
        "economics": {
            "price": wei(e.price),
            "pays": e.pays,
            "claim_lock": wei(e.claim_lock),
            "verifier_bond": wei(e.verifier_bond),
            "wage": wei(e.wage),
            "seat_fee": wei(e.seat_fee),
            "challenge_bond": wei(e.challenge_bond),
            "audit_rate_ppm": e.audit_ppm,
            "whistle_rate_ppm": e.whistle_ppm,
            "bounty_ppm": e.bounty_ppm,
            "price_of_one_false_update": wei(formulas.update_price(e)),
        },
        "windows": {
            **asdict(w),
            "round_length": w.round_length,
            "vesting": formulas.vesting_delay(w, c.chain.inclusion_delay),
        },
        "seats": {str(seat): hexed(who) for seat, who in sorted(state.holders.items())},
        "games": {"all": len(state.games), "open": sum(not g.is_over for g in state.games.values())},
        "burned": wei(reader.money.burned + reader.money.flushed),
        "revenue": wei(reader.money.revenue),
    }


# --- rounds and commitments


def round_document(reader: RunReader, record: RoundRecord) -> Document:
    """One round with everything that was done in it."""
    return {
        "round": int(record.number),
        "times": asdict(record.times),
        "phase": phase(record, reader.state.head.timestamp),
        "roster": [None if who is None else hexed(who) for who in record.roster],
        "seed": None if record.seed is None else hexed(record.seed),
        "whistle_seed": None if record.whistle_seed is None else hexed(record.whistle_seed),
        "commitments": [commitment_document(reader, record, c) for _, c in sorted(record.commitments.items())],
        "attendance": [attendance_document(record, who) for who in sorted(record.attendance)],
        "outers": [outer_document(reader, record, outer) for _, outer in sorted(record.outers.items())],
        "settled": record.settled,
        "games": [g.game_id for _, g in sorted(reader.state.games.items()) if g.ref.round == record.number],
    }


def phase(record: RoundRecord, now: int) -> str:
    """What a round is at, in a word or two."""
    if record.settled:
        return "settled"
    t = record.times
    ends = (
        (t.t1, "training"),
        (t.receipts_until, "receipts"),
        (t.t2 - 1, "waiting for the seed"),
        (t.t3, "audit"),
        (t.t4, "draws"),
        (t.t5, "re-audit"),
        (t.t7 - 1, "results"),
        (t.challenge_until, "challenge window"),
    )
    return next((name for end, name in ends if now <= end), "settling")


def included(record: RoundRecord, commitment: CommitmentRecord) -> bool | None:
    """Is the work in an outer step? None while no inclusion of its base is fixed."""
    fixed = record.inclusions.get(commitment.base)
    return None if fixed is None else bool(fixed[0] >> commitment.seat & 1)


def commitment_document(reader: RunReader, record: RoundRecord, c: CommitmentRecord) -> Document:
    """What a seat committed to, and what became of it."""
    return {
        "round": int(record.number),
        "seat": int(c.seat),
        "solver": hexed(c.solver),
        "digest": hexed(c.digest),
        "base": hexed(c.base),
        "roots": [hexed(r) for r in c.roots],
        "end_lists": [hexed(r) for r in c.end_lists],
        "update": hexed(c.update),
        "tx": hexed(c.tx_hash),
        "receipts": [hexed(who) for who in sorted(c.receipts)],
        "complete": c.complete,
        "excluded": c.excluded,
        "included": included(record, c),
        "convicted": c.convicted,
        "status": c.status.name,
        "claims": [claim_of_duty(reader, duty) for duty in duties(reader, record, c)],
    }


def attendance_document(record: RoundRecord, who: Address) -> Document:
    """What a verifier or whistleblower did in a round."""
    a = record.attendance[who]
    return {
        "who": hexed(who),
        "role": a.role.name.lower(),
        "root": hexed(a.root),
        "draw": None if a.y is None else hexed(a.y),
        "leaves": [
            {"seat": int(seat), "duty": duty, "end_root": hexed(end)} for (seat, duty), end in sorted(a.leaves.items())
        ],
        "settled": a.settled,
    }


def outer_document(reader: RunReader, record: RoundRecord, outer: OuterRecord) -> Document:
    """A root that was posted for the outer step of a round."""
    mask, x = record.inclusions.get(outer.base, (0, None))
    return {
        "round": int(record.number),
        "root": hexed(outer.root),
        "base": hexed(outer.base),
        "parameters": hexed(outer.parameters),
        "momentum": hexed(outer.momentum),
        "seats": [seat for seat in range(SEATS) if mask >> seat & 1],
        "x": None if x is None else hexed(x),
        "posters": [{"who": hexed(who), "status": status.name} for who, status in sorted(outer.posters.items())],
        "fallen": outer.fallen,
        "final": Status.FINAL in outer.posters.values(),
        "claims": [_outer_claim(reader, record, outer, who) for who in sorted(outer.posters)] if x else [],
    }


# --- claims


def duties(reader: RunReader, record: RoundRecord, commitment: CommitmentRecord) -> list[Duty]:
    """The claims of a commitment; none while it is incomplete, since then they do not exist."""
    if not commitment.complete:
        return []
    view = reader.view
    return [view.duty(record, commitment, j) for j in range(reader.run.charter.training.duties)]


def claims(reader: RunReader) -> Iterator[Document]:
    """Every claim of the run, in the order of rounds: work, attestations of it, outer steps."""
    view = reader.view
    for record in reader.state.rounds:
        by_place: dict[tuple[Seat, int], Duty] = {}
        for _, commitment in sorted(record.commitments.items()):
            for duty in duties(reader, record, commitment):
                by_place[duty.seat, duty.number] = duty
                yield claim_of_duty(reader, duty)
        for who in sorted(record.attendance):
            for place, end in sorted(record.attendance[who].leaves.items()):
                if place not in by_place:
                    continue
                work = by_place[place]
                name = view.claim_id(ClaimKind.ATTESTATION, who, work.x, end)
                yield _claim(reader, name, work.attestation(who), who, work.x, end) | {"agrees": end == work.y}
        for _, outer in sorted(record.outers.items()):
            if outer.base in record.inclusions:
                yield from (_outer_claim(reader, record, outer, who) for who in sorted(outer.posters))


def claim_of_duty(reader: RunReader, duty: Duty) -> Document:
    """The claim of an interval or an update."""
    return _claim(reader, duty.id, duty.ref, duty.claimant, duty.x, duty.y)


def _outer_claim(reader: RunReader, record: RoundRecord, outer: OuterRecord, who: Address) -> Document:
    _, x = record.inclusions[outer.bases[who]]
    ref = ClaimRef(ClaimKind.OUTER, record.number, party=who, outer_root=outer.root)
    return _claim(reader, reader.view.claim_id(ClaimKind.OUTER, who, x, outer.root), ref, who, x, outer.root)


def _claim(reader: RunReader, name: Digest, ref: ClaimRef, claimant: Address, x: Digest, y: Digest) -> Document:
    charter = reader.run.charter
    games = [g for _, g in sorted(reader.state.games.items()) if g.claim_id == name]
    updates = ref.duty == charter.training.intervals
    program = charter.outer if ref.kind is ClaimKind.OUTER else charter.update if updates else charter.step
    steps = charter.training.steps_per_interval if program is charter.step else 1
    status = "stands"
    if any(g.convicted for g in games):
        status = "fallen"
    elif any(not g.is_over for g in games):
        status = "disputed"
    return {
        "id": hexed(name),
        "kind": ref.kind.name,
        "what": ref_text(ref, charter.training.intervals),
        "round": int(ref.round),
        "seat": None if ref.kind is ClaimKind.OUTER else int(ref.seat),
        "duty": None if ref.kind is ClaimKind.OUTER else ref.duty,
        "claimant": hexed(claimant),
        "program": hexed(program.root),
        "steps": steps,
        "x": hexed(x),
        "y": hexed(y),
        "status": status,
        "games": [g.game_id for g in games],
    }


# --- games


def game_document(reader: RunReader, game: GameRecord) -> Document:
    """A dispute in figures."""
    return game_figures(reader, game, ref_text(game.ref, reader.run.charter.training.intervals))


def game_figures(reader: ChainReader, game: GameRecord, what: str) -> Document:
    """The same of any run; `what` it is about."""
    hashes = list(dict.fromkeys([game.opened_tx, *(m.tx_hash for m in game.moves)]))
    gas = [reader.gas_of(tx) for tx in hashes]
    verdict = game.verdict
    charter = reader.run.charter
    return {
        "game": game.game_id,
        "claim": hexed(game.claim_id),
        "kind": game.ref.kind.name,
        "what": what,
        "round": int(game.ref.round),
        "challenger": hexed(game.challenger),
        "defender": hexed(game.defender),
        "stage": game.stage.name,
        "turn": None if game.turn is Side.NONE else game.turn.name.lower(),
        "deadline": None if game.is_over else game.deadline,
        "bond": wei(charter.economics.challenge_bond),
        "selections": _selections(game),
        "transactions": len(hashes),
        "gas": sum(gas),
        "gas_last": gas[-1],
        "verdict": None
        if verdict is None
        else {
            "loser": hexed(verdict.loser),
            "side": verdict.side.name.lower(),
            "outcome": verdict.outcome.name,
            "family": family_text(verdict.family) if verdict.outcome is Outcome.LEAF else None,
            "node": verdict.node,
            "element": str(verdict.element),
            "term": str(verdict.term),
            "expected": str(verdict.expected),
            "claimed": str(verdict.claimed),
            "tx": None if game.verdict_tx is None else hexed(game.verdict_tx),
            "bounty": wei(game.bounty),
            "burned": wei(game.burned),
            "reserved": wei(game.taken - game.bounty - game.burned),
        },
    }


def _selections(game: GameRecord) -> int:
    """Moves of the challenger after the opening; a game's end by the clock is no move."""
    moves = game.moves[1:]
    if game.outcome is Outcome.DEFAULT:
        moves = moves[:-1]
    return sum(m.mover == game.challenger for m in moves)


# --- people


def actor_document(reader: RunReader, who: Address) -> Document:
    """An address: what it is in this run, has, earned, lost and owns."""
    money = reader.money.of(who)
    return {
        "address": hexed(who),
        "name": reader.names.get(who),
        "role": role_of(reader, who),
        "free": wei(money.free),
        "locked": wei(money.locked),
        "leaving": wei(money.leaving),
        "pay": wei(money.pay),
        "wages": wei(money.wages),
        "duties": money.duties,
        "bounties": wei(money.bounties),
        "slashed": wei(money.slashed),
        "shares": wei(money.shares),
        "pending_shares": wei(money.pending),
        "claimed_revenue": wei(money.claimed),
    }


def role_of(reader: RunReader, who: Address) -> str:
    """What an address is in this run."""
    state = reader.state
    if (attester := state.attesters.get(who)) is not None and attester.role is not Role.NONE:
        return attester.role.name.lower()
    if who in state.holders.values() or any(who in r.roster for r in state.rounds):
        return "solver"
    if who == reader.run.charter.sponsor:
        return "sponsor"
    if any(who == g.challenger for g in state.games.values()):
        return "challenger"
    return "owner" if reader.money.of(who).shares else "-"


def actors(reader: RunReader) -> list[Document]:
    """Everybody who has or had money in the run: solvers, verifiers, whistleblowers, then the rest."""
    order = {"solver": 0, "verifier": 1, "whistleblower": 2}
    found = [actor_document(reader, who) for who in reader.money.people]
    return sorted(found, key=lambda d: (order.get(d["role"], 3), d["name"] or "", d["address"]))
