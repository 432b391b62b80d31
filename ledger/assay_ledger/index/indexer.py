"""The index: a run's events folded into records, block by block.

One query per new head over all contracts of the run; each event changes a record or two. A reorganisation that replaces
blocks already read starts the fold again from the run's first block. Events of a run's own contracts are true by
consensus; nothing else is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from eth_utils.abi import event_abi_to_log_topic
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3._utils.events import get_event_data
from web3.types import LogReceipt

from assay.protocol.errors import AssayError, InvariantError, UnavailableError
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Fate, Role, Round, Seat, Wei
from assay_ledger.chain.client import Head
from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.index.games import BLOCKS_PER_QUERY, ref_from_chain
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

FOREVER: Final = 2**64 - 1

Args = dict[str, Any]
T = TypeVar("T")


class Index:
    """Keeps the records of one run up to date with the chain."""

    def __init__(self, run: Run, listeners: Sequence[Callable[[str, str, Args, LogReceipt], None]] = ()) -> None:
        """`listeners` are told every event once: contract, event name, arguments, log."""
        self.run = run
        self._listeners = tuple(listeners)
        self._contracts = run.contracts()
        self._topics = {
            (contract.address, event_abi_to_log_topic(entry)): (name, entry)
            for name, contract in self._contracts.items()
            for entry in contract.abi
            if entry["type"] == "event"
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
        addresses = [contract.address for contract in self._contracts.values()]
        w3 = self.run.chain.w3
        return self.run.chain.read(lambda: w3.eth.get_logs({"address": addresses, "fromBlock": low, "toBlock": high}))

    def _apply(self, log: LogReceipt) -> None:
        known = self._topics.get(
            (to_checksum_address(log["address"]), bytes(log["topics"][0]) if log["topics"] else b"")
        )
        if known is None:
            return
        contract, entry = known
        args = dict(get_event_data(self.run.chain.w3.codec, entry, log)["args"])
        name = str(entry["name"])
        handler = _HANDLERS.get((contract, name))
        if handler is not None:
            handler(self, args, log)
        for listener in self._listeners:
            listener(contract, name, args, log)

    # --- rounds

    def _round(self, args: Args) -> RoundRecord:
        number = int(args["round"])
        if number >= len(self.state.rounds):
            raise InvariantError(f"An event names round {number} before it opened.", code="EventOutOfOrder")
        return self.state.rounds[number]

    def _commitment(self, args: Args) -> CommitmentRecord:
        return self._round(args).commitments[Seat(args["seat"])]

    def on_joined(self, args: Args, _: LogReceipt) -> None:
        self.state.holders[Seat(args["seat"])] = address(args["solver"])

    def on_left(self, args: Args, _: LogReceipt) -> None:
        self.state.holders.pop(Seat(args["seat"]), None)

    def on_round_opened(self, args: Args, _: LogReceipt) -> None:
        number = int(args["round"])
        if number != len(self.state.rounds):
            raise InvariantError(f"Round {number} opened out of order.", code="EventOutOfOrder")
        raw = self.run.chain.call(self.run.rounds.functions.timesOf(number))
        times = Times(*(raw.values() if isinstance(raw, dict) else raw))
        roster = tuple(None if int(a, 16) == 0 else address(a) for a in args["roster"])
        self.state.rounds.append(RoundRecord(Round(number), times, roster))

    def on_committed(self, args: Args, log: LogReceipt) -> None:
        record = CommitmentRecord(
            seat=Seat(args["seat"]),
            solver=address(args["solver"]),
            digest=digest(args["digest"]),
            base=digest(args["base"]),
            roots=tuple(digest(r) for r in args["roots"]),
            end_lists=tuple(digest(r) for r in args["endLists"]),
            update=digest(args["update"]),
            tx_hash=bytes(HexBytes(log["transactionHash"])),
        )
        self._round(args).commitments[record.seat] = record

    def on_receipted(self, args: Args, _: LogReceipt) -> None:
        self._commitment(args).receipts.add(address(args["verifier"]))

    def on_completed(self, args: Args, _: LogReceipt) -> None:
        self._commitment(args).complete = True

    def on_excluded(self, args: Args, _: LogReceipt) -> None:
        self._commitment(args).excluded = True

    def on_closed(self, args: Args, _: LogReceipt) -> None:
        self._commitment(args).fate = Fate(args["fate"])

    # --- outer steps

    def on_inclusion_fixed(self, args: Args, _: LogReceipt) -> None:
        self._round(args).inclusions[digest(args["base"])] = int(args["mask"]), digest(args["x"])

    def on_outer_posted(self, args: Args, log: LogReceipt) -> None:
        root = digest(args["root"])
        fresh = OuterRecord(root, digest(args["base"]), digest(args["parameters"]), digest(args["momentum"]))
        record = self._round(args).outers.setdefault(root, fresh)
        poster = address(args["poster"])
        record.posters[poster], record.bases[poster] = Fate.OPEN, digest(args["base"])
        record.transactions[poster] = bytes(HexBytes(log["transactionHash"]))
        record.fallen = False

    def on_outer_closed(self, args: Args, _: LogReceipt) -> None:
        record = self._round(args).outers[digest(args["root"])]
        record.posters[address(args["poster"])] = Fate(args["fate"])

    def on_rescue_began(self, args: Args, _: LogReceipt) -> None:
        self._round(args).outers[digest(args["root"])].rescue_until = int(args["until"])

    def on_root_fell(self, args: Args, _: LogReceipt) -> None:
        # Rounds post roots of the next generation; the event names the round.
        self._round(args).outers[digest(args["root"])].fallen = True

    # --- audit

    def on_registered(self, args: Args, _: LogReceipt) -> None:
        who = address(args["who"])
        self.state.attesters[who] = AttesterRecord(
            who, Role(args["role"]), Wei(args["stake"]), Round(args["countsFrom"]), bytes(args["publicKey"])
        )

    def on_retired(self, args: Args, _: LogReceipt) -> None:
        self.state.attesters[address(args["who"])].retires_with = Round(args["retiresWith"])

    def on_attester_convicted(self, args: Args, _: LogReceipt) -> None:
        self.state.attesters[address(args["who"])].convicted_at = Round(args["round"])

    def on_seed_drawn(self, args: Args, _: LogReceipt) -> None:
        self._round(args).seed = digest(args["seed"])

    def on_whistle_seed_drawn(self, args: Args, _: LogReceipt) -> None:
        self._round(args).whistle_seed = digest(args["seed"])

    def on_attested(self, args: Args, _: LogReceipt) -> None:
        record = AttendanceRecord(Role(args["role"]), digest(args["root"]))
        self._round(args).attendance[address(args["who"])] = record

    def on_draw_revealed(self, args: Args, _: LogReceipt) -> None:
        self._round(args).attendance[address(args["who"])].y = bytes(args["y"])

    def on_leaf_revealed(self, args: Args, _: LogReceipt) -> None:
        leaves = self._round(args).attendance[address(args["who"])].leaves
        leaves[Seat(args["seat"]), int(args["duty"])] = digest(args["endRoot"])

    def on_duties_settled(self, args: Args, _: LogReceipt) -> None:
        self._round(args).attendance[address(args["attester"])].settled = True

    def on_round_settled(self, args: Args, _: LogReceipt) -> None:
        self._round(args).settled = True

    # --- games

    def on_game_opened(self, args: Args, log: LogReceipt) -> None:
        game_id = int(args["gameId"])
        self.state.games[game_id] = GameRecord(
            game_id=game_id,
            claim_id=digest(args["claimId"]),
            ref=ref_from_chain(args["ref"]),
            challenger=address(args["challenger"]),
            defender=address(args["defender"]),
            opened_tx=bytes(HexBytes(log["transactionHash"])),
        )

    def on_digests_reused(self, args: Args, _: LogReceipt) -> None:
        game = self.state.games[int(args["gameId"])]
        # The event of the transaction's own turn comes after this one.
        game.reused[len(game.moves)] = digest(args["list"])

    def on_moved(self, args: Args, log: LogReceipt) -> None:
        game = self.state.games[int(args["gameId"])]
        game.stage, game.turn, game.deadline = Stage(args["stage"]), Side(args["turn"]), int(args["deadline"])
        game.moves.append(MoveRecord(bytes(HexBytes(log["transactionHash"])), address(args["mover"]), game.stage))

    def on_deferred(self, args: Args, _: LogReceipt) -> None:
        game = self.state.games[int(args["gameId"])]
        game.deferrals[Side.DEFENDER if address(args["mover"]) == game.defender else Side.CHALLENGER] += 1

    def on_verdict(self, args: Args, log: LogReceipt) -> None:
        game = self.state.games[int(args["gameId"])]
        loser = address(args["loser"])
        game.verdict = Verdict(
            loser,
            Side.DEFENDER if loser == game.defender else Side.CHALLENGER,
            Outcome(args["outcome"]),
            args["family"],
            args["node"],
            args["element"],
            args["term"],
            args["expected"],
            args["claimed"],
        )
        game.verdict_tx = bytes(HexBytes(log["transactionHash"]))
        game.stage, game.turn = Stage.OVER, Side.NONE
        ref = game.ref
        if game.convicted and ref.kind is ClaimKind.OUTER:
            self.state.rounds[ref.round].outers[ref.outer_root].posters[ref.party] = Fate.CONVICTED
        elif game.convicted:
            commitment = self.state.rounds[ref.round].commitments.get(ref.seat)
            if ref.kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE) and commitment is not None:
                commitment.convicted = True

    def on_lock_taken(self, args: Args, _: LogReceipt) -> None:
        game = self.state.games[int(args["gameId"])]
        game.bounty, game.burned = Wei(args["bounty"]), Wei(args["burned"])
        game.taken = Wei(args["bounty"] + args["burned"] + args["reserved"])


_HANDLERS: Final[dict[tuple[str, str], Callable[[Index, Args, LogReceipt], None]]] = {
    ("rounds", "Joined"): Index.on_joined,
    ("rounds", "Left"): Index.on_left,
    ("rounds", "RoundOpened"): Index.on_round_opened,
    ("rounds", "Committed"): Index.on_committed,
    ("rounds", "Receipted"): Index.on_receipted,
    ("rounds", "Completed"): Index.on_completed,
    ("rounds", "Excluded"): Index.on_excluded,
    ("rounds", "Closed"): Index.on_closed,
    ("outers", "InclusionFixed"): Index.on_inclusion_fixed,
    ("outers", "OuterPosted"): Index.on_outer_posted,
    ("outers", "OuterClosedAs"): Index.on_outer_closed,
    ("outers", "RescueBegan"): Index.on_rescue_began,
    ("outers", "RootFell"): Index.on_root_fell,
    ("audit", "Registered"): Index.on_registered,
    ("audit", "Retired"): Index.on_retired,
    ("audit", "AttesterConvictedAt"): Index.on_attester_convicted,
    ("audit", "SeedDrawn"): Index.on_seed_drawn,
    ("audit", "WhistleSeedDrawn"): Index.on_whistle_seed_drawn,
    ("audit", "Attested"): Index.on_attested,
    ("audit", "DrawRevealed"): Index.on_draw_revealed,
    ("audit", "LeafRevealed"): Index.on_leaf_revealed,
    ("settlement", "DutiesSettled"): Index.on_duties_settled,
    ("settlement", "RoundSettled"): Index.on_round_settled,
    ("game", "GameOpened"): Index.on_game_opened,
    ("game", "DigestsReused"): Index.on_digests_reused,
    ("game", "Moved"): Index.on_moved,
    ("game", "Deferred"): Index.on_deferred,
    ("game", "Verdict"): Index.on_verdict,
    ("game", "LockTaken"): Index.on_lock_taken,
}


def address(value: Any) -> Address:
    """The 20 bytes of an address as web3 gives it."""
    return Address(bytes.fromhex(str(value)[2:]))


def digest(value: Any) -> Digest:
    """A bytes32 as web3 gives it."""
    return Digest(bytes(value))
