"""Tells the build what the package needs: the requirements files, so that no pin is written twice."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FILES = ("requirements.in", "requirements-torch.in")


class RequirementsHook(MetadataHookInterface):
    """hatchling calls it for every field that pyproject.toml names as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `dependencies` to the lines of FILES, comments and empty lines left out."""
        lines = [line for name in FILES for line in (Path(self.root) / name).read_text(encoding="utf-8").splitlines()]
        metadata["dependencies"] = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
