"""What a plan starts from: the model, the solvers and their links, the rates of audits, the chain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from assay.protocol.economics import chain_profiles
from assay.protocol.economics.chain_profiles import ChainKind
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import UsageError
from assay.sponsor.charters import GRACE

MOST_AT_ONE_LEVEL: Final = 64
"""Up to so many seats every solver computes the merge itself, on everybody's updates (docs/adr/0033)."""

LARGEST: Final = 1e30
"""Of any figure of a plan, and over one the least: what follows from them is a number too."""

MOST_DUTIES: Final = 1_000
"""Of a ticket and epoch, far above any charter's: what a stake must cover is reckoned exactly, in numbers as long."""

FLOPS_PER_TOKEN: Final = 6
"""Operations per parameter and token of a forward and a backward pass (Kaplan et al., 2020, section 2.1)."""


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """How an update travels."""

    bytes_per_parameter: float
    carried: float = 0.0
    """Bytes a parameter of a list that the method carries from round to round, published like the update."""


UPDATE_RULES: Final = {
    "f32": UpdateRule(4.0),
    "bf16": UpdateRule(2.0),
    "int8": UpdateRule(1.0),
    "int4": UpdateRule(0.53),
    "sparse": UpdateRule(0.025),
    "sign": UpdateRule(0.133),
    "powersgd": UpdateRule(0.015),
    "cocktail": UpdateRule(0.024),
    "sparse-carried": UpdateRule(0.025, carried=4.0),
}
"""Of large models (docs/updates.md). sparse-carried: with error feedback, whose memory must be public to be replayed;
no run can be posted with it yet."""

SUM_RULES: Final = ("f32", "bf16", "int8")
"""What sums of groups may travel as."""


@dataclass(frozen=True, slots=True)
class ChainCosts:
    """A chain's times in seconds and what gas costs on it."""

    inclusion: float
    """Until a transaction is mined, as a rule."""
    kind: ChainKind
    gas_price: float
    """Wei of the chain's coin."""

    @property
    def delay(self) -> float:
        """F: how long a transaction can be kept out, which windows count on."""
        return self.kind.inclusion_delay

    @property
    def reorg(self) -> float:
        """How long what a block says can be undone."""
        return self.kind.reorg_depth


CHAINS: Final = {
    name: ChainCosts(inclusion, chain_profiles.CHAINS[name], gas_price)
    for name, inclusion, gas_price in (("local", 1, 0), ("l1", 12, 5e9), ("op", 2, 1e7), ("arbitrum", 1, 1e7))
}
"""Gas prices are examples."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """One run as it is planned. Links are bits a second of one participant, rates expected replays."""

    parameters: float
    tokens: float
    solvers: int
    up: float
    down: float
    flops: float
    """Sustained operations a second of one solver."""
    inner_steps: int
    """H, optimizer steps of a solver and round."""
    batch: float
    """Tokens of one solver and inner step."""
    positions: float | None = None
    """Bits a second of a merging position, up and down, where they have faster links than others."""
    update: str = "int8"
    sums: str = "f32"
    """As what sums of groups travel, above 64 seats."""
    audit: float = 0.10
    """p."""
    reaudit: float = 0.20
    """q."""
    cartel: float = 1 / 3
    """v."""
    chain: str = "l1"
    group: int | None = None
    """Seats whose updates one partial sum adds; the square root of all, above 64 seats."""
    capacity: int = 1
    """c, duties of a ticket and epoch."""
    grace: float = GRACE
    """g: seconds that the mask stays open after most have committed."""
    marks: int = 5
    """Roots of the whole state that a solver hashes on its way."""
    hash_rate: float = 2e9
    """Bytes a second of one participant; a few cores of SHA-256."""
    witness: float = 1.05
    """A witnessed step over a plain one: an upper figure, of which smaller models stay below (docs/LOG.md)."""
    work_cost: float = 0.7
    """What training costs a solver, over its pay: an assumption, for incomes only."""

    def __post_init__(self) -> None:
        """Raises UsageError (PlanImpossible, ChoiceUnknown)."""
        names = (
            "parameters",
            "tokens",
            "solvers",
            "up",
            "down",
            "flops",
            "inner_steps",
            "batch",
            "capacity",
            "hash_rate",
            *(["positions"] if self.positions is not None else []),
        )
        for name in names:
            if not 1 / LARGEST <= getattr(self, name) <= LARGEST:
                raise UsageError(
                    f"{name} must be above zero, and {LARGEST:g} at most.",
                    code="PlanImpossible",
                    remedy="Give a value that something has.",
                )
        if self.capacity > MOST_DUTIES:
            raise UsageError(
                f"capacity is {MOST_DUTIES} at most.",
                code="PlanImpossible",
                remedy="Give as many duties of a ticket and epoch as one machine replays.",
            )
        # A charter has whole parts per million. What is no number compares with nothing.
        rates = 0 < self.audit <= 1 and 0 < self.reaudit < 1 and 0 <= self.cartel < 1
        if not (rates and round(self.audit * PPM) >= 1):
            raise UsageError(
                "p is a millionth at least and at most 1, q between 0 and 1, v at least 0 and below 1.",
                code="PlanImpossible",
                remedy="Give rates as fractions, as 0.1.",
            )
        choices = (("update", self.update, UPDATE_RULES), ("sum", self.sums, SUM_RULES), ("chain", self.chain, CHAINS))
        for what, name, known in choices:
            if name not in known:
                raise UsageError(f"{name!r} is no {what}.", code="ChoiceUnknown", remedy=f"One of {', '.join(known)}.")
        if self.sums != "f32" and self.is_one_level:
            raise UsageError(
                f"Up to {MOST_AT_ONE_LEVEL} seats there are no groups, whose sums could travel as {self.sums}.",
                code="SumsOfNoGroups",
                remedy="Leave --sums out, or plan more seats.",
            )

    @property
    def rule(self) -> UpdateRule:
        """How updates travel."""
        return UPDATE_RULES[self.update]

    @property
    def costs(self) -> ChainCosts:
        """The chain's."""
        return CHAINS[self.chain]

    @property
    def is_one_level(self) -> bool:
        """Whether all seats compute the merge."""
        return self.solvers <= MOST_AT_ONE_LEVEL

    @property
    def group_size(self) -> int:
        """Seats of one partial sum."""
        if self.is_one_level:
            return self.solvers
        return self.group or math.ceil(math.sqrt(self.solvers))

    @property
    def groups(self) -> int:
        """Partial sums of a round."""
        return math.ceil(self.solvers / self.group_size)

    @property
    def training_seconds(self) -> float:
        """C, of one round."""
        return self.inner_steps * self.batch * FLOPS_PER_TOKEN * self.parameters / self.flops

    @property
    def rounds(self) -> int:
        """Until every token was seen once."""
        return math.ceil(self.tokens / (self.solvers * self.inner_steps * self.batch))

    @property
    def upload(self) -> float:
        """Bytes that a solver publishes a round."""
        return self.parameters * (self.rule.bytes_per_parameter + self.rule.carried)

    @property
    def sum_bytes(self) -> float:
        """Bytes of the sum of a group."""
        return self.parameters * UPDATE_RULES[self.sums].bytes_per_parameter
