"""The second round's contracts in an in-process EVM and their model, played at once: every call must end alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak
from pyrevm import BlockEnv

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import RejectedError
from assay.protocol.model.errors import refuse
from assay.protocol.model.vault import Vault
from assay.protocol.rounds import round_ids as ids
from assay.protocol.rounds.commitments import Commitments
from assay.protocol.rounds.round_ledger import RoundLedger
from assay.protocol.rounds.round_terms import GenerationStatus, RoundTerms, SeatWork, UpdateEntry
from assay.protocol.rounds.tenures import Tenures
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, _revert_data, _type, artifact
from tests.harness.rounds.stage import StagedCalls

ETHER = 10**18
START = 1_800_000_000
PERIOD = 30
BOND = Wei(ETHER)
TICKET_TERMS = TicketTerms(bond=Wei(ETHER // 100), seasoning=7200, shifts=3)


def mark(label: object) -> Digest:
    """A 32-byte value that a label names."""
    return Digest(keccak(repr(label).encode()))


TERMS = RoundTerms(
    seats=8, group_size=64, positions=15, min_units=30, max_units=60, steps_per_unit=5, learning_rate=0x3A83126F,
    shards=1024, shard_length=1000, rounds=1000, expiry=START + 10**9, commit=3600, inclusion=600, grace=30, hold=120,
    merge=300, beacon_delay=24, challenge=50_000, rescue=1800, run=mark("run"), step_program=mark("step"),
    update_program=mark("update"), outer_program=mark("outer"), data=mark("data"), zero_optimizer=mark("zeros"),
    zero_update=mark("no update"), parameters=mark("parameters 0"), momentum=mark("momentum 0"),
    seat_lock=Wei(30 * ETHER), seat_fee=Wei(2 * ETHER),
)  # fmt: skip


def work_of(label: object, units: int = 60) -> SeatWork:
    """Work that a label names."""
    ends = (mark((label, "parameters")), mark((label, "optimizer")), mark((label, "scalars")))
    return SeatWork(units, mark((label, "marks")), ends, mark((label, "update")))


def fields(work: SeatWork) -> tuple[Any, ...]:
    """The work as the contract takes it."""
    return (work.units, work.marks, list(work.ends), work.update)


def address(index: int) -> Address:
    """Somebody."""
    return Address((0xA000 + index).to_bytes(20, "big"))


def bits(places: Iterable[int]) -> int:
    """A bit per place."""
    return sum(1 << place for place in places)


@dataclass
class Neighbours:
    """Beacon and gate as the bench has them, and who holds which position."""

    known: dict[int, Digest] = field(default_factory=dict)
    tickets: Tickets | None = None
    now: int = START
    is_open: bool = True

    def round_after(self, time: int) -> int:
        return time // PERIOD + 1

    def time_of(self, beacon_round: int) -> int:
        return beacon_round * PERIOD

    def randomness_of(self, beacon_round: int) -> Digest:
        if beacon_round not in self.known:
            raise refuse("BeaconNotSubmitted", beacon_round=beacon_round)
        return self.known[beacon_round]

    def holder_of_position(self, seed: Digest, node: Digest, j: int, time: int) -> Address:
        assert self.tickets is not None
        return self.tickets.owner_of(self.tickets.position_of(seed, node, j, time, self.now))

    def may_open(self, round_: Round, seated: int) -> bool:
        return self.is_open


@dataclass(frozen=True, slots=True)
class FinalGenerations:
    """Stands in for generations of more than one level: each is final."""

    def parameters_of(self, generation: int) -> Digest:
        return Digest(keccak(encode(["string", "uint64"], ["parameters", generation])))

    def status_of(self, generation: int) -> GenerationStatus:
        return GenerationStatus.FINAL


class WideLedger(RoundLedger):
    """Tenures, commitments and tickets of a run with more seats than one level has."""

    def __init__(self, terms: RoundTerms, vault: Vault, neighbours: Neighbours) -> None:
        self.terms, self.vault = terms, vault
        self.beacon = self.tickets = self.rights = neighbours
        neighbours.tickets = Tickets(vault, StagedCalls(), TICKET_TERMS)
        self.tenures, self.commitments = Tenures(self), Commitments(self)
        self.generations = FinalGenerations()  # type: ignore[assignment]


class RoundChain:
    """The contracts on a chain of their own; snapshots make it as new for every test."""

    def __init__(self, terms: RoundTerms) -> None:
        self.terms = terms
        self.evm = Evm(timestamp=START)
        self.token = self.evm.deploy("TestToken")
        last = "Generations" if terms.by_seats else "Tickets"
        names = ["Tenures", "Commitments", last, "RoundsBench", "Vault", "PuppetGame"]
        at = dict(zip(names, self._next(), strict=False))
        bench = at["RoundsBench"]
        at.setdefault("Generations", bench)
        at.setdefault("Tickets", bench)
        self.modules = (
            bench, at["Vault"], at["Tenures"], at["Commitments"], at["Generations"], at["Tickets"], bench, bench,
            at["PuppetGame"], bench, bench,
        )  # fmt: skip
        self.contracts: dict[str, EvmContract] = {}
        for name in names:
            if name == "RoundsBench":
                made = self.evm.deploy(name, self.token.address, BOND, self.modules)
            elif name in ("Vault", "PuppetGame"):
                made = self.evm.deploy(name, bench)
            elif name == "Tickets":
                made = self.evm.deploy(name, at["Vault"], bench, bench, *astuple(TICKET_TERMS))
            else:
                made = self.evm.deploy(name, astuple(terms), self.modules)
            assert made.address.lower() == at[name]
            self.contracts[name] = made

    def try_deploy(self, name: str, terms: RoundTerms) -> None:
        """Deploy one more contract beside the others. Raises Reverted."""
        built = artifact(name)
        types = [_type(i) for i in built.entry("constructor", "")["inputs"]]
        code = built.bytecode + encode(types, [astuple(terms), self.modules])
        try:
            self.evm.evm.deploy(self.evm.caller, code, 0, 30_000_000)
        except RuntimeError as error:
            raise Reverted(_revert_data(str(error)), built.abi, str(error)) from None

    def _next(self) -> Iterable[str]:
        """Addresses of the next contracts that this chain's deployer makes."""
        caller = bytes.fromhex(self.evm.caller[2:])
        nonce = self.evm.evm.basic(self.evm.caller).nonce
        for n in range(nonce, nonce + 8):
            number = bytes([n]) if 0 < n < 128 else b"\x80"
            body = b"\x94" + caller + number
            yield "0x" + keccak(bytes([0xC0 + len(body)]) + body)[12:].hex()


