"""What is said of looks at the run that fail: each kind of failure once, and once when the run can be read again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from web3.exceptions import Web3Exception

from assay.protocol.errors import RejectedError, UnavailableError

_LOG = logging.getLogger("assay.agent")


class LooksTold:
    """Of one actor, which looks at each turn: a node that is away for hours would fill its log."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tried(self, step: Callable[[], bool]) -> bool:
        """Does a step of the loop; False where its look failed, which is said."""
        try:
            return step()
        except (UnavailableError, RejectedError) as error:
            # Refused while it only looked: a node that is behind knows less than the contract will.
            self._tell(error.code, error.explain())
        except Web3Exception as error:
            self._tell(type(error).__name__, f"The node did not answer as expected ({type(error).__name__}).")
        return False

    def are_well(self) -> None:
        """One did not fail."""
        if self._told:
            _LOG.warning("The run can be read again.")
        self._told.clear()

    def _tell(self, kind: str, text: str) -> None:
        _LOG.log(logging.DEBUG if kind in self._told else logging.WARNING, "%s", text)
        self._told.add(kind)
