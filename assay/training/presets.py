"""Named sizes of a training run: the demo's, a tiny one for tests of whole processes, and one to measure."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.errors import UserError


@dataclass(frozen=True, slots=True)
class Preset:
    """Everything about a run's inner training that is not data.

    context: tokens per sequence. batch: sequences per step. inner_steps: optimizer steps per round (H of DiLoCo).
    learning_rate: a scalar of the state; the other optimizer constants are in the program.
    """

    name: str
    layers: int
    width: int
    heads: int
    context: int
    batch: int
    inner_steps: int
    learning_rate: float = 1e-3
    weight_decay: float = 0.01


DEMO = Preset("demo", layers=2, width=96, heads=4, context=32, batch=8, inner_steps=25)
TINY = Preset("tiny", layers=1, width=16, heads=2, context=8, batch=2, inner_steps=10, learning_rate=3e-3)
GPT_4X128 = Preset("gpt-4x128", layers=4, width=128, heads=4, context=64, batch=12, inner_steps=1250)
"""The size that speed is measured at, with rounds so long that they are mostly training."""

PRESETS = {preset.name: preset for preset in (DEMO, TINY, GPT_4X128)}


def preset(name: str) -> Preset:
    """The preset with this name.

    Raises:
        UserError: there is none.
    """
    if name not in PRESETS:
        raise UserError(
            f"There is no preset called {name!r}.",
            code="UnknownPreset",
            remedy=f"Choose one of: {', '.join(sorted(PRESETS))}.",
        )
    return PRESETS[name]
