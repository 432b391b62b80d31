"""Errors that say what happened, why, and what to do next.

Every error has a stable code (equal to the Solidity custom error where a contract raises the same one), a message and a
remedy. Four families: the user can fix it, the other side is unreachable, the other side is dishonest, or we are wrong.
"""

from enum import IntEnum
from typing import ClassVar, Final


class ExitCode(IntEnum):
    """Exit codes of the `assay` command; documented, never renumbered."""

    OK = 0
    ERROR = 1
    USAGE = 2
    CONFIG = 3
    NETWORK = 4
    FUNDS = 5
    REJECTED = 6
    NUMERICS = 7
    FRAUD = 8
    DEADLINE = 9
    CANCELLED = 10
    PARTED = 11
    NO = 12
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """A few words for tables and help texts."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    ExitCode.OK: "ok",
    ExitCode.ERROR: "error",
    ExitCode.USAGE: "wrong usage",
    ExitCode.CONFIG: "wrong or missing configuration, key, password or tool",
    ExitCode.NETWORK: "node or store unreachable",
    ExitCode.FUNDS: "not enough funds",
    ExitCode.REJECTED: "rejected by the protocol",
    ExitCode.NUMERICS: "numerics mismatch",
    ExitCode.FRAUD: "fraud found",
    ExitCode.DEADLINE: "deadline missed",
    ExitCode.CANCELLED: "cancelled",
    ExitCode.PARTED: "parts from stock PyTorch",
    ExitCode.NO: "the answer is no",
    ExitCode.INTERRUPTED: "interrupted",
}


def shown(text: str) -> str:
    """A text that nobody's terminal obeys: what is no letter, sign or line's end is shown as a mark.

    Attack: a node, a store or a contract words an error so that it moves the cursor, renames the window, or turns the
    direction of what follows.
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


class AssayError(Exception):
    """Base of all errors that a person may see.

    The message is one sentence on what happened and why; `remedy` one sentence on what to do next; `code` a stable name
    such as `PortInUse`, the class's own unless given; `details` are figures and evidence that a script may want.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR
    code: str = "AssayError"
    remedy: str = ""

    def __init__(self, message: str, *, code: str | None = None, remedy: str | None = None, **details: object) -> None:
        message = shown(message)
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if remedy is not None:
            self.remedy = remedy
        self.details: dict[str, object] = details

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = cls.__name__

    def explain(self) -> str:
        """What a person reads: what happened, then what to do."""
        return f"{self.message} {self.remedy}".rstrip()

    def to_json(self) -> dict[str, object]:
        """The error as `--json` prints it."""
        return {
            "code": self.code,
            "exit_code": int(self.exit_code),
            "message": self.message,
            "remedy": self.remedy,
            "details": self.details,
        }


# --- the user can fix it


class UserError(AssayError):
    """What was asked for cannot be done as asked; nothing was changed."""


class UsageError(UserError):
    """A command, option or argument is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(UserError):
    """A setting, key, password or installed tool is wrong or missing."""

    exit_code = ExitCode.CONFIG


class FundsError(UserError):
    """A balance, allowance or stake does not cover what was asked for."""

    exit_code = ExitCode.FUNDS


class RejectedError(UserError):
    """The protocol refuses it: the contract reverted, or a rule says no; `code` is the custom error's name."""

    exit_code = ExitCode.REJECTED


class NumericsError(UserError):
    """A program cannot be lowered, or a calculation left the range that the arithmetic defines."""

    exit_code = ExitCode.NUMERICS


class PartedError(UserError):
    """A program trains something else than the stock module and optimizer that it was captured from."""

    exit_code = ExitCode.PARTED


class CancelledError(UserError):
    """The user said no, or the operation was given up before it changed anything."""

    exit_code = ExitCode.CANCELLED


# --- the other side is unreachable


class UnavailableError(AssayError):
    """A node, a store or a file that should answer does not; trying again may help."""

    exit_code = ExitCode.NETWORK


class DeadlineError(UnavailableError):
    """Something came too late, by the chain's clock or by a limit that was stated."""

    exit_code = ExitCode.DEADLINE


# --- the other side is dishonest


class FraudError(AssayError):
    """Bytes contradict what was claimed about them; `details` carries the evidence."""

    exit_code = ExitCode.FRAUD


class MismatchError(FraudError):
    """Two calculations that must agree on every bit do not: of ours and theirs, one is wrong."""

    exit_code = ExitCode.NUMERICS


# --- we are wrong


class InvariantError(AssayError):
    """Something that cannot happen did: a defect in Assay, to be reported with the code and details."""


def refuse(code: str, **details: object) -> RejectedError:
    """The error to raise where a contract reverts with the custom error `code`."""
    shown = ", ".join(f"{k} = {v.hex() if isinstance(v, bytes) else v}" for k, v in details.items())
    error = RejectedError(f"The contract refuses: {code}({shown}).", code=code)
    error.details.update(details)
    return error


def not_before(now: int, time: int) -> None:
    """Refuse (TooEarly) before a chain time."""
    if now < time:
        raise refuse("TooEarly", now=now, not_before=time)


def not_after(now: int, time: int) -> None:
    """Refuse (TooLate) after a chain time."""
    if now > time:
        raise refuse("TooLate", now=now, deadline=time)
