"""The index: a run's events folded into records, block by block.

One query per new head over all contracts of the run; each event changes a record or two. A reorganisation that replaces
blocks already read starts the fold again from the run's first block. Events of a run's own contracts are true by
consensus; nothing else is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3.types import LogReceipt

from assay.protocol.errors import AssayError, InvariantError, UnavailableError
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Status, Wei
from assay_ledger.bindings import audit, game, outers, rounds, settlement
from assay_ledger.chain.client import Head
from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.contract import Event, Logged
from assay_ledger.index.games import BLOCKS_PER_QUERY, verdict_of
from assay_ledger.index.records import (
    AttendanceRecord,
    AttesterRecord,
    CommitmentRecord,
    GameRecord,
    MoveRecord,
    OuterRecord,
    RoundRecord,
    RunState,
)
from assay_ledger.index.run import Run

Listener = Callable[[str, Logged[Event]], None]


class Index:
    """Keeps the records of one run up to date with the chain."""

    def __init__(self, run: Run, listeners: Sequence[Listener] = ()) -> None:
        """`listeners` are told every event once, with the name of its contract."""
        self.run = run
        self._listeners = tuple(listeners)
        self._contracts = run.contracts()
        self._kinds = {
            (bytes(contract.address), bytes(kind.topic())): (name, kind)
            for name, contract in self._contracts.items()
            for kind in contract.EVENTS
        }
        self._next = run.first_block
        self._last_hash: bytes | None = None
        self._is_applying = False
        self.state = RunState(Head(0, 0))

    def sync(self) -> RunState:
        """The records at the newest head: one request while that is the last one read, two after each new block.

        Raises UnavailableError. What a node did not answer, or answered without sense, in the middle of some blocks
        leaves nothing half read: the fold starts again from the run's first block.
        """
        try:
            return self._sync()
        except (*NONSENSE, InvariantError) as error:
            self._restart()
            raise UnavailableError(
                f"The node's blocks or events make no sense together ({type(error).__name__}: {error}).",
                code="RpcError",
                remedy="Try again, or name another node; nothing is lost.",
            ) from error
        except AssayError:
            if self._is_applying:
                self._restart()
            raise

    def _restart(self) -> None:
        self._next, self._last_hash, self.state = self.run.first_block, None, RunState(Head(0, 0))
        self._is_applying = False

    def _sync(self) -> RunState:
        chain = self.run.chain
        block = chain.read(lambda: chain.w3.eth.get_block("latest"))
        number, hash_ = int(block["number"]), bytes(block["hash"])
        if hash_ == self._last_hash:
            return self.state
        if self._last_hash is not None and not self._continues(number, bytes(block["parentHash"])):
            self._restart()
        while self._next <= number:
            high = min(number, self._next + BLOCKS_PER_QUERY - 1)
            logs = self._logs(self._next, high)
            self._is_applying = True
            for log in logs:
                self._apply(log)
            self._next, self._is_applying = high + 1, False
        self.state.head, self._last_hash = Head.of(block), hash_
        return self.state

    def _continues(self, number: int, parent: bytes) -> bool:
        """Whether the last block read is still part of the chain that ends in block `number`."""
        last = self.state.head.number
        if number == last + 1:
            return parent == self._last_hash
        block = self.run.chain.read(lambda: self.run.chain.w3.eth.get_block(min(last, number)))
        return bytes(block["hash"]) == self._last_hash

    def _logs(self, low: int, high: int) -> list[LogReceipt]:
        addresses = [to_checksum_address(contract.address) for contract in self._contracts.values()]
        w3 = self.run.chain.w3
        return self.run.chain.read(lambda: w3.eth.get_logs({"address": addresses, "fromBlock": low, "toBlock": high}))

    def _apply(self, log: LogReceipt) -> None:
        topic = bytes(log["topics"][0]) if log["topics"] else b""
        known = self._kinds.get((bytes(HexBytes(log["address"])), topic))
        if known is None:
            return
        contract, kind = known
        found = Logged.of(kind, log)
        self._fold(found.event, found.transaction)
        for listener in self._listeners:
            listener(contract, found)

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
            case game.GameOpened():
                self._game_opened(event, transaction)
            case game.DigestsReused():
                record = self.state.games[event.game_id]
                # The event of the transaction's own turn comes after this one.
                record.reused[len(record.moves)] = event.list
            case game.Moved():
                self._moved(event, transaction)
            case game.Deferred():
                self._deferred(event)
            case game.Verdict():
                self._verdict(event, transaction)
            case game.LockTaken():
                self._lock_taken(event)

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

    def _game_opened(self, event: game.GameOpened, transaction: bytes) -> None:
        self.state.games[event.game_id] = GameRecord(
            game_id=event.game_id,
            claim_id=event.claim_id,
            ref=event.ref,
            challenger=event.challenger,
            defender=event.defender,
            opened_tx=transaction,
        )

    def _moved(self, event: game.Moved, transaction: bytes) -> None:
        record = self.state.games[event.game_id]
        record.stage, record.turn, record.deadline = event.stage, event.turn, event.deadline
        record.moves.append(MoveRecord(transaction, event.mover, event.stage))

    def _deferred(self, event: game.Deferred) -> None:
        record = self.state.games[event.game_id]
        record.deferrals[Side.DEFENDER if event.mover == record.defender else Side.CHALLENGER] += 1

    def _verdict(self, event: game.Verdict, transaction: bytes) -> None:
        record = self.state.games[event.game_id]
        side = Side.DEFENDER if event.loser == record.defender else Side.CHALLENGER
        record.verdict = verdict_of(event, side)
        record.verdict_tx = transaction
        record.stage, record.turn = Stage.OVER, Side.NONE
        ref = record.ref
        if record.convicted and ref.kind is ClaimKind.OUTER:
            self.state.rounds[ref.round].outers[ref.outer_root].posters[ref.party] = Status.CONVICTED
        elif record.convicted:
            commitment = self.state.rounds[ref.round].commitments.get(ref.seat)
            if ref.kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE) and commitment is not None:
                commitment.convicted = True

    def _lock_taken(self, event: game.LockTaken) -> None:
        record = self.state.games[event.game_id]
        record.bounty, record.burned = event.bounty, event.burned
        record.taken = Wei(event.bounty + event.burned + event.reserved)
