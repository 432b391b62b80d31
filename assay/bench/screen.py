"""A compiled first look at measured values, so that only chunks with something to see go through whole-tensor passes.

Without a C compiler there is none, and sweeps take some five times as long.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from ctypes import c_double, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from assay.engine.runtime.native.build import compiler

_FLAGS: Final = ("-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-ffp-contract=off", "-fno-trapping-math")

_SOURCE: Final = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double one_over_unit(double t)
{
    int64_t bits, lowest = (int64_t)(1023 - 126) << 52;
    double u;
    memcpy(&bits, &t, 8);
    bits &= (int64_t)0x7ff << 52;
    bits = (2069LL << 52) - (bits > lowest ? bits : lowest);
    memcpy(&u, &bits, 8);
    return u;
}

/* counts: inputs whose value is NaN or infinite, results that are not the nearest. Returns how many inputs ask for a
 * closer look: an error above worst, a value within doubt of a rounding boundary, a wrong NaN or infinity. */
int64_t assay_screen(const float *x, const float *y, const double *t, int64_t n, double floor_, int64_t absolute,
                     double doubt, double worst, int64_t *counts)
{
    int64_t special = 0, misrounded = 0, odd = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = t[i], w = y[i], u = one_over_unit(v), s = v * u;
        double size = fabs(v), least = fabs((double)x[i]) * floor_;
        double unit = one_over_unit(size > least ? size : least);
        double error = fabs(w - v) * (absolute ? 1.0 : unit);
        int64_t outside = !(size < 0x1.ffffffp127);
        int64_t agrees = ((v != v) & (w != w)) | ((size >= 0x1.ffffffp127) & (w == copysign(INFINITY, v)));
        int64_t fine = (error <= worst) & (fabs(s - floor(s) - 0.5) > doubt);
        special += outside;
        misrounded += !outside & ((float)v != y[i]);
        odd += !((outside & agrees) | (!outside & fine));
    }
    counts[0] += special, counts[1] += misrounded;
    return odd;
}
"""


@cache
def _function() -> Any:
    cc = compiler()
    if cc is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "screen.c"), Path(folder, "screen.so")
        source.write_text(_SOURCE, encoding="utf-8")
        done = subprocess.run([cc, *_FLAGS, "-o", str(target), str(source), "-lm"], capture_output=True, check=False)
        if done.returncode:
            return None
        function = ctypes.CDLL(str(target)).assay_screen
    function.restype = c_int64
    function.argtypes = [c_void_p] * 3 + [c_int64, c_double, c_int64, c_double, c_double, c_void_p]
    return function


def screen(
    x: Tensor, y: Tensor, t: Tensor, *, floor: float, is_absolute: bool, doubt: float, worst: float
) -> tuple[int, int] | None:
    """(special, misrounded) of inputs and results f32 [n] and true values f64 [n]; None: look closer."""
    function = _function()
    if function is None:
        return None
    counts = (c_int64 * 2)()
    odd = function(
        x.data_ptr(), y.data_ptr(), t.data_ptr(), len(x), floor, is_absolute, doubt, worst, ctypes.addressof(counts)
    )
    return None if odd else (counts[0], counts[1])
