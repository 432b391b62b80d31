"""Why the game refuses a move: one class per custom error of `Game.sol`, named alike; nothing has changed then."""

from __future__ import annotations

from assay.protocol.errors import RejectedError


class GameError(RejectedError):
    """A move that the game refuses; nothing changed."""

    remedy = "Read the game's state again and make the move that its stage asks for."


class NotYourTurn(GameError):
    """The caller is not the side whose clock runs."""


class WrongStage(GameError):
    """The move does not belong to the stage that the game stands in."""


class TooLate(GameError):
    """The mover's deadline has passed."""


class TooEarly(GameError):
    """The deadline has not passed, so there is no timeout."""


class FeeNotAboveCap(GameError):
    """A turn may be deferred only while the base fee is above the run's cap."""

    remedy = "Make the move now: its gas is within what the run's bonds were sized for."


class NoDeferralLeft(GameError):
    """This side has deferred as often as it may in one game."""

    remedy = "Make the move before the deadline, whatever it costs: a missed clock loses the game."


class WrongCount(GameError):
    """A list or path has not exactly the length that its place demands."""


class WrongDigest(GameError):
    """What was opened does not hash to what was claimed."""


class ListMismatch(GameError):
    """The list given again is not the one posted."""


class PartsMismatch(GameError):
    """The parts do not stand for what is in dispute."""


class IndexOutOfRange(GameError):
    """The selection names something that is not there."""


class NotChallengeable(GameError):
    """The claim does not exist, its window is over, or it has fallen already."""


class MayNotChallenge(GameError):
    """Only whose accusation it is, and against a root who trains, challenges without a commitment."""


class UnknownProgram(GameError):
    """The program's header has not been registered."""


class CommitmentExists(GameError):
    """The same challenge is committed already."""


class CommitmentNotFound(GameError):
    """No such committed challenge."""


class RevealTooEarly(GameError):
    """A committed challenge may be revealed only some blocks later, or a reader could commit a copy."""


class RevealTooLate(GameError):
    """The committed challenge was not revealed in time; its deposit is lost."""
