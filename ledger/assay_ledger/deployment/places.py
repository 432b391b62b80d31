"""Where the contracts of a run are if they were created from this release's code: addresses that prove their code.

Everything is created by CREATE2 from creation code, or by a contract that was (RunDeployer.sol), so an address is a
hash over code, arguments and wiring. Nothing is asked of the chain here. Reasons: docs/adr/0023-code-checked.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from assay.protocol.program.nodes import Family
from assay.protocol.run.beacon import KEY_LENGTH, NETWORKS, DrandNetwork
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest
from assay_ledger.chain.artifacts import load_artifact

FACTORY: Final = Address(bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c"))
"""The deterministic deployment proxy, at this address on nearly every EVM chain. It need not be trusted: whatever its
code is, only creation code that hashes to an address can have been run there (EIP-1014)."""

SALT: Final = bytes(32)

ROUND_CONTRACTS: Final = {
    "vault": "Vault",
    "tickets": "Tickets",
    "tenures": "Tenures",
    "commitments": "Commitments",
    "generations": "Generations",
    "duties": "Duties",
    "attestations": "Attestations",
    "escrow": "Escrow",
    "payments": "Payments",
    "bounties": "Bounties",
    "game": "Game",
    "challenges": "Challenges",
    "shares": "ModelShares",
    "grants": "Grants",
    "revenue": "Revenue",
}
"""Field of `RunModules` to contract, in the order of creation after the charter."""

GOVERNOR: Final[Mapping[str, str]] = {"governor": "RunGovernor"}
"""The same of what a run has beside them if its charter names governance."""

GROUPED_CONTRACTS: Final = ROUND_CONTRACTS | {"generations": "GroupedGenerations"}
"""The same of runs of more than 64 seats."""


def contracts_of(charter: RunCharter) -> Mapping[str, str]:
    """The contracts of a run."""
    contracts = ROUND_CONTRACTS if charter.by_seats else GROUPED_CONTRACTS
    return {**contracts, **GOVERNOR} if charter.governance.is_named else contracts


LEAVES: Final = {
    "map": "MapLeaf",
    "rowexp": "RowExpLeaf",
    "max": "MaxLeaf",
    "dot": "DotLeaf",
    "sum": "SumLeaf",
    "gather": "GatherLeaf",
    "scatter_sum": "ScatterSumLeaf",
    "rank": "RankLeaf",
    "random": "RandomLeaf",
}
"""Family to the contract that computes one of its elements."""

FAMILY_CODES: Final = tuple(Family[family.upper()] for family in LEAVES)
"""The codes of these families."""

NOBODY: Final = Address(bytes(20))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """Addresses of the contracts of one run, but for its beacon; `leaves` by family."""

    deployer: Address
    charter: Address
    modules: Mapping[str, Address]
    arbiter: Address
    leaves: Mapping[str, Address]


def places_of(charter: RunCharter) -> RunPlaces:
    """Where everything of a run is. Raises ConfigError (ContractsNotCompiled)."""
    leaves = {family: create2_address(leaf_code(family)) for family in LEAVES}
    arbiter = create2_address(arbiter_code())
    contracts = contracts_of(charter)
    deployer = create2_address(run_deployer_code(charter.run, arbiter, contracts))
    modules = {name: create_address(deployer, 2 + k) for k, name in enumerate(contracts)}
    return RunPlaces(deployer, create_address(deployer, 1), modules, arbiter, leaves)


def leaf_code(family: str) -> bytes:
    """Creation code of a family's leaf."""
    return load_artifact(LEAVES[family]).bytecode


def seed_code() -> bytes:
    """Creation code of the seed source over the chain's own randomness."""
    return load_artifact("PrevrandaoSeed").bytecode


def beacon_code(network: DrandNetwork) -> bytes:
    """Creation code of the beacon of a drand network with its key, genesis time and period."""
    key = [int.from_bytes(network.public_key[k : k + 32], "big") for k in range(0, KEY_LENGTH, 32)]
    arguments = encode(["uint256[4]", "uint64", "uint64"], [key, network.genesis_time, network.period])
    return load_artifact("DrandSeed").bytecode + arguments


def beacons() -> dict[str, Address]:
    """Where each beacon of this release is, by name; what lies elsewhere is a foreign source of randomness."""
    drand = {network.beacon_id: create2_address(beacon_code(network)) for network in NETWORKS}
    return {**drand, "prevrandao": create2_address(seed_code())}


def beacon_name(address: Address) -> str:
    """Which of them a beacon is; "foreign" for one that is not this release's."""
    return next((name for name, place in beacons().items() if place == address), "foreign")


def arbiter_code() -> bytes:
    """Creation code of the arbiter with its leaves."""
    known = {code: create2_address(leaf_code(family)) for family, code in zip(LEAVES, FAMILY_CODES, strict=True)}
    leaves = by_code(known, NOBODY)
    return load_artifact("Arbiter").bytecode + encode([f"address[{len(leaves)}]"], [leaves])


def by_code(leaves: Mapping[Family, T], nobody: T) -> list[T]:
    """Leaves as the arbiter's constructor takes them: from the lowest code to the highest, `nobody` in the gaps."""
    place = {int(code): leaf for code, leaf in leaves.items()}
    return [place.get(code, nobody) for code in range(min(place), max(place) + 1)]


def run_deployer_code(run: Digest, arbiter: Address, contracts: Mapping[str, str] = ROUND_CONTRACTS) -> bytes:
    """Creation code of a run's deployer with its arguments."""
    # Every deployer knows the governor's code: whether the run has one is for its charter to say.
    names = ("RunCharter", *{**contracts, **GOVERNOR}.values())
    codes = [keccak(load_artifact(contract).bytecode) for contract in names]
    arguments = encode(["bytes32", "address", f"bytes32[{len(codes)}]"], [run, arbiter, codes])
    return load_artifact("RunDeployer").bytecode + arguments


def create2_address(code: bytes, creator: Address = FACTORY, salt: bytes = SALT) -> Address:
    """Where `creator` creates this code, arguments included, by CREATE2 (EIP-1014)."""
    return Address(keccak(b"\xff" + creator + salt + keccak(code))[12:])


def create_address(creator: Address, nonce: int) -> Address:
    """Where the contract is that `creator` creates with this nonce (CREATE)."""
    number = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    encoded = number if len(number) == 1 and nonce < 0x80 else bytes([0x80 + len(number)]) + number
    payload = b"\x94" + creator + encoded  # RLP of (address, nonce)
    return Address(keccak(bytes([0xC0 + len(payload)]) + payload)[12:])
