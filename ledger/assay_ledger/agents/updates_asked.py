"""Updates of solvers that an actor asked for: those that it holds, and those that it gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.errors import StoreUnreachable
from assay_ledger.store.objects import Objects

TRIES: Final = 3
"""How often an update is asked for before an actor speaks without it, of a store that answers."""

_HELD: Final = -1


class UpdatesAsked:
    """By round, seat and root, since a commitment may be replaced."""

    def __init__(self, archive: Archive, objects: Objects) -> None:
        self._archive, self._objects = archive, objects
        self._vain: dict[tuple[Round, Seat, Digest], int] = {}
        """How often each was asked for in vain; _HELD once it is held."""

    def fetch(self, view: RunView, round_: Round, seat: Seat) -> None:
        """Fetches what a seat committed and checks it against its root. Raises UnavailableError."""
        work = view.work(round_, seat)
        if work is None:
            return
        key = round_, seat, work.work.update
        try:
            # What lies here already is not asked for again: its own, and what an earlier life fetched.
            with self._objects.own_copies_first():
                self._archive.fetch_update(work)
        except StoreUnreachable:
            # Bad luck: a store that is started anew uses up three tries in a second, and nobody holds what is there.
            # What is not answered is not gone: it is asked for again until the last word has to go out.
            raise
        except UnavailableError:
            self._vain[key] = self._vain.get(key, 0) + 1
            raise
        self._vain[key] = _HELD

    def held(self, view: RunView) -> frozenset[tuple[Round, Seat]]:
        """Whose updates are held, as they are committed now."""
        return frozenset(self._current(view, lambda vain: vain == _HELD))

    def lost(self, view: RunView) -> frozenset[tuple[Round, Seat]]:
        """Whose updates were asked for in vain TRIES times."""
        return frozenset(self._current(view, lambda vain: vain >= TRIES))

    def forget_before(self, oldest: int) -> None:
        """Lets go of what is known of rounds before `oldest`."""
        self._vain = {key: vain for key, vain in self._vain.items() if key[0] >= oldest}

    def _current(self, view: RunView, is_meant: Callable[[int], bool]) -> Iterator[tuple[Round, Seat]]:
        for (round_, seat, root), vain in self._vain.items():
            work = view.work(round_, seat)
            if work is not None and work.work.update == root and is_meant(vain):
                yield round_, seat
