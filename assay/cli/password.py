"""Where passwords come from: a file that ETH_PASSWORD names, or a terminal; never the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from assay.observing import logs
from assay.protocol.errors import ConfigError

MAX_PASSWORD_FILE_BYTES: Final = 4096

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        envvar="ETH_PASSWORD",
        metavar="FILE",
        help="File that holds the password (one line).",
        show_default=False,
    ),
]
"""The option that every command unlocking a key shares."""


class PasswordMissing(ConfigError):
    """No password file, and no terminal to ask on."""

    remedy = "Set ETH_PASSWORD to a file that holds the password, or run this on a terminal."


class PasswordFileUnreadable(ConfigError):
    """The password file is absent, too large, not text or empty."""

    remedy = "Put the password, on one line, into the file that ETH_PASSWORD (or --password-file) names."


def read_password(file: Path | None, *, what: str, confirm: bool = False) -> str:
    """The password for `what`: from the file, else asked for on the terminal (twice with `confirm`).

    One trailing line end of the file is not part of it. Raises PasswordFileUnreadable, PasswordMissing.
    """
    password = _password(file, what, confirm)
    # Nothing logs it; should a library do so one day, it is taken out.
    logs.hide(password)
    return password


def _password(file: Path | None, what: str, confirm: bool) -> str:
    if file is not None:
        return _from_file(file)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PasswordMissing(f"The password for {what} is not known.")
    answer: str = typer.prompt(f"Password for {what}", hide_input=True, confirmation_prompt=confirm, err=True)
    return answer


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PASSWORD_FILE_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise PasswordFileUnreadable(f"The password file {path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise PasswordFileUnreadable(f"The password file {path} is not text.") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if len(data) > MAX_PASSWORD_FILE_BYTES or not password or "\n" in password:
        raise PasswordFileUnreadable(f"The password file {path} does not hold one line of password.")
    return password
