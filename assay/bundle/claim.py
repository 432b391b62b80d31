"""How a claim's X, Y and id follow from what was sent to the chain (docs/protocol.md, sections 4 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from assay.bundle.calls import DecodedCall
from assay.bundle.document import Bundle
from assay.bundle.errors import BundleContradiction, BundleMalformed
from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import MAX_AUDITED, DutyResult
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, claim_id
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.state import list_root
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.structs import as_result, as_work


@dataclass(frozen=True, slots=True)
class Origination:
    """A call that a claim follows from, and who sent it."""

    sender: Address
    call: DecodedCall


@dataclass(frozen=True, slots=True)
class DerivedClaim:
    """A claim as it follows from its origin."""

    id: Digest
    claimant: Address
    x: Digest
    y: Digest
    program: ProgramRef
    steps: int


@dataclass(frozen=True, slots=True)
class _Claimed:
    """What a claim says, before it has a name."""

    claimant: Address
    x: Digest
    y: Digest
    program: ProgramRef
    steps: int = 1


BOOKS: Final = {
    ClaimKind.INTERVAL: ("commitments",),
    ClaimKind.UPDATE: ("commitments",),
    ClaimKind.OUTER: ("generations",),
    ClaimKind.ATTESTATION: ("commitments", "duties"),
}
"""The contracts that a claim of a kind follows from."""


def derive_claim(bundle: Bundle, charter: RunCharter, originations: Sequence[Origination]) -> DerivedClaim:
    """The claim that `bundle.ref` names.

    Raises BundleContradiction when its origin does not give it, BundleMalformed for terms that no run has.
    """
    books = BOOKS.get(bundle.ref.kind, ())
    named = {name for name in bundle.contracts.named() if name != "challenges"}
    _same("the list of contracts", sorted(named), sorted(("charter", "game", *books)))
    _same("what its origins call", [o.call.contract for o in originations], list(books))
    if not charter.by_seats or not charter.training.shards:
        raise BundleMalformed("Runs above 64 seats, or without data, have no bundles.")
    try:
        made = _claimed(bundle, charter, originations)
    except InvariantError as error:
        raise BundleMalformed(f"No claim has such terms: {error.message}") from error
    place = bundle.chain_id, bundle.contracts.charter, bundle.run
    name = claim_id(*place, bundle.ref.kind, made.claimant, made.x, made.y)
    _same("the claim's id", name, bundle.claim_id)
    return DerivedClaim(name, made.claimant, made.x, made.y, made.program, made.steps)


def _claimed(bundle: Bundle, charter: RunCharter, originations: Sequence[Origination]) -> _Claimed:
    origin = bundle.origin
    if bundle.ref.kind is ClaimKind.OUTER:
        _same("the accuser of a root", origin.accuser, ZERO)
        _same("the draw of a root", (origin.epoch, origin.seed), (0, ZERO))
        return _merged(bundle, charter, originations[0])
    _same("the inclusion", (origin.counted, origin.updates), ((), ()))
    committed = originations[0]
    round_, seat, tenure, named_base, decoded = committed.call.arguments
    work = as_work(decoded)
    _same("the round and the seat of the commitment", (round_, seat), (bundle.ref.round, bundle.ref.seat))
    _same("the base that it starts from", _base(bundle), bytes(named_base))
    if bundle.ref.kind is ClaimKind.ATTESTATION:
        return _attested(bundle, charter, tenure, work, originations[1])
    _same("the draw of a commitment", (origin.epoch, origin.seed), (0, ZERO))
    accused = ids.work_digest(bundle.ref.round, bundle.ref.seat, tenure, work)
    _same("the accusation that it is challenged by", bundle.ref.outer_root, _accusation(bundle, accused, ZERO))
    if bundle.ref.kind is ClaimKind.UPDATE:
        return _Claimed(committed.sender, *_update(bundle, work.ends[0], work.update), charter.update)
    x, steps = state_digest(_start(bundle, charter)), work.units * charter.training.steps_per_unit
    return _Claimed(committed.sender, x, state_digest(work.ends), charter.step, steps)


def _merged(bundle: Bundle, charter: RunCharter, opened: Origination) -> _Claimed:
    """Who opened a root of a generation, or put a lock behind it, says that the merge ends there."""
    ref, origin, seats = bundle.ref, bundle.origin, charter.training.seats
    if opened.call.name == "back":
        generation, root = opened.call.arguments
        _same("the generation of the root", generation, ref.round + 1)
        _same("its backer", opened.sender, ref.party)
        y = Digest(bytes(root))
    else:
        round_, seat, parameters, momentum, _ = opened.call.arguments
        _same("the round of the root", (round_, NO_ADDRESS), (ref.round, ref.party))
        _same("the seat that opened it", seat, ref.seat)
        y = state_digest((Digest(parameters), Digest(momentum)))
    _same("the root that was opened", y, ref.outer_root)
    _same("the part of the merge", ref.duty, 0)
    updates, counted = [charter.training.zero_update] * seats, sorted(set(origin.counted))
    if list(origin.counted) != counted or (counted and counted[-1] >= seats) or len(counted) != len(origin.updates):
        raise BundleContradiction("The seats that count are not seats of the run in their order, an update each.")
    for seat, update in zip(counted, origin.updates, strict=True):
        updates[seat] = update
    mask = sum(1 << seat for seat in counted)
    x = ids.merge_input(origin.base_parameters, origin.base_momentum, updates, mask)
    return _Claimed(opened.sender, x, y, charter.merge)


def _attested(bundle: Bundle, charter: RunCharter, tenure: int, work: SeatWork, opened: Origination) -> _Claimed:
    """A part of what a ticket found: the accumulator under one of its keys, or the update."""
    ref, origin = bundle.ref, bundle.origin
    number, seed, secret, results = opened.call.arguments
    ticket, target = TicketId(number), ids.work_digest(ref.round, ref.seat, tenure, work)
    found = None
    for result in map(as_result, results):
        duty = result.duty
        # A duty that names no attestation audits a commitment itself.
        if duty.attestation == ZERO and (duty.round, duty.seat) != (ref.round, ref.seat):
            continue
        audits = target if duty.attestation == ZERO else duty.attestation
        name = draws.attestation_id(origin.epoch, ticket, duty.kind, audits)
        if ref.outer_root == _accusation(bundle, name, name):
            found = result, audits
    if found is None:
        raise BundleContradiction("None of the results that the ticket opened is the one that is challenged.")
    result, audits = found
    _same("the commitment that was audited", result.work, work)
    audited = _audited_keys(result)
    _same("the number of accumulators", len(result.accumulators), 1 + len(audited))
    if ref.duty == len(result.accumulators):
        _same("the seed that nothing is drawn with", origin.seed, ZERO)
        return _Claimed(opened.sender, *_update(bundle, result.ends[0], result.update), charter.update)
    if ref.duty > len(result.accumulators):
        raise BundleContradiction(f"The result has no part {ref.duty}.")
    if ref.duty == 0:
        _same("the seed by which the call was answered", Digest(seed), origin.seed)
        key = draws.witness_key(Digest(secret), origin.seed, audits, ticket, result.duty.kind)
    else:
        _same("the seed that nothing is drawn with", origin.seed, ZERO)
        key = audited[ref.duty - 1]
    steps = work.units * charter.training.steps_per_unit
    x = draws.witnessed_state(_start(bundle, charter), key, ZERO)
    y = draws.witnessed_state(result.ends, key, result.accumulators[ref.duty])
    return _Claimed(opened.sender, x, y, charter.witness, steps)


def _audited_keys(result: DutyResult) -> tuple[Digest, ...]:
    """The keys of the attestation that a result audits, for which it answers too."""
    is_bounded = result.duty.attestation != ZERO and len(result.audited.keys) <= MAX_AUDITED
    return result.audited.keys if is_bounded else ()


def _accusation(bundle: Bundle, accused: Digest, nobody: Digest) -> Digest:
    """What a reference names: an accusation of `accused`, or `nobody` where a third party challenges."""
    by = bundle.origin.accuser
    return nobody if by == ZERO else draws.accusation_id(by, accused)


def _base(bundle: Bundle) -> Digest:
    return state_digest((bundle.origin.base_parameters, bundle.origin.base_momentum))


def _start(bundle: Bundle, charter: RunCharter) -> tuple[Digest, Digest, Digest]:
    """The lists that a seat's work starts from."""
    scalars = charter.round_scalars(bundle.ref.round, bundle.ref.seat)
    return bundle.origin.base_parameters, charter.training.zero_optimizer, list_root(scalars.roots())


def _update(bundle: Bundle, after: Digest, update: Digest) -> tuple[Digest, Digest]:
    """X and Y of an update: from the parameters before and after to what travels."""
    return state_digest((bundle.origin.base_parameters, after)), state_digest((update,))


def _same(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise BundleContradiction(
            f"In this bundle {what} is {_shown(got)}, and elsewhere it is {_shown(wanted)}.",
            got=_shown(got),
            wanted=_shown(wanted),
        )


def _shown(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)
