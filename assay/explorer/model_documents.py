"""The card of a model as the explorer shows it: the document that `assay model pull` writes beside the weights."""

from __future__ import annotations

from assay.explorer.documents import Document
from assay.explorer.reader import RunReader
from assay.protocol.errors import UnavailableError
from assay.provenance.document import NO_STORE, ToldCard, card_document, unread_card
from assay.sponsor.cards import read_card


def model_document(reader: RunReader, generation: int | None = None) -> Document:
    """Of a generation's weights, the newest that stands unless given. Raises KeyError for one that has none."""
    return card_document(reader.view, reader.known.history, _told(reader), generation)


def _told(reader: RunReader) -> ToldCard:
    """What the run's card says, asked for once; while it is on its way, that it is."""
    store, run = reader.store, reader.run.address
    if store is None:
        return NO_STORE
    try:
        return ToldCard(reader.files.get("card", lambda: read_card(store, run)))
    except UnavailableError as error:
        return unread_card(error)
