"""What every model's process would import and try first: done once, in the process that they are forked from."""

from assay.engine.runtime.executor import usable_natives
from assay.programs import capture_report

__all__ = ["capture_report"]

usable_natives()
