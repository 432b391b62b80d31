"""Whose runs this machine works for: a sponsor that nobody here named is asked about once, and then remembered.

Attack: a run of the release's own code whose sponsor chose a token that is worth nothing, a store that it may empty, or
a model that nobody should train. Code cannot show that; somebody must know whom it works for.
On a local chain nothing is at stake, and whoever has a sponsor's key here knows it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import typer
from eth_utils.address import to_checksum_address

from assay.cli.common import talk
from assay.protocol.errors import CancelledError, ConfigError, RejectedError
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay_ledger.rounds.run import Run


class UnknownSponsor(RejectedError):
    """Nobody here said that this sponsor is known."""


class SponsorsUnusable(ConfigError):
    """The file of known sponsors cannot be read or written."""

    remedy = "Give it back to this user, with room on its disk; or name the sponsor by --sponsor (setting `sponsor`)."


def check_sponsor(run: Run, settings: Settings) -> None:
    """Before anything is staked: asks at a terminal, once. Raises UnknownSponsor, CancelledError, SponsorsUnusable."""
    sponsor = run.charter.sponsor
    if is_known(run, settings):
        return
    shown = to_checksum_address(sponsor)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnknownSponsor(
            f"The run's sponsor {shown} is not known here.",
            remedy=f"If you know whom that is, add --sponsor {shown} (setting `sponsor`).",
            sponsor=shown,
        )
    if not typer.confirm(f"The run's sponsor is {shown}. Do you know and trust them with this work?", err=True):
        raise CancelledError("Nothing was sent.", code="Cancelled")
    remember(run.chain.chain_id, sponsor)
    talk.print(f"remembered in {remembered_in()}", markup=False)


def unknown_sponsor(run: Run, settings: Settings) -> list[str]:
    """Why a run's sponsor keeps this machine from joining; nothing where it is known."""
    if is_known(run, settings):
        return []
    shown = to_checksum_address(run.charter.sponsor)
    return [f"its sponsor {shown} is not known here (--sponsor {shown}, or `start` at a terminal asks once)"]


def is_known(run: Run, settings: Settings) -> bool:
    """Whether a run's sponsor was named, was remembered, has its key here, or works on a local chain."""
    from assay.node.local import is_local
    from assay_ledger.keys.keystore import list_keys

    sponsor = run.charter.sponsor
    if sponsor in settings.known_sponsors or _line(run.chain.chain_id, sponsor) in _remembered():
        return True
    if any(bytes.fromhex(key.address[2:]) == sponsor for key in list_keys(settings.keys_dir)):
        return True
    return is_local(run.chain)


def remember(chain_id: int, sponsor: Address) -> None:
    """Notes that a sponsor is known on a chain. Raises SponsorsUnusable."""
    path = remembered_in()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.write(_line(chain_id, sponsor) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SponsorsUnusable(f"{path} cannot be written ({error.strerror}).") from None


def remembered_in() -> Path:
    """The file of known sponsors, a chain and an address a line."""
    return platformdirs.user_data_path("assay") / "sponsors"


def _remembered() -> frozenset[str]:
    try:
        return frozenset(remembered_in().read_text(encoding="ascii").split("\n"))
    except (FileNotFoundError, UnicodeDecodeError):
        return frozenset()
    except OSError as error:
        raise SponsorsUnusable(f"{remembered_in()} cannot be read ({error.strerror}).") from None


def _line(chain_id: int, sponsor: Address) -> str:
    return f"{chain_id} 0x{sponsor.hex()}"
