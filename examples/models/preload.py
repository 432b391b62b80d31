"""Imports what most factories of the list import, as far as it is installed: `make models` forks from here."""

import contextlib
import importlib

from examples.models.torchvision_models import vision

with contextlib.suppress(ImportError, OSError):
    vision()  # first: the others import it, and stumble where it lacks operators

for _name in (
    "examples.models",
    "transformers.modeling_utils",
    "timm",
    "diffusers.models.modeling_utils",
    "peft",
    "torch_geometric.nn",
):
    try:
        importlib.import_module(_name)
    except (ImportError, RuntimeError, OSError):
        continue  # the models that need it say so, each in its row
