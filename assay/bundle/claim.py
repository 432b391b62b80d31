"""How a claim's X, Y and id follow from what was sent to the chain (docs/protocol.md, sections 4 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from assay.bundle.calls import DecodedCall
from assay.bundle.document import Bundle, ClaimOrigin
from assay.bundle.errors import BundleContradiction
from assay.protocol.digests import state_digest
from assay.protocol.run.charter import Charter, ProgramRef
from assay.protocol.run.claims import ClaimKind, claim_id
from assay.protocol.run.outer import outer_input, outer_state, update_input, update_state
from assay.protocol.types import SEATS, Address, Digest


@dataclass(frozen=True, slots=True)
class Origination:
    """A call that a claim follows from: who sent it, and to which contract."""

    sender: Address
    to: Address
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


BOOKS: Final = {
    ClaimKind.INTERVAL: ("rounds",),
    ClaimKind.UPDATE: ("rounds",),
    ClaimKind.OUTER: ("outers",),
    ClaimKind.ATTESTATION: ("rounds", "audit"),
}
"""The contracts that a claim of a kind follows from."""


def derive_claim(bundle: Bundle, charter: Charter, originations: Sequence[Origination]) -> DerivedClaim:
    """The claim that `bundle.ref` names. Raises BundleContradiction when its origin does not give it."""
    ref, origin, training = bundle.ref, bundle.origin, charter.training
    named = sorted(bundle.contracts.named())
    _same("the list of contracts", named, sorted(("charter", "game", *BOOKS.get(ref.kind, ()))))
    _same("the number of its origins", len(originations), len(BOOKS[ref.kind]))
    base = outer_state(origin.base_parameters, origin.base_momentum)
    if ref.kind is ClaimKind.OUTER:
        posted = _one(originations, "postOuter", bundle.contracts.outers)
        round_, named_base, named_x, parameters, momentum = posted.call.arguments
        _same("the round of the outer step", round_, ref.round)
        _same("its poster", posted.sender, ref.party)
        _same("the outer root that it starts from", base, bytes(named_base))
        y = state_digest((Digest(parameters), Digest(momentum)))
        _same("the outer root that it ends in", y, ref.outer_root)
        updates = _slots(origin, training.zero_update)
        x = outer_input(origin.base_parameters, origin.base_momentum, updates, training.zero_update, origin.mask)
        _same("the X that its poster named", x, bytes(named_x))
        return _derived(bundle, posted.sender, x, y, charter.outer, 1)

    _same("the inclusion", (origin.mask, origin.updates), (0, ()))
    committed = _one(originations, "commit", bundle.contracts.rounds)
    round_, seat, roots, end_lists, update, named_base = committed.call.arguments
    _same("the round of the commitment", round_, ref.round)
    _same("its seat", seat, ref.seat)
    _same("the outer root that it starts from", base, bytes(named_base))
    _same("the number of its roots", len(roots), training.intervals + 1)
    if ref.duty < training.intervals:
        x, y = Digest(roots[ref.duty]), Digest(roots[ref.duty + 1])
        program, steps = charter.step, training.steps_per_interval
    elif ref.duty == training.intervals:
        x = update_input(origin.base_parameters, Digest(end_lists[0]))
        y = update_state(Digest(update))
        program, steps = charter.update, 1
    else:
        raise BundleContradiction(f"A commitment has no duty {ref.duty}.")
    wanted = ClaimKind.INTERVAL if ref.duty < training.intervals else ClaimKind.UPDATE
    claimant = committed.sender
    if ref.kind is ClaimKind.ATTESTATION:
        revealed = _one(originations, "revealLeaves", bundle.contracts.audit)
        _same("the round of the revealed leaf", revealed.call.arguments[0], ref.round)
        _same("the attester", revealed.sender, ref.party)
        claimant, y = revealed.sender, _leaf_end(revealed.call.arguments[1], ref.seat, ref.duty)
    else:
        _same("the kind of the claim", ref.kind.name, wanted.name)
    return _derived(bundle, claimant, x, y, program, steps)


def _derived(bundle: Bundle, claimant: Address, x: Digest, y: Digest, program: ProgramRef, steps: int) -> DerivedClaim:
    name = claim_id(bundle.chain_id, bundle.contracts.charter, bundle.run, bundle.ref.kind, claimant, x, y)
    _same("the claim's id", name, bundle.claim_id)
    return DerivedClaim(name, claimant, x, y, program, steps)


def _one(originations: Sequence[Origination], name: str, to: Address | None) -> Origination:
    found = [o for o in originations if o.call.name == name]
    if len(found) != 1 or found[0].to != to:
        raise BundleContradiction(f"The claim does not follow from one call of {name} to the run's own contract.")
    return found[0]


def _leaf_end(leaves: Sequence[Any], seat: int, duty: int) -> Digest:
    """The end root of the leaf revealed for a duty."""
    ends = [Digest(end) for at, number, end, _ in leaves if (at, number) == (seat, duty)]
    if len(ends) != 1:
        raise BundleContradiction(f"No single leaf was revealed for duty {duty} of seat {seat}.")
    return ends[0]


def _slots(origin: ClaimOrigin, zero: Digest) -> tuple[Digest, ...]:
    """The update list root in each slot of an outer step; the all-zero one where a seat is not included."""
    _same("the number of update slots", len(origin.updates), SEATS)
    for seat, update in enumerate(origin.updates):
        if not origin.mask >> seat & 1:
            _same(f"the update of seat {seat}, which is not included,", update, zero)
    return origin.updates


def _same(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise BundleContradiction(
            f"In this bundle {what} is {_shown(got)}, and elsewhere it is {_shown(wanted)}.",
            got=_shown(got),
            wanted=_shown(wanted),
        )


def _shown(value: object) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)
