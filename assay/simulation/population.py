"""Who takes part and what they do: owners with a strategy each, and a play of many epochs against a model.

The truth lives here: which commitments and attestations are false, and what a replay therefore shows. A model only
hears who lost. Chance and order favour the liar: a convicted seat or ticket comes back with a new stake at once, and
where no drawn accuser takes the bounty, a puppet of the convicted is the first third party.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum

from assay.simulation.interface import (
    AuditWord,
    ClaimNumber,
    OwnerNumber,
    OwnerTally,
    PlayableRounds,
    ReplayDuty,
    TenureNumber,
    TicketNumber,
)


class SolverWork(Enum):
    """What an owner does in its seats."""

    TRUE = "trains"
    FALSE = "commits to invented work"
    AWAY = "stays away"


class AuditorWork(Enum):
    """What an owner does with the duties of its tickets."""

    REPLAY = "replays and says what it found"
    BLIND = "invents the result"
    COPY = "copies another's result of the same claim where there is one"
    SILENT = "never opens, or in some epochs only"
    ACCUSE = "accuses whatever it is drawn for"


class Complicity(Enum):
    """What an owner does with a duty on a false claim of its accomplices."""

    NONE = "accuses like anybody"
    LIE = "attests what was committed"
    MISS = "opens its secret and does not answer"
    HIDE = "does not open its secret in this epoch"
    JOIN = "accuses as soon as somebody else has, for a part of the bounty, and lies otherwise"


@dataclass(frozen=True, slots=True)
class Character:
    """An owner: how many seats and tickets it holds, and how it plays them."""

    seats: int = 0
    tickets: int = 0
    solver: SolverWork = SolverWork.TRUE
    auditor: AuditorWork = AuditorWork.REPLAY
    complicity: Complicity = Complicity.NONE
    every: int = 1
    """False work and silence are of each epoch of this number only; in others its owner is honest."""
    is_for_sale: bool = False
    """Whether it is everybody's accomplice, for a bribe, or its own alone."""


