"""One dispute step by step: what each transaction showed, what was agreed and disputed after it, gas and clocks."""

from __future__ import annotations

from assay.bundle.replay import GameStep, ReplayedDispute, VerdictValues
from assay.bundle.words import value_texts
from assay.counts import count
from assay.explorer.documents import Document, hexed
from assay.explorer.games import game_document
from assay.explorer.reader import RunReader
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.game.moves import (
    BisectDigests,
    OpenLeaf,
    OpenNode,
    OpenState,
    OpenSubtree,
    PostDigests,
    PostParts,
    ProveRoot,
    ProveTerm,
    SelectElement,
    SelectList,
    SelectPart,
    SelectSubtree,
)
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.nodes import Node
from assay_ledger.index.records import GameRecord


def descent_document(reader: RunReader, game: GameRecord) -> Document:
    """The game with every step; our own replay's verdict beside the contract's."""
    document = game_document(reader, game)
    try:
        found = reader.replay_of(game)
    except AssayError as error:
        # What could not be asked for says nothing against the verdict.
        agrees = None if isinstance(error, UnavailableError) else False
        return document | {"steps": [], "replay": {"agrees": agrees, "reason": error.explain()}}
    return document | {
        "x": hexed(found.claim.x),
        "y": hexed(found.claim.y),
        "own_root": None if found.own_root is None else hexed(found.own_root),
        "opened": {
            "tx": hexed(found.opened.hash),
            "time": found.opened.time,
            "gas": reader.gas_of(found.opened.hash),
            "says": "challenges" + (_KNOWN if found.begin.turn is Side.CHALLENGER else ""),
        },
        "steps": [step_document(reader, found, step) for step in found.steps],
        "node": None if found.node is None else node_document(found.node),
        "replay": _replay(game, found),
    }


def _replay(game: GameRecord, found: ReplayedDispute) -> Document:
    """What our own calculation says of the verdict."""
    if game.verdict is None:
        return {"agrees": None, "reason": "the game is not over"}
    expected, claimed = value_texts(found)
    values = {} if found.values is VerdictValues.NONE else {"expected": expected, "claimed": claimed}
    return {"agrees": found.verdict == game.verdict, "reason": None, **values}


def node_document(node: Node) -> Document:
    """A node in a few words."""
    return {
        "family": node.family.name.lower(),
        "dtype": node.spec.dtype.name.lower(),
        "dims": list(node.spec.dims),
        "terms": getattr(node, "terms", None),
    }


def step_document(reader: RunReader, found: ReplayedDispute, step: GameStep) -> Document:
    """One transaction of a game."""
    before, after = step.before, step.after
    used = step.sent.time - before.turn_started
    return {
        "move": step.name,
        "side": step.side.name.lower(),
        "stage": before.stage.name,
        "says": _says(found, step),
        "tx": hexed(step.sent.hash),
        "sender": hexed(step.sent.sender),
        "block": step.sent.block,
        "time": step.sent.time,
        "used": used,
        "deadline": before.deadline,
        "gas": reader.gas_of(step.sent.hash),
        "budgets": {"defender": after.budget_left[0], "challenger": after.budget_left[1]},
        "agreed": hexed(after.agreed),
        "disputed": hexed(after.disputed) if after.stage not in (Stage.PARTS, Stage.TERM) else None,
    }


_KNOWN = "; what was posted there in another game counts"

_SIDES = {Side.DEFENDER: "the defender", Side.CHALLENGER: "the challenger", Side.NONE: "nobody"}


def _says(found: ReplayedDispute, step: GameStep) -> str:
    """A move in a sentence."""
    before, after = step.before, step.after
    what = "state" if before.stage is Stage.STEPS else "prefix root"
    match step.move:
        case None:
            return f"{_SIDES[step.side]} let its clock run out"
        case PostDigests(digests=()):
            return f"gives the {what}s between {before.lo} and {before.hi} that it posted in another game"
        case PostDigests(digests=digests):
            return f"posts {count(len(digests), what)} between {before.lo} and {before.hi}"
        case BisectDigests(index=index):
            place = f"between {after.lo} and {after.hi}" if after.stage is before.stage else _where(step)
            return f"names number {index + 1} as the first wrong one: {place}{_KNOWN if step.reuses else ''}"
        case OpenNode(digests=digests):
            return f"opens node {before.node} ({_family(found)}) with {count(len(digests), 'digest')} of its value"
        case SelectSubtree(index=index):
            return f"names entry {index} of the digests posted: {_where(step)}"
        case OpenSubtree(digests=digests):
            return f"opens {count(len(digests), 'digest')} below"
        case OpenLeaf(leaf=leaf):
            return f"opens leaf {before.index}: {len(leaf)} bytes"
        case SelectElement(offset=offset, heads=heads):
            return f"names element {offset} of the leaf and opens {count(len(heads), 'value')} that it is computed from"
        case PostParts(parts=parts):
            return f"posts {count(len(parts), 'partial result')} of terms {before.lo} to {before.hi}"
        case SelectPart(index=index):
            return f"names part {index} as wrong: terms {after.lo} to {after.hi}"
        case ProveTerm(reads=reads):
            return f"opens {count(len(reads), 'value')} of term {before.lo}; the contract computes it"
        case ProveRoot():
            return "proves what must stand there; the contract compares"
        case OpenState(list_roots=roots):
            return f"opens {count(len(roots), 'list')} of the state"
        case SelectList(index=index):
            return f"names list {index} as wrong"


def _where(step: GameStep) -> str:
    """Where a bisection or selection has led."""
    after = step.after
    match after.stage:
        case Stage.NODES:
            return f"step {after.step}"
        case Stage.NODE:
            return f"node {after.node}"
        case Stage.STATE:
            return "the state after the step"
        case Stage.LEAF:
            return f"leaf {after.index}"
        case Stage.SLOT:
            return f"slot {after.index}"
        case _:
            return f"entry {after.index} of level {after.level}"


def _family(found: ReplayedDispute) -> str:
    return "malformed" if found.node is None else found.node.family.name.lower()
