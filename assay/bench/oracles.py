"""The true values that the scalar functions are measured against: binary64 with a stated error, and mpmath.

Every `approximate` is within `bound(name)` * 2^-52 of the true value, relative to it (gelu_grad: to Phi + |x| phi), or
within 2^-170 of it where that is more. How these bounds are reached, in units of 2^-52 ("u"):

- The libraries behind torch's binary64 exp, log, tanh, erf, erfc, sin and cos (SLEEF, MKL, the C library) publish at
  most 1 ulp (2 for tanh, 5 for erfc, of the C library), and reduce huge arguments of sin and cos exactly. An ulp is at
  most 1 u. Twice that is allowed, and `seen` measures what this machine's library does against mpmath.
- An input is binary32, so x^2 is exact in binary64, and so is -x^2 / 2: gauss costs no more than exp.
- sigmoid: e^-x within 2 u, one sum and one quotient of 1/2 u each; past 2^1000 the value is below 2^-170.
- rsqrt: a root and a quotient of 1/2 u each.
- gelu: z = -x / sqrt 2 has two roundings, 1 u together, and erfc moves |z erfc'(z) / erfc(z)| <= x^2 + 1 times as much:
  below x = -16 the value is under 2^-185, so x^2 counts for at most 256; erfc within 10 u, two products.
- gelu_grad: each of the two terms as in gelu, relative to itself; their sum may cancel, so the bound is not.
- gelu_tanh: u = 2 sqrt(2/pi) (x + 0.044715 x^3) has at most 3.5/2 u, and sigmoid moves at most |u| times as much: below
  u = -160 the value is under 2^-170.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import mpmath  # type: ignore[import-untyped]
import torch
from torch import Tensor

from assay.protocol.arithmetic import f32

ABSOLUTE_FLOOR: Final = 2.0**-170

_SQRT_HALF = math.sqrt(0.5)
_DENSITY_0 = 1 / math.sqrt(2 * math.pi)
_FAR = 40.0
"""Beyond, Phi is 0 or 1 to more than 2^-1000."""


def _sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def _tail(x: Tensor) -> Tensor:
    """P(N < x), for gelu and its derivative."""
    return torch.erfc(x.clamp(-_FAR, _FAR) * -_SQRT_HALF) * 0.5


def _gelu_grad(x: Tensor) -> Tensor:
    near = x.clamp(-_FAR, _FAR)
    return _tail(x) + near * torch.exp(near * near * -0.5) * _DENSITY_0


def _gelu_tanh(x: Tensor) -> Tensor:
    x = x.clamp_min(-1000.0)  # no infinite product with 0; the value is 0 there
    return x * _sigmoid((x + x * x * x * 0.044715) * 1.5957691216057308)


APPROXIMATE: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "sigmoid": _sigmoid,
    "rsqrt": lambda x: 1 / torch.sqrt(x),
    "erf": torch.erf,
    "gauss": lambda x: torch.exp(x * x * -0.5),
    "gelu": lambda x: x.clamp_min(-1000.0) * _tail(x),
    "gelu_grad": _gelu_grad,
    "gelu_tanh": _gelu_tanh,
    "sin": torch.sin,
    "cos": torch.cos,
}
"""From exact inputs in binary64 to values in binary64."""

BOUNDS: Final[dict[str, float]] = {
    "exp": 2, "log": 2, "tanh": 4, "sigmoid": 4, "rsqrt": 2, "erf": 2, "gauss": 2, "gelu": 272, "gelu_grad": 272,
    "gelu_tanh": 288, "sin": 2, "cos": 2,
}  # fmt: skip
"""Per function, in units of 2^-52 of the true value (see above)."""


def _phi(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _sigmoid_exactly(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


EXACT: Final[dict[str, Callable[[Any], Any]]] = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "tanh": mpmath.tanh,
    "sigmoid": _sigmoid_exactly,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "erf": mpmath.erf,
    "gauss": lambda x: mpmath.exp(-x * x / 2),
    "gelu": lambda x: x * _phi(x),
    "gelu_grad": lambda x: _phi(x) + x * mpmath.npdf(x),
    "gelu_tanh": lambda x: (
        x * _sigmoid_exactly(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(44715) / 1000000 * x**3))
    ),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
}
"""From an exact input to the value at mpmath's working precision."""


def true_value(name: str, x: float) -> Any:
    """The value as an mpmath number of 400 bits, correct far beyond the place that binary32 rounds at."""
    with mpmath.workprec(400):
        return EXACT[name](mpmath.mpf(x))


def rounded(value: Any) -> int:
    """The pattern of the binary32 number nearest to an mpmath number, ties to even."""
    sign, mantissa, exponent, _ = value._mpf_
    return f32.round_pack(int(sign), int(mantissa), int(exponent))
