"""The loss curve as inline SVG: readable without scripts, coloured by the page's own style, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from assay.explorer.losses import Point

LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 36

MOST_POINTS: Final = 240
"""Of a curve, that are drawn: one in so many generations of a long run, the first and the newest among them."""


@dataclass(frozen=True, slots=True)
class Size:
    """A drawing for a width of the window, in pixels at the scale at which its text has its own size; `labels` points
    and steps are written out at most. The page shows the one that its width has room for."""

    name: str
    width: int
    height: int
    labels: int


WIDE: Final = Size("wide", 720, 320, 12)
NARROW: Final = Size("narrow", 268, 250, 4)


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear, from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


def loss_chart(
    points: Sequence[Point], letter_entropy: float | None, steps_per_round: int, size: Size = WIDE
) -> str | None:
    """The curve of every loss known so far; None while there is none."""
    known = [(p.wanted, p.loss) for p in points if p.loss is not None and not p.diverged]
    if not known:
        return None
    last = max(w.step for w, _ in known) or steps_per_round
    values = [loss for _, loss in known] + ([letter_entropy] if letter_entropy is not None else [])
    margin = (max(values) - min(values)) * 0.06 or 0.1
    x = Scale(0, last, LEFT, size.width - RIGHT)
    y = Scale(min(values) - margin, max(values) + margin, size.height - BOTTOM, TOP)
    parts = [_axes(x, y, last, steps_per_round, size)]
    if letter_entropy is not None:
        at = y(letter_entropy)
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{size.width - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="limit" x="{size.width - RIGHT}" y="{at - 5:.1f}" text-anchor="end">'
            f"letter frequencies alone {letter_entropy:.3f}</text>"
        )
    # Of a sponsor's own model nobody knows what its loss is in, nor letters' frequencies.
    unit = "" if letter_entropy is None else " nats"
    generations = _thinned(sorted((w.step, loss, w.label) for w, loss in known))
    parts.append(f'<polyline class="loss" points="{_points([(s, v) for s, v, _ in generations], x, y)}"/>')
    every = -(-len(generations) // size.labels)
    for place, (step, loss, label) in enumerate(generations):
        parts.append(
            f'<circle class="loss" cx="{x(step):.1f}" cy="{y(loss):.1f}" r="4.5">'
            f"<title>{escape(label)}: {loss:.4f}{unit}</title></circle>"
        )
        if (len(generations) - 1 - place) % every == 0:
            # Below its point, or above it where there is no room between the point and the axis.
            at = y(loss) + (19 if y(loss) + 23 <= size.height - BOTTOM else -10)
            parts.append(f'<text class="value" x="{x(step):.1f}" y="{at:.1f}" {_anchor(step, last)}>{loss:.3f}</text>')
    body = "".join(parts)
    first_loss, last_loss = generations[0][1], generations[-1][1]
    label = f"Validation loss from {first_loss:.3f} to {last_loss:.3f}{unit and f'{unit} per character'}"
    box = f'class="{size.name}" viewBox="0 0 {size.width} {size.height}"'
    return f'<svg {box} role="img" aria-label="{label}">{body}</svg>'


def _axes(x: Scale, y: Scale, last: int, steps_per_round: int, size: Size) -> str:
    parts = []
    for value in _ticks(y.low, y.high):
        at = y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{size.width - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    every = max(1, -(-last // steps_per_round // size.labels)) * steps_per_round
    for step in range(0, last + 1, every):
        at = x(step)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{size.height - BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{size.height - BOTTOM + 16}" {_anchor(step, last)}>{step}</text>')
    parts.append(
        f'<text x="{(LEFT + size.width - RIGHT) / 2:.0f}" y="{size.height - 4}" text-anchor="middle">inner steps</text>'
    )
    return "".join(parts)


def _anchor(step: int, last: int) -> str:
    """Labels at the edges stay inside."""
    return 'text-anchor="start"' if step == 0 else 'text-anchor="end"' if step == last else 'text-anchor="middle"'


def _ticks(low: float, high: float) -> list[float]:
    """Round values between two limits, about five of them."""
    raw = (high - low) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step) + 1)]


def _thinned(generations: list[tuple[int, float, str]]) -> list[tuple[int, float, str]]:
    every = -(-len(generations) // (MOST_POINTS - 1))
    newest_first = generations[::-1][::every]
    return [*generations[:1], *newest_first[::-1]] if newest_first[-1] != generations[0] else newest_first[::-1]


def _points(line: Sequence[tuple[int, float]], x: Scale, y: Scale) -> str:
    return " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in line)
