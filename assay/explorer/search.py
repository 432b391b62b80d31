"""Finds what somebody pasted: an address, a digest, a transaction, the number of a game, or the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from eth_utils.address import is_checksum_address

from assay.explorer.audit_documents import accused_text
from assay.explorer.documents import hexed
from assay.explorer.names import names_in
from assay.explorer.reader import EventRow, RunReader
from assay.explorer.work_documents import generations
from assay_ledger.bindings import attestations, commitments, duties, game
from assay_ledger.bindings import generations as merges
from assay_ledger.contract import Event

LEAST_DIGITS: Final = 6
MAX_HITS: Final = 50
MAX_QUERY: Final = 200
EVENTS_READ: Final = 400
"""The newest and the oldest events of a name that are looked through for what it is."""

MISSPELT: Final = "The capital letters of this address are no checksum of it (EIP-55): a digit is wrong."

_WORDS = re.compile(r"(game|dispute|round|generation|tenure|ticket|epoch)?\s*#?\s*([0-9]{1,9})", re.IGNORECASE)
_HEX = re.compile(r"(?:0x)?([0-9a-f]{6,128})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where something is shown, and what it is."""

    url: str
    what: str


def search(reader: RunReader, query: str) -> list[Hit]:
    """Where the thing that a query names is shown, the most telling place first; empty when nothing has that name."""
    query = query.strip()[:MAX_QUERY]
    if match := _WORDS.fullmatch(query):
        return _numbered(reader, (match[1] or "").lower(), int(match[2]))
    if match := _HEX.fullmatch(query):
        wanted = match[1].lower()
        exact = [hit for name, hit in _named(reader, wanted) if name == wanted]
        return _distinct(exact or [hit for _, hit in _named(reader, wanted)])
    who = [who for who, name in reader.names.items() if name == query]
    return [Hit(f"/actors/{hexed(w)}", query) for w in who]


def events_naming(reader: RunReader, name: str) -> Sequence[int]:
    """Numbers of the events that name this, in the order of the chain; of strangers to eight of its bytes too."""
    match = _HEX.fullmatch(name)
    if match is None or len(match[1]) not in (40, 64):
        return ()
    return cast(Sequence[int], reader.event_names.starting(match[1].lower()))


def naming(reader: RunReader, numbers: Iterable[int], name: str) -> list[EventRow]:
    """Those of some events that name all of this.

    Attack by chance: an address with a wrong digit near its end, whose page would show another's events.
    """
    wanted = name.lower().removeprefix("0x")
    found = (int(number) for number in numbers)
    return [reader.events[number] for number in found if wanted in _names(reader, number)]


def _names(reader: RunReader, number: int) -> set[str]:
    event, transaction = reader.events.event(number), reader.events.transaction(number)
    made = (name for name, _ in _places(event, reader))
    return {name.hex() for name in (transaction, *names_in(event), *made)}


def is_misspelt(address: str) -> bool:
    """Whether an address has small and capital letters, and they say that a digit of it is wrong."""
    digits = address.removeprefix("0x")
    return digits not in (digits.lower(), digits.upper()) and not is_checksum_address("0x" + digits)


def _numbered(reader: RunReader, noun: str, number: int) -> list[Hit]:
    books = reader.state.books
    there = {
        "game": number in reader.state.games,
        "round": number < len(books.commitments.rounds),
        "generation": number in generations(reader),
        "tenure": number in books.tenures.tenures,
        "ticket": number in reader.money.ticket_owners,
        "epoch": number < len(reader.view.epochs),
    }
    wanted = "game" if noun == "dispute" else noun
    return [
        Hit(f"/{name}s/{number}", f"{name} {number}")
        for name, is_there in there.items()
        if is_there and wanted in ("", name)
    ]


def _named(reader: RunReader, wanted: str) -> Iterator[tuple[str, Hit]]:
    """Names that begin so, and where each is shown."""
    yield from ((name, hit) for name, hit in _of_run(reader) if name.startswith(wanted))
    numbers = reader.event_names.starting(wanted)
    some = numbers if len(numbers) <= 2 * EVENTS_READ else [*numbers[:EVENTS_READ], *numbers[-EVENTS_READ:]]
    for number in map(int, some):
        event, tx = reader.events.event(number), reader.events.transaction(number)
        if tx.hex().startswith(wanted):
            yield from ((tx.hex(), hit) for hit in _of_transaction(reader, event, tx))
        names = {name.hex() for name in names_in(event)}
        made = list(_places(event, reader))
        names |= {name.hex() for name, _ in made}
        for name in sorted(name for name in names if name.startswith(wanted)):
            if len(name) == 40:
                who = reader.names.get(bytes.fromhex(name), "an account")  # type: ignore[call-overload]
                yield name, Hit(f"/actors/0x{name}", who)
            found = [hit for digest, hit in made if digest.hex() == name]
            yield from ((name, hit) for hit in found or [Hit(f"/events?about=0x{name}", "named in events")])


