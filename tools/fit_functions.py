"""Derive the coefficients in assay/protocol/arithmetic/functions.py: minimax fits, rounded to binary32 one after the
other.

A fit minimizes the largest weighted error on Chebyshev nodes by Lawson's reweighted least squares. Coefficients are
then rounded from the lowest order up, and after each the remaining ones are fitted again, which loses far less than
rounding all at once. Rationals: the denominator is rounded first, then the numerator is fitted to it. Errors are in
units of 2^-24 of the function's value. The coefficients in use are the outcome of one run: another numerical library
may print other last digits in the higher orders, with the same error. Takes about a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.dps = 40
RealFunction = Callable[[mp.mpf], mp.mpf]
NODES = 400


@dataclass(frozen=True)
class Fit:
    """What to approximate on [low, high], and the size of an error of 1 in it relative to the function's value."""

    name: str
    target: RealFunction
    weight: RealFunction
    low: float
    high: float
    numerator: int
    denominator: int = 0

    def samples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chebyshev nodes, target and weight there."""
        angles = np.pi * (np.arange(NODES) + 0.5) / NODES
        t = (self.low + self.high) / 2 - (self.high - self.low) / 2 * np.cos(angles)
        y = np.array([float(self.target(mp.mpf(float(x)))) for x in t])
        return t, y, np.array([float(self.weight(mp.mpf(float(x)))) for x in t])


def powers(t: np.ndarray, degree: int) -> np.ndarray:
    """The columns 1, t, ..., t^degree."""
    return np.stack([t**k for k in range(degree + 1)], 1)


def lawson(columns: np.ndarray, y: np.ndarray, weight: np.ndarray, rounds: int = 300) -> np.ndarray:
    """Coefficients that minimize the largest |weight (columns c - y)|."""
    scaled, wanted = columns * weight[:, None], y * weight
    size = np.abs(scaled).max(0)
    scaled = scaled / size
    mass, best = np.ones(len(y)) / len(y), (np.inf, np.zeros(columns.shape[1]))
    for _ in range(rounds):
        root = np.sqrt(mass)
        c = np.linalg.lstsq(scaled * root[:, None], wanted * root, rcond=None)[0]
        error = np.abs(scaled @ c - wanted)
        if error.max() < best[0]:
            best = (error.max(), c)
        mass = mass * (error / error.max() + 1e-6)
        mass /= mass.sum()
    return best[1] / size


def rounded(columns: np.ndarray, y: np.ndarray, weight: np.ndarray) -> list[float]:
    """Coefficients in binary32, each rounded before the later ones are fitted to what is left."""
    found: list[float] = []
    for k in range(columns.shape[1]):
        found.append(float(np.float32(lawson(columns[:, k:], y, weight)[0])))
        y = y - columns[:, k] * found[-1]
    return found


def denominator(t: np.ndarray, y: np.ndarray, weight: np.ndarray, p: int, q: int) -> np.ndarray:
    """The denominator 1, q_1, ... of a rational minimax fit, by linearization about the last one."""
    below = np.ones(len(t))
    mass, best = np.ones(len(t)) / len(t), (np.inf, np.zeros(q + 1))
    columns = np.concatenate([powers(t, p), -y[:, None] * powers(t, q)[:, 1:]], 1)
    for _ in range(600):
        scale = weight / np.abs(below)
        scaled = columns * scale[:, None]
        size, root = np.abs(scaled).max(0), np.sqrt(mass)
        c = np.linalg.lstsq(scaled / size * root[:, None], y * scale * root, rcond=None)[0] / size
        coefficients = np.concatenate([[1.0], c[p + 1 :]])
        below = powers(t, q) @ coefficients
        error = np.abs(powers(t, p) @ c[: p + 1] / below - y) * weight
        if error.max() < best[0]:
            best = (error.max(), coefficients)
        mass = mass * (error / error.max() + 1e-5)
        mass /= mass.sum()
    return best[1]


def solve(fit: Fit) -> tuple[list[float], list[float], float]:
    """Numerator, denominator and the largest weighted error in units of 2^-24."""
    t, y, weight = fit.samples()
    below = [1.0]
    if fit.denominator:
        below = [float(np.float32(c)) for c in denominator(t, y, weight, fit.numerator, fit.denominator)]
    under = powers(t, fit.denominator) @ np.array(below)
    above = rounded(powers(t, fit.numerator), y * under, weight / under)
    error = np.abs(powers(t, fit.numerator) @ np.array(above) / under - y) * weight
    return above, below, float(error.max() * 2**24)


def even(function: RealFunction, limit: float) -> RealFunction:
    """A function of z = x^2 with its limit at 0."""
    return lambda z: function(mp.sqrt(z)) if z > 1e-14 else mp.mpf(limit)


def tail(t: mp.mpf) -> mp.mpf:
    """P(N > t) for a standard normal N."""
    return mp.erfc(t / mp.sqrt(2)) / 2


def mills(t: mp.mpf) -> mp.mpf:
    """P(N > t) e^(t^2 / 2)."""
    return tail(t) * mp.exp(t * t / 2)


def tail_weight(t: mp.mpf) -> mp.mpf:
    """1 while P(N > t) >= 2^-24, then falling with it."""
    return min(mp.mpf(1), tail(t) * 2**24)


LN2_HALF = float(mp.log(2)) / 2 * 1.0002
LOG_S = float((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) * 1.0005
TWO_OVER_ROOT_PI = float(2 / mp.sqrt(mp.pi))
PHI_0 = float(np.float32(float(1 / mp.sqrt(2 * mp.pi))))


def atanh2(s: mp.mpf) -> mp.mpf:
    """log((1 + s) / (1 - s))."""
    return mp.log((1 + s) / (1 - s))


def erfc_root(v: mp.mpf) -> mp.mpf:
    """erfc(1 + v)^(-1/4)."""
    return mp.erfc(1 + v) ** -0.25


def erfinv_ratio(w: mp.mpf) -> mp.mpf:
    """erfinv(y) / y for the y with w = -log(1 - y^2)."""
    y = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(y) / y if w > 1e-14 else mp.sqrt(mp.pi) / 2


def even_fit(
    name: str, target: RealFunction, at_zero: float, weight: RealFunction, limit: float, p: int, q: int = 0
) -> Fit:
    """A fit over z = x^2 for |x| <= limit; the weight at 0 matters little and is that of a tiny x."""
    return Fit(name, even(target, at_zero), lambda z: weight(mp.sqrt(max(z, mp.mpf(1e-14)))), 0, limit**2, p, q)


FITS = (
    Fit("EXPM1", lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / abs(mp.expm1(r)), -LN2_HALF, LN2_HALF, 4),
    even_fit("LOG", lambda s: (atanh2(s) - 2 * s) / s**3, 2 / 3, lambda s: s**3 / atanh2(s), LOG_S, 2),
    even_fit("TANH", lambda x: (mp.tanh(x) - x) / x**3, -1 / 3, lambda x: x**3 / mp.tanh(x), 0.5625, 1, 1),
    even_fit("ERF_NEAR", lambda x: mp.erf(x) / x - 1, TWO_OVER_ROOT_PI - 1, lambda x: x / mp.erf(x), 1.125, 6),
    Fit("ERF_FAR", erfc_root, lambda v: 4 / erfc_root(v) ** 5 / mp.erf(1 + v), 0.125, 2.96, 8),
    Fit("RATIO", mills, lambda t: tail_weight(t) / mills(t), 0, 5.5, 3, 4),
    even_fit("GELU_NEAR", lambda t: (0.5 - tail(t)) / t, PHI_0, lambda t: t / tail(t), 0.7, 4),
    Fit(
        "GELU_FAR",
        lambda v: PHI_0 - (1 + v) * mills(1 + v),
        lambda v: tail_weight(1 + v) / ((1 + v) * mills(1 + v)),
        -0.3,
        4.6,
        2,
        5,
    ),
    even_fit("SIN", lambda r: (mp.sin(r) - r) / r**3, -1 / 6, lambda r: r**3, 0.787, 2),
    even_fit("ATAN", lambda t: (mp.atan(t) - t) / t**3, -1 / 3, lambda t: t**3 / mp.atan(t), 0.41425, 3),
    Fit("ERFINV_NEAR", lambda v: erfinv_ratio(v + 2.5), lambda v: 1 / erfinv_ratio(v + 2.5), -2.5, 2.5, 8),
    Fit(
        "ERFINV_FAR",
        lambda v: erfinv_ratio((v + 3) ** 2),
        lambda v: 1 / erfinv_ratio((v + 3) ** 2),
        -0.77,
        1.0,
        8,
    ),
    even_fit("COS", lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4, 1 / 24, lambda r: r**4, 0.787, 2),
)


def main() -> None:
    """Print every fit."""
    for fit in FITS:
        above, below, error = solve(fit)
        print(f"{fit.name}: error {error:.3g}\n  {above}" + (f"\n  / {below}" if fit.denominator else ""), flush=True)


if __name__ == "__main__":
    main()
