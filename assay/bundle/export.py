"""Gathers the evidence of a dispute from a chain: the transactions themselves, as their senders signed them."""

from __future__ import annotations

from typing import Any

from hexbytes import HexBytes
from web3.exceptions import Web3Exception

from assay.bundle.claim import BOOKS
from assay.bundle.document import Bundle, ClaimOrigin, Contracts, MinedTransaction, Reused
from assay.bundle.errors import GameNotOver, GameUnknown, MoveNotDirect
from assay.bundle.signed import FeeMarketCall, read_signed
from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import SEATS, Address, Digest, Round, Seat
from assay_ledger.bindings.audit import LeafRevealed
from assay_ledger.bindings.game import DigestsPosted
from assay_ledger.bindings.outers import OuterPosted
from assay_ledger.chain.client import Chain
from assay_ledger.contract import E, Search
from assay_ledger.index.records import GameRecord, RunState
from assay_ledger.index.run import Run


def export_bundle(run: Run, state: RunState, game_id: int) -> Bundle:
    """The evidence of a game that is over; `state` are the run's records.

    Raises GameUnknown, GameNotOver, MoveNotDirect, UnavailableError.
    """
    bundle = gather(run, state, game_id)
    if bundle.verdict is None:
        raise GameNotOver(f"Game {game_id} has no verdict yet.")
    return bundle


def gather(run: Run, state: RunState, game_id: int) -> Bundle:
    """The same for a game that may still be played; its verdict is None then."""
    game = state.games.get(game_id)
    if game is None:
        raise GameUnknown(f"The run has {len(state.games)} games; there is no game {game_id}.")
    transactions = [_direct(run, fetch(run.chain, move.tx_hash)) for move in game.moves]
    modules = run.modules
    return Bundle(
        chain_id=run.chain.chain_id,
        contracts=Contracts(
            run.address, modules.game, **{name: getattr(modules, name) for name in BOOKS[game.ref.kind]}
        ),
        run=run.run_id,
        terms=run.charter.encoded,
        claim_id=game.claim_id,
        ref=game.ref,
        origin=_origin(run, state, game),
        game_id=game_id,
        transactions=tuple(transactions),
        verdict=game.verdict,
        reused=tuple(_reused(run, state, game, after, list_) for after, list_ in sorted(game.reused.items())),
    )


def _reused(run: Run, state: RunState, game: GameRecord, after: int, list_: Digest) -> Reused:
    """The claimant's own posting of a list that counted in this game; others may have posted the same one."""
    posted = run.chain.events(DigestsPosted.search(run.game.address, list=list_), run.first_block)
    mine = {g.game_id for g in state.games.values() if g.defender == game.defender and g is not game}
    found = next((logged for logged in posted if logged.event.game_id in mine), None)
    if found is None:
        raise UnavailableError("The node does not have the posting of a list that was reused.", code="EventsMissing")
    return Reused(after, _direct(run, fetch(run.chain, found.transaction)))


def _direct(run: Run, sent: MinedTransaction) -> MinedTransaction:
    """The transaction, when its sender called the game itself. Raises MoveNotDirect."""
    if read_signed(sent.raw).to != run.modules.game:
        raise MoveNotDirect(f"Transaction 0x{sent.hash.hex()} reaches the game through another contract.")
    return sent


def _origin(run: Run, state: RunState, game: GameRecord) -> ClaimOrigin:
    ref, record = game.ref, state.rounds[game.ref.round]
    if ref.kind is ClaimKind.OUTER:
        outer = record.outers[ref.outer_root]
        base = outer.bases[ref.party]
        mask, _ = record.inclusions[base]
        parameters, momentum = _base_lists(run, state, ref.round, base)
        zero = run.charter.training.zero_update
        updates = [record.commitments[Seat(k)].update if mask >> k & 1 else zero for k in range(SEATS)]
        search = OuterPosted.search(run.outers.address, round=ref.round, root=ref.outer_root, poster=ref.party)
        posted = _first(run, search)
        return ClaimOrigin((fetch(run.chain, posted),), parameters, momentum, mask, tuple(updates))
    commitment = record.commitments[ref.seat]
    parameters, momentum = _base_lists(run, state, ref.round, commitment.base)
    transactions = [fetch(run.chain, commitment.tx_hash)]
    if ref.kind is ClaimKind.ATTESTATION:
        revealed = _first(run, LeafRevealed.search(run.audit.address, round=ref.round, who=ref.party))
        transactions.append(fetch(run.chain, revealed))
    return ClaimOrigin(tuple(transactions), parameters, momentum)


def _base_lists(run: Run, state: RunState, round_: Round, base: Digest) -> tuple[Digest, Digest]:
    """The list roots of the outer root that a round starts from."""
    if round_ == 0:
        return run.charter.training.parameters, run.charter.training.momentum
    outer = state.rounds[round_ - 1].outers[base]
    return outer.parameters, outer.momentum


def _first(run: Run, search: Search[E]) -> bytes:
    """The hash of the transaction that brought the first of these events."""
    found = run.chain.events(search, run.first_block)
    if not found:
        raise UnavailableError("The node does not have the events of this claim.", code="EventsMissing")
    return found[0].transaction


def fetch(chain: Chain, tx_hash: bytes) -> MinedTransaction:
    """A mined transaction as it was signed. Raises UnavailableError when the node does not give it whole."""
    found = chain.read(lambda: chain.w3.eth.get_transaction(HexBytes(tx_hash)))
    block = chain.read(lambda: chain.w3.eth.get_block(found["blockNumber"]))
    raw = _rebuilt(dict(found)) or _asked(chain, tx_hash)
    if raw is None or keccak(raw) != tx_hash:
        raise UnavailableError(
            f"The node does not give the signed bytes of 0x{tx_hash.hex()}.",
            code="TransactionIncomplete",
            remedy="Name another node with --rpc-url.",
        )
    sender = Address(bytes.fromhex(str(found["from"])[2:]))
    return MinedTransaction(Digest(tx_hash), sender, int(found["blockNumber"]), int(block["timestamp"]), raw)


def _rebuilt(found: dict[str, Any]) -> bytes | None:
    """The signed bytes from a node's description of a transaction; None for kinds that this does not cover."""
    if int(found.get("type", 0)) != 2:
        return None
    accesses = [
        (bytes(HexBytes(entry["address"])), tuple(bytes(HexBytes(key)) for key in entry["storageKeys"]))
        for entry in found.get("accessList", ())
    ]
    call = FeeMarketCall(
        chain_id=int(found["chainId"]),
        nonce=int(found["nonce"]),
        tip=int(found["maxPriorityFeePerGas"]),
        max_fee=int(found["maxFeePerGas"]),
        gas=int(found["gas"]),
        to=bytes(HexBytes(found["to"])),
        value=int(found["value"]),
        data=bytes(HexBytes(found["input"])),
        access_list=tuple(accesses),
        parity=_int(found.get("yParity", found["v"])),
        r=int.from_bytes(HexBytes(found["r"]), "big"),
        s=int.from_bytes(HexBytes(found["s"]), "big"),
    )
    return call.encode()


def _int(value: Any) -> int:
    """A number as nodes and libraries give it."""
    return int(value, 16) if isinstance(value, str) else int(value)


def _asked(chain: Chain, tx_hash: bytes) -> bytes | None:
    """The signed bytes from nodes that keep them."""
    try:
        return bytes(chain.read(lambda: chain.w3.eth.get_raw_transaction(HexBytes(tx_hash))))
    except (AssayError, Web3Exception):
        return None
