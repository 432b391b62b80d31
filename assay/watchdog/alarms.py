"""What the watchdog says: kinds of alarms, when each is raised, and the exit code that they add up to. Pure.

Unavailability has kinds of its own: a chain or a store that does not answer proves nothing about anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from assay.amounts import COIN, Currency
from assay.protocol.errors import ExitCode
from assay.protocol.game.state import REVEAL_WINDOW, GameState
from assay.protocol.game.table import Side
from assay.protocol.types import Address, Wei


class AlarmKind(StrEnum):
    """What may be wrong. NOTES inform and never change the exit code."""

    HONEST_LOSING = "honest-losing"
    HONEST_LOST = "honest-lost"
    DEADLINE_NEAR = "deadline-near"
    DEADLINE_MISSED = "deadline-missed"
    BOND_SHORT = "bond-short"
    GAS_SHORT = "gas-short"
    CODE_UNKNOWN = "code-unknown"
    CHAIN_UNREACHABLE = "chain-unreachable"
    HEAD_STALE = "head-stale"
    CANNOT_CHECK = "cannot-check"
    STAKE_AT_RISK = "stake-at-risk"
    ROOT_CHALLENGED = "root-challenged"
    DUTY_DUE = "duty-due"
    EPOCH_OVERDUE = "epoch-overdue"
    BEACON_LATE = "beacon-late"
    STAKE_SHORT = "stake-short"
    ESCROW_LOW = "escrow-low"
    REFUND_WAITS = "refund-waits"
    TIMEOUT_DUE = "timeout-due"
    CHALLENGED = "challenged"
    CONVICTED = "convicted"
    GAS_LOW = "gas-low"
    STORE_DARK = "store-dark"
    SEAT_AT_RISK = "seat-at-risk"
    WORK_UNCOUNTED = "work-uncounted"
    PROCESS_SILENT = "process-silent"


NOTES: Final = frozenset({AlarmKind.REFUND_WAITS, AlarmKind.TIMEOUT_DUE})

_CODES: Final[tuple[tuple[ExitCode, frozenset[AlarmKind]], ...]] = (
    (ExitCode.FRAUD, frozenset({AlarmKind.HONEST_LOSING, AlarmKind.HONEST_LOST})),
    (ExitCode.FRAUD, frozenset({AlarmKind.STAKE_AT_RISK, AlarmKind.ROOT_CHALLENGED})),
    (ExitCode.FRAUD, frozenset({AlarmKind.CONVICTED})),
    (ExitCode.DEADLINE, frozenset({AlarmKind.CHALLENGED, AlarmKind.PROCESS_SILENT})),
    (ExitCode.DEADLINE, frozenset({AlarmKind.DEADLINE_NEAR, AlarmKind.DEADLINE_MISSED, AlarmKind.SEAT_AT_RISK})),
    (ExitCode.DEADLINE, frozenset({AlarmKind.DUTY_DUE, AlarmKind.EPOCH_OVERDUE, AlarmKind.BEACON_LATE})),
    (ExitCode.REJECTED, frozenset({AlarmKind.CODE_UNKNOWN})),
    (ExitCode.FUNDS, frozenset({AlarmKind.BOND_SHORT, AlarmKind.GAS_SHORT})),
    (ExitCode.FUNDS, frozenset({AlarmKind.STAKE_SHORT, AlarmKind.ESCROW_LOW, AlarmKind.GAS_LOW})),
    (ExitCode.NETWORK, frozenset({AlarmKind.CHAIN_UNREACHABLE, AlarmKind.HEAD_STALE, AlarmKind.CANNOT_CHECK})),
    (ExitCode.NETWORK, frozenset({AlarmKind.STORE_DARK, AlarmKind.WORK_UNCOUNTED})),
)


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that is wrong now. `about` names it (a game, a party, the chain); figures are for scripts."""

    kind: AlarmKind
    about: str
    text: str
    figures: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> tuple[AlarmKind, str]:
        """What makes two alarms the same one, whatever their figures."""
        return self.kind, self.about

    @property
    def is_note(self) -> bool:
        """Whether it only informs."""
        return self.kind in NOTES


@dataclass(frozen=True, slots=True)
class GameTerms:
    """What a run promises of its games. Amounts in wei; `near` is the share of a clock below which it is near."""

    bond: Wei
    near: float
    gas_per_move: int
    money: Currency
    reveal_window: int = REVEAL_WINDOW


@dataclass(frozen=True, slots=True)
class GameFacts:
    """An open game as it stands. `honest`: the side known to be right, NONE if unknown; `favoured` likewise by trace.

    `standing_known` tells a favoured side of NONE (both agreed on something untrue) from one that was not computed.
    Amounts in wei: the challenger's bond in the vault, the coin that the side to move has for gas, and the gas price.
    `moves_left` is the most that this side can still have to make.
    """

    state: GameState
    honest: Side
    favoured: Side
    standing_known: bool
    bond_locked: Wei
    coin: Wei
    gas_price: Wei
    moves_left: int


