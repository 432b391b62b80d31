"""Muon as the optimizer inside a round (MuLoCo, Therien et al., 2025): hidden matrices by Muon, all else by AdamW."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from assay.training.optimizer import AdamW, Grouped, Muon, ParameterGroup
from assay.training.presets import Preset
from assay.training.step import TrainingStep, preset_step

EDGES: Final = ("token", "position", "head")
"""What is a table or a read-out: Muon is for matrices between."""


def muon_step(preset: Preset, vocabulary: int) -> TrainingStep:
    """The training step of a preset whose hidden matrices Muon turns, at steps as large as AdamW's.

    Moments are zero when a round begins, as everywhere in a run, and the rate rises.
    """
    step = preset_step(preset, vocabulary, restarts=True)
    named = list(enumerate(step.module.named_parameters()))
    inside = tuple(k for k, (name, p) in named if p.ndim == 2 and name.split(".")[0] not in EDGES)
    outside = tuple(k for k, _ in named if k not in inside)
    muon = Muon(weight_decay=preset.weight_decay, adjust="match_rms_adamw")
    groups = (
        ParameterGroup(inside, muon),
        ParameterGroup(outside, AdamW(weight_decay=preset.weight_decay)),
    )
    return replace(step, optimizer=Grouped(groups))
