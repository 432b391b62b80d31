"""The errors that every part raises: one base with a stable code and a remedy, in four families."""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """Base of all errors: the message says what happened and why, `remedy` what to do next.

    `code` is stable and equals the name of the Solidity custom error where there is one.
    """

    code: ClassVar[str] = "AssayError"
    remedy: str = "See docs/protocol.md."

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy


class UserError(AssayError):
    """What the user gave cannot be used."""

    code = "UserError"


class UnavailableError(AssayError):
    """Something outside cannot be reached now; trying again may help."""

    code = "UnavailableError"


class FraudError(AssayError):
    """The other side broke the protocol; subclasses carry the evidence."""

    code = "FraudError"


class InvariantError(AssayError):
    """Our own program is wrong."""

    code = "InvariantError"
