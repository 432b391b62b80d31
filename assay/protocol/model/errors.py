"""Refusals under the names of the contracts' custom errors."""

from __future__ import annotations

from assay.protocol.errors import RejectedError


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
