"""Where things lie that are not modules: in the checkout that this code runs from, or in the user's cache."""

import os
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
"""The checkout's root. Installed from a wheel: site-packages, where none of the checkout's files is found."""


def is_checkout() -> bool:
    """Whether this code runs from a checkout or an unpacked sdist."""
    return (ROOT / "foundry.toml").is_file()


def user_cache() -> Path:
    """Where this user keeps what can be made again: `$ASSAY_CACHE`, else in the user's cache folder."""
    named = os.environ.get("ASSAY_CACHE")
    if named:
        return Path(named)
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "assay"