class RoundWorld:
    """People on model and contracts at once. `now` is chain time; `do` compares how a call ended on both."""

    def __init__(self, chain: RoundChain) -> None:
        self.chain, self.terms = chain, chain.terms
        self.now = START
        self.neighbours = Neighbours()
        self.vault = Vault(exit_delay=1)
        n = self.neighbours
        one_level = chain.terms.by_seats
        self.model = (
            RoundLedger(chain.terms, self.vault, n, n, n) if one_level else WideLedger(chain.terms, self.vault, n)
        )
        self.people: list[Address] = []
        self.tenures: dict[Address, int] = {}
        self.gas: dict[str, int] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        """How often a function ended in an error, or in none."""
        self.games: list[tuple[Address, tuple[Any, ...]]] = []
        self.tick(0)

    def tick(self, seconds: int) -> None:
        """Time goes on."""
        self.at(self.now + seconds)

    def at(self, now: int) -> None:
        """It is this second of chain time."""
        self.now = self.neighbours.now = now
        env = BlockEnv(number=1 + (now - START) // 12, timestamp=now, gas_limit=30_000_000, prevrandao=bytes(32))
        self.chain.evm.evm.set_block_env(env)

    def call(self, contract: str, function: str, *args: Any, who: Address | None = None) -> Any:
        """A call of a contract alone."""
        return self.chain.contracts[contract].call(function, *args, caller=None if who is None else "0x" + who.hex())

    def refusal(self, contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """The error of a call of a contract alone; "" if it went through."""
        try:
            self.call(contract, function, *args, who=who)
        except Reverted as error:
            return error.name or _selector_name(error.data, self.chain)
        self.gas[function] = self.chain.contracts[contract].gas
        return ""

    def do(self, model: Callable[[], Any], contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """Play a call on both; "" if it went through, else the error's name."""
        try:
            model()
            wanted = ""
        except RejectedError as error:
            wanted = error.code
        got = self.refusal(contract, function, *args, who=who)
        assert got == wanted, f"{function}{args} at {self.now}: contract says {got!r}, model {wanted!r}"
        self.ended[function, got] += 1
        return got

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
        tickets = self.neighbours.tickets
        assert tickets is not None
        for number in range(count):
            anchor = mark((who, number))
            made = lambda anchor=anchor: tickets.register(who, anchor, self.now)  # noqa: E731
            assert self.do(made, "Tickets", "register", anchor, who=who) == ""

    def open_wide(self, base: Digest) -> Round:
        """A round of a run with more seats than one level has."""
        r = len(self.model.commitments.rounds)
        opened = self.do(
            lambda: self.model.commitments.open_round(r, base, self.now), "RoundsBench", "openRound", r, base
        )
        assert opened == ""
        return Round(r)

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
        self, who: Address, work: SeatWork | None = None, round_: Round | None = None, base: Digest | None = None
    ) -> str:
        """Commit to the round under way."""
        r = self.round if round_ is None else round_
        tenure = self.tenures[who]
        work = work or work_of((who, r))
        if base is None:
            base = self.model.commitments.rounds[r].base if 0 <= r <= self.round else ZERO
        return self.do(
            lambda: self.model.commitments.commit(who, r, tenure, base, work, self.now),
            "Commitments", "commit", r, tenure, base, fields(work), who=who,
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

    def seal(self, who: Address, label: object, round_: Round | None = None) -> str:
        """Bind oneself to a root."""
        r = self.round if round_ is None else round_
        seat = self.seat(who)
        seal = ids.seal_digest(r, seat, self.root_of(label)[2], mark((who, "salt")), who)
        return self.do(
            lambda: self.model.generations.seal(who, r, seat, seal, self.now),
            "Generations", "seal", r, seat, seal, who=who,
        )  # fmt: skip

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

    def settle(self, round_: Round, seat: Seat) -> str:
        """Settlement ends a commitment."""
        return self.do(lambda: self.model.commitments.settle(round_, seat), "RoundsBench", "settle", round_, seat)

    def release(self, who: Address) -> str:
        """Somebody's lock goes back."""
        tenure = self.tenures[who]
        return self.do(lambda: self.model.tenures.release(tenure, self.now), "Tenures", "release", tenure)

    def by_duties(self, function: str, number: int) -> None:
        """Duties accuse, unaccuse, suspend or resume a tenure."""
        tenure = self.model.tenures.tenures[number]
        self.call("RoundsBench", function, number)
        if function == "suspend":
            self.model.tenures.suspend(number)
        elif function == "resume":
            tenure.suspensions -= 1
        else:
            tenure.accusations += 1 if function == "accuse" else -1

    def open_game(self, challenger: Address, ref: tuple[Any, ...]) -> int:
        """A puppet game on a claim; its number."""
        number = len(self.games)
        self.call("PuppetGame", "open", ref, who=challenger)
        self.vault.lock(mark(("game", number)), challenger, BOND)
        self.games.append((challenger, ref))
        kind, round_, seat, _, party, root = ref
        if kind == ClaimKind.OUTER:
            name = ids.seat_party(seat) if party == bytes(20) else ids.backer_party(root, party)
            self.model.generations.on_opened(round_ + 1, name)
        else:
            self.model.commitments.on_opened(round_, seat)
        return number

    def end_game(self, number: int, convicted: bool) -> None:
        """The verdict of a puppet game; its money on both."""
        challenger, ref = self.games[number]
        kind, round_, seat, _, party, root = ref
        self.call("PuppetGame", "finish", number, convicted)
        if kind == ClaimKind.OUTER:
            name = ids.seat_party(seat) if party == bytes(20) else ids.backer_party(root, party)
            opening = self.model.generations.openings[round_ + 1, name]
            tenure = opening.tenure
            lock = ids.tenure_lock(tenure) if tenure else ids.back_lock(round_ + 1, name)
            first = self.model.generations.on_closed(round_ + 1, name, convicted, self.now)
            holder = self.model.tenures.tenures[tenure].holder if tenure else party
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
        assert tuple(self.call("Vault", "totals")) == self.vault.totals()
        for number, tenure in self.model.tenures.tenures.items():
            wanted = (
                "0x" + tenure.holder.hex(), tenure.seat, tenure.from_, tenure.until, tenure.unsettled, tenure.games,
                tenure.accusations, tenure.suspensions, tenure.suspended_from, tenure.convicted_at, tenure.last,
                tenure.fee_gone, tenure.released,
            )  # fmt: skip
            assert self.call("Tenures", "tenureOf", number) == wanted
        for r, state in enumerate(self.model.commitments.rounds):
            got = self.call("Commitments", "roundOf", r)
            assert got == (state.t0, state.mask_at, state.seated, state.committed, state.parent, state.base)
            counted, closed = self.model.commitments.counted_of(Round(r), 0, self.now)
            assert self.call("Commitments", "countedOf", r, 0) == (bits(counted), closed)
            assert self.call("Generations", "statusOf", r + 1) == self.model.generations.status_of(r + 1)
            for seat in range(self.terms.seats):
                seen = self.model.commitments.presence_of(Round(r), Seat(seat), self.now)
                assert self.call("Commitments", "presenceOf", r, seat) == seen
        assert self.call("Generations", "newest") == self.model.generations.newest()


def _selector_name(data: bytes, chain: RoundChain) -> str:
    """The name of an error of a contract further down."""
    for contract in chain.contracts.values():
        if name := Reverted(data, contract.artifact.abi).name:
            return name
    return f"0x{data.hex()}"


def work_ref(kind: ClaimKind, round_: Round, seat: Seat) -> tuple[Any, ...]:
    """A claim of a commitment, as games take it."""
    return (int(kind), round_, seat, 0, bytes(20), ZERO)


def node_ref(round_: Round, seat: Seat, root: Digest, backer: Address | None = None) -> tuple[Any, ...]:
    """An opening, as games take it."""
    return (int(ClaimKind.OUTER), round_, seat, 0, backer or bytes(20), root)


def terms_of(**changes: Any) -> RoundTerms:
    """The usual terms, changed."""
    return replace(TERMS, **changes)
