"""What other ways of training over the internet take, by the same arithmetic: the yardsticks of a plan."""

from __future__ import annotations

from typing import Final

YEAR: Final = 365.25 * 86_400
"""Seconds."""

DEEPSEEK_V3_BATCH: Final = 15_360 * 4096
"""Tokens of a batch of DeepSeek-V3 (arXiv 2412.19437, section 4.2), after the first 469 B of its tokens."""

INTELLECT_1_STEPS: Final = 38 * 60.0
"""Seconds of 100 inner steps of INTELLECT-1 (arXiv 2412.01152, table 2)."""

INTELLECT_1_EXCHANGES: Final = {"USA": (103.0, 0.957), "USA and Europe": (382.0, 0.856), "world": (469.0, 0.830)}
"""Median seconds of its exchanges, and the share of time spent computing, as its table 2 prints both."""

DIRECTIONS: Final = 2
"""A gradient goes out and the mean of all comes back, one after the other over one link."""


def synchronization_seconds(parameters: float, bytes_per_parameter: float, link: float) -> float:
    """One exchange of gradients by data parallelism over a link of so many bits a second."""
    return DIRECTIONS * parameters * bytes_per_parameter * 8 / link


def data_parallel_seconds(parameters: float, tokens: float, batch: float, link: float) -> float:
    """All exchanges of f32 gradients, one for each batch of so many tokens, without any computing."""
    return tokens / batch * synchronization_seconds(parameters, 4, link)


def traffic_reduction(inner_steps: int, bytes_per_parameter: float) -> float:
    """Bytes of data parallelism in f32 over those of an update every H steps."""
    return inner_steps * 4 / bytes_per_parameter
