"""Finds what somebody pasted: an address, a digest, a transaction, the number of a game, or the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from assay.explorer.chain_reader import ChainReader, EventRow
from assay.explorer.documents import claims, hexed
from assay.explorer.run_reader import RunReader

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


Numbered = Callable[[str, int], list[Hit]]
"""Things of a noun, "" for any, that have a number."""


def look_up(
    reader: ChainReader, query: str, numbered: Numbered, directory: Callable[[], dict[str, list[Hit]]]
) -> list[Hit]:
    """Where the thing that a query names is shown; empty when nothing has that name."""
    query = query.strip()[:MAX_QUERY]
    if match := _WORDS.fullmatch(query):
        return numbered((match[1] or "").lower(), int(match[2]))
    if match := _HEX.fullmatch(query):
        wanted = match[1].lower()
        found = directory()
        if wanted in found:
            return found[wanted]
        near = [hit for name in sorted(found) if name.startswith(wanted) for hit in found[name]]
        return near[:MAX_HITS]
    who = [who for who, name in reader.names.items() if name == query]
    return [Hit(f"/actors/{hexed(w)}", query) for w in who]


def search(reader: RunReader, query: str) -> list[Hit]:
    """See look_up."""
    return look_up(reader, query, partial(_numbered, reader), partial(_directory, reader))


def _numbered(reader: RunReader, noun: str, number: int) -> list[Hit]:
    hits = []
    if noun in ("", "game", "dispute") and number in reader.state.games:
        hits.append(Hit(f"/games/{number}", f"game {number}"))
    if noun in ("", "round") and number < len(reader.state.rounds):
        hits.append(Hit(f"/rounds/{number}", f"round {number}"))
    return hits


def _directory(reader: RunReader) -> dict[str, list[Hit]]:
    directory = Directory()
    add = directory.add
    charter, training = reader.run.charter, reader.run.charter.training
    for who in reader.money.people:
        add(who, f"/actors/{hexed(who)}", reader.names.get(who, "an account"))
    for name, contract in reader.run.contracts().items():
        add(contract.address, "/run", f"the run's {name} contract")
    add(reader.run.address, "/run", "the run's charter")
    add(reader.run.run_id, "/run", "the run's identity")
    for name, program in charter.programs.items():
        add(program.root, "/run", f"the {name} program")
    for name, root in training.roots.items():
        add(root, "/run", f"{name} at genesis")
    add(reader.facts.genesis, "/run", "the outer root at genesis")
    for claim in claims(reader):
        add(claim["id"], f"/claims/{claim['id']}", f"the claim of {claim['what']}")
    for record in reader.state.rounds:
        for seat, c in sorted(record.commitments.items()):
            url, where = f"/commitments/{record.number}/{seat}", f"seat {seat} in round {record.number}"
            add(c.digest, url, f"the commitment of {where}")
            add(c.tx_hash, url, f"the commitment of {where}")
            add(c.update, url, f"the update of {where}")
            for j, root in enumerate(c.roots):
                add(root, url, f"state {j} of {where}")
            for root in c.end_lists:
                add(root, url, f"a list of the last state of {where}")
        for root, outer in sorted(record.outers.items()):
            url = f"/outers/{record.number}/{hexed(root)}"
            add(root, url, f"an outer root after round {record.number}")
            add(outer.parameters, url, f"the parameters after round {record.number}")
            add(outer.momentum, url, f"the outer momentum after round {record.number}")
        for seed in (record.seed, record.whistle_seed):
            if seed is not None:
                add(seed, f"/rounds/{record.number}", f"a seed of round {record.number}")
    for game_id, game in sorted(reader.state.games.items()):
        for move in game.moves:
            add(move.tx_hash, f"/games/{game_id}", f"a transaction of game {game_id}")
    directory.add_events(reader.events)
    return directory.found


def is_name(value: object) -> bool:
    """Is an event's argument a digest or an address?"""
    return isinstance(value, str) and value.startswith("0x") and len(value) in (42, 66)
