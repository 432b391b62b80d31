"""Whether an auditor's machine lost a stake: then it puts up no other one before somebody has looked at it."""

from __future__ import annotations

import logging

from assay_ledger.rounds.view import RunView

_LOG = logging.getLogger("assay.agent")


class ErredMachine:
    """Looks whether this owner lost a game about what it had signed, and says so once.

    Bad luck: memory that flips bits signs what is false again, and each further ticket that is free to be registered
    would lose its stake as the first one did. What a hidden secret cost says nothing about a machine.
    """

    def __init__(self) -> None:
        self._is_said = False

    def has_erred(self, view: RunView) -> bool:
        """Whether there is such a game."""
        lost = [game.game_id for game in view.games.values() if game.convicted and game.defender == view.me]
        if lost and not self._is_said:
            self._is_said = True
            _LOG.warning(
                "no further ticket is registered: this key lost game %d about what it had signed. Test this machine "
                "(`assay conformance`) and its memory, and take part again with another key.",
                lost[0],
            )
        return bool(lost)
