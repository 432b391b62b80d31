"""Terms of the first design that every check accepts, for what is left of its tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eth_hash.auto import keccak

from assay.protocol.digests import program_digest
from assay.protocol.run.charter import ChainProfile, Charter, ClockTerms, Economics, ProgramRef, Training, Windows
from assay.protocol.types import Address, Digest, Wei

ETHER = 10**18
START = 1_800_000_000
NOBODY = Address(bytes(19) + b"\x01")


def digest(label: str) -> Digest:
    """A 32-byte value that a label names."""
    return Digest(keccak(label.encode()))


def program(label: str) -> ProgramRef:
    """A reference that is consistent, to a program that nobody runs here."""
    header, tree = label.encode(), digest(f"tree {label}")
    return ProgramRef(program_digest(header, tree), tree, header)


def economics(**changes: Any) -> Economics:
    """Small round numbers: W = 100 tokens, p = 2, all bounds kept with little to spare."""
    values = Economics(
        unit_price=Wei(ETHER),
        units=100,
        pays=True,
        shares_per_unit=Wei(ETHER),
        shares_per_duty=Wei(3 * ETHER),
        claim_lock=Wei(60 * ETHER),
        verifier_bond=Wei(200 * ETHER),
        wage=Wei(26 * ETHER),
        seat_fee=Wei(2 * ETHER),
        challenge_bond=Wei(10 * ETHER),
        challenge_deposit=Wei(ETHER),
        audit_ppm=2_000_000,
        whistle_ppm=500_000,
        trap_ppm=0,
        cartel_ppm=333_333,
        bounty_ppm=500_000,
    )
    return replace(values, **changes)


WINDOWS = Windows(
    commit=1200,
    receipt=600,
    seed_delay=600,
    attest=900,
    draw=600,
    whistle=900,
    reveal=600,
    challenge=3600,
    rescue=1800,
    longest_dispute=7200,
    exit=31_000,
)

PROFILE = ChainProfile(reorg_depth=0, inclusion_delay=0, fee_cap=100 * 10**9, gas_price=Wei(10**9))

TRAINING = Training(
    intervals=3,
    steps_per_interval=2,
    shards=9,
    shard_length=1000,
    learning_rate=0x3A83126F,
    parameters=digest("parameters"),
    momentum=digest("momentum"),
    zero_optimizer=digest("blank optimizer"),
    zero_update=digest("zero update"),
    data=digest("data"),
)


def charter(**changes: Any) -> Charter:
    """A charter that every check accepts."""
    values = Charter(
        name=digest("test run"),
        sponsor=NOBODY,
        token=NOBODY,
        seed=NOBODY,
        rounds=1000,
        expiry=START + 10**9,
        training=TRAINING,
        windows=WINDOWS,
        economics=economics(),
        clocks=ClockTerms(600, 300, 300, 64),
        chain=PROFILE,
        step=program("step"),
        update=program("update"),
        outer=program("outer"),
    )
    return replace(values, **changes)
