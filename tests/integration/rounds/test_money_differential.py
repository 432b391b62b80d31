"""Strangers fund, train, audit, dispute, settle and leave at random: model and contracts end every call alike."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.samples import ETHER


class MoneyPlay:
    """Random calls on one world. `solvers` hold seats, or held them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.taking_out = random.Random(-seed)
        """Draws of its own, so that what else is played stays as it was."""
        self.world = MoneyWorld(label=seed)
        self.solvers: list[Address] = []
        self.open_games: list[tuple[object, ...]] = []
        calls: list[tuple[int, Callable[[], object]]] = [
            (2, self.fund), (1, self.end_the_run), (1, self.leave), (8, self.round), (8, self.epoch), (6, self.finals),
            (14, self.settle), (4, self.dispute), (3, self.verdict), (3, self.bounty), (2, self.wait),
        ]  # fmt: skip
        self.calls = [call for weight, call in calls for _ in range(weight)]

    def play(self, steps: int) -> Counter[tuple[str, str]]:
        """How often each call ended how."""
        w = self.world
        self.solvers = w.gather(solvers=self.random.randint(3, 4), tickets=self.random.randint(6, 9), escrow=60 * ETHER)
        assert w.launch(w.sponsor) in ("", "Paused")
        for _ in range(steps):
            self.random.choice(self.calls)()
            self.take_out()
            w.check_money()
        w.end()
        return w.ended

    # --- money

    def anybody(self) -> Address:
        return self.random.choice([self.world.sponsor, *self.world.people])

    def fund(self) -> None:
        self.world.fund(self.anybody(), self.random.choice([1, ETHER, 20 * ETHER]))

    def take_out(self) -> None:
        """Somebody names an address, asks for stake, or has it paid: for itself or for another."""
        w, draw = self.world, self.taking_out
        owner, other = draw.choice(w.people[:3]), draw.choice(w.people[:3])
        payee = w.vault.payee_of(owner)
        by = draw.choice([owner, payee, payee, other])
        match draw.randrange(6):
            case 0:
                w.set_payee(owner, draw.choice([other, *w.vault.nobody]), by)
            case 1 | 2:
                w.request_exit(owner, draw.choice([0, 1, ETHER, 10**6 * ETHER]), by)
            case 3 | 4:
                w.withdraw(owner, by)

    def end_the_run(self) -> None:
        w = self.world
        rare = self.random.random()
        if rare < 0.2:
            w.tick(w.charter.timing.stall)
        if rare < 0.4:
            w.wind_down()
        w.cancel(self.anybody())
        w.finish()
        w.refund(self.anybody())

    def leave(self) -> None:
        w, who = self.world, self.random.choice(self.solvers)
        tenure = w.tenures[who]
        if w.run.escrow.is_stopped() or self.random.random() < 0.3:
            w.do(lambda: w.model.tenures.leave(who, tenure), "Tenures", "leave", tenure, who=who)
        w.release(who)
        self.reclaim()

    def reclaim(self) -> None:
        if held := list(self.world.run.tickets.tickets):
            self.world.reclaim(self.random.choice(held))

    # --- training and audits

    def round(self) -> None:
        """What is left of the round under way, by those who may take part."""
        w = self.world
        if not w.model.commitments.rounds:
            w.launch(self.anybody())
            return
        w.restart()
        r = w.round
        w.at(max(w.now, w.model.commitments.rounds[r].t0 + w.terms.commit))
        for who in self.solvers:
            w.commit(who)
        w.at(max(w.now, w.model.commitments.rounds[r].mask_at) + 1)
        for who in self.solvers:
            if w.seat(who) in w.model.commitments.group_of(r, 0).maskable:
                w.hold(who)
        w.at(max(w.now, w.model.commitments.hold_until(r, 0)) + 1)
        for act in (w.seal, w.open):
            for who in self.solvers:
                act(who, ("root", r), r)
            w.tick(1)

    def epoch(self) -> None:
        w = self.world
        lies = {ticket: {Seat(0)} for ticket in w.chains if self.random.random() < 0.1}
        if w.run.escrow.is_stopped():
            for function, model in (("seedEpoch", w.run.duties.seed_epoch), ("closeEpoch", w.run.duties.close_epoch)):
                assert w.do(lambda act=model: act(w.now), "Duties", function) == "RunStopped"  # type: ignore[misc]
            self.reclaim()
            return
        w.seed()
        for ticket in w.chains:
            held = w.run.tickets.tickets.get(ticket)  # type: ignore[call-overload]
            if held and w.run.duties._is_called(ticket, w.run.duties.epochs[-1], w.now):  # type: ignore[arg-type]
                w.open_call(ticket, lies.get(ticket, ()), results=self.random.random() < 0.9)
        w.close_epoch()

    def finals(self) -> None:
        w = self.world
        if self.random.random() < 0.7:
            w.tick(w.charter.timing.challenge + 1)
        for generation in range(1, len(w.model.commitments.rounds) + 1):
            if generation in w.model.generations.votes:
                w.finalize(generation, self.random.randrange(4))
        for generation, party in list(w.model.generations.openings):
            seat = next(s for s in range(4) if ids.seat_party(Seat(s)) == party)
            w.close_opening(generation, seat)

    def settle(self) -> None:
        w, rounds = self.world, len(self.world.model.commitments.rounds)
        for r in range(rounds):
            own = w.own_epoch(r) + (self.random.random() < 0.1)
            w.settle_work(r, self.random.randrange(4), own)
            w.settle_opening(r + 1, ids.seat_party(Seat(self.random.randrange(4))))
            w.settle_round(r, own)
        names = list(w.run.duties.attestations.attestations)
        for name in self.random.sample(names, min(3, len(names))):
            w.settle_duty(name)
        for name in list(w.run.grants.grants)[:2]:
            w.do(lambda n=name: w.run.grants.release(n, w.now), "Grants", "release", name)  # type: ignore[misc]

    # --- disputes

    def dispute(self) -> None:
        w = self.world
        waiting = [key for key, work in w.model.commitments.works.items() if not work.settled and key in w.works]
        if not waiting:
            return
        round_, seat = self.random.choice(waiting)
        w.prepare_work(Round(round_), seat)
        name, who = ZERO, self.anybody()
        digest = w.model.commitments.works[round_, seat].digest
        for accusation, made in w.run.duties.attestations.accusations.items():
            if made.against == digest and w.run.duties.attestations.may_try(
                accusation, digest, made_by(w, made.ticket)
            ):
                name, who = accusation, made_by(w, made.ticket)
        ref = (int(ClaimKind.INTERVAL), round_, seat, 0, bytes(20), name)
        if ref not in self.open_games and w.open_verdict(ref, who) == "":
            self.open_games.append((*ref, who))

    def verdict(self) -> None:
        if not self.open_games:
            return
        *ref, who = self.open_games.pop(self.random.randrange(len(self.open_games)))
        self.world.end_verdict(tuple(ref), self.random.random() < 0.5, self.random.random() < 0.5, who)  # type: ignore[arg-type]

    def bounty(self) -> None:
        w = self.world
        for name in list(w.run.duties.attestations.accusations):
            w.lapse(name)
            w.enter(name)
            w.close_pot(name, self.random.randrange(w.epoch + 1))
            w.take(name)

    def wait(self) -> None:
        self.world.tick(self.random.choice([1, 3600, 86_400, 8 * 86_400]))


def made_by(world: MoneyWorld, ticket: int) -> Address:
    """Who owns a ticket; nobody if it is gone."""
    held = world.run.tickets.tickets.get(ticket)  # type: ignore[call-overload]
    return held.owner if held else Address(bytes(20))


def test_money_ends_alike_whatever_strangers_do() -> None:
    ended: Counter[tuple[str, str]] = Counter()
    for seed in range(8):
        ended.update(MoneyPlay(seed).play(60))
    reached = {call for (call, error), count in ended.items() if count and not error}
    assert reached >= {"setPayee", "requestExit", "requestExitFor", "withdraw", "withdrawFor"}
    refused = {(call, error) for (call, error), count in ended.items() if count}
    assert refused >= {("setPayee", "NotThePayee"), ("setPayee", "PayeeRefused"), ("requestExit", "NotThePayee")}
    assert reached >= {"settleWork", "settleDuty", "settleOpening", "restart", "lapse", "fund", "windDown", "reclaim"}
