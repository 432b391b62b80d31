"""By how many decimals an actor's `--deposit` was read when it began, kept in its folder.

Attack: an actor is started again by its service while nobody looks, with the command line of its first start. A token
that says fewer or more decimals by then would have it deposit a million times what its owner typed.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from assay.amounts import SMALLEST, Currency, is_in_wei
from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Wei

_LOG = logging.getLogger(__name__)

FILE: Final = "token.json"


def parse_as_noted(folder: Path, token: Address, money: Currency, text: str) -> Wei:
    """An amount by the decimals of its first reading in this folder. Raises UsageError (AmountInvalid, AmountUnclear),
    RejectedError (TokenChanged): a price or a bound is then nobody's word, except in the smallest unit.
    """
    if is_in_wei(text) or money.decimals is None:
        return money.parse(text)
    first = noted_decimals(folder, token, money.decimals)
    if first != money.decimals:
        raise RejectedError(
            f"The token 0x{token.hex()} says {money.decimals} decimals, and said {first} before.",
            code="TokenChanged",
            remedy=f"Give the amount in its smallest unit, as --json shows amounts: 12500000{SMALLEST}.",
        )
    return money.parse(text)


def noted_decimals(folder: Path, token: Address, now: int) -> int:
    """What was noted of a token in this folder; `now`, which is noted, where nothing was that can be read.

    A disk that is full holds up nobody: then it is said that nothing was noted, and the next start notes it.
    """
    path = folder / FILE
    try:
        found = json.loads(path.read_text())
        if found["token"] == token.hex() and type(found["decimals"]) is int:
            return int(found["decimals"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"token": token.hex(), "decimals": now}))
        fresh.replace(path)
    except OSError as error:
        _LOG.warning(
            "It could not be noted that the token has %d decimals (%s): the next start reads them anew.", now, error
        )
    return now