def _distinct(hits: list[Hit]) -> list[Hit]:
    """Each place once, pages before lists of events."""
    found = {hit.url: hit for hit in hits}
    places = [hit for url, hit in found.items() if not url.startswith("/events")]
    lists = [hit for url, hit in found.items() if url.startswith("/events?tx=") or not places]
    return [*places, *(hit for hit in lists if hit.url.startswith("/events"))][:MAX_HITS]


def _of_run(reader: RunReader) -> Iterator[tuple[str, Hit]]:
    """Names that stand in the charter."""
    run, charter = reader.run, reader.run.charter
    for title, contract in run.all_contracts().items():
        yield contract.address.hex(), Hit("/run", f"the run's {title} contract")
    if reader.earnings.vouchers is not None:
        yield reader.earnings.vouchers.hex(), Hit("/gateways", "the run's contract of vouchers")
    yield run.address.hex(), Hit("/run", "the run's charter")
    yield run.run_id.hex(), Hit("/run", "the run's identity")
    for title, program in charter.programs.items():
        yield program.root.hex(), Hit("/run", f"the {title} program")
    yield charter.training.data.hex(), Hit("/run", "the data")
    yield run.facts.genesis.hex(), Hit("/generations/0", "the genesis")
    yield charter.training.parameters.hex(), Hit("/generations/0", "the parameters at genesis")


def _of_transaction(reader: RunReader, event: Event, tx: bytes) -> Iterator[Hit]:
    if tx in reader.shelves.game_of_tx:
        number = reader.shelves.game_of_tx[tx]
        yield Hit(f"/games/{number}", f"a transaction of game {number}")
    match event:
        case commitments.WorkCommitted():
            where = f"seat {event.seat} in round {event.round}"
            yield Hit(f"/commitments/{event.round}/{event.seat}", f"the commitment of {where}")
        case attestations.Attested():
            yield Hit(f"/epochs/{event.epoch}", f"an opening of epoch {event.epoch}")
    yield Hit(f"/events?tx={hexed(tx)}", "a transaction")


# --- what an event's names are, and where each is shown


def _places(event: Event, reader: RunReader) -> Iterator[tuple[bytes, Hit]]:
    match event:
        case commitments.WorkCommitted():
            yield from _of_work(event, reader)
        case merges.RootOpened():
            url, of = f"/generations/{event.generation}", f"generation {event.generation}"
            yield event.root, Hit(url, f"a root of {of}")
            yield event.parameters, Hit(url, f"parameters of {of}")
            yield event.momentum, Hit(url, f"the momentum of {of}")
        case attestations.Attested():
            where = f"ticket {event.ticket} about seat {event.seat} in round {event.round}"
            url = f"/findings/{hexed(event.attestation)}"
            yield event.attestation, Hit(url, f"a finding of {where}")
            yield from ((word, Hit(url, f"an accumulator of {where}")) for word in event.finding.accumulators)
        case attestations.Accused():
            by = reader.state.attestations[event.attestation]
            what = f"an accusation of {accused_text(event.is_work, by.round, int(by.seat))}"
            yield event.id, Hit(f"/accusations/{hexed(event.id)}", what)
        case duties.EpochBegan():
            yield event.seed, Hit(f"/epochs/{event.epoch}", f"the seed of epoch {event.epoch}")
        case game.GameOpened():
            yield event.claim_id, Hit(f"/games/{event.game_id}", f"the claim of game {event.game_id}")


def _of_work(event: commitments.WorkCommitted, reader: RunReader) -> Iterator[tuple[bytes, Hit]]:
    where, work = f"seat {event.seat} in round {event.round}", event.work
    url = f"/commitments/{event.round}/{event.seat}"
    yield reader.state.works[event.round, event.seat].digest, Hit(url, f"the commitment of {where}")
    yield work.update, Hit(url, f"the update of {where}")
    yield work.marks, Hit(url, f"the marks of progress of {where}")
    yield from ((end, Hit(url, f"a list of the last state of {where}")) for end in work.ends)
