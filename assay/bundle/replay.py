"""Replays a dispute from its bundle: no chain, no torch, nothing on trust but order, time and fee of transactions.

Every sender is recovered from a signature, every digest recomputed, every move judged by the rules of
`protocol.game.machine`,
and the element in dispute computed with the reference arithmetic. Source: docs/protocol.md, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from assay.bundle.calls import DecodedCall, decode_call, move_of, ref_of
from assay.bundle.claim import DerivedClaim, Origination, derive_claim
from assay.bundle.document import Bundle, MinedTransaction, Reused
from assay.bundle.errors import BundleContradiction, BundleMalformed
from assay.bundle.signed import SignedCall, read_signed
from assay.protocol.digests import ZERO, digest_list_hash, keccak
from assay.protocol.errors import AssayError, InvariantError
from assay.protocol.game.errors import GameError
from assay.protocol.game.machine import open_game, process_defer, process_move, process_timeout
from assay.protocol.game.moves import AnyMove, BisectDigests, OpenNode, PostDigests
from assay.protocol.game.state import DisputedClaim, GameState, Outcome, ProgramHeader, Rules, Verdict
from assay.protocol.game.table import POSTINGS, Side, Stage, Turn
from assay.protocol.program.encoding import MalformedError, decode_header, decode_node
from assay.protocol.program.nodes import Node
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.run.claims import ClaimRef
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter
from assay.protocol.types import Digest

TIMEOUT: Final = "timeout"
DEFER: Final = "defer"


class VerdictValues(Enum):
    """What the two values of a verdict are: nothing after a timeout, tensor roots, words of an element, or parts."""

    NONE = "none"
    DIGESTS = "digests"
    WORDS = "words"
    PARTS = "parts"


@dataclass(frozen=True, slots=True)
class GameStep:
    """One transaction of a game: what it did, and the game before and after. `move`: None for timeout and deferral."""

    sent: MinedTransaction
    name: str
    side: Side
    move: AnyMove | None
    before: GameState
    after: GameState

    @property
    def reuses(self) -> bool:
        """Whether a list that the claimant posted in another game counts as posted after this transaction."""
        challengers = self.after.turn is Side.CHALLENGER and Turn(self.after.stage, Side.DEFENDER) in POSTINGS
        return challengers and isinstance(self.move, BisectDigests)


@dataclass(frozen=True, slots=True)
class ReplayedDispute:
    """A dispute replayed. `own_root` is the end root that a third party had committed to, else None."""

    charter: RunCharter
    ref: ClaimRef
    claim: DerivedClaim
    opened: MinedTransaction
    own_root: Digest | None
    begin: GameState
    steps: tuple[GameStep, ...]

    @property
    def state(self) -> GameState:
        """The game after its last transaction."""
        return self.steps[-1].after if self.steps else self.begin

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that follows from the transactions."""
        return self.state.verdict

    @property
    def node(self) -> Node | None:
        """The node in dispute; None when none was opened, or its descriptor is malformed."""
        opened = next((s.move for s in self.steps if isinstance(s.move, OpenNode)), None)
        if opened is None:
            return None
        try:
            return decode_node(opened.node)
        except MalformedError:
            return None

    @property
    def values(self) -> VerdictValues:
        """What `expected` and `claimed` of the verdict are."""
        last = self.steps[-1].before if self.steps else self.begin
        if self.verdict is None or self.verdict.outcome is not Outcome.LEAF:
            return VerdictValues.NONE
        if last.stage in (Stage.ROOT, Stage.SLOT):
            return VerdictValues.DIGESTS
        return VerdictValues.WORDS if last.stage is Stage.LEAF or last.whole else VerdictValues.PARTS


def verify(bundle: Bundle) -> ReplayedDispute:
    """Replays a bundle and compares the verdict field by field with the one that it records.

    Raises BundleMalformed when it cannot be read, BundleContradiction when it contradicts itself.
    """
    found = replay(bundle)
    if found.verdict is None:
        raise BundleContradiction("After the last transaction the game has no verdict.")
    if bundle.verdict is None:
        raise BundleMalformed("The bundle records no verdict.")
    wrong = [f.name for f in fields(Verdict) if getattr(found.verdict, f.name) != getattr(bundle.verdict, f.name)]
    if wrong:
        raise BundleContradiction(
            f"The transactions give another verdict than the one recorded: {', '.join(wrong)} differ.",
            recorded=str(bundle.verdict),
            replayed=str(found.verdict),
        )
    return found


