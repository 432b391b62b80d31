"""One blind auditor among the honest, on the executable model: how long until it is accused, and until it is convicted.

Everybody else does true work and replays what it is drawn for. The blind one attests "as committed" with an accumulator
that it guessed, so every one of its attestations is false, and nobody but who is drawn for it could know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.economics.blind_audits import BlindAuditTerms, expected_epochs
from assay.protocol.rounds.ticket_types import TicketId
from assay.simulation.executable_model import ExecutableModel
from assay.simulation.incomes import Estimate
from assay.simulation.model_terms import ModelTerms
from assay.simulation.population import AuditorWork, Character, Population

LINKS = 400
"""Epochs that a play may last."""

GAME_EPOCHS = 1
"""From an accusation to its verdict; a game may end sooner."""

FIRST = 1
"""The first epoch that draws: tickets count from there on."""

BLIND = TicketId(1)

OF_99_PERCENT = 2.576 / 1.96
"""Half of a 99 % interval over that of 95 %: of ten cells with 95 % each every second table would have one outside."""

SEEDS = 100_000
"""From the first seed of a cell to that of the next."""

CELLS = (
    BlindAuditTerms(0.1, 0.2, tickets=8, capacity=16, commitments=64),
    BlindAuditTerms(1.0, 0.5, tickets=4, capacity=16, commitments=8),
    BlindAuditTerms(0.5, 0.5, tickets=4, capacity=16, commitments=8),
    BlindAuditTerms(0.25, 0.5, tickets=4, capacity=16, commitments=8),
    BlindAuditTerms(1.0, 0.2, tickets=4, capacity=16, commitments=8),
    BlindAuditTerms(1.0, 0.95, tickets=4, capacity=16, commitments=8),
    BlindAuditTerms(1.0, 0.5, tickets=8, capacity=16, commitments=8),
    BlindAuditTerms(1.0, 0.5, tickets=16, capacity=16, commitments=8),
    BlindAuditTerms(1.0, 0.5, tickets=4, capacity=2, commitments=8),
    BlindAuditTerms(1.0, 0.5, tickets=4, capacity=1, commitments=8),
)
"""A charter's rates first; then one term after the other is changed."""


@dataclass(frozen=True, slots=True)
class BlindRow:
    """What became of the blind auditor, in epochs after its first; `expected` is the formula's until it is accused."""

    terms: BlindAuditTerms
    runs: int
    accused: Estimate
    convicted: Estimate
    expected: float
    others_accused: int
    """Commitments, and tickets of the honest, that somebody accused."""

    @property
    def is_as_expected(self) -> bool:
        """Whether the formula lies in the 99 % interval of what was played, and nobody honest was accused."""
        return self.accused.holds(self.expected, times=OF_99_PERCENT) and not self.others_accused


def blind_rows(runs: int, cells: tuple[BlindAuditTerms, ...] = CELLS) -> Iterator[BlindRow]:
    """All cells, each with so many runs of seeds of its own."""
    for number, cell in enumerate(cells):
        played = [play_blind(cell, SEEDS * number + run) for run in range(1, runs + 1)]
        accused, convicted = (Estimate.of([run[k] for run in played]) for k in (0, 1))
        yield BlindRow(cell, runs, accused, convicted, expected_epochs(cell), sum(run[2] for run in played))


def play_blind(cell: BlindAuditTerms, seed: int) -> tuple[int, int, int]:
    """Epochs until the blind ticket is accused and until it is convicted, and accusations of anybody else."""
    terms = ModelTerms(cell.commitments, cell.audit, cell.reaudit, cell.capacity, LINKS)
    model = ExecutableModel(terms, seed, GAME_EPOCHS)
    blind = Character(tickets=1, auditor=AuditorWork.BLIND)
    population = Population(model, [blind, Character(cell.commitments, cell.tickets - 1)])
    held = model.run.tickets.tickets
    population.play(FIRST)
    while not held[BLIND].convicted_at:
        population.play(1)
    made = model.run.attestations.accusations.values()
    of_blind = [a.epoch for a in made if not a.is_work and a.accused == BLIND]
    return min(of_blind) - FIRST, model.run.duties.number - 1 - FIRST, len(made) - len(of_blind)
