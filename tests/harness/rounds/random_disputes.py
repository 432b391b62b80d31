"""A run in which seats, positions and tickets lie at random, and everything that they claim may be challenged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from assay.protocol.errors import RejectedError
from assay.protocol.game.table import Side
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.games import Player, player, silent_after
from tests.harness.rounds.duty_rows import finding_tuple
from tests.harness.rounds.played_programs import end_slots, lie_in, run_programs, start_state
from tests.harness.rounds.played_world import PlayedWorld
from tests.harness.rounds.samples import ETHER

SILENT: Final = 0.15
"""How often a side stops answering."""

Disputed = tuple[ClaimRef, bool, ReferenceTrace, ReferenceTrace]
"""A claim, whether it is true, the run that it claims, and the one that its challenger plays."""


@cache
def false_run(program: Program, state: ListBytes, steps: int) -> ReferenceTrace:
    """A wrong run, computed once."""
    return lie_in(program, state, steps)


@dataclass
class RandomGame:
    """A game, and who plays it how."""

    number: int
    kind: ClaimKind
    is_true: bool
    challenger: Address
    lock: Digest
    players: dict[Side, Player]
    is_silent: bool


class RandomDisputes:
    """One run, from its start to the last verdict."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, Random(seed)
        self.world = PlayedWorld(("random", seed))
        self.games: list[RandomGame] = []
        self.began: dict[Address, int] = {}
        self.opened: dict[Seat, tuple[bool, ReferenceTrace]] = {}
        self.lies: dict[Seat, str] = {}

    def run(self) -> None:
        """Commit, merge, audit; dispute what was merged at once, and the rest when auditors have spoken."""
        w, rng = self.world, self.rng
        self.begin()
        works = list(self.claims_of_work())
        early = [c for c in works if rng.random() < 0.25]
        self.play([(c, self.third()) for c in early] + [(c, self.challenger_of(c)) for c in self.claims_of_merges()])
        while w.own_epoch(0) != w.epoch:
            w.play_epoch()
        w.blind = {t for t in w.chains if rng.random() < 0.3}
        w.liars = {t for t in w.chains if rng.random() < 0.2}
        blind, liars = w.blind, w.liars
        number = w.play_epoch()
        w.blind, w.liars = set(), set()
        w.play_epoch()
        accused = [(c, who) for c, who in self.accused(number, blind, liars) if rng.random() < 0.8]
        findings = [(c, self.third()) for c in self.claims_of_findings(number, blind, liars) if rng.random() < 0.4]
        late = [(c, self.third()) for c in works if c not in early and rng.random() < 0.5]
        rest = [*accused, *findings, *late]
        rng.shuffle(rest)
        self.play(rest)

    def begin(self) -> None:
        """Round 0 is committed to, merged and opened; X of everything is built."""
        w, rng = self.world, self.rng
        people = w.start()
        w.at(w.model.commitments.rounds[0].t0 + w.terms.commit)
        for who in people:
            self.lies[w.seat(who)] = rng.choice(("", "", "run", "update"))
            w.train(who, self.lies[w.seat(who)])
        w.hold_all(people)
        program, state = run_programs().merge, w.merge_state()
        true = ReferenceTrace(program, state)
        for who in people:
            is_true = rng.random() < 0.7
            self.opened[w.seat(who)] = (is_true, true if is_true else false_run(program, state, 1))
        w.at(max(w.now, w.model.commitments.hold_until(Round(0), 0)) + 1)
        for who in people:
            assert w.seal(who, self.opened[w.seat(who)][1], Round(0)) == ""
        w.tick(1)
        for who in people:
            assert w.open(who, self.opened[w.seat(who)][1], Round(0)) == ""
        w.prepare_merge()
        for seat, done in w.done.items():
            for kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE):
                assert w.prepare(kind, Round(0), seat, done.work) == ""

    # --- what is claimed

    def claims_of_work(self) -> Iterator[Disputed]:
        """One claim of each commitment: that which is false, if one is."""
        w, p = self.world, run_programs()
        for seat, done in w.done.items():
            lie = self.lies[seat]
            kind = ClaimKind.UPDATE if lie == "update" or (not lie and seat % 2) else ClaimKind.INTERVAL
            claimed = done.update if kind is ClaimKind.UPDATE else done.run
            true = w.truth(seat).update if kind is ClaimKind.UPDATE else w.truth(seat).run
            state = (p.parameters, end_slots(done.run)) if kind is ClaimKind.UPDATE else start_state(w.scalars(seat))
            known = true if lie else false_run(claimed.program, state, claimed.steps)
            yield ClaimRef(kind, Round(0), seat), not lie, claimed, known

    def claims_of_merges(self) -> Iterator[Disputed]:
        """Some of the opened roots."""
        program, state = run_programs().merge, self.world.merge_state()
        true, false = ReferenceTrace(program, state), false_run(program, state, 1)
        for seat, (is_true, claimed) in self.opened.items():
            if not is_true or self.rng.random() < 0.3:
                ref = ClaimRef(ClaimKind.OUTER, Round(0), seat, 0, NO_ADDRESS, claimed.state_root(1))
                yield ref, is_true, claimed, false if is_true else true

    def claims_of_findings(self, number: int, blind: set[int], liars: set[int]) -> Iterator[Disputed]:
        """One part of each attestation of an epoch: that which is false, if one is."""
        books = self.world.run.duties.attestations
        for name, made in list(books.attestations.items()):
            if made.epoch == number:
                yield self.finding(name, name, blind, liars)

    def accused(self, number: int, blind: set[int], liars: set[int]) -> Iterator[tuple[Disputed, Address]]:
        """Every accusation of that epoch and the next, with its accuser."""
        w = self.world
        works = {ref.seat: (ref, *rest) for ref, *rest in self.claims_of_work()}
        for name, made in list(w.run.duties.attestations.accusations.items()):
            if made.epoch < number or made.status is not AccusationStatus.RECORDED:
                continue
            who = w.run.tickets.owner_of(made.ticket)
            if made.is_work:
                seat = w.run.duties.attestations.attestations[made.by].seat
                ref, is_true, claimed, known = works[seat]
                yield (ClaimRef(ref.kind, ref.round, seat, 0, NO_ADDRESS, name), is_true, claimed, known), who
            else:
                yield self.finding(made.against, name, blind, liars), who

    def finding(self, attestation: Digest, name: Digest, blind: set[int], liars: set[int]) -> Disputed:
        """A part of an attestation, named by it or by an accusation of it; its X is built."""
        w = self.world
        books = w.run.duties.attestations
        made, found = books.attestations[attestation], books.findings[attestation]
        is_blind, is_liar = made.ticket in blind, made.ticket in liars
        part = 0 if is_blind or (not is_liar and made.seat % 2) else made.keys
        row = finding_tuple(found)
        prepare = lambda: books.prepare(attestation, found, part)  # noqa: E731
        assert w.do(prepare, "Attestations", "prepare", attestation, row, part) == ""
        if part == 0:
            true, false = w.replay(made.seat, found.keys[0]), w.false_replay(made.seat, found.keys[0])
        else:
            true, false = w.truth(made.seat).update, w.false_update(made.seat)
        is_true = not (is_blind if part == 0 else is_liar)
        ref = ClaimRef(ClaimKind.ATTESTATION, Round(0), made.seat, part, NO_ADDRESS, name)
        return ref, is_true, true if is_true else false, false if is_true else true

    # --- who challenges

    def third(self) -> Address:
        return self.world.add_person(100 * ETHER)

    def challenger_of(self, claim: Disputed) -> Address:
        """Of a merge: somebody who trains, or a third party."""
        others = [who for who in self.world.tenures if self.world.seat(who) != claim[0].seat]
        return self.rng.choice(others) if self.rng.random() < 0.5 else self.third()

    def play(self, disputes: Iterable[tuple[Disputed, Address]]) -> None:
        """Open a game on each claim that still stands, and play all at once, in random order."""
        w = self.world
        running = [game for claim, who in disputes if (game := self.open(claim, who)) is not None]
        stalled: list[RandomGame] = []
        while running:
            game = self.rng.choice(running)
            if not w.step(game.number, game.players[Side.DEFENDER], game.players[Side.CHALLENGER], False):
                stalled.append(game)
                running.remove(game)
            elif w.state(game.number).is_over:
                running.remove(game)
                self.games.append(game)
        for game in sorted(stalled, key=lambda g: w.state(g.number).deadline):
            assert w.time_out(game.number) == ""
            self.games.append(game)

    def open(self, claim: Disputed, who: Address) -> RandomGame | None:
        """A game; None where the claim fell meanwhile, or the accused was convicted."""
        w, rng = self.world, self.rng
        ref, is_true, claimed, known = claim
        self.began.setdefault(who, w.vault.free_of(who))
        is_third = who not in w.tenures and who not in {t.owner for t in w.run.tickets.tickets.values()}
        try:
            number = w.open_committed(who, ref, known.state_root(known.steps)) if is_third else w.open_direct(who, ref)
        except RejectedError as error:
            assert error.code == "NotChallengeable", error.code
            return None
        if not number:
            return None
        arity = w.book.config.arity
        players = {
            Side.DEFENDER: player(Side.DEFENDER, claimed, arity),
            Side.CHALLENGER: player(Side.CHALLENGER, known, arity),
        }
        is_silent = rng.random() < SILENT
        if is_silent:
            side = rng.choice((Side.DEFENDER, Side.CHALLENGER))
            players[side] = silent_after(players[side], rng.randrange(3))
        lock = w.state(number).claim.lock_id
        return RandomGame(number, ref.kind, is_true, who, lock, players, is_silent)

    # --- what came of it

    def loser(self, game: RandomGame) -> Side:
        """The side that lost a game."""
        verdict = self.world.state(game.number).verdict
        assert verdict is not None
        return verdict.side

    def guilty_locks(self) -> set[Digest]:
        """Locks of claims that a game convicted."""
        return {g.lock for g in self.games if self.loser(g) is Side.DEFENDER}

    def gains_of_honest_challengers(self) -> dict[Address, int]:
        """What third parties have more than before, that challenged lies alone and answered to the end."""
        played: Counter[Address] = Counter()
        for g in self.games:
            played[g.challenger] += g.is_true or g.is_silent
        thirds = {who for who in played if who not in self.world.tenures}
        tickets = {t.owner for t in self.world.run.tickets.tickets.values()}
        return {w: self.world.vault.free_of(w) - self.began[w] for w in thirds - tickets if not played[w]}
