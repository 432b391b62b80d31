"""The contracts that this release reads as they were compiled.

Whoever builds a package reads this file alone (tools/compiled_contracts.py), so that it imports nothing of ours.
"""

from typing import Final

MET: Final = (
    "Vault",
    "ModelShares",
    "Revenue",
    "TestToken",
    "Tickets",
    "Duties",
    "Attestations",
    "Tenures",
    "Commitments",
    "Generations",
    "GroupedGenerations",
    "RunCharter",
    "RunDeployer",
    "Game",
    "Challenges",
    "Escrow",
    "Payments",
    "Bounties",
    "Grants",
    "DrandSeed",
    "PrevrandaoSeed",
    "Vouchers",
    "RunGovernor",
    "Gateways",
    "AnswerCharter",
    "AnswerDeployer",
)
"""The contracts whose errors and events a person can meet; what their libraries declare is among theirs."""

REFUSING: Final = (*MET, "ERC20")
"""The contracts whose refusals are read: theirs, and those of a token of somebody else."""

READ: Final = (
    *REFUSING,
    "Arbiter",
    "MapLeaf",
    "RowExpLeaf",
    "MaxLeaf",
    "DotLeaf",
    "SumLeaf",
    "GatherLeaf",
    "ScatterSumLeaf",
    "RankLeaf",
    "RandomLeaf",
)
"""All of them: what an installed package holds."""
