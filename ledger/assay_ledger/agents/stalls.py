"""When a run that does not move may be wound down, when it moves again, and who should not work or end it then. Pure.

Source: MO-5 of docs/protocol/round.md, `_movedAt` in Escrow.sol.
"""

from __future__ import annotations

from assay.protocol.economics.run_times import until_final
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.ids import is_group
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay_ledger.agents.keeping import GRACE_S
from assay_ledger.rounds.view import RunView


def winds_down_at(view: RunView) -> int:
    """From which chain time on, in seconds, anybody may wind a run down that does not move until then."""
    return _moved_at(view) + view.charter.timing.stall + 1


def is_in_vain(view: RunView) -> bool:
    """Whether a run may be wound down before it is sure to move again: what is trained now would be void with it.

    Attack: leave the escrow empty for two stalls but hours, and pay for a round then. Its work is void with the stop,
    its pay goes back, and whoever trained has given a model away.
    """
    if view.state.money.phase is not RunPhase.RUNNING or view.round is None:
        return False
    lacks_final, lacks_epoch = _lacks(view)
    return winds_down_at(view) <= max(lacks_final * _final_by(view), lacks_epoch * _closes_at(view))


def moves_until(view: RunView) -> int:
    """Until when actors leave a run alone that moves again, as by a beacon that came back; 0: nothing moves it.

    Bad luck: it comes back in the last hours of a stall, and the honest themselves void all that they have not settled.
    """
    epoch, duties = view.epochs[-1], view.books.duties
    merged, (lacks_final, lacks_epoch) = _merged(view), _lacks(view)
    if view.is_over:  # epochs alone count once the last generation is final, and those until duties are over
        lacks_final, lacks_epoch = bool(merged), not duties.last_epoch or not duties.over_since(duties.last_epoch + 1)
    ends = [max(merged, default=0)] * lacks_final + [0 if epoch.seed is None else epoch.deadline] * lacks_epoch
    return max(ends) + 1 + GRACE_S if ends and all(ends) else 0


def _lacks(view: RunView) -> tuple[bool, bool]:
    """Whether a run whose rounds go on moves by the next final generation, and by the next epoch; both: by both."""
    final_at, closed_at = _final_at(view), view.epochs[-1].start
    moved = max(min(final_at, closed_at), view.state.money.launched_at)
    return final_at <= moved, closed_at <= moved


def _final_by(view: RunView) -> int:
    """From when on the next generation can be final if nobody is late and nothing is disputed."""
    newest = view.commit_until(Round(len(view.books.commitments.rounds) - 1)) + until_final(view.charter.timing)
    return min([newest, *_merged(view)]) + 1


def _merged(view: RunView) -> list[int]:
    """The last second of each window after which a generation can be final that is not."""
    merged = view.state.merged.items()
    return [at + view.rules.challenge for g, at in merged if view.status(g) is GenerationStatus.MERGED]


def _closes_at(view: RunView) -> int:
    """From when on the newest epoch can be closed."""
    epoch, terms = view.epochs[-1], view.terms
    return (max(epoch.start + terms.delay, view.now) + terms.length if epoch.seed is None else epoch.deadline) + 1


def _moved_at(view: RunView) -> int:
    """When the run moved last (`_movedAt` in Escrow.sol)."""
    money, duties, closed_at = view.state.money, view.books.duties, view.epochs[-1].start
    last = len(view.books.commitments.rounds)
    is_decided = view.status(last) is not GenerationStatus.OPEN and view.status(view.newest) is GenerationStatus.FINAL
    if money.phase is RunPhase.RUNNING and not (view.is_over and is_decided):
        moved = max(min(_final_at(view), closed_at), money.launched_at)
        return max(moved, min(view.books.commitments.rounds[-1].t0, moved + view.charter.timing.stall))
    undrawn_since = duties.over_since(duties.last_epoch + 1) if duties.last_epoch else 0
    moved = min(closed_at, undrawn_since + view.charter.timing.longest_dispute) if undrawn_since else closed_at
    return max(moved, money.launched_at)


def _final_at(view: RunView) -> int:
    """When a generation became final last; 0: none did."""
    return max((at for node, at in view.state.final_at.items() if node and not is_group(node)), default=0)
