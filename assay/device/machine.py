"""The machine that figures are of: devices, drivers, versions, and what it lacks."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from assay.checkout import ROOT
from assay.engine.runtime.executor import how_programs_run
from assay.protocol.errors import ConfigError

_PACKAGES = ("triton", "numpy")


def machine() -> dict[str, Any]:
    """As plain JSON; None for what is not there or does not say."""
    has_gpu = torch.cuda.is_available()
    return {
        "gpu": torch.cuda.get_device_name() if has_gpu else None,
        "gpu_capability": list(torch.cuda.get_device_capability()) if has_gpu else None,
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if has_gpu else None,
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "programs": _programs(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        **{name: _version(name) for name in _PACKAGES},
        "commit": _said("git", "-C", str(ROOT), "rev-parse", "HEAD"),
    }


def _programs() -> str:
    """How programs run unless asked otherwise; a GPU that fails is why there are stages, and ends none of them here."""
    try:
        return how_programs_run()
    except ConfigError as error:
        return f"{error.code}: {error}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {named}".strip()


def _said(*words: str) -> str | None:
    """The first line that a command prints."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(iter(done.stdout.splitlines()), None) if done.returncode == 0 else None
