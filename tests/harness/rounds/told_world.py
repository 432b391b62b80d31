"""People whose contracts' events are folded as an index folds them, and compared at every check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from hexbytes import HexBytes
from web3.types import LogReceipt

from assay.amounts import TEST_MONEY
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, BeaconRound, Digest, Round, Seat
from assay_ledger.bindings import attestations, beacon, commitments, duties, generations, tenures, tickets
from assay_ledger.bindings.grouped_generations import NodeOpened, NodeSealed
from assay_ledger.chain.client import Head
from assay_ledger.contract import Event
from assay_ledger.rounds.facts import BeaconTimes, RunFacts
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.chain import PERIOD, RoundChain
from tests.harness.rounds.duties import TERMS as DUTY_TERMS
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import TICKET_TERMS
from tests.harness.rounds.world import RoundWorld

KINDS: Mapping[str, tuple[type[Event], ...]] = {
    "Tickets": tickets.TicketsContract.EVENTS,
    "Tenures": tenures.TenuresContract.EVENTS,
    "Commitments": commitments.CommitmentsContract.EVENTS,
    "Generations": (*generations.GenerationsContract.EVENTS, NodeSealed, NodeOpened),
    "Duties": duties.DutiesContract.EVENTS,
    "Attestations": attestations.AttestationsContract.EVENTS,
    "Beacon": beacon.DrandSeedContract.EVENTS,
}
TRANSACTION = b"\x11" * 32


def events_of(
    evm: Evm, contracts: Mapping[str, EvmContract], followed: Mapping[str, tuple[type[Event], ...]] = KINDS
) -> Iterable[Event]:
    """The events of the last call, from the contracts that an index follows."""
    kinds = {
        (contracts[name].address.lower(), bytes(kind.topic())): kind
        for name, found in followed.items()
        if name in contracts
        for kind in found
    }
    result = evm.evm.result
    assert result is not None
    for log in result.logs:
        topics = [HexBytes(topic) for topic in log.topics]
        kind = kinds.get((log.address.lower(), bytes(topics[0])))
        if kind is not None:
            yield kind.decode(cast(LogReceipt, {"topics": topics, "data": HexBytes(_data(log.data))}))


def _data(data: Any) -> bytes:
    return bytes(data[1] if isinstance(data, tuple) else data)


class ToldWorld(RoundWorld):
    """The same people; `told` is what an index has read."""

    def __init__(self, chain: RoundChain) -> None:
        terms = (chain.terms, DUTY_TERMS, TICKET_TERMS)
        facts = RunFacts(1, Address(bytes(20)), chain.terms.run, *terms, BeaconTimes(PERIOD, PERIOD), TEST_MONEY)
        self.told = RunState.of(facts)
        super().__init__(chain)

    def refusal(self, contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """See RoundCalls."""
        said = super().refusal(contract, function, *args, who=who)
        if not said:
            self._read()
        return said

    def by_duties(self, function: str, number: int) -> None:
        """See RoundWorld; the bench accuses without an event."""
        super().by_duties(function, number)
        books = self.told.books.tenures
        tenure = books.existing(number)
        match function:
            case "suspend":
                books.suspend(number)
            case "resume":
                tenure.suspensions -= 1
            case _:
                tenure.accusations += 1 if function == "accuse" else -1

    def submit_beacon(self) -> int:
        """See RoundWorld; the bench has it without an event."""
        at, known = super().submit_beacon(), self.neighbours.known
        self.told.books.randomness.learn(BeaconRound(max(known)), known[max(known)], self.now)
        return at

    def open_game(self, challenger: Address, ref: tuple[Any, ...]) -> int:
        """See RoundWorld; a puppet's game has no event that an index knows."""
        number = super().open_game(challenger, ref)
        self.told.books.on_games(_claim(ref), 1)
        return number

    def end_game(self, number: int, convicted: bool) -> None:
        """See RoundWorld."""
        super().end_game(number, convicted)
        self.told.books.on_games(_claim(self.games[number][1]), -1)

    def call(self, contract: str, function: str, *args: Any, who: Address | None = None) -> Any:
        """See RoundCalls."""
        answer = super().call(contract, function, *args, who=who)
        if contract == "PuppetGame":
            self._read()
        return answer

    def check(self) -> None:
        """The contracts, the model, and what the events told are the same."""
        super().check()
        self.told.head = Head(self.now, self.now)
        model, told = self.model, self.told.books
        self.model = told  # type: ignore[assignment]
        try:
            super().check()
        finally:
            self.model = model
        assert told.tenures.tenures == model.tenures.tenures
        assert (sorted(told.tenures.free), told.tenures.fresh) == (sorted(model.tenures.free), model.tenures.fresh)
        assert told.commitments.rounds == model.commitments.rounds
        assert told.commitments.groups == {k: g for k, g in model.commitments.groups.items() if g.committed}
        assert told.commitments.works == model.commitments.works
        assert told.commitments.claims == model.commitments.claims
        assert told.generations.votes == {k: v for k, v in model.generations.votes.items() if v.seals or v.root}
        assert told.generations.nodes == model.generations.nodes
        assert told.generations.openings == model.generations.openings
        assert told.generations.inputs == model.generations.inputs
        assert told.generations.segments.stack == model.generations.segments.stack
        assert told.generations.segments.segment_of == model.generations.segments.segment_of

    def _read(self) -> None:
        for event in events_of(self.chain.evm, self.chain.contracts):
            fold(self.told, event, self.now, TRANSACTION)


class ToldGroupedWorld(ToldWorld, GroupedWorld):
    """The same above 64 seats."""


def _claim(ref: tuple[Any, ...]) -> ClaimRef:
    kind, round_, seat, duty, party, root = ref
    return ClaimRef(ClaimKind(kind), Round(round_), Seat(seat), duty, Address(bytes(party)), Digest(bytes(root)))
