"""How a command line ends: one exit code of the documented table, and with `--json` one document, errors included."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import typer

from assay.protocol.errors import AssayError, CancelledError, ConfigError, ExitCode, InvariantError, UsageError

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNUSABLE: Final = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ELOOP),
)
"""What a system says of paths that a person has typed."""

INTERRUPTED: Final = "Interrupted; everything that this command started has ended."


def run_to_its_end(command: Callable[[], object]) -> int:
    """Runs a command line that raises what it ends with; its exit code.

    What nobody foresaw is said too, where a script listens, and then raised: the traceback is for a report.
    """
    try:
        found = command()
    except typer.TyperException as error:
        return _wrong(error)
    except typer.Abort:
        return _report(CancelledError("The question was not answered; nothing was sent.", code="Cancelled"))
    except AssayError as error:
        return _report(error)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        if isinstance(error, OSError) and (said := as_refused_file(error)) is not None:
            return _report(said)
        if is_asked_for_json():
            _print(InvariantError(f"{type(error).__name__}: {error}", code="Unforeseen", remedy="Report it, please."))
        raise
    code = found if isinstance(found, int) else int(ExitCode.OK)
    # typer makes this of a Ctrl-C inside a command, without a word.
    return _interrupted() if code == ExitCode.INTERRUPTED else code


def as_usage_error(error: typer.TyperException) -> UsageError:
    """What is wrong with a command line, as errors are said here: typer's name for it, and what lists what is right."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "assay"
    message, code = error.format_message(), type(error).__name__
    if code == "UsageError":
        code = "NoSuchCommand" if message.startswith("No such command") else "WrongUsage"
    return UsageError(
        message if message.endswith((".", "?")) else message + ".",
        code=code,
        remedy=f"`{path} --help` lists what it takes.",
        command=path,
    )


def as_refused_file(error: OSError) -> ConfigError | None:
    """A path that cannot be used, or a disk that takes nothing more, stdout's too; None for what else went wrong."""
    if error.errno in FULL:
        return ConfigError(
            f"{error.filename or 'What was to be written'} was not written whole: {error.strerror}.",
            code="DiskFull",
            remedy="Make room there, or name another place, and type the same command again.",
        )
    if error.errno not in UNUSABLE or error.filename is None:
        return None
    return ConfigError(
        f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}.",
        code="PathUnusable",
        remedy="Check the path and its permissions, or name another.",
    )


def _let_stdout_go() -> None:
    """What is still to be flushed to a full place would end the interpreter with an error of its own."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_asked_for_json() -> bool:
    """Whether this command line wants a document, though it may be one that nobody can read."""
    return "--json" in sys.argv[1:]


def _wrong(error: typer.TyperException) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # a noun alone: its help is on the screen
        typer.echo(error.format_message(), err=True)
        return int(ExitCode.USAGE)
    if (context := getattr(error, "ctx", None)) is not None:
        typer.echo(context.get_usage(), err=True)
    return _report(as_usage_error(error))


def _report(error: AssayError) -> int:
    """What happened, why, what to do: a sentence on stderr, or a document on stdout for scripts."""
    try:
        if is_asked_for_json():
            _print(error)
        sys.stdout.flush()
    except (OSError, ValueError):  # where that is what was full, stderr alone hears of it
        _let_stdout_go()
    _tell(f"{error.code}: {error.explain()}", error.code)
    return int(error.exit_code)


def _tell(text: str, code: str) -> None:
    """The last word on stderr, in the form of the log."""
    from assay.observing import logs

    if logs.is_json():
        logging.getLogger("assay.end").error("%s", text, extra={"code": code})
    else:
        typer.echo(text, err=True)


def _print(error: AssayError) -> None:
    typer.echo(json.dumps({"error": error.to_json()}, default=str))


def _interrupted() -> int:
    _tell(INTERRUPTED, "Interrupted")
    return int(ExitCode.INTERRUPTED)
