"""Charters that tests begin from, and what they are deployed with."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any, Final

from assay.protocol.digests import ZERO, program_digest
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import (
    ClockTerms,
    RunChain,
    RunCharter,
    RunEconomics,
    RunGovernance,
    RunLaunch,
    RunTiming,
    RunTraining,
)
from assay.protocol.types import Address, Wei
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.samples import ETHER, START, mark
from tests.harness.rounds.staged import modules_at

SPONSOR: Final = Address((0xABBA).to_bytes(20, "big"))
TOKEN: Final = Address((0x70CE).to_bytes(20, "big"))
BEACON: Final = Address((0xBEAC).to_bytes(20, "big"))
HOUR, DAY = 3600, 86_400


def program_of(label: str) -> ProgramRef:
    """A program that only its root, tree and header are known of."""
    header, tree = label.encode(), mark(label)
    return ProgramRef(program_digest(header, tree), tree, header)


RUN: Final = RunCharter(
    name=mark("a run"),
    sponsor=SPONSOR,
    token=TOKEN,
    beacon=BEACON,
    rounds=1000,
    expiry=START + 365 * DAY,
    training=RunTraining(
        seats=8,
        group_size=0,
        positions=0,
        top_positions=0,
        min_units=30,
        max_units=60,
        steps_per_unit=5,
        shards=1024,
        shard_length=1000,
        learning_rate=0x3A83126F,
        parameters=mark("parameters 0"),
        momentum=mark("momentum 0"),
        zero_optimizer=mark("zeros"),
        zero_update=mark("no update"),
        zero_partial=ZERO,
        data=mark("data"),
    ),
    timing=RunTiming(
        commit=HOUR,
        grace=30,
        hold=1200,
        group_merge=0,
        merge=2400,
        beacon_delay=24,
        challenge=4 * HOUR,
        rescue=2 * HOUR,
        audits_from=START,
        epoch=5 * HOUR + 1200,
        seed_delay=900,
        seasoning=14 * HOUR,
        vesting=30 * DAY,
        longest_dispute=7 * DAY,
        stall=60 * DAY,
        exit=60 * DAY,
    ),
    economics=RunEconomics(
        unit_price=Wei(ETHER // 60),
        pays=True,
        shares_per_unit=Wei(ETHER),
        shares_per_duty=Wei(ETHER),
        seat_lock=Wei(50 * ETHER),
        seat_fee=Wei(ETHER // 2),
        ticket_bond=Wei(2000 * ETHER),
        wage=Wei(13 * ETHER // 10),
        merge_pay=Wei(ETHER // 100),
        challenge_bond=Wei(ETHER),
        challenge_deposit=Wei(ETHER // 10),
        audit_ppm=100_000,
        reaudit_ppm=200_000,
        cartel_ppm=333_333,
        drawn_bounty_ppm=970_000,
        third_bounty_ppm=100_000,
        capacity=4,
        shifts=1,
    ),
    launch=RunLaunch(open_from=START + 7 * DAY, tickets=5, seats=8),
    clocks=ClockTerms(budget=DAY, replay=HOUR, move=600, arity=64),
    chain=RunChain(
        reorg_depth=780, inclusion_delay=600, least_budget=DAY, fee_cap=10**11, gas_price=Wei(10**9), data_price=Wei(0)
    ),
    step=program_of("step"),
    update=program_of("update"),
    merge=program_of("merge"),
    witness=program_of("witness"),
)
"""Eight seats on an L1."""

WIDE: Final = replace(
    RUN,
    training=replace(
        RUN.training, seats=1024, group_size=32, positions=15, top_positions=63, zero_partial=mark("no sum")
    ),
    timing=replace(RUN.timing, group_merge=2400),
    partial_sum=program_of("partial sum"),
)
"""1,024 seats in groups of 32."""


GOVERNED: Final = replace(
    RUN,
    governance=RunGovernance(
        guardian=Address((0x6A4D).to_bytes(20, "big")),
        voting_delay=DAY,
        voting_period=3 * DAY,
        timelock=2 * DAY,
        longest_pause=5 * DAY,
        guardian_pause=2 * DAY,
        guardian_pauses=3,
        quorum_ppm=200_000,
        least_rounds=1,
        least_price_ppm=500_000,
    ),
)
"""The same, whose owners of shares may pause it, end it and lower its price."""


def changed(charter: RunCharter, part: str, **changes: Any) -> RunCharter:
    """The charter with a part of it changed."""
    return replace(charter, **{part: replace(getattr(charter, part), **changes)})


def deploy(evm: Evm, charter: RunCharter) -> EvmContract:
    """The contract of a charter. Raises Reverted, RuntimeError."""
    return evm.deploy("RunCharter", charter.as_tuple(), astuple(modules_at()))
