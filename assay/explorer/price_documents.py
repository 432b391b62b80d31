"""What gateways ask for a token, as documents."""

from __future__ import annotations

from typing import Any

from assay.explorer.documents import Document, hexed, wei
from assay.explorer.prices import AskedGateway
from assay.explorer.reader import RunReader
from assay.protocol.types import Address


def prices_document(reader: RunReader) -> Document | None:
    """The gateways that this explorer was told of, as they said at `seen_at`; None where it was told of none.

    gateways: None before the first look. Those of other chains are listed with `here` false: their token is no token
    of this run's chain.
    """
    if reader.prices is None:
        return None
    seen = reader.prices.seen()
    if seen is None:
        return {"seen_at": None, "gateways": None}
    return {"seen_at": int(seen.at), "gateways": [_document(reader, one) for one in seen.gateways]}


def prices_of(reader: RunReader, gateway: Address) -> list[Document]:
    """What one gateway says, under each URL by which this explorer knows it."""
    found = prices_document(reader)
    asked = hexed(gateway)
    return [] if found is None else [one for one in found["gateways"] or () if one["gateway"] == asked and one["here"]]


def _document(reader: RunReader, one: AskedGateway) -> dict[str, Any]:
    said = one.said
    return {
        "url": one.url,
        "problem": one.problem or None,
        "gateway": None if said is None else hexed(said.gateway),
        "name": None if said is None else reader.names.get(said.gateway),
        "here": said is not None and said.chain_id == reader.run.chain.chain_id,
        "model_name": None if said is None else said.name,
        "model": None if said is None else hexed(said.model),
        "token": None if said is None else hexed(said.token),
        "price": None if said is None else wei(said.price),
        "tokens": None if said is None else said.tokens,
        "prompt": None if said is None else said.prompt,
    }
