"""The charter that a sponsor posts unless told otherwise: prices, locks, rates, windows and clocks of a run.

Amounts follow from one reference price by the formulas of protocol.economics, with a margin; windows are minutes of
chain time. The demo uses these very constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import keccak
from assay.protocol.economics import formulas
from assay.protocol.run.charter import ChainProfile, Charter, ClockTerms, Economics, ProgramRef, Training, Windows
from assay.protocol.types import Address, Digest, Wei
from assay.sponsor.round_charters import ARITY as ARITY
from assay.sponsor.round_charters import DAY as DAY
from assay.sponsor.round_charters import HOUR, PRICE_PER_STEP, SHARES_PER_DUTY
from assay.sponsor.round_charters import SHARES_PER_STEP as SHARES_PER_STEP
from assay.sponsor.round_charters import TOKEN as TOKEN

MINUTE: Final = 60

SHARDS: Final = 8
INTERVALS: Final = 5

GWEI: Final = 10**9
LOCAL_CHAIN: Final = ChainProfile(reorg_depth=0, inclusion_delay=0, fee_cap=100 * GWEI, gas_price=Wei(100 * GWEI))
"""A chain that undoes nothing and keeps nothing out, with a cap far above its fees and a token worth its coin."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """Where a run starts: programs, data, and the roots of the first lists."""

    step: ProgramRef
    update: ProgramRef
    outer: ProgramRef
    parameters: Digest
    momentum: Digest
    zero_optimizer: Digest
    zero_update: Digest
    data: Digest
    data_length: int
    inner_steps: int
    learning_rate: int


def windows(pace: int = 1) -> Windows:
    """Windows of a run whose rounds take minutes, or `pace` times as long; the exit delay follows from the others."""
    lengths = {
        "commit": pace * 20 * MINUTE,
        "receipt": 10 * MINUTE,
        "seed_delay": 10 * MINUTE,
        "attest": pace * 20 * MINUTE,
        "draw": 10 * MINUTE,
        "whistle": pace * 20 * MINUTE,
        "reveal": 10 * MINUTE,
        # A challenger may have to execute an interval first.
        "challenge": 6 * HOUR + (pace - 1) * 10 * MINUTE,
        "rescue": pace * HOUR,
        "longest_dispute": pace * DAY,
    }
    draft = Windows(**lengths, exit=0)
    return Windows(**lengths, exit=formulas.min_exit(draft, LOCAL_CHAIN.inclusion_delay) + HOUR)


def prices(inner_steps: int, *, pays: bool, whistle_ppm: int = 200_000, audit_ppm: int = 2_000_000) -> Economics:
    """Prices and locks for rounds of this many inner steps; `pays` adds payment to shares."""
    price = PRICE_PER_STEP * inner_steps
    return Economics(
        unit_price=Wei(PRICE_PER_STEP),
        units=inner_steps,
        pays=pays,
        shares_per_unit=Wei(SHARES_PER_STEP),
        shares_per_duty=Wei(SHARES_PER_DUTY),
        claim_lock=Wei(2 * price),
        verifier_bond=Wei(3 * price),
        wage=formulas.duty_wage(Wei(price), INTERVALS),
        seat_fee=Wei(price // 50),
        challenge_bond=Wei(price // 2),
        challenge_deposit=Wei(price // 20),
        audit_ppm=audit_ppm,
        whistle_ppm=whistle_ppm,
        trap_ppm=0,
        cartel_ppm=333_333,
        bounty_ppm=500_000,
    )


def training_of(genesis: Genesis) -> Training:
    """What is trained, cut into the usual intervals and shards."""
    return Training(
        intervals=INTERVALS,
        steps_per_interval=genesis.inner_steps // INTERVALS,
        shards=SHARDS,
        shard_length=genesis.data_length // SHARDS,
        learning_rate=genesis.learning_rate,
        parameters=genesis.parameters,
        momentum=genesis.momentum,
        zero_optimizer=genesis.zero_optimizer,
        zero_update=genesis.zero_update,
        data=genesis.data,
    )


def make_charter(
    genesis: Genesis,
    *,
    name: str,
    sponsor: Address,
    token: Address,
    seed: Address,
    now: int,
    rounds: int,
    pays: bool = False,
    whistle_ppm: int = 200_000,
    audit_ppm: int = 2_000_000,
    pace: int = 1,
) -> Charter:
    """The charter of a run; `name` is free text that makes runs of equal terms differ, `now` chain time.

    pace: by how much longer than usual everything may take in which a step is executed.

    Raises RejectedError where the contracts would refuse it.
    """
    charter = Charter(
        name=keccak(name.encode()),
        sponsor=sponsor,
        token=token,
        seed=seed,
        rounds=rounds,
        expiry=now + 365 * DAY,
        training=training_of(genesis),
        windows=windows(pace),
        economics=prices(genesis.inner_steps, pays=pays, whistle_ppm=whistle_ppm, audit_ppm=audit_ppm),
        clocks=ClockTerms(budget=HOUR, replay=pace * 10 * MINUTE, move=10 * MINUTE, arity=ARITY),
        chain=LOCAL_CHAIN,
        step=genesis.step,
        update=genesis.update,
        outer=genesis.outer,
        revenue_tokens=(token,),
    )
    formulas.check_charter(charter, now)
    return charter
