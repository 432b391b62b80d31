"""How everybody came out of a soak: what they were paid for, what they missed and why, what they lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from assay.protocol.types import Address, Round
from assay_ledger.deadline import MAX_REST_S
from assay_ledger.rounds.records import WorkRecord
from tests.harness.actors.world import ETHER
from tests.harness.soak.soaked_run import HONEST_AUDITORS, SoakedRun


@dataclass(frozen=True)
class SoakOutcome:
    """How an actor came out of it; amounts in wei."""

    name: str
    gained: int
    worked: int
    """Rounds that were paid, or findings."""
    fines: int
    is_convicted: bool

    def line(self) -> str:
        """In words, with amounts in tokens."""
        end = "convicted" if self.is_convicted else f"fined {self.fines / ETHER:g}"
        return f"{self.name}: {self.worked} paid for, {self.gained / ETHER:+.4f}, {end}"


def _everybody(soaked: SoakedRun) -> dict[str, tuple[Address, int]]:
    """By name, with what each brought, in wei; in the order in which they came."""
    players = soaked.made.players
    there = {name: (soaked.made.address(name), player.brought) for name, player in players.items()}
    return {name: (there | soaked.departed)[name] for name in (*soaked.around, *soaked.liars)}


@dataclass(frozen=True)
class MissedPay:
    """What an honest solver was not paid for, and what befell it from that round's opening to the next one's."""

    round: Round
    was_store_down: bool
    """Whether its own store failed in that time, or had failed so shortly before that it was not asked yet."""
    lines: list[str]


def missed_rounds(soaked: SoakedRun, name: str) -> list[MissedPay]:
    """The rounds in which an honest solver has no work."""
    worked = {work.round for work in _works(soaked, name)}
    return [_missed(soaked, name, r) for r in _rounds(soaked) if r not in worked]


def missed_merges(soaked: SoakedRun, name: str) -> list[MissedPay]:
    """The rounds of which an honest solver opened no merge: its own work came late, or others' were not to be had."""
    view, seats = soaked.made.view, {work.round: work.seat for work in _works(soaked, name)}
    return [
        _missed(soaked, name, r)
        for r in _rounds(soaked)
        if all(opening.position != seats.get(r) for opening in view.openings(r + 1))
    ]


def _rounds(soaked: SoakedRun) -> list[Round]:
    return list(map(Round, range(len(soaked.made.view.books.commitments.rounds))))


def _works(soaked: SoakedRun, name: str) -> list[WorkRecord]:
    view, who = soaked.made.view, soaked.made.address(name)
    return [w for w in view.state.works.values() if view.books.tenures.tenures[w.tenure].holder == who]


def _missed(soaked: SoakedRun, name: str, round_: Round) -> MissedPay:
    rounds = soaked.made.view.books.commitments.rounds
    start = rounds[round_].t0
    end = rounds[round_ + 1].t0 if round_ + 1 < len(rounds) else soaked.made.view.merge_until(round_)
    around = soaked.around[name]
    rest = MAX_REST_S / around.clock.rate
    was_down = any(down <= end and start <= up + rest for down, up in around.outages)
    return MissedPay(round_, was_down, soaked.log.lines(name, start, end))


def outcomes(soaked: SoakedRun) -> list[SoakOutcome]:
    """How everybody came out of the run, liars too; nothing of theirs is locked any more."""
    made, view = soaked.made, soaked.made.view
    convicted = {t.holder for t in view.books.tenures.tenures.values() if t.convicted_at}
    convicted |= {t.owner for t in view.books.registry.tickets.values() if t.convicted_at}
    holders = Counter(view.books.tenures.tenures[work.tenure].holder for work in view.state.works.values())
    found = []
    for name, (who, brought) in _everybody(soaked).items():
        is_auditor = name in HONEST_AUDITORS
        worked = len(made.wages(name)) if is_auditor else holders[who]
        fines = sum(made.fines(name)) if is_auditor else 0
        found.append(SoakOutcome(name, made.free(who) - brought, worked, fines, who in convicted))
    return found
