"""Which device this process is asked to run programs on, by `--device` or by ASSAY_DEVICE; nothing heavy is imported.

What is made of it is decided in one place, `executor.usual_variant`. The environment carries it: processes that a
command starts run on the same device.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from assay.protocol.errors import UsageError

VARIABLE: Final = "ASSAY_DEVICE"


class Device(StrEnum):
    """Where programs run. AUTO: a GPU that gives the right bits where there is one, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def asked(environment: Mapping[str, str] | None = None) -> Device:
    """The device that is asked for; AUTO where none is named. Raises UsageError (UnknownDevice)."""
    named = (os.environ if environment is None else environment).get(VARIABLE) or Device.AUTO
    if named not in tuple(Device):
        raise UsageError(
            f"There is no device {named!r}.", code="UnknownDevice", remedy=f"Choose from {', '.join(Device)}."
        )
    return Device(named)


def ask_for(device: Device) -> None:
    """Asks for a device, for this process and those that it starts."""
    os.environ[VARIABLE] = device.value
