"""What `assay run post` is asked about governance: whether the owners of shares vote, and who may pause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.cli.common import parse_address
from assay.durations import duration
from assay.protocol.errors import UsageError
from assay.protocol.types import Address

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunCharter


@dataclass(frozen=True, slots=True)
class GovernanceWanted:
    """Whether the charter names governance, and the account that may pause without a vote."""

    governed: bool = False
    guardian: str | None = None

    @property
    def governs(self) -> Callable[[RunCharter], RunCharter]:
        """Adds the terms of governance. Raises UsageError (AddressInvalid, OptionsClash)."""
        if not self.governed:
            if self.guardian is not None:
                raise UsageError(
                    "--guardian cannot be given here: nobody governs this run.",
                    code="OptionsClash",
                    remedy="Add --governed, or leave it out.",
                )
            return lambda charter: charter
        from assay.sponsor.governing import governed

        guardian = None if self.guardian is None else Address(parse_address(self.guardian))
        return lambda charter: governed(charter, guardian)

    def check_governance(self) -> None:
        """Before anything is captured. Raises what `governs` raises."""
        _ = self.governs


def governed_lines(charter: RunCharter) -> list[str]:
    """What the sponsor promises about governance, in sentences."""
    g = charter.governance
    if not g.is_named:
        return []
    lines = [
        f"owners of shares vote once {'a round is' if g.least_rounds == 1 else f'{g.least_rounds} rounds are'} final: "
        "they pause new rounds for at most "
        f"{duration(g.longest_pause)}, end the run, or lower its price to {g.least_price_ppm / 10_000:g} % at the "
        f"least; a decision takes {duration(g.voting_delay + g.voting_period + g.timelock)} of chain time"
    ]
    if any(g.guardian):
        lines.append(
            f"0x{g.guardian.hex()} may pause new rounds without a vote, {g.guardian_pauses} times for "
            f"{duration(g.guardian_pause)}"
        )
    return lines
