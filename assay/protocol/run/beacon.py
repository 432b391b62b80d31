"""The beacon: public randomness that has a name before anybody can know it.

A drand network signs the number of each of its rounds, once per period. A duty draws from the first round *after* a
deadline: the deadline names it, nobody chooses it, and its signature is the only one that verifies. What nobody has
submitted yet can be submitted later, by anybody, and is the same. `contracts/beacon/` computes the same; the curve is
in `ledger/assay_ledger/keys/bn254.py`.

Source: drand's specification of the scheme `bls-bn254-unchained-on-g1`, docs/beacon.md, docs/adr/0031-beacon.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import InvariantError
from assay.protocol.types import BeaconRound, Digest

SCHEME: Final = "bls-bn254-unchained-on-g1"
"""drand's name for: key in G2, signature in G1 of BN254, each round signed by itself."""

TAG: Final = b"BLS_SIG_BN254G1_XMD:KECCAK-256_SVDW_RO_NUL_"
"""Domain separation tag of the scheme (RFC 9380)."""

KEY_LENGTH: Final = 128
SIGNATURE_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class DrandNetwork:
    """A drand network of this scheme, by what its chain info publishes.

    `public_key` is 128 bytes as EIP-197 encodes a point of G2; times are in seconds of Unix time; `genesis_seed` is the
    hash of the network's first group, 32 bytes, and counts for nothing but the name of the chain.
    """

    beacon_id: str
    public_key: bytes
    genesis_time: int
    period: int
    genesis_seed: bytes

    @property
    def chain_hash(self) -> Digest:
        """The name that drand gives to this network: a hash over all that a verifier of it relies on."""
        times = self.period.to_bytes(4, "big") + self.genesis_time.to_bytes(8, "big")
        name = b"" if self.beacon_id == "default" else self.beacon_id.encode()
        return Digest(sha256(times + self.public_key + self.genesis_seed + name).digest())

    def round_after(self, time: int) -> BeaconRound:
        """The first round whose time is later than `time`, in seconds."""
        if time < self.genesis_time:
            return BeaconRound(1)
        return BeaconRound((time - self.genesis_time) // self.period + 2)

    def time_of(self, beacon_round: BeaconRound) -> int:
        """The second in which the network may sign this round. Raises InvariantError for round 0, which has none."""
        if beacon_round < 1:
            raise InvariantError("Rounds of a beacon are counted from 1.", code="BeaconRoundZero")
        return self.genesis_time + (beacon_round - 1) * self.period


EVMNET: Final = DrandNetwork(
    beacon_id="evmnet",
    public_key=bytes.fromhex(
        "07e1d1d335df83fa98462005690372c643340060d205306a9aa8106b6bd0b382"
        "0557ec32c2ad488e4d4f6008f89a346f18492092ccc0d594610de2732c8b808f"
        "0095685ae3a85ba243747b1b2f426049010f6b73a0cf1d389351d5aaaa1047f6"
        "297d3a4f9749b33eb2d904c9d9ebf17224150ddd7abd7567a9bec6c74480ee0b"
    ),
    genesis_time=1_727_521_075,
    period=3,
    genesis_seed=bytes.fromhex("cd7ad2f0e0cce5d8c288f2dd016ffe7bc8dc88dbb229b3da2b6ad736490dfed6"),
)
"""The network of the League of Entropy that signs on BN254; chain 04f1e906...6ec8c3."""

LOCAL: Final = DrandNetwork(
    beacon_id="assay-local-signer",
    public_key=bytes.fromhex(
        "0077a1f320355c5cc9323ac5ff07e144596c0674dc3bf8dd88311e9125ba3785"
        "0bfba05fa91348f753c2c5591a763d70b88de8e253383bc066a2fc9f0bfe8a49"
        "0cbb176498e17579ab4beadda9746283dde4c35fd1655d754c5e7f86683e81dc"
        "2b8142121cc3f2e6bdb2faf7b4977810b53ee0b2cf13361ca92484725fe795b7"
    ),
    genesis_time=1,
    period=1,
    genesis_seed=bytes(32),
)
"""One signer whose secret everybody knows (`assay_ledger.keys.local_signer`): for tests and demos, never for stakes."""

NETWORKS: Final = (EVMNET, LOCAL)


def signed_message(beacon_round: BeaconRound) -> bytes:
    """What a network signs for a round: keccak-256 of its number in eight big-endian bytes."""
    return keccak(beacon_round.to_bytes(8, "big"))


def randomness(signature: bytes) -> Digest:
    """The randomness of a round: SHA-256 of its signature, as drand publishes it."""
    return Digest(sha256(signature).digest())


def prevrandao_randomness(mix: bytes, beacon_round: BeaconRound) -> Digest:
    """The randomness that PrevrandaoSeed.sol keeps of a block's 32-byte RANDAO mix."""
    return keccak(abi.bytes32(Digest(mix)) + abi.uint(beacon_round, 64))


def prevrandao_bias(share: float, chance: float) -> tuple[float, float]:
    """How often who proposes `share` of all blocks makes an event of probability `chance` happen under prevrandao.

    The first figure is for who loses no block: of the k blocks in a row that are its own from the round's time on it
    records in any, or leaves that to the next one, so it chooses among k + 1 mixes for nothing. The second is for who
    withholds blocks too, before the round's time and after it: with n in a row around it the choice is among 2^n
    mixes. It knows its own reveals, and everybody else's before its blocks begin (EIP-4399). Shares and chances lie
    in [0, 1].
    """
    free = withheld = 0.0
    for n in range(64):
        run = share**n * (1 - share)
        free += run * (1 - (1 - chance) ** (n + 1))
        # n blocks around the boundary fall in n + 1 ways before and after it.
        withheld += (n + 1) * run * (1 - share) * (1 - (1 - chance) ** (2**n))
    return free, withheld
