"""What a sponsor does: publish programs, data and genesis, deploy the contracts, fill the escrow.

On chain stand roots only. The store holds what they promise, and a card that says where the model came from, so that
anybody can capture the programs again and compare roots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.protocol.run.layouts import check_layouts
from assay.protocol.types import Address
from assay.sponsor.charters import make_charter, training_of, windows
from assay.sponsor.preparing import Prepared, pace_of
from assay.sponsor.publishing import Talk, publish, publish_card
from assay_ledger.deployment.deploy import deploy_run, deploy_seed, deploy_token
from assay_ledger.store.blobs import ArtifactStore

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from assay_ledger.chain.client import Chain


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