@dataclass(slots=True)
class Labour:
    """What an owner worked and bribed, beside what the model tallies."""

    trained: float = 0
    invented: float = 0
    """Commitments to work that was not done."""
    attested: float = 0
    replays: float = 0
    """Executions: one owner's tickets share those of the same commitment in the same epoch."""
    bribes_paid: float = 0
    """Duties of strangers on its false claims that it paid for."""
    bribes_got: float = 0

    def __sub__(self, earlier: Labour) -> Labour:
        """What was added since earlier."""
        return Labour(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class InventedResult:
    """An attestation that is false: of which ticket and epoch, on which claim, about whose work in the end."""

    ticket: TicketNumber
    epoch: int
    target: ClaimNumber
    work: ClaimNumber


@dataclass(slots=True)
class _Scene:
    """What was found in one epoch."""

    drawn: dict[ClaimNumber, list[TicketNumber]] = field(default_factory=dict)
    """Right accusers that were drawn for the claim."""
    refuted: list[ClaimNumber] = field(default_factory=list)
    """False commitments that somebody replayed, who then knows every attestation that agrees with it to be false."""
    wrong: list[tuple[ClaimNumber, TicketNumber]] = field(default_factory=list)
    replayed: set[tuple[OwnerNumber, ClaimNumber]] = field(default_factory=set)
    answered: set[ClaimNumber] = field(default_factory=set)


class Population:
    """Owners by number, in a play against a model."""

    def __init__(self, model: PlayableRounds, characters: Sequence[Character]) -> None:
        self._model = model
        self._characters = {OwnerNumber(k): c for k, c in enumerate(characters)}
        self._labour = {owner: Labour() for owner in self._characters}
        self._tenures: dict[TenureNumber, OwnerNumber] = {}
        self._tickets: dict[TicketNumber, OwnerNumber] = {}
        self._author: dict[ClaimNumber, OwnerNumber] = {}
        self._work_of: dict[ClaimNumber, ClaimNumber] = {}
        """The commitment that a claim is about in the end."""
        self._false: set[ClaimNumber] = set()
        self._agreeing: dict[ClaimNumber, list[ClaimNumber]] = {}
        """False attestations about a commitment."""
        self._epoch = 0
        self.invented: dict[ClaimNumber, InventedResult] = {}
        self.found: dict[ClaimNumber, int] = {}
        """Claims that somebody proved false, and in which epoch."""
        self.stalled = 0
        """Epochs in which fewer than half of the seats committed."""

    def tally(self, owner: int) -> OwnerTally:
        """An owner's events so far, as a copy."""
        return self._model.tally(OwnerNumber(owner)) - OwnerTally()

    def labour(self, owner: int) -> Labour:
        """An owner's work so far, as a copy."""
        return self._labour[OwnerNumber(owner)] - Labour()

    def play(self, epochs: int) -> None:
        """So many epochs more."""
        for _ in range(epochs):
            self._join()
            self._commit()
            scene = _Scene()
            while True:
                self._audit(scene, self._model.draw())
                if self._model.close():
                    break
            self._verdicts(scene)
            self._model.settle()
            self._epoch += 1

    # --- an epoch

    def _join(self) -> None:
        self._tenures = {t: o for t, o in self._tenures.items() if self._model.is_seated(t)}
        self._tickets = {t: o for t, o in self._tickets.items() if self._model.is_staked(t)}
        seated, staked = list(self._tenures.values()), list(self._tickets.values())
        for owner, who in self._characters.items():
            for _ in range(who.seats - seated.count(owner)):
                if (tenure := self._model.take_seat(owner)) is not None:
                    self._tenures[tenure] = owner
            for _ in range(who.tickets - staked.count(owner)):
                self._tickets[self._model.buy_ticket(owner)] = owner

    def _commit(self) -> None:
        working = [t for t, o in self._tenures.items() if self._characters[o].solver is not SolverWork.AWAY]
        self.stalled += 2 * len(working) < len(self._tenures)
        invented = {t for t in working if self._invents(self._characters[self._tenures[t]])}
        for tenure, claim in zip(working, self._model.commit(working, invented), strict=True):
            if claim is None:
                continue
            owner = self._tenures[tenure]
            labour = self._labour[owner]
            self._author[claim], self._work_of[claim] = owner, claim
            if tenure in invented:
                self._false.add(claim)
                labour.invented += 1
            else:
                labour.trained += 1

    def _invents(self, who: Character) -> bool:
        return who.solver is SolverWork.FALSE and self._epoch % who.every == 0

    def _is_silent(self, who: Character) -> bool:
        return who.auditor is AuditorWork.SILENT and self._epoch % who.every == 0

    def _audit(self, scene: _Scene, duties: Sequence[ReplayDuty]) -> None:
        mine: dict[TicketNumber, list[ReplayDuty]] = {t: [] for t in self._tickets}
        for duty in duties:
            mine[duty.ticket].append(duty)
        for ticket in sorted(mine, key=self._acts_late):
            owner = self._tickets[ticket]
            who = self._characters[owner]
            for_friends = [d for d in mine[ticket] if self._is_accomplice(owner, d)]
            for duty in for_friends:
                self._bribe(owner, duty)
            if self._is_silent(who) or (for_friends and who.complicity is Complicity.HIDE):
                continue
            self._model.open_secret(ticket)
            for duty in mine[ticket]:
                self._answer(scene, owner, duty, is_friend=duty in for_friends)

    def _acts_late(self, ticket: TicketNumber) -> bool:
        who = self._characters[self._tickets[ticket]]
        return who.auditor is AuditorWork.COPY or who.complicity is Complicity.JOIN

    def _is_accomplice(self, owner: OwnerNumber, duty: ReplayDuty) -> bool:
        who = self._characters[owner]
        if who.complicity is Complicity.NONE or duty.claim not in self._false:
            return False
        return who.is_for_sale or owner in (self._author[duty.claim], self._author[self._work_of[duty.claim]])

    def _bribe(self, owner: OwnerNumber, duty: ReplayDuty) -> None:
        payer = self._author[self._work_of[duty.claim]]
        if payer != owner:
            self._labour[payer].bribes_paid += 1
            self._labour[owner].bribes_got += 1

    def _answer(self, scene: _Scene, owner: OwnerNumber, duty: ReplayDuty, *, is_friend: bool) -> None:
        who, work = self._characters[owner], self._work_of[duty.claim]
        if is_friend and who.complicity is Complicity.MISS:
            return
        is_joined = is_friend and who.complicity is Complicity.JOIN and duty.claim in scene.drawn
        is_copied = who.auditor is AuditorWork.COPY and duty.claim in scene.answered
        is_invented = is_copied or who.auditor is AuditorWork.BLIND or (is_friend and not is_joined)
        is_wrong = who.auditor is AuditorWork.ACCUSE and duty.claim not in self._false
        word = AuditWord.INVENTED if is_invented else AuditWord.WRONG if is_wrong else AuditWord.REPLAYED
        attestation = self._model.attest(duty, word)
        self._author[attestation], self._work_of[attestation] = owner, work
        self._labour[owner].attested += 1
        scene.answered.add(duty.claim)
        if is_invented:
            self._false.add(attestation)
            self._agreeing.setdefault(work, []).append(attestation)
            self.invented[attestation] = InventedResult(duty.ticket, self._epoch, duty.claim, work)
            return
        if is_wrong:
            scene.wrong.append((duty.claim, duty.ticket))
            return
        if (owner, work) not in scene.replayed:
            scene.replayed.add((owner, work))
            self._labour[owner].replays += 1
        if duty.claim in self._false:
            scene.drawn.setdefault(duty.claim, []).append(duty.ticket)
        if work in self._false:
            scene.refuted.append(work)

    def _verdicts(self, scene: _Scene) -> None:
        others = [c for work in scene.refuted for c in (work, *self._agreeing.get(work, []))]
        for claim in dict.fromkeys([*scene.drawn, *others]):
            self.found.setdefault(claim, self._epoch)
            self._model.uphold(claim, scene.drawn.get(claim, []), self._author[claim])
        for claim, ticket in scene.wrong:
            self._model.dismiss(claim, ticket)