def replay(bundle: Bundle) -> ReplayedDispute:
    """The dispute as its transactions make it, over or not. Raises BundleMalformed, BundleContradiction."""
    charter = _charter(bundle)
    claim = derive_claim(bundle, charter, [_origination(bundle, sent) for sent in bundle.origin.transactions])
    rules = _rules(charter, claim.program)
    if not bundle.transactions:
        raise BundleMalformed("The bundle has no transaction that opens the game.")
    opening, *rest = bundle.transactions
    reused = {entry.after: entry for entry in bundle.reused}
    if len(reused) < len(bundle.reused) or max(reused, default=0) >= len(bundle.transactions):
        raise BundleMalformed("A reused list belongs to no transaction, or two of them to one.")
    lists = {number: _list_of(bundle, entry, claim) for number, entry in reused.items()}
    state, own_root = _open(bundle, opening, claim, _knowing(rules, lists.get(0)))
    _check_reused(state, lists.get(0), rules)
    begin, steps = state, []
    for number, sent in enumerate(rest, 1):
        step = _step(bundle, number, sent, state, _knowing(rules, lists.get(number)))
        _check_reused(step.after, lists.get(number), rules)
        steps.append(step)
        state = step.after
    return ReplayedDispute(charter, bundle.ref, claim, opening, own_root, begin, tuple(steps))


def _charter(bundle: Bundle) -> RunCharter:
    if keccak(bundle.terms) != bundle.run:
        raise BundleContradiction("The terms do not hash to the run that the bundle names.")
    try:
        (values,) = decode([RUN_TERMS_TYPE], bundle.terms, strict=False)
        return RunCharter.from_tuple(values)
    except (DecodingError, OverflowError, ValueError, TypeError) as error:
        raise BundleMalformed(f"The terms cannot be decoded ({type(error).__name__}).") from error


def _rules(charter: RunCharter, program: ProgramRef) -> Rules:
    if not program.is_consistent:
        raise BundleContradiction("Header and tree of the disputed program do not hash to its root.")
    if charter.clocks.arity < 2:  # bounds of games are counted by dividing by it
        raise BundleMalformed(f"No game has such terms: an arity of {charter.clocks.arity}.")
    try:
        config = game_config(charter)
        header = ProgramHeader(program.root, program.tree, *decode_header(program.header))
    except (MalformedError, InvariantError) as error:
        raise BundleMalformed(f"No game has such terms: {error.message}") from error
    return Rules(config, header)


class _Anywhere(Mapping[Digest, Digest]):
    """One list, known at whatever position a transaction asks for; `_check_reused` looks at which that was."""

    def __init__(self, list_: Digest) -> None:
        self._list = list_

    def __getitem__(self, position: Digest) -> Digest:
        return self._list

    def __iter__(self) -> Iterator[Digest]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _list_of(bundle: Bundle, entry: Reused, claim: DerivedClaim) -> tuple[Digest, ...]:
    """The list that the claimant posted in another game."""
    signed, call = _read(bundle, entry.sent)
    found = move_of(call)
    if signed.sender != claim.claimant or found is None:
        raise BundleContradiction("A reused list was not posted by the claimant in the run's games.")
    game_id, move = found
    if not isinstance(move, PostDigests) or not move.digests or game_id == bundle.game_id:
        raise BundleContradiction("What is given for a reused list posts none in another game.")
    return move.digests


def _knowing(rules: Rules, digests: tuple[Digest, ...] | None) -> Rules:
    return rules if digests is None else replace(rules, position_cache=_Anywhere(digest_list_hash(digests)))


