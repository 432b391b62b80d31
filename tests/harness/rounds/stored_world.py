"""A run of a few rounds whose updates, marks and bases lie in a folder store, played without actors or a node.

Contracts and model play it as ever; what is published are lists of one number. Only the chain's transactions, by which
objects are found, are the world's own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from assay.protocol.digests import state_digest
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Address, Digest, DType, Round, Seat
from assay_ledger.bindings import game
from assay_ledger.chain.client import Chain
from assay_ledger.index.game_fold import fold_game
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Objects
from tests.harness.rounds.samples import mark, work_of
from tests.harness.rounds.told_money import FOLLOWED, ToldMoneyWorld
from tests.harness.rounds.told_world import TRANSACTION, events_of

UPDATE = (TensorSpec(DType.F32, (3,)),)
BASE = (TensorSpec(DType.F32, (5,)),)
UNITS = 60


class _NamedPublications(Publications):
    """Which manifest a transaction names is looked up in a table."""

    def __init__(self, objects: Objects, named: dict[bytes, Digest]) -> None:
        super().__init__(cast(Chain, None), objects)
        self._named = named

    def named_by(self, transaction: bytes) -> Digest | None:
        return self._named.get(transaction)


class _ListArchive(Archive):
    """Its lists have the forms of this world's."""

    update_specs = UPDATE
    sum_specs = BASE

    def specs(self, number: TrainingList) -> tuple[TensorSpec, ...]:
        return BASE


class StoredWorld(ToldMoneyWorld):
    """The same people, whose objects lie in `folder`; `named` are manifests by transaction."""

    def __init__(self, folder: Path) -> None:
        self.store = open_store(folder)
        self.objects = Objects(self.store)
        self.named: dict[bytes, Digest] = {}
        self._transaction = bytes(32)
        super().__init__()

    def commit(
        self,
        who: Address,
        work: SeatWork | None = None,
        round_: Round | None = None,
        base: Digest | None = None,
        seat: Seat | None = None,
    ) -> str:
        """See MoneyWorld: an update and marks that are published."""
        label = (who, self.round if round_ is None else round_)
        with self.objects.noting() as digests:
            update = self.objects.put_list(UPDATE, (mark((label, "update"))[:12],))
            marks = self.objects.put_marks([mark((label, k)) for k in range(UNITS)])
        self._publishes(digests)
        return super().commit(who, replace(work_of(label), update=update, marks=marks), round_, base, seat)

    def open(self, who: Address, label: object, round_: Round | None = None) -> str:
        """See RoundWorld: everybody publishes the lists."""
        with self.objects.noting() as digests:
            self._lists(label)
        self._publishes(digests)
        return super().open(who, label, round_)

    def root_of(self, label: object) -> tuple[Digest, Digest, Digest]:
        """See RoundWorld: of lists that were published."""
        parameters, momentum = self._lists(label)
        return parameters, momentum, state_digest((parameters, momentum))

    def play(self, rounds: int) -> None:
        """Rounds in which everybody does what it should; the last is open."""
        people = self.start(tickets=40)  # room for the duties of all rounds in one epoch
        for _ in range(rounds):
            self.play_round(people)

    def over(self) -> RunView:
        """The run as it is once all work is settled, all windows have ended and every generation is final."""
        view = self.view(self.sponsor)
        newest = view.newest
        finals = dict.fromkeys(range(newest + 1), view.now)
        state = replace(view.state, unsettled={}, unclosed={}, merged={}, final_at=finals)
        return replace(view, state=state)

    def with_game(self, round_: Round, seat: Seat) -> RunView:
        """The same with a game about somebody's work."""
        view, ref = self.over(), ClaimRef(ClaimKind.INTERVAL, round_, seat)
        opened = game.GameOpened(1, mark("claim"), self.people[1], self.people[0], ref)
        games = dict(view.games)
        fold_game(games, opened, TRANSACTION)
        return replace(view, state=replace(view.state, games=games))

    def archive(self, store: BlobStore) -> Archive:
        """An onlooker's."""
        objects = Objects(store)
        publications = _NamedPublications(objects, self.named)
        return _ListArchive(self.charter, self.told.books.facts, objects, publications)

    def _lists(self, label: object) -> tuple[Digest, Digest]:
        parameters, momentum = (
            self.objects.put_list(BASE, ((mark((label, name)) * 2)[:20],)) for name in ("parameters", "momentum")
        )
        return parameters, momentum

    def _publishes(self, digests: dict[Digest, Digest]) -> None:
        self._transaction = mark(("transaction", len(self.named)))
        self.named[self._transaction] = self.objects.put_manifest(Manifest(dict(digests)))

    def _read(self) -> None:
        for event in events_of(self.chain.evm, self.chain.contracts, FOLLOWED):
            fold(self.told, event, self.now, self._transaction)
