"""The charter of a run unless its sponsor says otherwise: prices, stakes, lengths and clocks.

Stakes are the least that protocol.economics admits, with a margin; lengths are the least that the chain's own delays
admit, with a margin where a machine computes. Amounts follow from the reference price of one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from assay.amounts import SHARES, TEST_MONEY, Currency
from assay.protocol.digests import ZERO, keccak
from assay.protocol.economics.audit_prices import DRAWN_BOUNTY_PPM, MERGE_SHARE, THIRD_BOUNTY_PPM, AuditTerms
from assay.protocol.economics.chain_profiles import CHAINS
from assay.protocol.economics.limits import MIN_TURN, MIN_WINDOW, PPM
from assay.protocol.economics.round_time import SEED_SECONDS
from assay.protocol.economics.run_bounds import LEAST_TICKETS, audit_terms, check_run
from assay.protocol.economics.run_times import (
    MIN_BEACON_DELAY,
    MIN_STALL,
    last_verdict,
    min_challenge_bond,
    min_kept,
    slowest,
)
from assay.protocol.economics.stake_bounds import min_lock, min_stake
from assay.protocol.errors import UserError
from assay.protocol.game.clock import LARGEST, Clocks, longest_game
from assay.protocol.rounds.escrow import cost_of_terms
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import (
    NO_PROGRAM,
    ONE_LEVEL,
    ClockTerms,
    RunChain,
    RunCharter,
    RunEconomics,
    RunLaunch,
    RunTiming,
    RunTraining,
)
from assay.protocol.types import Address, Digest, Wei

HOUR: Final = 60 * 60
DAY: Final = 24 * HOUR

ARITY: Final = 64
"""Digests that a move of a game posts at most."""

PRICE_PER_STEP: Final = 4
"""Tokens of the run: reference price of one optimizer step, at least the going cost of its computation."""

GAS_PER_TOKEN: Final = 10**9
"""Units of gas, at the fee cap, that are worth one token."""

LEAST_PRICE: Final = 10_000
"""W in smallest units: below it, rounding takes more than a hundredth of what a merge pays (W / 100)."""

SHARES_PER_STEP: Final = SHARES.parse("1")
SHARES_PER_DUTY: Final = SHARES.parse("0.5")

COMMIT: Final = 10 * 60
"""C, seconds of chain time for a round's training, unless steps are slow."""

GRACE: Final = 60
"""g, seconds: five blocks of the slowest chain; half of F on one that keeps nothing out, and mines at once."""

MARGIN: Final = (11, 10)
"""Over the least stakes: a charter that is changed a little is not refused at once."""

WAGE: Final = (13, 10)
"""Of W: a replay is a round's work, witnessed and checked."""

OPEN_AFTER: Final = 7 * DAY
"""From which time on anybody may open the run in its sponsor's place."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """Where a run starts: programs, data, and the roots of the first lists."""

    step: ProgramRef
    update: ProgramRef
    merge: ProgramRef
    witness: ProgramRef
    parameters: Digest
    momentum: Digest
    zero_optimizer: Digest
    zero_update: Digest
    data: Digest
    data_length: int
    learning_rate: int
    group_size: int = 0
    """Above 64 seats: seats whose updates one partial sum adds."""
    partial_sum: ProgramRef = NO_PROGRAM
    zero_partial: Digest = ZERO


@dataclass(frozen=True, slots=True)
class Committee:
    """Above 64 seats: positions of tickets at a group's sum, and at a generation, on which everything hangs."""

    positions: int = 15
    top_positions: int = 63


