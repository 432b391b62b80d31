"""What `tools/bindings.py` writes bindings of, and the protocol's own types for what the contracts take and give."""

CONTRACTS = {
    "Vault": "vault",
    "Game": "game",
    "ModelShares": "shares",
    "Revenue": "revenue",
    "TestToken": "token",
    "Arbiter": "arbiter",
    "DrandSeed": "beacon",
    "Tickets": "tickets",
    "Tenures": "tenures",
    "Commitments": "commitments",
    "Generations": "generations",
    "GroupedGenerations": "grouped_generations",
    "Duties": "duties",
    "Attestations": "attestations",
    "Challenges": "challenges",
    "RunCharter": "run_charter",
    "RunDeployer": "run_deployer",
    "Escrow": "escrow",
    "Payments": "payments",
    "Bounties": "bounties",
    "Grants": "grants",
    "Vouchers": "vouchers",
    "RunGovernor": "governor",
    "AnswerDeployer": "answer_deployer",
    "AnswerCharter": "answer_charter",
    "Gateways": "gateways",
}
"""The contracts by the module of their binding."""

ONE_INTERFACE = {"GroupedGenerations": "Generations"}
"""Contracts of which a run has one or the other: events that the second has too are its binding's, so that a reader
knows each by one class."""

LEFT_OUT = {
    "RunGovernor": {
        *("BALLOT_TYPEHASH", "EXTENDED_BALLOT_TYPEHASH", "CLOCK_MODE", "COUNTING_MODE", "clock", "eip712Domain"),
        *("castVoteBySig", "castVoteWithReason", "castVoteWithReasonAndParams", "castVoteWithReasonAndParamsBySig"),
        *("getProposalId", "getVotesWithParams", "hashProposal", "name", "nonces", "onERC1155BatchReceived"),
        *("onERC1155Received", "onERC721Received", "proposalNeedsQueuing", "relay", "supportsInterface", "version"),
        *("token", "pause", "resume", "sunset", "setPrice", "list", "dismissGuardian", "nameSuccessor"),
    },
}
"""Functions without a binding: no client of ours calls them, or a vote alone can."""

ENUMS = {
    "ClaimKind": "assay.protocol.run.claims",
    "Outcome": "assay.protocol.game.state",
    "Side": "assay.protocol.game.table",
    "Stage": "assay.protocol.game.table",
    "AccusationStatus": "assay.protocol.rounds.duty_types",
    "DutyKind": "assay.protocol.rounds.duty_types",
    "GenerationStatus": "assay.protocol.rounds.terms",
    "Presence": "assay.protocol.rounds.terms",
    "ProposalState": "assay.protocol.rounds.decisions",
    "RunPhase": "assay.protocol.rounds.escrow",
    "WorkStatus": "assay.protocol.rounds.terms",
}
"""Enums by the module of the Python enum that has their numbers."""

STRUCTS = {
    "ClaimRef": ("assay.protocol.run.claims", "ClaimRef"),
    "Opening": ("assay.protocol.game.openings", "Opening"),
    "RunModules": ("assay.protocol.run.run_charter", "RunModules"),
    "RoundTerms": ("assay.protocol.rounds.terms", "RoundTerms"),
    "RunTerms": ("assay.protocol.run.run_charter", "RunCharter"),
    "Accusation": ("assay.protocol.rounds.duty_types", "Accusation"),
    "Answer": ("assay.protocol.rounds.duty_types", "CallAnswer"),
    "Attestation": ("assay.protocol.rounds.duty_types", "Attestation"),
    "Duty": ("assay.protocol.rounds.duty_types", "DrawnDuty"),
    "Entry": ("assay.protocol.rounds.terms", "UpdateEntry"),
    "Finding": ("assay.protocol.rounds.duty_types", "ReplayFinding"),
    "Missed": ("assay.protocol.rounds.duty_types", "Missed"),
    "Result": ("assay.protocol.rounds.duty_types", "DutyResult"),
    "Tenure": ("assay.protocol.rounds.terms", "Tenure"),
    "Work": ("assay.protocol.rounds.terms", "SeatWork"),
    "PayerDeposit": ("assay.protocol.payments.voucher", "PayerDeposit"),
    "Program": ("assay.protocol.run.program_ref", "ProgramRef"),
    "AnswerTerms": ("assay.protocol.run.answers", "AnswerTerms"),
    "SaidAnswer": ("assay.protocol.run.answers", "SaidAnswer"),
    "GatewayBond": ("assay.protocol.payments.gateway_books", "GatewayBond"),
}
"""Structs that the protocol has a class for, with fields in the same order."""

TERMS = "RunTerms"
"""The struct that its class reads itself, `from_tuple`."""

ROUNDS = {"round", "generation"}
NAMED = {"seat": "Seat", "beaconRound": "BeaconRound", "ticket": "TicketId"}
WEI = {
    *("amount", "stake", "value", "wages", "pay", "shares", "bounty", "burned", "reserved", "unearned", "locked"),
    *("leaving", "free", "parked", "advanced", "held", "backing", "lockAmount"),
    *("allowance", "balanceOf", "claimable", "escrow", "getPastTotalSupply", "getPastVotes", "getVotes", "moveRefund"),
    *("bond", "bondSize", "seatFee", "seatLock", "wage", "fine"),
    *("balance", "asked", "redeemed", "paid", "toOwners", "owedOf"),
    *("pendingOf", "reservedOf", "reservedTotal", "totalSupply"),
}
"""Arguments, results and functions with one result that are amounts of a token."""

TYPES = {
    **dict.fromkeys(("Address", "BeaconRound", "Digest", "Round", "Seat", "Wei"), "assay.protocol.types"),
    "TicketId": "assay.protocol.rounds.ticket_types",
}
"""The types that numbers, addresses and digests are given as, by the module that has them."""
