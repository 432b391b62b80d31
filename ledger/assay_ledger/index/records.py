"""What a run's events add up to of its games.

The records are filled by `assay_ledger.index.game_fold` and read by strategies and the explorer. They are plain
mutable values, so that an event costs one assignment; readers must not change them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side, Stage, Turn
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Wei


@dataclass(slots=True)
class MoveRecord:
    """One transaction of a game."""

    tx_hash: bytes
    mover: Address
    stage: Stage


@dataclass(slots=True)
class GameRecord:
    """One game. `stage`, `turn` and `deadline` are those of the next turn; OVER once there is a verdict.

    `reused`: K(list) of each list of another game that counted as posted, by the number of the transaction (in `moves`)
    that it counted after.
    """

    game_id: int
    claim_id: Digest
    ref: ClaimRef
    challenger: Address
    defender: Address
    opened_tx: bytes
    stage: Stage = Stage.STEPS
    turn: Side = Side.DEFENDER
    deadline: int = 0
    moves: list[MoveRecord] = field(default_factory=list)
    deferrals: Counter[Side] = field(default_factory=Counter)
    reused: dict[int, Digest] = field(default_factory=dict)
    verdict: Verdict | None = None
    verdict_tx: bytes | None = None
    bounty: Wei = Wei(0)  # noqa: RUF009 - an immutable amount
    burned: Wei = Wei(0)  # noqa: RUF009 - an immutable amount
    taken: Wei = Wei(0)  # noqa: RUF009 - an immutable amount

    @property
    def whose(self) -> Turn:
        """The turn that the game stands at."""
        return Turn(self.stage, self.turn)

    @property
    def is_over(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict is not None

    @property
    def convicted(self) -> bool:
        """Whether the claimant lost."""
        return self.verdict is not None and self.verdict.side is Side.DEFENDER

    @property
    def outcome(self) -> Outcome:
        """How it ended, if it did."""
        return Outcome.NONE if self.verdict is None else self.verdict.outcome
