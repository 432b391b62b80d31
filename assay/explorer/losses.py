"""Validation losses of the weights that the chain names, one by one in the background: of a preset by the stock PyTorch
module, of a recipe by the program that its card names, exactly.

Weights are fetched by root and so verified; a loss belongs to a root for ever and is computed once. Nothing here is
needed for any other page: without the weights, the text or torch there is no curve, and the page says why.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from assay.explorer.lookups import odd
from assay.explorer.reader import RunReader
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.objects import Objects

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunCharter
    from assay.protocol.types import Address

GENTLE: Final = 10
"""Added to the priority number of the thread that computes, so that pages and actors go first."""

AGAIN_AFTER_S: Final = 300.0
"""What could not be had is asked for again when somebody looks, at most this often: each try may fetch a model."""

Weigh = Callable[[Digest], float]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Weights by their list root and where they stand on the curve: `step` counts inner steps from genesis."""

    root: Digest
    step: int
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """A wanted point with its loss, of a text in nats per character; None while it is not computed."""

    wanted: Wanted
    loss: float | None

    @property
    def diverged(self) -> bool:
        """Whether the loss of these weights is no number: JSON and curves have none for it."""
        return self.loss is not None and not isfinite(self.loss)


def wanted_points(reader: RunReader) -> list[Wanted]:
    """Everything on the curve: generations that were not cut. Nobody publishes where the work of a seat ends."""
    steps, view = reader.run.charter.training.steps_per_round, reader.view
    points = [Wanted(reader.run.charter.training.parameters, 0, "genesis")]
    for generation in range(1, len(view.books.commitments.rounds) + 1):
        lists = view.lists(generation)
        if lists is not None and view.status(generation) is not GenerationStatus.CUT:
            points.append(Wanted(lists.parameters, steps * generation, f"generation {generation}"))
    return points


class Losses:
    """Losses by root, computed by a thread that first loads text and module."""

    def __init__(
        self, make_weigh: Callable[[], tuple[Weigh, float | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`make_weigh` gives a function from list root to loss, and what letter frequencies alone come to, if known."""
        self._make, self._clock = make_weigh, clock
        self._known: dict[Digest, float] = {}
        self._missing: dict[Digest, float] = {}
        """When each could not be computed."""
        self._refused_at = 0.0
        self._queue: list[Wanted] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.reason: str | None = None
        """Why there is no curve; None while nothing is wrong."""
        self.missed: str | None = None
        """Why the newest of the points that could not be computed was not."""
        self.version = 0
        """Counts what became known."""
        self.letter_entropy: float | None = None
        """What letter frequencies alone come to, once known."""

    def points(self, wanted: list[Wanted]) -> list[Point]:
        """The losses known by now; the others are computed from here on."""
        with self._lock:
            # A store that was away for a moment hides no curve as long as the explorer runs.
            since = self._clock() - AGAIN_AFTER_S
            if self.reason is not None and self._refused_at < since:
                self.reason = None
            answered = self._known.keys() | {root for root, at in self._missing.items() if at >= since}
            self._queue = [w for w in wanted if w.root not in answered]
            if self._queue and self.reason is None and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._work, name="explorer-losses", daemon=True)
                self._thread.start()
            return [Point(w, self._known.get(w.root)) for w in wanted]

    def wait(self) -> None:
        """Returns when everything asked for so far is computed."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        _be_gentle()
        try:
            weigh, self.letter_entropy = self._make()
        except Exception as error:  # a card is a stranger's word: the thread outlives whatever it leads to
            self._refused_at = self._clock()
            self.reason = "torch is not installed." if isinstance(error, ImportError) else _why(error)
            self.version += 1
            return
        while True:
            with self._lock:
                if not self._queue:
                    self._thread = None
                    return
                wanted = self._queue.pop(0)
            try:
                loss = weigh(wanted.root)
            except Exception as error:
                # Attack: a card that names another model than the run's, whose weights fit none. A thread that died of
                # it would begin anew with each look at the page, and read text and module again.
                with self._lock:
                    self._missing[wanted.root] = self._clock()
                    self.missed = _why(error)
            else:
                with self._lock:
                    self._known[wanted.root] = loss
            self.version += 1


def _why(error: Exception) -> str:
    return (error if isinstance(error, AssayError) else odd(error)).explain()


def losses_of(reader: RunReader) -> Losses:
    """The losses of a run with a store."""
    store = reader.store
    assert store is not None
    return Losses(lambda: evaluation(store, reader.run.charter, reader.run.address))


def evaluation(store: ArtifactStore, charter: RunCharter, run: Address) -> tuple[Weigh, float | None]:
    """A function from list root to validation loss, and what letter frequencies alone come to: None for a recipe.

    Raises as `stock_evaluation`, and UnavailableError (NoValidation) where a recipe has held nothing out.
    """
    from assay.sponsor.cards import read_card
    from assay.sponsor.validation import validation_of

    card = read_card(store, run)
    if card.preset is not None:
        return stock_evaluation(store, charter, run)
    if card.validation is None:
        raise UnavailableError(
            f"This run trains a model of its sponsor's own ({card.model}), and its card names no held-out examples.",
            code="NoValidation",
            remedy="Fetch the weights with `assay model pull`, and evaluate them in your own copy of the module.",
        )
    objects = Objects(store)
    program = objects.program(charter.step.root)
    specs = [program.specs[k] for k in program.input_nodes[0]]
    loss = validation_of(objects, card.validation, specs)
    return lambda root: loss(objects.list(root, specs)), None


def stock_evaluation(store: ArtifactStore, charter: RunCharter, run: Address) -> tuple[Weigh, float]:
    """A function from list root to validation loss, and the letter entropy of the same text.

    Raises UnavailableError, UserError where text or program are missing; ImportError without torch.
    """
    from assay.engine.runtime.values.state_io import tensor_from_bytes
    from assay.sponsor.cards import read_card, read_corpus
    from assay.training.evaluate import validation_loss
    from assay.training.model import build_model

    preset, corpus = read_corpus(store, read_card(store, run), charter.training.data)
    model = build_model(preset, len(corpus.vocabulary))
    objects = Objects(store)
    program = objects.program(charter.step.root)
    specs = [program.specs[k] for k in program.input_nodes[0]]

    def weigh(root: Digest) -> float:
        tensors = [tensor_from_bytes(s, data) for s, data in zip(specs, objects.list(root, specs), strict=True)]
        return validation_loss(model, tensors, corpus)

    return weigh, corpus.letter_entropy()


def _be_gentle() -> None:
    """Linux gives priorities to threads."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), GENTLE)
    except (OSError, AttributeError):
        return
