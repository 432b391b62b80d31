"""What a sponsor does: publish programs, data and genesis, deploy the contracts, fill the escrow.

On chain stand roots only. The store holds what they promise, and a card that says where the model came from, so that
anybody can capture the programs again and compare roots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from assay.protocol.run.layouts import check_layouts
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import Card
from assay.sponsor.charters import make_charter, training_of, windows
from assay.sponsor.preparing import ModelOrigin, Prepared, pace_of
from assay_ledger.deployment.deploy import deploy_run, deploy_seed, deploy_token
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.canonical import check_canonical
from assay_ledger.store.objects import Objects, root_of_list

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount
    from torch import Tensor

    from assay.protocol.program.program import Program
    from assay_ledger.chain.client import Chain

Talk = Callable[[str], None]


class PostedStart(Protocol):
    """What a run starts from, of whichever design."""

    @property
    def origin(self) -> ModelOrigin: ...
    @property
    def programs(self) -> Sequence[Program]: ...
    @property
    def parameters(self) -> tuple[Tensor, ...]: ...
    @property
    def optimizer(self) -> tuple[Tensor, ...]: ...
    @property
    def data(self) -> Tensor: ...


def publish(store: ArtifactStore, prepared: PostedStart) -> None:
    """Puts programs, data and the first lists into the store. Raises NotCanonical: no actor would join such a run."""
    from assay.engine.runtime.values.state_io import spec_of, to_lists_of_bytes

    for what, tensors in (("the parameters", prepared.parameters), ("the optimizer's state", prepared.optimizer)):
        check_canonical(what, [spec_of(t) for t in tensors], to_lists_of_bytes([tensors])[0])
    objects = Objects(store)
    for program in prepared.programs:
        objects.put_program(program)
    objects.put_tensor(spec_of(prepared.data), to_lists_of_bytes([[prepared.data]])[0][0])
    for tensors in (prepared.parameters, prepared.optimizer):
        _put_list(objects, tensors)


def publish_card(store: ArtifactStore, prepared: PostedStart, run: Address, first_block: int) -> None:
    """Puts the run's card into the store, and the text that it names."""
    origin = prepared.origin
    if origin.preset is None:
        card = Card(None, None, first_block, origin.recipe, origin.names)
    else:
        card = Card(origin.preset, store.put(origin.text), first_block)
    store.put(card.encode(), f"runs/{run.hex()}/card")


def post_run(
    chain: Chain,
    sponsor: LocalAccount,
    store: ArtifactStore,
    prepared: Prepared,
    *,
    name: str,
    rounds: int,
    pays: bool = False,
    whistle_ppm: int = 200_000,
    audit_ppm: int = 2_000_000,
    token: Address | None = None,
    talk: Talk = lambda _: None,
) -> Address:
    """Publishes and deploys a run; returns its charter's address. A test token is made unless one is given.

    Raises RejectedError where the contracts refuse the terms; WrongLayout, where programs and data do not fit.
    """
    from assay_ledger.chain.client import address_of

    check_layouts(*prepared.programs, training_of(prepared.genesis))
    talk("publishing programs, data and genesis")
    publish(store, prepared)
    first_block = chain.head().number
    talk("deploying the contracts")
    charter = make_charter(
        prepared.genesis,
        name=name,
        sponsor=address_of(sponsor),
        token=deploy_token(chain, sponsor) if token is None else token,
        seed=deploy_seed(chain, sponsor),
        now=chain.head().timestamp,
        rounds=rounds,
        pays=pays,
        whistle_ppm=whistle_ppm,
        audit_ppm=audit_ppm,
        pace=pace_of(prepared, windows().commit),
    )
    run = deploy_run(chain, sponsor, charter)
    publish_card(store, prepared, run.address, first_block)
    return run.address


def _put_list(objects: Objects, tensors: Sequence[Tensor]) -> Digest:
    from assay.engine.runtime.values.state_io import spec_of, to_lists_of_bytes

    specs = [spec_of(t) for t in tensors]
    data = to_lists_of_bytes([list(tensors)])[0]
    root = objects.put_list(specs, data)
    assert root == root_of_list(specs, data)
    return root
