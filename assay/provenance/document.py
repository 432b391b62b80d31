"""The card of a run's model as a document: the one source of README.md, model-card.json and the explorer's page.

What stands under `told` is the word of whoever wrote the run's card into the store; all else follows from the chain's
events, so whoever reads the same events writes the same bytes. Amounts and numbers above 2^53 are decimal strings.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from assay.bundle.words import ref_text
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import UnavailableError
from assay.protocol.game.state import Outcome
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address, Digest
from assay.provenance.books import HistoryBooks, transactions_of
from assay.sponsor.cards import Card, read_card
from assay.sponsor.model_cards import model_card, replayed
from assay.sponsor.sponsor_words import NO_WORDS, DataWords, StartWords
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import ArtifactStore

FORMAT: Final = "assay-model-card-1"

MOST_LISTED: Final = 10_000
"""Entries of each list of a document, the newest of generations and disputes; `counts` has all."""

NOT_STATED: Final = "not stated"

_EXACT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class ToldCard:
    """The run's card as a store has it; None, and why, where there is none to be had."""

    card: Card | None
    why: str = ""


NO_STORE: Final = ToldCard(None, "no store is named")


def told_card(store: ArtifactStore | None, run: Address) -> ToldCard:
    """What a store tells of a run's origin. Raises nothing: a card can be read without it."""
    if store is None:
        return NO_STORE
    try:
        return ToldCard(read_card(store, run))
    except UnavailableError as error:
        return unread_card(error)


def unread_card(error: UnavailableError) -> ToldCard:
    """What is said where a store has no card; the error's own message would tell where this reader's store is."""
    if error.code == "BeingFetched":
        return ToldCard(None, "the run's card is being fetched from the store; look again in a moment")
    return ToldCard(None, f"the store has no readable card of the run ({error.code})")


def card_document(view: RunView, books: HistoryBooks, told: ToldCard, generation: int | None = None) -> dict[str, Any]:
    """The card of a generation's weights, the newest that stands unless given. Raises KeyError for one without lists.

    Costs as much as the run has rounds, commitments and games.
    """
    known = model_card(view)
    shown = view.newest if generation is None else generation
    lists = view.lists(shown)
    if lists is None:
        raise KeyError(shown)
    contributors = _contributors(view, books)
    games = [view.games[number] for number in sorted(view.games)]
    document = known.to_json() | {
        "format": FORMAT,
        "chain_id": view.facts.chain_id,
        "run_id": _hex(view.facts.run_id),
        "sponsor": _hex(view.charter.sponsor),
        # Of the newest event, not of the head: a chain on which nothing happens leaves the card as it is.
        "block": books.last_block,
        "weights": {
            "generation": shown,
            "root": _hex(lists.parameters),
            "status": "genesis" if shown == 0 else view.status(shown).name.lower(),
            "final": shown == 0 or view.status(shown) is GenerationStatus.FINAL,
        },
        "generations": [
            _generation(view, books, made.generation) | {"status": made.status, "updates": made.updates}
            for made in known.generations[-MOST_LISTED:]
        ],
        "contributors": contributors[:MOST_LISTED],
        "audited": _audited(view),
        "disputes": [_dispute(game) for game in games[-MOST_LISTED:]],
        "counts": {
            "generations": len(known.generations),
            "contributors": len(contributors),
            "disputes": len(games),
            "convictions": sum(game.convicted for game in games),
        },
        "terms": _terms(view),
        "programs": {name: _hex(program.root) for name, program in view.charter.programs.items()},
        "start": _start(view, told),
        "data": _data(view, told),
        "told": _told(told),
    }
    for name in ("false_work", "false_roots"):
        document[name] = document[name][-MOST_LISTED:]
    plain: dict[str, Any] = _plain(document)
    return plain


def encode_card(document: dict[str, Any]) -> bytes:
    """model-card.json: canonical JSON (RFC 8785), so that one card has one byte string."""
    return rfc8785.dumps(document)


# --- inside


def _generation(view: RunView, books: HistoryBooks, generation: int) -> dict[str, Any]:
    lists = view.lists(generation)
    parameters = None if lists is None else _hex(lists.parameters)
    if generation == 0:
        root: Digest | None = view.facts.genesis
        tx = None
    else:
        root, tx = transactions_of(view, generation)
    return {
        "generation": generation,
        "root": None if root is None else _hex(root),
        "parameters": parameters,
        "opened_in": None if tx is None else books.opened_in.get(tx),
        "tx": None if tx is None else _hex(tx),
    }