def _check_reused(state: GameState, digests: tuple[Digest, ...] | None, rules: Rules) -> None:
    """A list that counted as posted is one that could have been posted there."""
    if digests is None:
        return
    counts = state.turn is Side.CHALLENGER and Turn(state.stage, Side.DEFENDER) in POSTINGS
    if not counts or state.posted != digest_list_hash(digests):
        raise BundleContradiction("A reused list is given where the game waits for none.")
    if len(digests) != min(rules.config.arity, state.hi - state.lo) or digests[-1] != state.disputed:
        raise BundleContradiction("A reused list is not one of the position at which it counted.")


def _open(bundle: Bundle, sent: MinedTransaction, claim: DerivedClaim, rules: Rules) -> tuple[GameState, Digest | None]:
    signed, call = _read(bundle, sent)
    if call.name not in ("challenge", "revealChallenge"):
        raise BundleContradiction("The first transaction of the game does not open it.")
    if (call.contract == "game") is not (bundle.contracts.challenges is None):
        raise BundleContradiction("The contract of challenges is named, and the game was not opened by revealing one.")
    if ref_of(call.arguments[0]) != bundle.ref:
        raise BundleContradiction("The game was opened on another claim than the bundle names.")
    own_root = Digest(bytes(call.arguments[1])) if call.name == "revealChallenge" else None
    if own_root == claim.y:
        raise BundleContradiction("The game was opened by somebody who had committed to the claimed root.")
    disputed = DisputedClaim(claim.id, claim.claimant, claim.x, claim.y, claim.program.root, claim.steps, ZERO)
    try:
        return open_game(bundle.game_id, disputed, signed.sender, sent.time, rules), own_root
    except AssayError as error:
        raise BundleContradiction(f"No such game can be opened: {error.message}") from error


def _step(bundle: Bundle, number: int, sent: MinedTransaction, state: GameState, rules: Rules) -> GameStep:
    signed, call = _read(bundle, sent)
    side = state.turn
    try:
        if call.name == TIMEOUT:
            _check_game(call.arguments[0], bundle)
            return GameStep(sent, TIMEOUT, side, None, state, process_timeout(state, sent.time))
        if call.name == DEFER:
            _check_game(call.arguments[0], bundle)
            # That the fee was above the cap is taken on trust like the time: the contract did not refuse it.
            above = rules.config.chain.fee_cap + 1
            return GameStep(
                sent, DEFER, side, None, state, process_defer(state, signed.sender, sent.time, above, rules)
            )
        found = move_of(call)
        if found is None:
            raise BundleContradiction(f"Transaction {number} calls {call.name}, which is no move.")
        _check_game(found[0], bundle)
        after = process_move(state, signed.sender, found[1], sent.time, rules)
    except GameError as error:
        raise BundleContradiction(
            f"The rules refuse transaction {number} ({call.name}): {error.code}. {error.message}",
            transaction="0x" + sent.hash.hex(),
        ) from error
    return GameStep(sent, call.name, side, found[1], state, after)


def _check_game(game_id: int, bundle: Bundle) -> None:
    if game_id != bundle.game_id:
        raise BundleContradiction(f"A transaction is a move in game {game_id}, not in game {bundle.game_id}.")


def _origination(bundle: Bundle, sent: MinedTransaction) -> Origination:
    signed, call = _read(bundle, sent)
    return Origination(signed.sender, call)


def _read(bundle: Bundle, sent: MinedTransaction) -> tuple[SignedCall, DecodedCall]:
    """A transaction's call, once its bytes are found to be what the bundle says of them."""
    signed = read_signed(sent.raw)
    if signed.hash != sent.hash:
        raise BundleContradiction("A transaction has another hash than its bytes.", transaction="0x" + sent.hash.hex())
    # Without this anybody could put words into a party's mouth.
    if signed.sender != sent.sender:
        raise BundleContradiction("A transaction was not signed by its sender.", transaction="0x" + sent.hash.hex())
    if signed.chain_id not in (None, bundle.chain_id):
        raise BundleContradiction(f"A transaction was signed for chain {signed.chain_id}.")
    call = decode_call(signed.data)
    # Attack: true words, said to a contract of somebody's own.
    if signed.to != bundle.contracts.named().get(call.contract):
        raise BundleContradiction(f"A call of {call.name} is not addressed to the run's {call.contract}.")
    return signed, call
