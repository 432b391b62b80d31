"""Finds what somebody pasted: an address, a digest, a transaction, the number of a game, or the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.explorer.audit_documents import accused_text
from assay.explorer.documents import hexed
from assay.explorer.reader import EventRow, RunReader
from assay.explorer.work_documents import generations

LEAST_DIGITS: Final = 6
MAX_HITS: Final = 50
MAX_QUERY: Final = 200

_WORDS = re.compile(r"(game|dispute|round|generation|tenure|ticket|epoch)?\s*#?\s*(\d{1,9})", re.IGNORECASE)
_HEX = re.compile(r"(?:0x)?([0-9a-f]{6,128})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where something is shown, and what it is."""

    url: str
    what: str


class Directory:
    """Everything that has a name in hex, and where it is shown; the most telling place of each first."""

    def __init__(self) -> None:
        self.found: dict[str, list[Hit]] = {}

    def add(self, name: bytes | str, url: str, what: str) -> None:
        """A thing of this name is shown there too."""
        text = (name.hex() if isinstance(name, bytes) else name.removeprefix("0x")).lower()
        hits = self.found.setdefault(text, [])
        if len(hits) < MAX_HITS and url not in {h.url for h in hits}:
            hits.append(Hit(url, what))

    def add_events(self, events: Sequence[EventRow]) -> None:
        """Transactions, and whatever else events name (a lock, a root, an account): found where it is named."""
        for row in events:
            self.add(row.tx, f"/events?tx={row.tx}", f"a transaction of block {row.block}")
        for value in {v for row in events for v in row.arguments.values() if is_name(v)}:
            if value.removeprefix("0x") not in self.found:
                self.add(value, f"/events?about={value}", "named in events")


def search(reader: RunReader, query: str) -> list[Hit]:
    """Where the thing that a query names is shown; empty when nothing has that name."""
    query = query.strip()[:MAX_QUERY]
    if match := _WORDS.fullmatch(query):
        return _numbered(reader, (match[1] or "").lower(), int(match[2]))
    if match := _HEX.fullmatch(query):
        wanted = match[1].lower()
        found = _directory(reader)
        if wanted in found:
            return found[wanted]
        near = [hit for name in sorted(found) if name.startswith(wanted) for hit in found[name]]
        return near[:MAX_HITS]
    who = [who for who, name in reader.names.items() if name == query]
    return [Hit(f"/actors/{hexed(w)}", query) for w in who]


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


def _directory(reader: RunReader) -> dict[str, list[Hit]]:
    """Everything that has a name in hex."""
    directory, run, state = Directory(), reader.run, reader.state
    add, charter = directory.add, run.charter
    for who in reader.money.people:
        add(who, f"/actors/{hexed(who)}", reader.names.get(who, "an account"))
    for title, contract in run.all_contracts().items():
        add(contract.address, "/run", f"the run's {title} contract")
    add(run.address, "/run", "the run's charter")
    add(run.run_id, "/run", "the run's identity")
    for title, program in charter.programs.items():
        add(program.root, "/run", f"the {title} program")
    add(charter.training.data, "/run", "the data")
    _add_work(reader, directory)
    for name, record in state.attestations.items():
        where = f"ticket {record.ticket} about seat {record.seat} in round {record.round}"
        add(name, f"/findings/{hexed(name)}", f"a finding of {where}")
        add(record.tx_hash, f"/epochs/{record.epoch}", f"an opening of epoch {record.epoch}")
        for accumulator in record.finding.accumulators:
            add(accumulator, f"/findings/{hexed(name)}", f"an accumulator of {where}")
    for name, accusation in state.accusations.items():
        by = state.attestations[accusation.by]
        what = accused_text(accusation.is_work, by.round, int(by.seat))
        add(name, f"/accusations/{hexed(name)}", f"an accusation of {what}")
    for number, epoch in enumerate(reader.view.epochs):
        if epoch.seed is not None:
            add(epoch.seed, f"/epochs/{number}", f"the seed of epoch {number}")
    for game_id, game in sorted(state.games.items()):
        add(game.claim_id, f"/games/{game_id}", f"the claim of game {game_id}")
        for move in game.moves:
            add(move.tx_hash, f"/games/{game_id}", f"a transaction of game {game_id}")
    directory.add_events(reader.events)
    return directory.found


def _add_work(reader: RunReader, directory: Directory) -> None:
    add, state = directory.add, reader.state
    training = reader.run.charter.training
    add(reader.run.facts.genesis, "/generations/0", "the genesis")
    add(training.parameters, "/generations/0", "the parameters at genesis")
    for (round_, seat), work in sorted(state.works.items()):
        url, where = f"/commitments/{round_}/{seat}", f"seat {seat} in round {round_}"
        add(work.digest, url, f"the commitment of {where}")
        add(work.tx_hash, url, f"the commitment of {where}")
        add(work.work.update, url, f"the update of {where}")
        add(work.work.marks, url, f"the marks of progress of {where}")
        for end in work.work.ends:
            add(end, url, f"a list of the last state of {where}")
    for generation, root in sorted({(o.generation, o.root) for o in state.openings.values()}):
        url = f"/generations/{generation}"
        add(root, url, f"a root of generation {generation}")
        if (lists := reader.view.lists(generation, root)) is not None:
            add(lists.parameters, url, f"parameters of generation {generation}")
            add(lists.momentum, url, f"the momentum of generation {generation}")


def is_name(value: object) -> bool:
    """Is an event's argument a digest or an address?"""
    return isinstance(value, str) and value.startswith("0x") and len(value) in (42, 66)
