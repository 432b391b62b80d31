"""Claims: every field is bound by their ids, and by the challenges that are committed to."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from assay.protocol.errors import InvariantError
from assay.protocol.run.claims import (
    ClaimKind,
    ClaimRef,
    challenge_commitment,
    claim_id,
)
from assay.protocol.types import Address, Digest, Round, Seat

A, B = Address(b"\x0a" * 20), Address(b"\x0b" * 20)
X, Y, RUN = (Digest(sha256(n).digest()) for n in (b"x", b"y", b"run"))


def test_every_field_changes_the_claim_id() -> None:
    ids = {
        claim_id(1, A, RUN, ClaimKind.INTERVAL, B, X, Y),
        claim_id(2, A, RUN, ClaimKind.INTERVAL, B, X, Y),
        claim_id(1, B, RUN, ClaimKind.INTERVAL, B, X, Y),
        claim_id(1, A, X, ClaimKind.INTERVAL, B, X, Y),
        claim_id(1, A, RUN, ClaimKind.UPDATE, B, X, Y),
        claim_id(1, A, RUN, ClaimKind.INTERVAL, A, X, Y),
        claim_id(1, A, RUN, ClaimKind.INTERVAL, B, Y, Y),
        claim_id(1, A, RUN, ClaimKind.INTERVAL, B, X, X),
        claim_id(1, A, RUN, ClaimKind.INTERVAL, B, X, Y, variant=1),
    }
    assert len(ids) == 9


def test_every_field_changes_the_challenge_commitment() -> None:
    ref = ClaimRef(ClaimKind.INTERVAL, Round(1))
    refs = [
        ref,
        replace(ref, kind=ClaimKind.UPDATE),
        replace(ref, round=Round(2)),
        replace(ref, seat=Seat(1)),
        replace(ref, duty=1),
        replace(ref, party=A),
        replace(ref, outer_root=X),
    ]
    found = {challenge_commitment(r, X, Y, A) for r in refs}
    found |= {
        challenge_commitment(ref, Y, Y, A),
        challenge_commitment(ref, X, X, A),
        challenge_commitment(ref, X, Y, B),
    }
    assert len(found) == 10


def test_kinds_are_the_contracts_numbers() -> None:
    assert [int(k) for k in ClaimKind] == [0, 1, 2, 3, 4, 5]


def test_fields_that_do_not_fit_their_type_are_refused() -> None:
    for make in (
        lambda: claim_id(1 << 256, A, RUN, ClaimKind.INTERVAL, B, X, Y),
        lambda: claim_id(1, Address(b"short"), RUN, ClaimKind.INTERVAL, B, X, Y),
        lambda: claim_id(1, A, Digest(b"short"), ClaimKind.INTERVAL, B, X, Y),
        lambda: ClaimRef(ClaimKind.INTERVAL, Round(1 << 64)).encode(),
        lambda: ClaimRef(ClaimKind.INTERVAL, Round(1), duty=-1).encode(),
    ):
        with pytest.raises(InvariantError):
            make()
