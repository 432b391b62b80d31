"""Bonded gateways as documents."""

from __future__ import annotations

from assay.explorer.bonds import BondedGateway
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.reader import RunReader


def bonds_document(reader: RunReader) -> Document | None:
    """The contract and its gateways; None where the explorer was told of none. gateways: None before the first look."""
    bonds = reader.bonds
    if bonds is None:
        return None
    seen = bonds.seen(reader.node, reader.state.head.timestamp)
    return {
        "contract": hexed(bonds.gates.gateways.address),
        "bond": wei(bonds.gates.terms.bond),
        "token": hexed(bonds.gates.run.charter.token),
        "program": hexed(bonds.gates.terms.forward),
        "gateways": None if seen is None else [bond_document(reader, one) for one in seen.values()],
    }


def bond_document(reader: RunReader, one: BondedGateway) -> Document:
    """One gateway's bond. covers: whether an answer that it signs now is answered for."""
    now = reader.state.head.timestamp
    until = max(one.models.values(), default=0)
    return {
        "gateway": hexed(one.gateway),
        "name": reader.names.get(one.gateway),
        "state": "lost" if one.is_convicted else "put up" if one.is_bonded else "taken back",
        "covers": one.is_bonded and not one.is_convicted and until >= now,
        "pledged_until": until or None,
        "models": [{"model": hexed(model), "until": end} for model, end in sorted(one.models.items())],
        "games": one.games,
        "accused": one.accused,
        "refuted": one.refuted,
    }
