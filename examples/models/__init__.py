"""Training steps out of other people's libraries, as they ship, in small random configurations: `make models`.

`MODELS` maps `library/name` to a factory of a recipe (docs/own-models.md); `STAYS_REFUSED` says of those that no
program can hold why not. Nothing is downloaded: all weights are random.
"""

import importlib

from examples.models.listing import LISTED

for _part in (
    "plain",
    "operators",
    "optimizers",
    "text",
    "text_more",
    "vision",
    "timm_models",
    "torchvision_models",
    "diffusion",
    "adapters",
    "graphs",
):
    importlib.import_module(f"examples.models.{_part}")

MODELS = {name: entry.factory for name, entry in LISTED.items()}
"""Every factory by `library/name`."""

STAYS_REFUSED = {name: entry.stays_refused for name, entry in LISTED.items() if entry.stays_refused}
"""What no program can hold, and why: control flow that depends on values, Fourier transforms, line searches."""
