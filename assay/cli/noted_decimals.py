"""By how many decimals an actor's `--deposit` was read when it began, kept in its folder.

Attack: an actor is started again by its service while nobody looks, with the command line of its first start. A token
that says fewer or more decimals by then would have it deposit a million times what its owner typed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from assay.protocol.types import Address

FILE: Final = "token.json"


def noted_decimals(folder: Path, token: Address, now: int) -> int:
    """What was noted of a token in this folder; `now`, which is noted, where nothing was that can be read."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text())
        if found["token"] == token.hex() and type(found["decimals"]) is int:
            return int(found["decimals"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    folder.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"token": token.hex(), "decimals": now}))
    fresh.replace(path)
    return now
