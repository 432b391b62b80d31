"""People who do what comes to their mind, mostly what is allowed."""

from __future__ import annotations

import random
from collections.abc import Callable

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import NEVER, GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.samples import node_ref, terms_of, work_of, work_ref
from tests.harness.rounds.world import RoundWorld

TERMS = terms_of(seats=5, challenge=9_000, rescue=2_000, longest_dispute=4_000)


class RoundPlayer:
    """People who do what comes to their mind, mostly what is allowed."""

    def __init__(self, world: RoundWorld, seed: int) -> None:
        self.w, self.random = world, random.Random(seed)
        self.people = world.begin(5)
        self.people += [world.add_person() for _ in range(3)]
        self.idler = self.people[seed % 10] if seed % 10 < 5 else None
        """Who never takes part."""
        self.open_games: list[int] = []
        self.accused: list[int] = []

    def step(self) -> None:
        """One call, or some time."""
        moves: list[Callable[[], str]] = [
            self.wait, self.wait, self.commit, self.commit, self.commit, self.hold, self.hold, self.hold, self.seal,
            self.seal, self.seal, self.open, self.open, self.open, self.restart, self.join, self.leave, self.evict,
            self.release, self.settle, self.finalize, self.close, self.drop, self.back, self.fall, self.prepare_merge,
            self.prepare_work, self.play, self.play, self.judge, self.accuse, self.ruin, self.ruin,
            self.finalize, self.back, self.fall, self.drop, self.prepare_merge,
            self.abstain, self.whole_round, self.whole_round, self.whole_round,
        ]  # fmt: skip
        self.random.choice(moves)()

    # --- choices

    def somebody(self) -> Address:
        return self.random.choice([who for who in self.people if who in self.w.tenures and who != self.idler])

    def some_round(self) -> Round:
        return Round(max(0, self.w.round - self.random.choice([0, 0, 0, 1, 2, 5])))

    def generation(self) -> int:
        status = self.w.model.generations.status_of
        merged = [g for g in range(self.w.round + 2) if status(g) is GenerationStatus.MERGED]
        return min(merged) if merged and self.random.random() < 0.7 else self.some_round() + 1

    def party(self, generation: int) -> Digest:
        opened = [party for g, party in self.w.model.generations.openings if g == generation]
        return self.random.choice([*opened, ids.seat_party(Seat(4))])

    # --- moves

    def wait(self) -> str:
        state, w = self.w.model.commitments.rounds[self.w.round], self.w
        moments = [
            state.t0 + TERMS.commit, state.mask_at, state.mask_at + 1, w.model.commitments.hold_until(w.round, 0) + 1,
            w.model.commitments.merge_until(w.round), w.model.commitments.merge_until(w.round) + 1,
            w.now + 1, w.now + TERMS.grace + 1, w.now + self.random.choice([60, 600, TERMS.rescue, TERMS.challenge]),
        ]  # fmt: skip
        w.at(max(w.now, self.random.choice(moments)))
        return ""

    def commit(self) -> str:
        return self.w.commit(self.somebody(), round_=self.some_round(), work=None)

    def hold(self) -> str:
        maskable = list(self.w.model.commitments.group_of(self.w.round, 0).maskable)
        held = [s for s in maskable if self.random.random() < 0.9]
        return self.w.hold(self.somebody(), held)

    def seal(self) -> str:
        return self.w.seal(self.somebody(), self.label())

    def abstain(self) -> str:
        return self.w.abstain(self.somebody()) if self.random.random() < 0.3 else "not now"

    def open(self) -> str:
        return self.w.open(self.somebody(), self.label(), self.some_round())

    def label(self) -> str:
        return "false" if self.random.random() < 0.1 else "root"

    def whole_round(self) -> str:
        """What a run looks like most of the time."""
        w = self.w
        held = {w.model.tenures.tenures[t].seat: who for who, t in w.tenures.items() if who != self.idler}
        steps = [w.commit, w.hold, self.seal_or_abstain, lambda who: w.open(who, "root")]
        ends = [
            lambda: w.model.commitments.rounds[w.round].t0 + TERMS.commit,
            lambda: w.model.commitments.rounds[w.round].mask_at + 1,
            lambda: w.model.commitments.hold_until(w.round, 0) + 1,
            lambda: w.now + TERMS.grace + 1,
        ]
        for step, end in zip(steps, ends, strict=True):
            w.at(max(w.now, end()))
            for who in held.values():
                step(who)
        return ""

    def seal_or_abstain(self, who: Address) -> str:
        said = self.random.random()
        return self.w.abstain(who) if said < 0.05 else self.w.seal(who, None if said < 0.07 else "root")

    def restart(self) -> str:
        return self.w.restart()

    def join(self) -> str:
        return self.w.join(self.random.choice(self.people))

    def leave(self) -> str:
        if self.random.random() < 0.7:
            return "not now"
        who = self.somebody()
        tenure = self.w.tenures.get(who, 99)
        return self.w.do(lambda: self.w.model.tenures.leave(who, tenure), "Tenures", "leave", tenure, who=who)

    def tenure(self) -> int:
        return self.random.randrange(1, len(self.w.model.tenures.tenures) + 1)

    def evict(self) -> str:
        tenures, by, r = self.w.model.tenures, self.random.choice(self.people), Round(max(0, self.w.round - 1))
        idle = self.idler is not None and self.random.random() < 0.7
        tenure = self.w.tenures[self.idler] if idle and self.idler else self.tenure()
        return self.w.do(lambda: tenures.evict(by, tenure, r, self.w.now), "Tenures", "evict", tenure, r, who=by)

    def release(self) -> str:
        ended = [
            n
            for n, t in self.w.model.tenures.tenures.items()
            if t.until != NEVER and not t.released and not (t.unsettled or t.games or t.accusations)
        ]
        tenure = self.random.choice(ended) if ended else self.tenure()
        return self.w.do(lambda: self.w.model.tenures.release(tenure, self.w.now), "Tenures", "release", tenure)

    def settle(self) -> str:
        return self.w.settle(self.some_round(), Seat(self.random.randrange(5)))

    def _on_party(self, function: str) -> str:
        generation = self.generation()
        party, model = self.party(generation), self.w.model.generations
        method = getattr(model, function)
        return self.w.do(lambda: method(generation, party, self.w.now), "Generations", function, generation, party)

    def finalize(self) -> str:
        return self._on_party("finalize")

    def close(self) -> str:
        made = self.w.model.generations
        over = [k for k, o in made.openings.items() if not o.closed and made.status_of(k[0]) >= GenerationStatus.FINAL]
        if not over or self.random.random() < 0.3:
            return self._on_party("close")
        generation, party = self.random.choice(over)
        return self.w.do(lambda: made.close(generation, party, self.w.now), "Generations", "close", generation, party)

    def drop(self) -> str:
        return self._on_party("drop")

    def back(self) -> str:
        generation, who, root = self.generation(), self.random.choice(self.people), self.w.root_of("root")[2]
        model = self.w.model.generations
        return self.w.do(
            lambda: model.back(who, generation, root, self.w.now), "Generations", "back", generation, root, who=who
        )

    def fall(self) -> str:
        generation = self.generation()
        model = self.w.model.generations
        return self.w.do(lambda: model.fall(generation, self.w.now), "Generations", "fall", generation)

    def prepare_merge(self) -> str:
        r, model = self.some_round(), self.w.model.generations
        entries = self.w.entries(r)
        words = [(e.seat, e.units, e.update) for e in entries]
        return self.w.do(lambda: model.prepare(r, entries, self.w.now), "Generations", "prepare", r, words)

    def prepare_work(self) -> str:
        r, seat, model = self.some_round(), Seat(self.random.randrange(5)), self.w.model.commitments
        made = model.works.get((r, seat))
        who = self.w.model.tenures.tenures[made.tenure].holder if made else self.people[0]
        kind, work = self.random.choice([ClaimKind.INTERVAL, ClaimKind.UPDATE]), work_of((who, r))
        return self.w.prepare(kind, r, seat, work)

    def play(self) -> str:
        """Open a game on something that was prepared and still has its lock."""
        w, refs = self.w, []
        for (kind, r, seat), _ in w.model.commitments.claims.items():
            made = w.model.commitments.works[r, seat]
            if (
                not made.settled
                and not w.model.tenures.is_convicted(made.tenure)
                and w.now > w.model.commitments.rounds[r].mask_at
            ):
                refs.append(work_ref(kind, r, seat))
        for (generation, party), opening in w.model.generations.openings.items():
            taken = opening.opener and w.model.tenures.is_convicted(opening.opener)
            if generation not in w.model.generations.inputs or opening.fallen or opening.closed or taken:
                continue
            if w.now > opening.at + TERMS.challenge:
                continue
            seat = next((Seat(s) for s in range(5) if ids.seat_party(Seat(s)) == party), Seat(0))
            refs.append(node_ref(Round(generation - 1), seat, opening.root, None if opening.opener else opening.backer))
        if not refs:
            return "nothing"
        self.open_games.append(w.open_game(self.random.choice(self.people[5:]), self.random.choice(refs)))
        return ""

    def ruin(self) -> str:
        """All who opened the oldest generation that is not final lose their locks, one after the other."""
        w, generation = self.w, self.generation()
        if self.random.random() < 0.8 or generation not in w.model.generations.inputs:
            return "not now"
        for seat in range(5):
            opening = w.model.generations.openings.get((generation, ids.seat_party(Seat(seat))))
            if opening is None or opening.fallen or opening.closed or w.now > opening.at + TERMS.challenge:
                continue
            if not w.model.tenures.is_convicted(opening.opener):
                ref = node_ref(Round(generation - 1), Seat(seat), opening.root)
                w.end_game(w.open_game(self.people[7], ref), True)
        return ""

    def judge(self) -> str:
        if not self.open_games:
            return "nothing"
        game = self.open_games.pop(self.random.randrange(len(self.open_games)))
        self.w.end_game(game, self.random.random() < 0.5)
        return ""

    def accuse(self) -> str:
        if self.accused and self.random.random() < 0.6:
            tenure = self.accused.pop()
            self.w.by_duties("unaccuse", tenure)
            self.w.by_duties("resume", tenure)
        else:
            self.accused.append(self.w.tenures[self.somebody()])
            self.w.by_duties("accuse", self.accused[-1])
            self.w.by_duties("suspend", self.accused[-1])
        return ""
