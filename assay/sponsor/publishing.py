"""What a sponsor puts into the store: programs, data and the first lists, and a card that says where they came from.

On chain stand roots only. With the card anybody can capture the programs again and compare roots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from assay.protocol.types import Address, Digest
from assay.sponsor.cards import NO_MORE, Card, ModelOrigin
from assay.sponsor.model_files import put_outline
from assay.sponsor.validation import put_validation
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.canonical import check_canonical
from assay_ledger.store.objects import Objects, root_of_list

if TYPE_CHECKING:
    from torch import Tensor

    from assay.protocol.program.program import Program

Talk = Callable[[str], None]


class PostedStart(Protocol):
    """What a run starts from."""

    @property
    def origin(self) -> ModelOrigin: ...
    @property
    def programs(self) -> Sequence[Program]: ...
    @property
    def parameters(self) -> tuple[Tensor, ...]: ...
    @property
    def optimizer(self) -> tuple[Tensor, ...]: ...
    @property
    def momentum(self) -> tuple[Tensor, ...]: ...
    @property
    def data(self) -> Tensor: ...


def publish(store: ArtifactStore, prepared: PostedStart) -> None:
    """Puts programs, data and the first lists into the store. Raises NotCanonical: no actor would join such a run."""
    from assay.engine.runtime.values.state_io import bytes_of, spec_of, to_lists_of_bytes

    lists = {"parameters": prepared.parameters, "optimizer's state": prepared.optimizer, "momentum": prepared.momentum}
    for what, tensors in lists.items():
        check_canonical(f"the {what}", [spec_of(t) for t in tensors], to_lists_of_bytes([tensors])[0])
    objects = Objects(store)
    for program in prepared.programs:
        objects.put_program(program)
    data = prepared.data.contiguous()
    objects.put_data(spec_of(data), bytes_of(data))
    for tensors in filter(None, lists.values()):
        _put_list(objects, tensors)


def publish_card(store: ArtifactStore, prepared: PostedStart, run: Address, first_block: int) -> None:
    """Puts the run's card into the store, and what it names."""
    origin = prepared.origin
    if origin.preset is None:
        file = NO_MORE if origin.outline is None else put_outline(store, origin.outline)
        validation = None if origin.validation is None else put_validation(Objects(store), origin.validation)
        loss = None if origin.loss is None else Objects(store).put_program(origin.loss)
        card = Card(None, None, first_block, origin.recipe, origin.names, file, validation, loss, origin.words)
    else:
        card = Card(origin.preset, store.put(origin.text), first_block, words=origin.words)
    store.put(card.encode(), f"runs/{run.hex()}/card")


def _put_list(objects: Objects, tensors: Sequence[Tensor]) -> Digest:
    from assay.engine.runtime.values.state_io import spec_of, to_lists_of_bytes

    specs = [spec_of(t) for t in tensors]
    data = to_lists_of_bytes([list(tensors)])[0]
    root = objects.put_list(specs, data)
    assert root == root_of_list(specs, data)
    return root
