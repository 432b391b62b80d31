"""People who act on contracts and model at once: every call must end alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import SeatWork, UpdateEntry
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from tests.harness.rounds.chain import RoundCalls, RoundChain
from tests.harness.rounds.samples import ETHER, address, bits, fields, mark, work_of
from tests.harness.rounds.staged import BOND

World = TypeVar("World", bound="RoundWorld")


class RoundWorld(RoundCalls):
    """People on model and contracts at once."""

    def __init__(self, chain: RoundChain) -> None:
        super().__init__(chain)
        self.people: list[Address] = []
        self.tenures: dict[Address, int] = {}
        self.games: list[tuple[Address, tuple[Any, ...]]] = []

    @cached_property
    def sealed_over(self) -> dict[Node, set[Digest]]:
        """What roots of a node were over each time that one was sealed: the same to the end."""
        return {}

    # --- people

    def add_person(self, amount: int = 1000 * ETHER) -> Address:
        """Somebody with free stake."""
        who = address(len(self.people))
        self.people.append(who)
        caller, token, vault = "0x" + who.hex(), self.chain.token, self.chain.contracts["Vault"]
        self.chain.evm.evm.set_balance(caller, 10**24)
        token.call("mint", caller, amount)
        token.call("approve", vault.address, amount, caller=caller)
        vault.call("deposit", amount, caller=caller)
        self.vault.deposit(who, amount)
        return who

    def join(self, who: Address) -> str:
        """Take a seat."""
        made: list[int] = []
        said = self.do(lambda: made.append(self.model.tenures.join(who, self.now)), "Tenures", "join", who=who)
        if made:
            self.tenures[who] = made[0]
        return said

    def seat(self, who: Address) -> Seat:
        """The seat of somebody's newest tenure."""
        return self.model.tenures.tenures[self.tenures[who]].seat

    def begin(self, solvers: int = 8) -> list[Address]:
        """Seats taken and round 0 open."""
        people = [self.add_person() for _ in range(solvers)]
        assert [self.join(who) for who in people] == [""] * solvers
        assert self.do(lambda: self.model.generations.begin(self.now), "RoundsBench", "begin") == ""
        return people

    def register(self, who: Address, count: int) -> None:
        """Tickets of somebody."""
        for number in range(count):
            anchor = mark((who, number))
            made = lambda anchor=anchor: self.tickets.register(who, anchor, self.now)  # noqa: E731
            assert self.do(made, "Tickets", "register", anchor, who=who) == ""

    def submit_beacon(self) -> int:
        """The beacon after the mask's close is due, and known; its time."""
        number = self.neighbours.round_after(
            self.model.commitments.rounds[self.round].mask_at + self.terms.beacon_delay
        )
        self.neighbours.known[number] = mark(("beacon", number))
        self.call("RoundsBench", "submit", number, self.neighbours.known[number])
        return self.neighbours.time_of(number)

    # --- rounds

    @property
    def round(self) -> Round:
        """The round under way."""
        return Round(len(self.model.commitments.rounds) - 1)

    def commit(
        self,
        who: Address,
        work: SeatWork | None = None,
        round_: Round | None = None,
        base: Digest | None = None,
        seat: Seat | None = None,
    ) -> str:
        """Commit to the round under way."""
        r = self.round if round_ is None else round_
        tenure, place = self.tenures[who], self.seat(who) if seat is None else seat
        work = work or work_of((who, r))
        if base is None:
            base = self.model.commitments.rounds[r].base if 0 <= r <= self.round else ZERO
        return self.do(
            lambda: self.model.commitments.commit(who, r, place, tenure, base, work, self.now),
            "Commitments", "commit", r, place, tenure, base, fields(work), who=who,
        )  # fmt: skip

    def hold(
        self,
        who: Address,
        held: Iterable[int] | None = None,
        positions: Iterable[int] | None = None,
        group: int = 0,
        acc: Digest | None = None,
    ) -> str:
        """Say what one holds: everything of the group, by default."""
        r = self.round
        state = self.model.commitments.group_of(r, group)
        said = frozenset(state.maskable if held is None else held)
        mine = [self.seat(who)] if positions is None else list(positions)
        named = state.acc if acc is None else acc
        return self.do(
            lambda: self.model.commitments.hold(who, r, group, mine, named, said, self.now),
            "Commitments", "hold", r, group, bits(mine), named, bits(said), who=who,
        )  # fmt: skip

    def root_of(self, label: object) -> tuple[Digest, Digest, Digest]:
        """Parameters, momentum and root that a label names."""
        parameters, momentum = mark((label, "p")), mark((label, "m"))
        return parameters, momentum, state_digest((parameters, momentum))

    def seal(self, who: Address, label: object, round_: Round | None = None, over: Digest | None = None) -> str:
        """Bind oneself to a root, over what is on chain now if nothing else is named; of no label to zero."""
        r = self.round if round_ is None else round_
        seat = self.seat(who)
        over = self.over_of(r + 1) if over is None else over
        seal = ZERO
        if label is not None:
            seal = ids.seal_digest(r, seat, self.root_of(label)[2], over, mark((who, "salt")), who)
        said = self.do(
            lambda: self.model.generations.seal(who, r, seat, seal, self.now),
            "Generations", "seal", r, seat, seal, who=who,
        )  # fmt: skip
        return self.note_sealed(r + 1, said)

    def note_sealed(self, node: Node, said: str) -> str:
        """Keep what a root that was sealed now is over; what the contract said of it."""
        if said == "":
            self.sealed_over.setdefault(node, set()).add(self.over_of(node))
        return said

    def over_of(self, node: Node) -> Digest:
        """What roots of a node are over; nothing of a round that was not opened."""
        is_there = 1 <= ids.generation_of(node) <= len(self.model.commitments.rounds)
        return self.model.generations.over_of(node, self.now) if is_there else ZERO

    def abstain(self, who: Address, round_: Round | None = None) -> str:
        """Say that one cannot compute the root."""
        r, seat = self.round if round_ is None else round_, self.seat(who)
        return self.do(
            lambda: self.model.generations.abstain(who, r, seat, self.now), "Generations", "abstain", r, seat, who=who
        )

    def open(self, who: Address, label: object, round_: Round | None = None) -> str:
        """Open a root."""
        r = self.round if round_ is None else round_
        seat, (parameters, momentum, _), salt = self.seat(who), self.root_of(label), mark((who, "salt"))
        return self.do(
            lambda: self.model.generations.open(who, r, seat, parameters, momentum, salt, self.now),
            "Generations", "open", r, seat, parameters, momentum, salt, who=who,
        )  # fmt: skip

    def restart(self) -> str:
        """Give the round under way up."""
        return self.do(lambda: self.model.generations.restart(self.now), "Generations", "restart")

    def entries(self, round_: Round) -> list[UpdateEntry]:
        """The updates of a round with weight, in their order, as `work_of` names them by default."""
        works = self.model.commitments.group_of(round_, 0).maskable
        made = {seat: self.model.tenures.tenures[w.tenure].holder for seat, w in works.items()}
        return [UpdateEntry(Seat(s), 60, work_of((who, round_)).update) for s, who in made.items()]

    def commit_all(self, people: Iterable[Address]) -> None:
        """Everybody commits, at the end of the training time."""
        self.at(self.model.commitments.rounds[self.round].t0 + self.terms.commit)
        for who in people:
            assert self.commit(who) == ""

    def hold_all(self, people: Iterable[Address]) -> None:
        """Everybody says that it holds everything."""
        self.at(max(self.now, self.model.commitments.rounds[self.round].mask_at) + 1)
        for who in people:
            assert self.hold(who) == ""

    def merge(self, people: Iterable[Address], label: object) -> None:
        """Everybody seals and opens one root."""
        everybody, r = list(people), self.round
        self.at(max(self.now, self.model.commitments.hold_until(r, 0)) + 1)
        for who in everybody:
            assert self.seal(who, label) == ""
        self.tick(1)
        for who in everybody:
            assert self.open(who, label, r) == ""

    def play_round(self, people: Iterable[Address]) -> Round:
        """A round in which everybody does what it should; its number."""
        everybody, r = list(people), self.round
        self.commit_all(everybody)
        self.hold_all(everybody)
        self.merge(everybody, ("root", r))
        return r

    # --- what hangs

    def prepare(self, kind: ClaimKind, round_: Round, seat: Seat, work: SeatWork) -> str:
        """Build X and Y of a commitment's claim."""
        return self.do(
            lambda: self.model.commitments.prepare(kind, round_, seat, work),
            "Commitments", "prepare", int(kind), round_, seat, fields(work),
        )  # fmt: skip

    def settle(self, round_: Round, seat: Seat) -> str:
        """Settlement ends a commitment."""
        return self.do(lambda: self.model.commitments.settle(round_, seat), "RoundsBench", "settle", round_, seat)

    def release(self, who: Address) -> str:
        """Somebody's lock goes back."""
        tenure = self.tenures[who]
        return self.do(lambda: self.model.tenures.release(tenure, self.now), "Tenures", "release", tenure)

    def by_duties(self, function: str, number: int) -> None:
        """Duties accuse, unaccuse, suspend or resume a tenure."""
        self.call("RoundsBench", function, number)
        getattr(self.model.tenures, function)(number)

    def open_game(self, challenger: Address, ref: tuple[Any, ...]) -> int:
        """A puppet game on a claim; its number."""
        number = len(self.games)
        self.call("PuppetGame", "open", ref, who=challenger)
        self.vault.lock(mark(("game", number)), challenger, BOND)
        self.games.append((challenger, ref))
        kind, round_, seat = ref[:3]
        if kind == ClaimKind.OUTER:
            self.model.generations.on_opened(*opening_of(ref))
        else:
            self.model.commitments.on_opened(round_, seat)
        return number

    def opener_of(self, opener: int) -> tuple[Digest, Address]:
        """The lock behind an opening, and who holds it."""
        return ids.tenure_lock(opener), self.model.tenures.tenures[opener].holder

    def end_game(self, number: int, convicted: bool) -> None:
        """The verdict of a puppet game; its money on both."""
        challenger, ref = self.games[number]
        kind, round_, seat = ref[:3]
        self.call("PuppetGame", "finish", number, convicted)
        if kind == ClaimKind.OUTER:
            node, name = opening_of(ref)
            opener = self.model.generations.openings[node, name].opener
            lock, holder = self.opener_of(opener) if opener else (ids.back_lock(node, name), ref[4])
            first = self.model.generations.on_closed(node, name, convicted, self.now)
        else:
            tenure = self.model.commitments.works[round_, seat].tenure
            lock, holder = ids.tenure_lock(tenure), self.model.tenures.tenures[tenure].holder
            first = self.model.commitments.on_closed(round_, seat, convicted, self.now)
        bond = mark(("game", number))
        if not convicted:
            self.vault.seize(bond, holder, Wei(BOND // 2))
            self.vault.burn(bond, Wei(BOND - BOND // 2))
            return
        self.vault.release(bond)
        if first:
            amount = self.vault.lock_amount(lock)
            self.vault.seize(lock, challenger, Wei(amount // 2))
            self.vault.burn(lock, Wei(amount - amount // 2))

    def check(self) -> None:
        """Money, statuses, masks and counters are the same on both."""
        assert self.vault.is_conserved()
        lasting = [(t.seat, r) for t in self.model.tenures.tenures.values() for r in range(t.from_, min(t.until, 1000))]
        assert len(lasting) == len(set(lasting))  # no round has two holders of one seat
        assert tuple(self.call("Vault", "totals")) == self.vault.totals()
        for number, tenure in self.model.tenures.tenures.items():
            wanted = (
                "0x" + tenure.holder.hex(), tenure.seat, tenure.from_, tenure.until, tenure.fee_gone, tenure.released,
                tenure.unsettled, tenure.games, tenure.accusations, tenure.suspensions, tenure.convicted_at,
                tenure.last,
            )  # fmt: skip
            assert self.call("Tenures", "tenureOf", number) == wanted
        for r, state in enumerate(self.model.commitments.rounds):
            got = self.call("Commitments", "roundOf", r)
            assert got == (
                state.t0,
                state.mask_at,
                state.seated,
                state.committed,
                state.groups,
                state.parent,
                state.base,
            )
            for group in range(self.terms.groups):
                counted, closed = self.model.commitments.counted_of(Round(r), group, self.now)
                assert self.call("Commitments", "countedOf", r, group) == (bits(counted), closed)
                if closed:
                    over = self.model.commitments.over_of(Round(r), group, self.now)
                    assert self.call("Commitments", "overOf", r, group) == over
            assert self.call("Generations", "statusOf", r + 1) == self.model.generations.status_of(r + 1)
            for seat in range(self.terms.seats):
                seen = self.model.commitments.presence_of(Round(r), Seat(seat), self.now)
                assert self.call("Commitments", "presenceOf", r, seat) == seen
        assert all(over == {self.over_of(node)} for node, over in self.sealed_over.items())
        assert self.call("Generations", "newest") == self.model.generations.newest()


def opening_of(ref: tuple[Any, ...]) -> tuple[Node, Digest]:
    """The node and the party of an opening that games name."""
    _, round_, position, group, party, root = ref
    node = ids.node_of(round_ + 1, group - 1) if group else round_ + 1
    return node, ids.seat_party(position) if party == bytes(20) else ids.backer_party(root, party)


@contextmanager
def played_on(chain: RoundChain, kind: Callable[[RoundChain], World]) -> Iterator[World]:
    """A world of its own on a chain, checked at the end; the chain is as it was before, also where that fails."""
    kept = chain.evm.evm.snapshot()
    try:
        made = kind(chain)
        yield made
        made.check()
    finally:
        chain.evm.evm.revert(kept)
