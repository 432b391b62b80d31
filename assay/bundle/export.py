"""Gathers the evidence of a dispute from a chain: the transactions themselves, as their senders signed them."""

from __future__ import annotations

from typing import Any

from hexbytes import HexBytes
from web3.exceptions import Web3Exception

from assay.bundle.claim import BOOKS
from assay.bundle.document import Bundle, ClaimOrigin, Contracts, MinedTransaction, Reused
from assay.bundle.errors import GameNotOver, GameUnknown, MoveNotDirect
from assay.bundle.signed import FeeMarketCall, read_signed
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.game import DigestsPosted
from assay_ledger.chain.client import Chain
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.told_generations import party_of
from assay_ledger.rounds.view import RunView


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
    transactions = [_direct(run, "game", move.tx_hash) for move in game.moves[1:]]
    opening = fetch(run.chain, game.opened_tx)
    is_revealed = read_signed(opening.raw).to == run.modules.challenges
    transactions.insert(0, opening if is_revealed else _direct(run, "game", game.opened_tx))
    books = (*BOOKS[game.ref.kind], *(("challenges",) if is_revealed else ()))
    return Bundle(
        chain_id=run.chain.chain_id,
        contracts=Contracts(run.address, run.modules.game, **{name: getattr(run.modules, name) for name in books}),
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
    return Reused(after, _direct(run, "game", found.transaction))


def _direct(run: Run, name: str, tx_hash: bytes) -> MinedTransaction:
    """A transaction whose sender called this contract of the run itself. Raises MoveNotDirect."""
    sent = fetch(run.chain, tx_hash)
    if read_signed(sent.raw).to != getattr(run.modules, name):
        raise MoveNotDirect(f"Transaction 0x{tx_hash.hex()} reaches the run's {name} through another contract.")
    return sent


def _origin(run: Run, state: RunState, game: GameRecord) -> ClaimOrigin:
    ref, view = game.ref, RunView(run.charter, run.facts, NO_ADDRESS, state)
    base = view.base(ref.round)
    if ref.kind is ClaimKind.OUTER:
        opening = state.openings[ref.round + 1, party_of(ref)]
        counted = tuple(sorted(view.counted(ref.round)[0]))
        updates = tuple(state.works[ref.round, seat].work.update for seat in counted)
        opened = _direct(run, "generations", opening.tx_hash)
        return ClaimOrigin((opened,), base.parameters, base.momentum, counted, updates)
    committed = _direct(run, "commitments", state.works[ref.round, ref.seat].tx_hash)
    accusation = state.accusations.get(ref.outer_root)
    accuser = ZERO if accusation is None else accusation.by
    if ref.kind is not ClaimKind.ATTESTATION:
        return ClaimOrigin((committed,), base.parameters, base.momentum, accuser=accuser)
    found = state.attestations[ref.outer_root if accusation is None else accusation.against]
    # The ticket's own key is drawn with the seed; what else it answers for is said in its opening.
    seed = ZERO if ref.duty else view.epochs[found.epoch].seed
    assert seed is not None  # nothing is opened in an epoch without one
    opened = _direct(run, "duties", found.tx_hash)
    return ClaimOrigin(
        (committed, opened), base.parameters, base.momentum, epoch=found.epoch, seed=seed, accuser=accuser
    )


def fetch(chain: Chain, tx_hash: bytes) -> MinedTransaction:
    """A mined transaction as it was signed. Raises UnavailableError when the node does not give it whole."""

    def ask() -> tuple[dict[str, Any], int]:
        found = chain.w3.eth.get_transaction(HexBytes(tx_hash))
        return dict(found), int(found["blockNumber"])

    found, number = chain.read(ask)
    raw = _rebuilt(found) or _asked(chain, tx_hash)
    if raw is None or keccak(raw) != tx_hash:
        raise UnavailableError(
            f"The node does not give the signed bytes of 0x{tx_hash.hex()}.",
            code="TransactionIncomplete",
            remedy="Name another node with --rpc-url.",
        )
    sender = Address(bytes.fromhex(str(found["from"])[2:]))
    return MinedTransaction(Digest(tx_hash), sender, number, int(chain.block_at(number)["timestamp"]), raw)


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
