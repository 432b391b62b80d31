"""Bonded gateways as documents."""

from __future__ import annotations

from typing import Final

from assay.explorer.bonds import BondedGateway, SeenBonds
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.reader import RunReader
from assay.protocol.types import Address

MOST_MODELS: Final = 50
"""Of a gateway, those pledged for longest. Attack: pledges of a million models, which cost gas and nothing else."""


def seen_bonds(reader: RunReader) -> SeenBonds | None:
    """The last look at the contract of bonds; None where the explorer was told of none, or before the first."""
    return None if reader.bonds is None else reader.bonds.seen(reader.node, reader.state.head.timestamp)


def bonds_document(reader: RunReader) -> Document | None:
    """The contract and its gateways as they were at `seen_at`; None where the explorer was told of none.

    gateways: None before the first look.
    """
    bonds, seen = reader.bonds, seen_bonds(reader)
    if bonds is None:
        return None
    return {
        "contract": hexed(bonds.gates.gateways.address),
        "bond": wei(bonds.gates.terms.bond),
        "token": hexed(bonds.gates.run.charter.token),
        "program": hexed(bonds.gates.terms.forward),
        "seen_at": None if seen is None else seen.at,
        "gateways": None if seen is None else [_document(reader, seen, one) for one in seen.gateways.values()],
    }


def bond_document(reader: RunReader, gateway: Address) -> Document | None:
    """One gateway's bond; None of who never bonded, and before the first look."""
    seen = seen_bonds(reader)
    one = None if seen is None else seen.gateways.get(gateway)
    return None if seen is None or one is None else _document(reader, seen, one)


def _document(reader: RunReader, seen: SeenBonds, one: BondedGateway) -> Document:
    """covered: of each model, whether what was signed for it then could still be presented in time."""
    stands = one.is_bonded and not one.is_convicted
    longest = sorted(one.models.items(), key=lambda pledged: (-pledged[1], pledged[0]))
    covered_from = seen.at + seen.accusing_s
    models = [
        {"model": hexed(model), "until": until, "covered": stands and until >= covered_from}
        for model, until in longest[:MOST_MODELS]
    ]
    return {
        "gateway": hexed(one.gateway),
        "name": reader.names.get(one.gateway),
        "seen_at": seen.at,
        "state": "lost" if one.is_convicted else "put up" if one.is_bonded else "taken back",
        "models": models,
        "pledged_models": len(longest),
        "covered_models": sum(stands and until >= covered_from for _, until in longest),
        "games": one.games,
        "accused": one.accused,
        "lost": one.lost,
    }
