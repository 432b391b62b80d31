"""The signer of the `LOCAL` beacon: one key that everybody knows, in the scheme of drand's evmnet.

It stands in for a network where none is: tests, the demo, a chain of one's own. Whoever reads this module knows all of
its randomness beforehand, so a run that draws from it protects nobody; `beacon_name` of such a run says so.
"""

from __future__ import annotations

from typing import Final

from eth_hash.auto import keccak

from assay.protocol.run.beacon import LOCAL, signed_message
from assay.protocol.types import BeaconRound
from assay_ledger.keys import bn254

SECRET: Final = int.from_bytes(keccak(b"assay local signer: everybody knows this key"), "big") % bn254.CURVE_ORDER
"""The hash of a sentence, so that no other secret hides behind it."""


def local_signature(beacon_round: BeaconRound) -> bytes:
    """The 64-byte signature of a round of `LOCAL`, whenever it is due. Raises InvariantError for round 0."""
    LOCAL.time_of(beacon_round)
    return bn254.sign(SECRET, signed_message(beacon_round))