def _contributors(view: RunView, books: HistoryBooks) -> list[dict[str, Any]]:
    """Who trained, audited or holds shares: who holds most first."""
    held, tenures = books.shares(view.state.money.pending), view.books.tenures
    trained, paid, found = Counter[Address](), Counter[Address](), Counter[Address]()
    for work in view.state.works.values():
        trained[tenures.existing(work.tenure).holder] += 1
    for tenure, rounds in books.rounds_paid.items():
        paid[tenures.existing(tenure).holder] += rounds
    for ticket, findings in books.findings_paid.items():
        found[books.ticket_owners[ticket]] += findings
    supply = sum(held.values())
    people = sorted({*held, *trained, *found}, key=lambda who: (-held.get(who, 0), who))
    return [
        {
            "address": _hex(who),
            "rounds": trained[who],
            "rounds_paid": paid[who],
            "findings_paid": found[who],
            "shares": str(held.get(who, 0)),
            # Rounded down: parts never sum to more than all.
            "shares_ppm": held.get(who, 0) * PPM // supply if supply else 0,
        }
        for who in people
    ]


def _audited(view: RunView) -> dict[str, int]:
    """How many steps were trained, and how many of them somebody else replayed at least once."""
    per_unit = view.rules.steps_per_unit
    steps = {place: record.work.units * per_unit for place, record in view.state.works.items()}
    audited, all_steps = sum(steps[place] for place in replayed(view)), sum(steps.values())
    return {"steps": all_steps, "audited": audited, "ppm": audited * PPM // all_steps if all_steps else 0}


def _dispute(game: GameRecord) -> dict[str, Any]:
    verdict = game.verdict
    return {
        "game": game.game_id,
        "kind": game.ref.kind.name.lower(),
        "about": ref_text(game.ref),
        "round": int(game.ref.round),
        "seat": int(game.ref.seat),
        "defender": _hex(game.defender),
        "challenger": _hex(game.challenger),
        "outcome": "open" if verdict is None else "element" if verdict.outcome is Outcome.LEAF else "silence",
        "loser": None if verdict is None else _hex(verdict.loser),
        "refuted": game.convicted,
        "tx": None if game.verdict_tx is None else _hex(game.verdict_tx),
    }


def _terms(view: RunView) -> dict[str, Any]:
    t = view.charter.training
    return {
        "rounds": view.charter.rounds,
        "seats": t.seats,
        "group_size": t.group_size,
        "units": t.max_units,
        "steps_per_unit": t.steps_per_unit,
        "shards": t.shards,
        "shard_length": t.shard_length,
    }


def _start(view: RunView, told: ToldCard) -> dict[str, Any]:
    """Lineage: the roots that the charter binds, and what is said of where the first weights came from."""
    t, said = view.charter.training, None if told.card is None else told.card.words
    from_: dict[str, Any]
    if said is None or said == NO_WORDS:
        from_ = {"kind": NOT_STATED}
    elif said.start is None:
        from_ = {"kind": "own"}
    else:
        from_ = _start_told(said.start)
    return {"parameters": _hex(t.parameters), "momentum": _hex(t.momentum), "said": from_}


def _start_told(said: StartWords) -> dict[str, Any]:
    if said.run is None:
        return {"kind": "files", "files": [{"name": name, "sha256": digest.hex()} for name, digest in said.files]}
    return {
        "kind": "run",
        "chain_id": said.chain_id,
        "run": _hex(said.run),
        "generation": said.generation,
        "with_momentum": said.with_momentum,
    }


def _data(view: RunView, told: ToldCard) -> dict[str, Any]:
    root = view.charter.training.data
    said = None if told.card is None else told.card.words.data
    text = None if told.card is None else told.card.text
    found = said or DataWords()
    return {
        "root": _hex(root),
        "text_sha256": None if text is None else text.hex(),
        "kind": found.kind or NOT_STATED,
        "licence": found.licence or NOT_STATED,
        "creator": found.creator or NOT_STATED,
        "sources": None if said is None else found.sources,
        "card_sha256": None if found.card is None else found.card.hex(),
        # Several tensors are laid side by side before they have one root: then nothing can be compared.
        "card_names_the_root": None if len(found.roots) != 1 else found.roots[0] == root,
    }


def _told(told: ToldCard) -> dict[str, Any]:
    card = told.card
    if card is None:
        return {"why": told.why}
    words = card.words
    rules = {"tier": words.tier, "update": words.update, "merge": words.merge, "licence": words.licence}
    return {"preset": card.preset, "recipe": card.recipe} | {n: text or NOT_STATED for n, text in rules.items()}


def _plain(value: Any) -> Any:
    """As JSON holds it: numbers that not every reader keeps exactly are decimal strings."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < _EXACT else str(value)
    return value


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
