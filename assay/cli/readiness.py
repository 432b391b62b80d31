"""What a sponsor needs before anything is captured: a chain that goes on, coins, contracts, a store, a beacon.

Capture takes seconds to minutes; what is missing is found before it, all of it at once, each with what mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from eth_utils.address import to_checksum_address

from assay.amounts import COIN
from assay.cli.beacons import check_relays
from assay.cli.checks import check_store
from assay.cli.common import talk
from assay.cli.token_checks import check_token
from assay.node.keeper import KEEPER_SILENT_S, kept_since
from assay.node.local import is_local
from assay.protocol.errors import AssayError, ConfigError, FundsError, UserError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.protocol.types import Address, Wei
    from assay_ledger.chain.client import Chain
    from assay_ledger.store.blobs import BlobStore

POST_GAS: Final = 80_000_000
"""Gas of posting and funding a run, above what any takes (tests/integration/commands/test_run_new.py)."""


class TimeNotKept(ConfigError):
    """A local chain whose blocks come with transactions alone: nothing happens while everybody waits."""

    remedy = "Start the chain by `assay node start --for-demo`, and name the store that it prints."


def check_ready(
    chain: Chain,
    store: BlobStore,
    sponsor: Address,
    settings: Settings,
    *,
    profile: str,
    drawn_by: str,
    payer: Address,
    paid: tuple[Address, Wei] | None = None,
) -> None:
    """Says what is there and what is missing. Raises the first thing missing, an error with its remedy.

    profile: what the chain is said to be. payer: who fills the escrow. paid: the token of the run and what goes into
    its escrow; None for a fresh test token.
    """
    missing: list[AssayError] = []
    for name, check in _checks(chain, store, sponsor, settings, profile, drawn_by, payer, paid):
        try:
            talk.print(f"  ok       {name}: {check()}", markup=False, soft_wrap=True)
        except TimeNotKept as error:
            # Somebody may move time by other means, as tests and other keepers do.
            talk.print(f"  WARNING  {name}: {error.explain()}", markup=False, soft_wrap=True)
        except AssayError as error:
            missing.append(error)
            talk.print(f"  MISSING  {name}: {error.explain()}", markup=False, soft_wrap=True)
    if missing:
        raise missing[0]


def _checks(
    chain: Chain,
    store: BlobStore,
    sponsor: Address,
    settings: Settings,
    profile: str,
    drawn_by: str,
    payer: Address,
    paid: tuple[Address, Wei] | None,
) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "key", lambda: to_checksum_address(sponsor)
    yield "chain", lambda: check_profile(chain, profile)
    yield "coins for gas", lambda: check_coins(chain, sponsor)
    if paid is None:
        yield "tokens", lambda: "a fresh test token is made, and as much of it as the escrow needs"
    else:
        token, needed = paid
        yield "tokens", lambda: check_token(chain, token, payer, needed)
    yield "contracts", check_contracts
    yield "store", lambda: check_store(store)
    yield "time", lambda: check_time(chain, store)
    if drawn_by == "drand":
        yield "beacon", lambda: check_relays(chain, settings.relays)


def check_profile(chain: Chain, profile: str) -> str:
    """Whether the chain may be what it is said to be. Raises UserError (UnfitProfile).

    Attack on whoever takes part in a run that was posted elsewhere by the usual profile: its bonds do not pay for gas
    there, its deadlines are too short for full blocks, and what is drawn comes from a chain that may choose it.
    """
    if profile == "local" and not is_local(chain):
        raise UserError(
            f"The chain at {chain.place} is no local one, and the terms of profile local are safe on no other.",
            code="UnfitProfile",
            remedy="Say which it is by --profile l1, op or arbitrum, or name a chain of `assay node start`.",
        )
    return f"number {chain.chain_id}, as of profile {profile}"


def check_coins(chain: Chain, who: Address) -> str:
    """What an address has for gas. Raises FundsError (GasShort)."""
    held = chain.read(lambda: int(chain.w3.eth.get_balance(to_checksum_address(who))))
    price = chain.read(lambda: int(chain.w3.eth.gas_price))
    if held < POST_GAS * price:
        address = to_checksum_address(who)
        remedy = f"`assay node fund {address}`." if is_local(chain) else f"Send coins to {address}."
        raise FundsError(
            f"{address} has {COIN.about(held, 6)} coins; posting a run takes up to {COIN.about(POST_GAS * price, 6)}.",
            code="GasShort",
            remedy=remedy,
        )
    return f"{COIN.show(held)}, of which posting takes up to {COIN.about(POST_GAS * price, 6)}"


def check_contracts() -> str:
    """Whether the compiled contracts are here. Raises ConfigError."""
    from assay_ledger.chain.artifacts import artifacts_dir, load_artifact

    load_artifact("RunDeployer")
    return f"compiled in {artifacts_dir()}"


def check_time(chain: Chain, store: BlobStore) -> str:
    """Whether somebody keeps a local chain's time, by jumps that see this store's actors. Raises TimeNotKept."""
    if not is_local(chain):
        return "the chain's own"
    since = kept_since(store, chain.url)
    if since is None or since > KEEPER_SILENT_S:
        raise TimeNotKept(f"Nobody keeps the time of the local chain at {chain.place} by the store {store.location}.")
    return "kept by `assay node start`"