USUAL_COMMITTEE: Final = Committee()
NO_COMMITTEE: Final = Committee(0, 0)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a round is cut: `units` of `steps` steps each within `commit` seconds of chain time, of which `least` count.

    `replay`: seconds that a party to a game has to execute a step, or all of them, again; never less than `commit`, in
    which whoever made a claim did so.
    """

    units: int
    least: int
    steps: int
    commit: int
    replay: int = HOUR

    def __post_init__(self) -> None:
        object.__setattr__(self, "replay", max(self.replay, self.commit))


def pace_of(steps: int, units: int, least: int, commit: int | None = None, step_seconds: float = 0.0) -> Pace:
    """A round of `steps` steps, cut into units. `step_seconds`: of one exact step on this machine, 0 if unknown.

    Machines differ, and a party to a game may have to execute a round again while it trains the next one: where no
    length is given, a round takes at most a quarter of it, as it does of what a party to a game has to replay.

    Raises UserError (UnitsDoNotDivide, TooFewUnits).
    """
    if steps % units:
        raise UserError(
            f"The {steps} steps of a round are no {units} units of equal length.",
            code="UnitsDoNotDivide",
            remedy=f"Give --units a divisor of {steps}.",
        )
    if least > units:
        raise UserError(
            f"A commitment of {least} units at least cannot have {units}.",
            code="TooFewUnits",
            remedy="Give a --least of at most --units.",
        )
    slow = math.ceil(4 * steps * step_seconds)
    length = max(COMMIT, slow) if commit is None else commit
    return Pace(units=units, least=least, steps=steps // units, commit=length, replay=max(HOUR, slow))


def chain_terms(kind: str, money: Currency) -> RunChain:
    """The profile of a chain by its name in CHAINS, as a run in this token promises it.

    What gas is worth is rounded up to whole smallest units: bonds and locks never pay for less gas than is said.
    """
    return CHAINS[kind].chain(Wei(-(-_one(money) // GAS_PER_TOKEN)), Wei(0))


def _one(money: Currency) -> int:
    """One token, in its smallest units. Raises UserError (TokenUnreadable)."""
    if money.decimals is None:
        raise UserError(
            "The token says no decimals that a token can have.",
            code="TokenUnreadable",
            remedy="Give the address of an ERC-20 token whose `decimals` are 0 to 36.",
        )
    return int(10**money.decimals)


@dataclass(frozen=True, slots=True)
class AuditRates:
    """p, q and v in parts per million, c, and the number of shifts; `tickets` that must count before a round opens.

    `drawn_bounty_ppm` is beta_d: the more duties at once, the more of it, else re-auditors are cheaper to bribe than to
    lose.
    """

    audit_ppm: int = 100_000
    reaudit_ppm: int = 200_000
    cartel_ppm: int = 333_333
    capacity: int = 4
    shifts: int = 1
    tickets: int = LEAST_TICKETS
    drawn_bounty_ppm: int = DRAWN_BOUNTY_PPM


USUAL_RATES: Final = AuditRates()


def check_units(money: Currency, chain: RunChain, pace: Pace, rates: AuditRates) -> None:
    """Whether a token can be cut as finely as such a run has to pay: before anything is captured.

    Attack on whoever takes part: with a token of few decimals a fee or a merge's pay rounds to nothing, so that nobody
    merges; and gas, which counts as a whole unit at least, asks for stakes that nobody has.

    Raises UserError (TokenTooCoarse).
    """
    price, gas = PRICE_PER_STEP * _one(money) * pace.steps * pace.units, least_for_gas(chain)
    remedy = "Use a token of more decimals, or wrap it in one; longer rounds have a higher price."
    if price < LEAST_PRICE:
        raise UserError(
            f"A whole commitment's price of {money.show(price)} tokens is {price} of the smallest unit; it takes "
            f"{LEAST_PRICE} to pay hundredths of it exactly.",
            code="TokenTooCoarse",
            remedy=remedy,
        )
    shares = (rates.audit_ppm, rates.reaudit_ppm, rates.cartel_ppm, rates.drawn_bounty_ppm, THIRD_BOUNTY_PPM)
    if gas > min_lock(AuditTerms(Wei(price), Wei(price), *shares, open_duties=1, unsettled=1, merge_pay=Wei(0))):
        raise UserError(
            f"Gas is worth a whole unit of the token at least: {money.show(gas)} tokens would have to be locked for a "
            f"game's gas, where a whole commitment is worth {money.show(price)}.",
            code="TokenTooCoarse",
            remedy=remedy,
        )


def least_for_gas(chain: RunChain) -> Wei:
    """What a lock and a stake must hold, so that half of a third party's bounty pays for a game's gas."""
    return Wei(-(-2 * PPM * min_kept(chain, ARITY) // THIRD_BOUNTY_PPM))


def timing(chain: RunChain, pace: Pace, capacity: int, now: int, *, is_grouped: bool = False) -> RunTiming:
    """The least lengths for this chain and pace, in seconds; epochs begin at `now`."""
    f, turn = chain.inclusion_delay, MIN_TURN
    hold = f + turn
    epoch, seed_delay = (capacity + 1) * pace.commit + 2 * f, chain.reorg_depth + SEED_SECONDS
    draft = RunTiming(
        commit=pace.commit,
        grace=min(f // 2, hold, GRACE),
        hold=hold,
        group_merge=2 * (f + turn) if is_grouped else 0,
        merge=2 * (f + turn),
        beacon_delay=MIN_BEACON_DELAY if is_grouped else 0,
        challenge=2 * f + chain.reorg_depth + pace.replay + MIN_WINDOW + HOUR,
        rescue=f + pace.replay + MIN_WINDOW + HOUR,
        audits_from=now,
        epoch=epoch,
        seed_delay=seed_delay,
        seasoning=2 * (epoch + seed_delay),
        vesting=0,
        longest_dispute=longest_game(LARGEST, ARITY, _clocks(chain, pace)),
        stall=0,
        exit=0,
    )
    verdict = last_verdict(draft, f)
    return RunTiming(
        **{name: getattr(draft, name) for name in RunTiming.__slots__ if name not in ("vesting", "stall", "exit")},
        vesting=verdict,
        stall=max(MIN_STALL, slowest(draft, f)),
        exit=verdict,
    )


def make_run_charter(
    genesis: Genesis,
    *,
    name: str,
    sponsor: Address,
    token: Address,
    beacon: Address,
    chain: RunChain,
    now: int,
    rounds: int,
    seats: int,
    pace: Pace,
    rates: AuditRates = USUAL_RATES,
    pays: bool = True,
    committee: Committee = USUAL_COMMITTEE,
    money: Currency = TEST_MONEY,
) -> RunCharter:
    """The charter of a run; `name` is free text that makes runs of equal terms differ. `committee`: above 64 seats.
    `money`: how amounts of its token are written, by which whole tokens become what contracts count.

    Raises UserError (TokenTooCoarse), RejectedError where the contracts would refuse it.
    """
    check_units(money, chain, pace, rates)
    draft = RunCharter(
        name=keccak(name.encode()),
        sponsor=sponsor,
        token=token,
        beacon=beacon,
        rounds=rounds,
        expiry=now + 365 * DAY,
        training=_training(genesis, seats, pace, committee if seats > ONE_LEVEL else NO_COMMITTEE),
        timing=timing(chain, pace, rates.capacity, now, is_grouped=seats > ONE_LEVEL),
        economics=_economics(chain, pace, rates, pays, money, Wei(0), Wei(0)),
        launch=RunLaunch(open_from=now + OPEN_AFTER, tickets=rates.tickets, seats=seats),
        clocks=_clock_terms(chain, pace),
        chain=chain,
        step=genesis.step,
        update=genesis.update,
        merge=genesis.merge,
        witness=genesis.witness,
        partial_sum=genesis.partial_sum,
        revenue_tokens=(token,),
    )
    terms = audit_terms(draft)
    gas = least_for_gas(chain)
    lock = _with_margin(max(min_lock(terms), gas))
    stake = _with_margin(max(min_stake(terms, lock), gas))
    charter = RunCharter(
        **{f: getattr(draft, f) for f in RunCharter.__dataclass_fields__ if f != "economics"},
        economics=_economics(chain, pace, rates, pays, money, lock, stake),
    )
    check_run(charter, now)
    return charter


def escrow_ahead(
    chain: RunChain,
    *,
    rounds: int,
    seats: int,
    pace: Pace,
    rates: AuditRates = USUAL_RATES,
    pays: bool = True,
    committee: Committee = USUAL_COMMITTEE,
    group_size: int = 0,
    money: Currency = TEST_MONEY,
) -> Wei:
    """What all rounds of such a run can cost, in wei, before anything of it is captured.

    chain, committee, money, group_size: as in `make_run_charter` and `Genesis`. Raises UserError (TokenTooCoarse).
    """
    check_units(money, chain, pace, rates)
    groups = -(-seats // group_size) if group_size else 0
    openings = groups * committee.positions + committee.top_positions if groups else seats
    return Wei(
        rounds * cost_of_terms(_economics(chain, pace, rates, pays, money, Wei(0), Wei(0)), pace.units, seats, openings)
    )


def _training(genesis: Genesis, seats: int, pace: Pace, committee: Committee) -> RunTraining:
    return RunTraining(
        seats=seats,
        group_size=genesis.group_size,
        positions=committee.positions,
        top_positions=committee.top_positions,
        min_units=pace.least,
        max_units=pace.units,
        steps_per_unit=pace.steps,
        shards=seats,
        shard_length=genesis.data_length // seats,
        learning_rate=genesis.learning_rate,
        parameters=genesis.parameters,
        momentum=genesis.momentum,
        zero_optimizer=genesis.zero_optimizer,
        zero_update=genesis.zero_update,
        zero_partial=genesis.zero_partial,
        data=genesis.data,
    )


def _economics(
    chain: RunChain, pace: Pace, rates: AuditRates, pays: bool, money: Currency, lock: Wei, stake: Wei
) -> RunEconomics:
    unit = PRICE_PER_STEP * _one(money) * pace.steps
    price = unit * pace.units
    bond = max(price // 10, min_challenge_bond(chain, ARITY))
    return RunEconomics(
        unit_price=Wei(unit),
        pays=pays,
        shares_per_unit=Wei(SHARES_PER_STEP * pace.steps),
        shares_per_duty=Wei(SHARES_PER_DUTY),
        seat_lock=lock,
        seat_fee=Wei(price // 50),
        ticket_bond=stake,
        wage=Wei(price * WAGE[0] // WAGE[1]),
        merge_pay=Wei(price // MERGE_SHARE),
        challenge_bond=Wei(bond),
        challenge_deposit=Wei(bond // 10),
        audit_ppm=rates.audit_ppm,
        reaudit_ppm=rates.reaudit_ppm,
        cartel_ppm=rates.cartel_ppm,
        drawn_bounty_ppm=rates.drawn_bounty_ppm,
        third_bounty_ppm=THIRD_BOUNTY_PPM,
        capacity=rates.capacity,
        shifts=rates.shifts,
    )


def _clock_terms(chain: RunChain, pace: Pace) -> ClockTerms:
    budget = max(chain.least_budget, MIN_WINDOW)
    return ClockTerms(budget=budget, replay=pace.replay, move=max(MIN_TURN, 10 * MIN_TURN), arity=ARITY)


def _clocks(chain: RunChain, pace: Pace) -> Clocks:
    """As turns use them: the chain's inclusion delay in every extension."""
    terms, f = _clock_terms(chain, pace), chain.inclusion_delay
    return Clocks(terms.budget, terms.replay + f, terms.move + f)


def _with_margin(amount: Wei) -> Wei:
    return Wei(-(-amount * MARGIN[0] // MARGIN[1]))