def judge_game(facts: GameFacts, now: int, terms: GameTerms) -> Iterator[Alarm]:
    """What is wrong in an open game at chain time `now` in seconds."""
    state, about = facts.state, f"game {facts.state.game_id}"
    yield from _standing(facts, about)
    yield from _clock(facts, about, now, terms)
    expected = terms.bond - state.advanced
    if facts.bond_locked < expected:
        yield Alarm(
            AlarmKind.BOND_SHORT,
            about,
            f"the challenger's bond holds {terms.money.show(facts.bond_locked)} tokens of {terms.money.show(expected)}",
            (("locked", str(facts.bond_locked)), ("wanted", str(expected))),
        )
    if state.held:
        held = terms.money.show(state.held)
        text = f"refunds of {held} tokens wait in the bond: the defender pays for its replies until the verdict"
        yield Alarm(AlarmKind.REFUND_WAITS, about, text, (("held", str(state.held)),))
    wanted = facts.moves_left * terms.gas_per_move * facts.gas_price
    if facts.coin < wanted and _matters(facts):
        name = state.turn.name.lower()
        yield Alarm(
            AlarmKind.GAS_SHORT,
            about,
            f"the {name} has {COIN.show(facts.coin)} coins for gas, its {facts.moves_left} moves may take "
            f"{COIN.show(wanted)} at this price",
            (("side", name), ("coin", str(facts.coin)), ("wanted", str(wanted))),
        )


def _standing(facts: GameFacts, about: str) -> Iterator[Alarm]:
    state = facts.state
    if not facts.standing_known or facts.honest is Side.NONE or facts.favoured is facts.honest:
        return
    name = facts.honest.name.lower()
    what = "what it agreed to is untrue" if facts.favoured is Side.NONE else "its last move contradicts the true run"
    yield Alarm(
        AlarmKind.HONEST_LOSING,
        about,
        f"the honest {name} is losing at {state.stage.name}: {what}",
        (("side", name), ("party", "0x" + state.party(facts.honest).hex()), ("stage", state.stage.name)),
    )


def _matters(facts: GameFacts) -> bool:
    """Whether the side to move may be the honest one."""
    return facts.honest in (Side.NONE, facts.state.turn)


def _clock(facts: GameFacts, about: str, now: int, terms: GameTerms) -> Iterator[Alarm]:
    state = facts.state
    name, left = state.turn.name.lower(), state.deadline - now
    whole = max(state.deadline - state.turn_started, 1)
    share = max(left, 0) / whole
    figures: tuple[tuple[str, Any], ...] = (("side", name), ("seconds_left", left), ("share_left", round(share, 4)))
    if left < 0:
        if _matters(facts):
            text = f"the {name}'s clock ran out {-left} s ago: anyone may end the game against it"
            yield Alarm(AlarmKind.DEADLINE_MISSED, about, text, figures)
        else:
            text = f"the {name} let its clock run out: `timeout` may be called"
            yield Alarm(AlarmKind.TIMEOUT_DUE, about, text, figures)
    elif share <= terms.near and _matters(facts):
        text = f"the {name} has {left} s of chain time left to move, {share:.0%} of its clock of {whole} s"
        yield Alarm(AlarmKind.DEADLINE_NEAR, about, text, figures)


@dataclass(frozen=True, slots=True)
class CommittedFacts:
    """A committed challenge that is not revealed; `free` is what its owner has free in the vault, in wei."""

    commitment: bytes
    owner: Address
    time: int
    free: Wei


def judge_committed(facts: CommittedFacts, now: int, terms: GameTerms) -> Iterator[Alarm]:
    """What is wrong with a committed challenge: not revealed in time, or without the bond, its deposit burns."""
    about = f"committed challenge 0x{facts.commitment.hex()[:8]} of 0x{facts.owner.hex()}"
    left = facts.time + terms.reveal_window - now
    figures = (("party", "0x" + facts.owner.hex()), ("seconds_left", left))
    if left < 0:
        yield Alarm(AlarmKind.DEADLINE_MISSED, about, "it was not revealed in time: its deposit will burn", figures)
        return
    if left <= terms.near * terms.reveal_window:
        text = f"{left} s of chain time left to reveal it, {left / terms.reveal_window:.0%} of the window"
        yield Alarm(AlarmKind.DEADLINE_NEAR, about, text, figures)
    if facts.free < terms.bond:
        free, bond = terms.money.show(facts.free), terms.money.show(terms.bond)
        text = f"its owner has {free} tokens free of the bond of {bond} that the reveal locks"
        yield Alarm(AlarmKind.BOND_SHORT, about, text, (("free", str(facts.free)), ("wanted", str(terms.bond))))


def exit_code_of(alarms: Iterable[Alarm]) -> ExitCode:
    """The exit code of the gravest alarm: fraud, then deadlines, funds, and what could not be reached; notes are ok."""
    kinds = {a.kind for a in alarms}
    return next((code for code, of in _CODES if kinds & of), ExitCode.OK)


def gravity_of(kind: AlarmKind) -> str:
    """How grave it is, in a word: that of the exit code it makes; `note` where it makes none."""
    return next((code.name.lower() for code, of in _CODES if kind in of), "note")


Standing = Mapping[tuple[AlarmKind, str], Alarm]
"""The alarms in force, by key."""


def changes(before: Standing, after: Standing) -> list[tuple[bool, Alarm]]:
    """(raised, alarm) for each that is new, and (cleared) for each that is gone; sorted, raised first."""
    raised = [(True, after[key]) for key in sorted(after.keys() - before.keys())]
    return raised + [(False, before[key]) for key in sorted(before.keys() - after.keys())]
