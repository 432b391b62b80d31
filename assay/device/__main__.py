"""python -m assay.device [--only NAME] [--device cpu|cuda] [--out DIR] [--minutes N] [--data FILE] [--small]

Needs Python 3.11 or newer and torch, and nothing else: no package, no network, no installation.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path


def lacking() -> str:
    """What this machine lacks that nothing runs without, as a sentence; or nothing."""
    if sys.version_info < (3, 11):  # noqa: UP036 - nothing was installed, so nothing has looked at it
        return f"This is Python {sys.version_info[0]}.{sys.version_info[1]}; Python 3.11 or newer is needed."
    if find_spec("torch") is None:
        return f"torch is not installed for {sys.executable}: name another Python, `make device PYTHON=...`."
    return ""


def main() -> int:
    """Runs the stages; 0 when all came to their ends, 7 when any has other bits than it must, 1 when one failed."""
    begin = time.monotonic()
    if why := lacking():
        print(why, file=sys.stderr)
        return 3
    warnings.filterwarnings("ignore", "Failed to initialize NumPy")  # torch's, where it is not installed
    from assay.bench.sides import device_of
    from assay.device.run import run_here, run_stages
    from assay.device.stages import STAGES, DeviceTerms
    from assay.engine.runtime.devices import Device, ask_for
    from assay.engine.runtime.native.build import build
    from assay.engine.runtime.triton.backend import no_gpu
    from assay.protocol.errors import AssayError, ExitCode

    parser = argparse.ArgumentParser(prog="make device", description="Conformance, benches and quality runs, as JSON.")
    parser.add_argument("--only", choices=list(STAGES), action="append", help="one stage; all")
    parser.add_argument("--device", choices=list(Device), default=Device.AUTO, help="the GPU where there is one")
    parser.add_argument("--out", type=Path, default=Path(".build/device"), help="folder of the figures")
    parser.add_argument("--minutes", type=float, default=9.5, help="after which the last stage ends")
    parser.add_argument("--data", type=Path, help="a text to train on (UTF-8); this Python's documentation")
    parser.add_argument("--small", action="store_true", help="the least that shows that every stage runs")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    ends = begin + given.minutes * 60
    try:
        device = Device(given.device)
        if device is Device.AUTO:
            device = Device(device_of(device).type)
            if device is Device.CPU and (missing := no_gpu()):
                print(f"cuda: {missing}. The stages run on the CPU.", flush=True)
        device_of(device)
        if device is Device.CPU:
            ask_for(device)  # else programs would take a GPU that is there
        terms = DeviceTerms(device, ends, given.out, given.data, given.small)
        if given.here:
            run_here(given.only[0], terms)
            return 0
        for reason in build():
            print(f"native kernels: {reason}", flush=True)
        found = run_stages(given.only or list(STAGES), terms)
    except AssayError as error:
        print(f"{error.code}: {error.explain()}", file=sys.stderr)
        return int(error.exit_code)
    for stage in found:
        print(f"{stage.name}: {stage.error or given.out / (stage.name + '.json')}", flush=True)
    if any(stage.wrong for stage in found):
        return int(ExitCode.NUMERICS)
    return int(any(stage.error for stage in found))


if __name__ == "__main__":
    sys.exit(main())
