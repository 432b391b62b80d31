"""The watchdog itself: reads chain and store, recomputes what is disputed, and keeps the alarms in force.

It holds no key and writes nothing, neither to the chain nor to the store. What it cannot fetch it says it cannot check.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from eth_utils.address import to_checksum_address

from assay.protocol.errors import AssayError
from assay.protocol.game.clock import LARGEST, most_moves
from assay.protocol.game.shapes import shape_of
from assay.protocol.game.state import GameConfig, GameState
from assay.protocol.game.table import Side
from assay.protocol.model.games import game_lock
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Wei
from assay.watchdog.alarms import Alarm, AlarmKind, CommittedFacts, GameFacts, GameTerms, judge_committed, judge_game
from assay.watchdog.looking import GAS_PER_MOVE, USUALLY, ChainWatch, WatchOptions
from assay.watchdog.standing import favoured
from assay_ledger.bindings.game import ChallengeCommitted, ChallengeUncommitted
from assay_ledger.bindings.structs import ClaimViewFields
from assay_ledger.contract import Event, Logged, Query
from assay_ledger.index.archive import Archive, Computation, Compute
from assay_ledger.index.indexer import Index
from assay_ledger.index.publications import Publications
from assay_ledger.index.records import GameRecord
from assay_ledger.index.run import Run
from assay_ledger.index.view import Facts, Memory, RunView
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.objects import Objects

MAX_TRACES: Final = 2
"""Claims whose runs are kept; a trace holds states between steps and the values of a few nodes."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A claim as we computed it: the true run, and whether it ends where it is claimed to."""

    trace: Trace
    holds: bool


