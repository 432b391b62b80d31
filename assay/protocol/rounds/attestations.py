"""What replays ended in, whom they accuse, and the claims that they are (contracts/audit/Attestations.sol).

A finding with k witness keys is k + 1 claims. Part j < k says that from the commitment's start, key j and an
accumulator of zero, all its steps of the witnessed program end in the lists named and accumulator j; the last part is
its update. So whoever answers for six keys is refuted at the one that is false.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import refuse
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.accusations import Accusations, AuditedRounds
from assay.protocol.rounds.duty_types import MAX_AUDITED, Attestation, DrawnResult, DutyResult, ReplayFinding
from assay.protocol.rounds.ticket_types import Calls, TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Seat


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """What `prepare` built: state roots of X and Y, and steps."""

    x: Digest
    y: Digest
    steps: int


class Attestations(Accusations):
    """The books of all attestations; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, calls: Calls, rounds: AuditedRounds, fine: int) -> None:
        super().__init__(tickets, calls, rounds, fine)
        self.findings: dict[Digest, ReplayFinding] = {}
        """As the contract's events tell them."""
        self.claims: dict[tuple[Digest, int], PreparedClaim] = {}
        """What was prepared, by attestation and part."""

    # --- results

    def check(self, key: Digest, round_: int, seat: Seat, result: DutyResult) -> ReplayFinding:
        """The finding that a result makes. Raises FindingMismatch, AccumulatorsMissing, WorkMismatch."""
        keys = (key, *self._audited_keys(result))
        if len(result.accumulators) != len(keys):
            raise refuse("AccumulatorsMissing", count=len(result.accumulators), wanted=len(keys))
        wanted, tenure = self.rounds.work_of(round_, seat)
        digest = self.rounds.digest_of(round_, seat, tenure, result.work)
        if digest != wanted:
            raise refuse("WorkMismatch", got=digest, wanted=wanted)
        return ReplayFinding(result.ends, result.update, keys, result.accumulators)

    def record(self, drawn: DrawnResult, now: int) -> None:
        """Duties only: keep a result whose draw was checked, and record what it accuses. Raises what `check` raises."""
        round_, seat, result = drawn.round, drawn.seat, drawn.result
        finding = self.check(drawn.key, round_, seat, result)
        differs = (result.ends, result.update) != (result.work.ends, result.work.update)
        self._doubt(drawn.epoch, drawn.ticket)
        kept, keys = draws.finding_digest(round_, seat, finding), len(finding.keys)
        self.attestations[drawn.id] = Attestation(kept, drawn.epoch, drawn.ticket, round_, seat, keys, differs)
        self.findings[drawn.id] = finding
        # Attack: let an honest auditor accuse work of which no game can open any more, and take its fine.
        if differs and self.rounds.is_disputable(round_, seat):
            digest, tenure = self.rounds.work_of(round_, seat)
            self._accuse(drawn.id, digest, drawn.epoch, drawn.ticket, True, tenure, now)
        audited = result.duty.attestation
        if audited != ZERO and _contradicts(result):
            accused = self.attestations[audited].ticket
            self._accuse(drawn.id, audited, drawn.epoch, drawn.ticket, False, accused, now)

    # --- claims

    def prepare(self, attestation: Digest, finding: ReplayFinding, part: int) -> PreparedClaim:
        """X and Y of one part of a finding. Raises FindingMismatch, ClaimNotFound."""
        made = self.attestations.get(attestation)
        self._check_finding(made, finding)
        assert made is not None
        if part > made.keys:
            raise refuse("ClaimNotFound", kind=ClaimKind.ATTESTATION, round=made.round, seat=made.seat, duty=part)
        start = self.rounds.start_of(made.round, made.seat)
        if part < made.keys:
            key, steps = finding.keys[part], self.rounds.steps_of(made.round, made.seat)
            x = draws.witnessed_state(start, key, ZERO)
            claim = PreparedClaim(x, draws.witnessed_state(finding.ends, key, finding.accumulators[part]), steps)
        else:
            claim = PreparedClaim(state_digest((start[0], finding.ends[0])), state_digest((finding.update,)), 1)
        self.claims[attestation, part] = claim
        return claim

    def on_opened(self, name: Digest, part: int, challenger: Address) -> None:
        """A game was opened on a part of what `name` names: an attestation, or an accusation of one.

        Raises ClaimNotFound, ClaimSettled, WrongAccusation, NotYourAccusation.
        """
        attestation = self.named(name)
        if (attestation, part) not in self.claims:
            raise refuse("ClaimNotFound", kind=ClaimKind.ATTESTATION, duty=part)
        made = self.attestations[attestation]
        # Attack: puppets' games on a right accuser's attestation, each opened before the last one ends, until a puppet
        # has the bounty. Time alone decides, never a game; whoever accused in time has as long as that is recorded.
        if name == attestation and self.calls.over_since(made.epoch + 1):
            raise refuse("ClaimSettled", kind=ClaimKind.ATTESTATION, duty=part)
        if name != attestation:
            self.on_tried(name, attestation, challenger)
        made.disputes += 1
        self.tickets.dispute(made.ticket)

    def on_closed(self, name: Digest, convicted: bool, now: int) -> bool:
        """A game is over; whether it is the ticket's first conviction."""
        made = self.attestations[self.named(name)]
        self._quiet(made, now)
        first = self.tickets.undispute(made.ticket, convicted, now)
        if name in self.accusations:
            self.on_judged(name, convicted, now)
        return first

    # --- views

    def named(self, name: Digest) -> Digest:
        """The attestation that a name stands for: its own, or that of an accusation of it; ZERO for none."""
        if name in self.attestations:
            return name
        made = self.accusations.get(name)
        return made.against if made is not None and not made.is_work else ZERO

    def window_of(self, attestation: Digest) -> int:
        """Since when nothing can accuse or challenge an attestation any more, in chain time; 0: something can.

        A stop ends what epochs would have.
        """
        made = self.attestations.get(attestation)
        if made is None or made.disputes:
            return 0
        since = self.calls.over_since(made.epoch + 1) or self.tickets.state.stopped_at()
        return since and max(since, made.quiet_at)

    # --- inside

    def _doubt(self, epoch: int, ticket: TicketId) -> None:
        """A result of a ticket that is accused is drawn again.

        Attack: a puppet's accusation of oneself, kept in its game so that the stake comes back, and lies for others
        meanwhile.
        """
        if self.against[ticket]:
            self.doubted.add((epoch, ticket))

    def _audited_keys(self, result: DutyResult) -> tuple[Digest, ...]:
        """The keys of the attestation that a result audits.

        Attack: find a blind attestation, keep silent about its accumulator, and sell the silence. Who audits it answers
        for it.
        """
        if result.duty.attestation == ZERO:
            return ()
        self._check_finding(self.attestations.get(result.duty.attestation), result.audited)
        return result.audited.keys if len(result.audited.keys) <= MAX_AUDITED else ()

    def _check_finding(self, made: Attestation | None, finding: ReplayFinding) -> None:
        round_, seat, wanted = (made.round, made.seat, made.finding) if made else (0, Seat(0), ZERO)
        digest = draws.finding_digest(round_, seat, finding)
        if digest != wanted:
            raise refuse("FindingMismatch", got=digest, wanted=wanted)


def _contradicts(result: DutyResult) -> bool:
    """Whether a re-audit finds anything else than the attestation that it audits."""
    audited = result.audited
    if (result.ends, result.update) != (audited.ends, audited.update):
        return True
    return len(audited.keys) <= MAX_AUDITED and result.accumulators[1:] != audited.accumulators
