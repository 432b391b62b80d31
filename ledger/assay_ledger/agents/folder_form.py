"""Which form the files of an actor's data folder have, as a number in the folder itself.

A release that changes what an earlier one would misread raises FORM, and reads all forms before it. So an update needs
nothing, and who goes back to an earlier release is told so before it writes into what it does not understand.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from assay.protocol.errors import ConfigError

FORM_FILE: Final = "form"
FORM: Final = 1
"""1: journal and outbox of 0.2.0. Folders without a number are of releases before it, and are read as 1 too."""

_MOST_BYTES: Final = 32
_LOG = logging.getLogger("assay.journal")


class FolderNewer(ConfigError):
    """A later release has written this data folder."""

    remedy = (
        "Start that release, or a later one; or name a new --data-dir, where work to be defended is computed again."
    )


def check_form(folder: Path) -> None:
    """Writes the number where there is none, or one that says nothing. Raises FolderNewer.

    A disk that takes or gives nothing holds no actor up: its games go on, and the number is written at the next start.
    """
    path = folder / FORM_FILE
    try:
        with path.open("rb") as file:
            said = file.read(_MOST_BYTES).strip()
    except OSError:
        said = b""
    if said.isdigit() and int(said) > FORM:
        raise FolderNewer(f"{folder} has the form {int(said)}; this release knows forms up to {FORM}.")
    if said == str(FORM).encode():
        return
    written = folder / f".{FORM_FILE}"
    try:
        with written.open("wb") as file:
            file.write(f"{FORM}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    except OSError as error:
        _LOG.warning("%s cannot be written (%s): an earlier release would not be refused here.", path, error)
        with suppress(OSError):
            written.unlink()
