"""What can be wrong with a bundle: it cannot be read, or it contradicts itself."""

from __future__ import annotations

from assay.protocol.errors import ConfigError, FraudError, UserError


class BundleMalformed(ConfigError):
    """The bytes are no bundle of this version; nothing follows from them about anybody."""

    remedy = "Export it again (`assay bundle export`), or ask for the file once more."


class BundleContradiction(FraudError):
    """A bundle says what its own transactions refute."""

    remedy = "Do not rely on this file: its author, or the contract that it describes, is wrong."


class GameNotOver(UserError):
    """A game without a verdict is no evidence yet."""

    remedy = "Wait for the verdict; `assay dispute follow` shows whose clock runs."


class NumberTooLarge(UserError):
    """A number of the chain does not fit into the numbers of canonical JSON, which end at 2^53 - 1."""

    remedy = "Show the game from the chain itself: `assay dispute show`."


class GameUnknown(UserError):
    """The run has no game of this number."""

    remedy = "`assay dispute list` shows the games of the run."


class MoveNotDirect(UserError):
    """A party acts through a contract, so what it said is no transaction of its own to the run's contracts."""

    remedy = "Nothing can be done: such a game is judged on chain as any other, but not exported yet."
