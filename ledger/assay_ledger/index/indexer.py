"""The index: a run's events folded into records, each event a record or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from web3.types import LogReceipt

from assay.protocol.errors import InvariantError
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Status
from assay_ledger.bindings import audit, outers, rounds, settlement
from assay_ledger.chain.client import Head
from assay_ledger.contract import Event, Logged
from assay_ledger.index.follower import Follower, Listener
from assay_ledger.index.game_fold import fold_game
from assay_ledger.index.records import (
    AttendanceRecord,
    AttesterRecord,
    CommitmentRecord,
    GameRecord,
    OuterRecord,
    RoundRecord,
    RunState,
)
from assay_ledger.index.run import Run


class Index(Follower):
    """Keeps the records of one run up to date with the chain."""

    def __init__(
        self, run: Run, listeners: Sequence[Listener] = (), restarted: Callable[[], None] = lambda: None
    ) -> None:
        """`listeners`, `restarted`: see Follower."""
        super().__init__(run.chain, run.contracts(), run.first_block, listeners, restarted)
        self.run = run
        self.begin()

    def sync(self) -> RunState:
        """The records at the newest head. Raises UnavailableError."""
        self.follow()
        return self.state

    def begin(self) -> None:
        """See Follower."""
        self.state = RunState(Head(0, 0))

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """See Follower."""
        self._fold(found.event, found.transaction)

    def reached(self, head: Head) -> None:
        """See Follower."""
        self.state.head = head

    def _fold(self, event: Event, transaction: bytes) -> None:
        """Which event changes what; `transaction` is the hash of the one that brought it."""
        match event:
            case rounds.Joined():
                self.state.holders[event.seat] = event.solver
            case rounds.Left():
                self.state.holders.pop(event.seat, None)
            case rounds.RoundOpened():
                self._round_opened(event)
            case rounds.Committed():
                self._committed(event, transaction)
            case rounds.Receipted():
                self._commitment(event).receipts.add(event.verifier)
            case rounds.Completed():
                self._commitment(event).complete = True
            case rounds.Excluded():
                self._commitment(event).excluded = True
            case rounds.Closed():
                self._commitment(event).status = event.status
            case outers.InclusionFixed():
                self._round(event.round).inclusions[event.base] = event.mask, event.x
            case outers.OuterPosted():
                self._outer_posted(event, transaction)
            case outers.OuterClosedAs():
                self._outer(event).posters[event.poster] = event.status
            case outers.RescueBegan():
                self._outer(event).rescue_until = event.until
            case outers.RootFell():
                # Rounds post roots of the next generation; the event names the round.
                self._outer(event).fallen = True
            case audit.Registered():
                self.state.attesters[event.who] = AttesterRecord(
                    event.who, event.role, event.stake, event.counts_from, event.public_key
                )
            case audit.Retired():
                self.state.attesters[event.who].retires_with = event.retires_with
            case audit.AttesterConvictedAt():
                self.state.attesters[event.who].convicted_at = event.round
            case audit.SeedDrawn():
                self._round(event.round).seed = event.seed
            case audit.WhistleSeedDrawn():
                self._round(event.round).whistle_seed = event.seed
            case audit.Attested():
                self._round(event.round).attendance[event.who] = AttendanceRecord(event.role, event.root)
            case audit.DrawRevealed():
                self._round(event.round).attendance[event.who].y = event.y
            case audit.LeafRevealed():
                self._round(event.round).attendance[event.who].leaves[event.seat, event.duty] = event.end_root
            case settlement.DutiesSettled():
                self._round(event.round).attendance[event.attester].settled = True
            case settlement.RoundSettled():
                self._round(event.round).settled = True
            case _:
                self._convicted(fold_game(self.state.games, event, transaction))

    # --- rounds

    def _round(self, number: Round) -> RoundRecord:
        if number >= len(self.state.rounds):
            raise InvariantError(f"An event names round {number} before it opened.", code="EventOutOfOrder")
        return self.state.rounds[number]

    def _commitment(
        self, event: rounds.Receipted | rounds.Completed | rounds.Excluded | rounds.Closed
    ) -> CommitmentRecord:
        return self._round(event.round).commitments[event.seat]

    def _round_opened(self, event: rounds.RoundOpened) -> None:
        if event.round != len(self.state.rounds):
            raise InvariantError(f"Round {event.round} opened out of order.", code="EventOutOfOrder")
        times = self.run.chain.ask(self.run.rounds.times_of(event.round))
        roster = tuple(holder if any(holder) else None for holder in event.roster)
        self.state.rounds.append(RoundRecord(event.round, times, roster))

    def _committed(self, event: rounds.Committed, transaction: bytes) -> None:
        self._round(event.round).commitments[event.seat] = CommitmentRecord(
            seat=event.seat,
            solver=event.solver,
            digest=event.digest,
            base=event.base,
            roots=event.roots,
            end_lists=event.end_lists,
            update=event.update,
            tx_hash=transaction,
        )

    # --- outer steps

    def _outer(self, event: outers.OuterClosedAs | outers.RescueBegan | outers.RootFell) -> OuterRecord:
        return self._round(event.round).outers[event.root]

    def _outer_posted(self, event: outers.OuterPosted, transaction: bytes) -> None:
        fresh = OuterRecord(event.root, event.base, event.parameters, event.momentum)
        record = self._round(event.round).outers.setdefault(event.root, fresh)
        record.posters[event.poster], record.bases[event.poster] = Status.OPEN, event.base
        record.transactions[event.poster] = transaction
        record.fallen = False

    # --- games

    def _convicted(self, record: GameRecord | None) -> None:
        """What a conviction changes beside its game."""
        if record is None or not record.convicted:
            return
        ref = record.ref
        if ref.kind is ClaimKind.OUTER:
            self.state.rounds[ref.round].outers[ref.outer_root].posters[ref.party] = Status.CONVICTED
            return
        commitment = self.state.rounds[ref.round].commitments.get(ref.seat)
        if ref.kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE) and commitment is not None:
            commitment.convicted = True