class Watchdog(ChainWatch):
    """Follows one run. Without a store (or without `compute`) nothing is recomputed and only `parties` are honest."""

    def __init__(
        self,
        run: Run,
        store: ArtifactStore | None = None,
        compute: Compute | None = None,
        options: WatchOptions = USUALLY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(run, options, clock, wall)
        self.run: Run = run
        self._compute = compute
        self._facts = Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
        objects = None if store is None or compute is None else Objects(store)
        self._archive = None if objects is None else Archive(self._facts, objects, Publications(run.chain, objects))
        self._terms = GameTerms(
            run.charter.economics.challenge_bond, options.near, GAS_PER_MOVE, GameConfig.of(run.charter).reveal_window
        )
        self._index = Index(run, [self._on_event])
        self._committed: dict[Digest, Address] = {}
        self._honest: dict[int, Side] = {}
        self._truths: OrderedDict[ClaimRef, Truth] = OrderedDict()
        self._standing: dict[int, tuple[GameState, Side]] = {}

    @property
    def head(self) -> tuple[int, int]:
        """Number and chain time of the last block read."""
        return self._index.state.head.number, self._index.state.head.timestamp

    def sync(self) -> None:
        """See ChainWatch."""
        self._index.sync()

    def found(self) -> Iterator[Alarm]:
        """See ChainWatch."""
        now = self.head[1]
        yield from self.of_the_chain()
        for _, record in sorted(self._index.state.games.items()):
            if record.is_over:
                yield from self._lost(record)
            else:
                yield from self._open(record, now)
        for commitment, owner in sorted(self._committed.items()):
            if not self.options.parties or owner in self.options.parties:
                yield from self._pending(commitment, owner, now)

    # --- committed challenges

    def _on_event(self, contract: str, found: Logged[Event]) -> None:
        match found.event:
            case ChallengeCommitted(commitment, challenger):
                self._committed[commitment] = challenger
            case ChallengeUncommitted(commitment):
                self._committed.pop(commitment, None)

    def _pending(self, commitment: Digest, owner: Address, now: int) -> Iterator[Alarm]:
        ask, run = self.run.chain.ask, self.run
        _, _, committed_at = ask(run.game.committed_challenge(commitment))
        free = ask(run.vault.free(owner))
        if committed_at:
            yield from judge_committed(CommittedFacts(commitment, owner, committed_at, free), now, self._terms)

    # --- games

    def _lost(self, record: GameRecord) -> Iterator[Alarm]:
        """A verdict against somebody honest: a party named, or the side that our own run had found right."""
        verdict = record.verdict
        assert verdict is not None
        honest = self._honest.get(record.game_id, Side.NONE)
        if verdict.loser in self.options.parties or (honest is not Side.NONE and honest is verdict.side):
            name = verdict.side.name.lower()
            text = f"the honest {name} has lost ({verdict.outcome.name})"
            figures = (("side", name), ("party", "0x" + verdict.loser.hex()), ("outcome", verdict.outcome.name))
            yield Alarm(AlarmKind.HONEST_LOST, f"game {record.game_id}", text, figures)

    def _open(self, record: GameRecord, now: int) -> Iterator[Alarm]:
        parties = self.options.parties
        if parties and not parties & {record.defender, record.challenger}:
            return
        run, ask = self.run, self.run.chain.ask
        state = run.games.game(record.game_id).state
        if state.is_over:
            # Ended since the index was read; the next look has its verdict.
            return
        about = f"game {record.game_id}"
        try:
            truth = self._truth(record)
        except AssayError as error:
            truth = None
            yield Alarm(AlarmKind.CANNOT_CHECK, about, f"its claim cannot be recomputed here: {error.explain()}")
        honest = self._honest_side(record, truth)
        self._honest[record.game_id] = honest
        claim = ask(self._claim(record.ref))
        _, claim_lock = ask(run.vault.lock_of(state.claim.lock_id))
        _, bond_locked = ask(run.vault.lock_of(game_lock(record.game_id)))
        eth, mover = run.chain.w3.eth, state.party(state.turn)
        facts = GameFacts(
            state=state,
            honest=honest,
            favoured=Side.NONE if truth is None else self._favoured(record, state, truth),
            standing_known=truth is not None,
            bond_locked=bond_locked,
            claim_lock=claim_lock,
            claim_lock_promised=None if claim.fallen else claim.lock_amount,
            coin=Wei(run.chain.read(lambda: eth.get_balance(to_checksum_address(mover)))),
            gas_price=Wei(run.chain.read(lambda: eth.gas_price)),
            moves_left=self._moves_left(record, state.turn, truth),
        )
        yield from judge_game(facts, now, self._terms)

    def _honest_side(self, record: GameRecord, truth: Truth | None) -> Side:
        """A party that we watch for is honest; else one that says what our own run says."""
        named = [s for s in (Side.DEFENDER, Side.CHALLENGER) if _party(record, s) in self.options.parties]
        if len(named) == 1:
            return named[0]
        if truth is None:
            return Side.NONE
        return Side.DEFENDER if truth.holds else Side.CHALLENGER

    def _favoured(self, record: GameRecord, state: GameState, truth: Truth) -> Side:
        known = self._standing.get(record.game_id)
        if known is None or known[0] != state:
            side = favoured(state, self.run.games.posted(state), truth.trace, self.run.charter.clocks.arity)
            self._standing[record.game_id] = known = state, side
        return known[1]

    def _moves_left(self, record: GameRecord, side: Side, truth: Truth | None) -> int:
        """The most moves that a side can still have to make; by the encodings' limits where the program is unknown."""
        shape = LARGEST if truth is None else shape_of(truth.trace.program, truth.trace.steps)
        most = most_moves(shape, self.run.charter.clocks.arity)[side - 1]
        # The first event of a game is its opening.
        made = sum(m.mover == _party(record, side) for m in record.moves[1:])
        return max(most - made, 1)

    def _claim(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """What the book of a claim says of it."""
        if ref.kind is ClaimKind.OUTER:
            return self.run.outers.claim_of(ref)
        return self.run.audit.claim_of(ref) if ref.kind is ClaimKind.ATTESTATION else self.run.rounds.claim_of(ref)

    # --- what is true

    def _truth(self, record: GameRecord) -> Truth | None:
        """Our own run of a disputed claim; None without a store. Raises what fetching raises."""
        archive, compute = self._archive, self._compute
        if archive is None or compute is None:
            return None
        if record.ref not in self._truths:
            job, claimed = self._job(archive, record.ref)
            trace = compute.trace(job.program, job.lists, job.steps)
            self._truths[record.ref] = Truth(trace, trace.state_root(job.steps) == claimed)
            while len(self._truths) > MAX_TRACES:
                self._truths.popitem(last=False)
        self._truths.move_to_end(record.ref)
        return self._truths[record.ref]

    def _job(self, archive: Archive, ref: ClaimRef) -> tuple[Computation, Digest]:
        """Program, X and steps of a claim, and the end that is claimed."""
        state = self._index.state
        view = RunView(self._facts, NO_ADDRESS, state.head.timestamp, state.head.number, state, Memory())
        record = state.rounds[ref.round]
        if ref.kind is ClaimKind.OUTER:
            base = record.outers[ref.outer_root].base
            mask, x = record.inclusions[base]
            return archive.outer_job(view, ref.round, base, mask, x), ref.outer_root
        duty = view.duty(record, record.commitments[ref.seat], ref.duty)
        attested = ref.kind is ClaimKind.ATTESTATION
        claimed = record.attendance[ref.party].leaves[ref.seat, ref.duty] if attested else duty.y
        return archive.job(view, duty), claimed


def _party(record: GameRecord, side: Side) -> Address:
    return record.defender if side is Side.DEFENDER else record.challenger
