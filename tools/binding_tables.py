"""What `tools/bindings.py` writes bindings of, and the protocol's own types for what the contracts take and give."""

CONTRACTS = {
    "Charter": "charter",
    "Vault": "vault",
    "Rounds": "rounds",
    "Outers": "outers",
    "Audit": "audit",
    "Settlement": "settlement",
    "Game": "game",
    "ModelShares": "shares",
    "Vesting": "vesting",
    "Revenue": "revenue",
    "TestToken": "token",
    "Deployer": "deployer",
    "Arbiter": "arbiter",
    "DrandSeed": "beacon",
}
"""The contracts by the module of their binding."""

ENUMS = {
    "ClaimKind": "assay.protocol.run.claims",
    "Status": "assay.protocol.types",
    "Outcome": "assay.protocol.game.state",
    "Role": "assay.protocol.types",
    "Side": "assay.protocol.game.table",
    "Stage": "assay.protocol.game.table",
}
"""Enums by the module of the Python enum that has their numbers."""

STRUCTS = {
    "ClaimRef": ("assay.protocol.run.claims", "ClaimRef"),
    "Modules": ("assay.protocol.run.charter", "Modules"),
    "Opening": ("assay.protocol.game.openings", "Opening"),
    "Terms": ("assay.protocol.run.charter", "Charter"),
    "Times": ("assay.protocol.run.schedule", "Times"),
}
"""Structs that the protocol has a class for, with fields in the same order."""

ROUNDS = {"round", "generation", "retiresWith", "countsFrom", "convictedAt"}
NAMED = {"seat": "Seat", "beaconRound": "BeaconRound"}
WEI = {
    *("amount", "stake", "value", "wages", "pay", "shares", "bounty", "burned", "reserved", "unearned", "locked"),
    *("leaving", "free", "parked", "advanced", "held", "backing", "lockAmount"),
    *("allowance", "balanceOf", "claimable", "escrow", "getPastTotalSupply", "getPastVotes", "getVotes", "moveRefund"),
    *("pendingOf", "receiptStake", "reservedOf", "reservedTotal", "stakeAt", "totalAt", "totalSupply"),
}
"""Arguments, results and functions with one result that are amounts of a token."""

TYPES = {"Address", "BeaconRound", "Digest", "Round", "Seat", "Wei"}
"""The types that numbers, addresses and digests are given as, all in `assay.protocol.types`."""
