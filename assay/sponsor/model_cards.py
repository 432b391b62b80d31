"""The model card of a run: what it is made of, which work was false, and how it was audited. Pure.

Everything follows from the chain's events, so whoever reads the same head writes the same card. A false update that
was merged before its game was over stays in the weights of its generation: the card names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from assay.counts import count
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Seat
from assay_ledger.rounds import nodes
from assay_ledger.rounds.told_generations import party_of
from assay_ledger.rounds.view import RunView

MOST_NAMED = 20
"""Lines of each kind in a card's text; the rest are counted."""


@dataclass(frozen=True, slots=True)
class CardGeneration:
    """A generation: its state root (None without a majority), how many updates it is made of, and its status."""

    generation: int
    status: str
    root: str | None
    updates: int


@dataclass(frozen=True, slots=True)
class RefutedWork:
    """Work that a game refuted. `generation`: what it was merged into, None where its update did not count."""

    round: int
    seat: int
    solver: str
    what: str
    game: int
    generation: int | None


@dataclass(frozen=True, slots=True)
class RefutedRoot:
    """A root of a generation that a game refuted; `led` where it had the majority, so that the generation fell."""

    generation: int
    root: str
    by: str
    game: int
    led: bool


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """What auditors did, counted. `audited`: see `replayed`."""

    tickets: int
    owners: int
    epochs: int
    calls: int
    opened: int
    findings: int
    differing: int
    fined: int
    commitments: int
    audited: int
    upheld: int
    rejected: int
    lapsed: int
    audit_ppm: int
    reaudit_ppm: int


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a reader of the weights should know. `newest_final`: the newest generation that nothing can refute."""

    run: str
    block: int
    newest_final: int
    parameters: str
    generations: tuple[CardGeneration, ...]
    false_work: tuple[RefutedWork, ...]
    false_roots: tuple[RefutedRoot, ...]
    audits: AuditFigures

    def to_json(self) -> dict[str, Any]:
        """The card as a document."""
        return asdict(self)

    def text(self) -> str:
        """The card for people, in Markdown."""
        cut = [str(g.generation) for g in self.generations if g.status == "cut"]
        a = self.audits
        lines = [
            f"# Model card of run {self.run}",
            "",
            f"At block {self.block}. The newest final generation is {self.newest_final}, "
            f"with parameters {self.parameters}.",
            "",
            "## Generations",
            "",
            *(_generation_line(g) for g in self.generations[-MOST_NAMED:]),
            "" if not cut else f"\nCut, so that nothing is built on them: {', '.join(cut)}.",
            "## Work that was false",
            "",
            *(_work_line(w) for w in self.false_work[:MOST_NAMED]),
            *(_root_line(r) for r in self.false_roots[:MOST_NAMED]),
        ]
        if not self.false_work and not self.false_roots:
            lines.append("No game refuted any.")
        more = max(0, len(self.false_work) - MOST_NAMED) + max(0, len(self.false_roots) - MOST_NAMED)
        lines += [f"- and {more} more"] if more else []
        lines += [
            "",
            "## How it was audited",
            "",
            f"- {a.audited} of {a.commitments} commitments were replayed whole by auditors, at a rate of "
            f"{a.audit_ppm / 10_000:g} % (findings again at {a.reaudit_ppm / 10_000:g} %)",
            f"- {count(a.findings, 'finding')}, of which {a.differing} differed; {a.opened} of "
            f"{count(a.calls, 'call')} were opened in {count(a.epochs, 'epoch')}",
            f"- accusations: {a.upheld} upheld, {a.rejected} rejected, {a.lapsed} lapsed; {a.fined} misses and "
            "absences were fined",
            f"- {count(a.tickets, 'ticket')} of {count(a.owners, 'owner')}",
        ]
        return "\n".join(lines) + "\n"


def model_card(view: RunView) -> ModelCard:
    """The card of a run at a head."""
    generations = range(len(view.books.commitments.rounds) + 1)
    final = max((g for g in generations if view.status(g) is GenerationStatus.FINAL), default=0)
    lists = view.lists(final)
    parameters = view.charter.training.parameters if final == 0 or lists is None else lists.parameters
    return ModelCard(
        run=_hex(view.facts.address),
        block=view.block,
        newest_final=final,
        parameters=_hex(parameters),
        generations=tuple(_generation(view, g) for g in generations),
        false_work=tuple(_false_work(view)),
        false_roots=tuple(_false_roots(view)),
        audits=_audits(view),
    )


def replayed(view: RunView) -> set[tuple[Round, Seat]]:
    """Round and seat of each commitment that somebody else replayed at least once.

    Attack: who signs without looking has a card vouch for work that nobody saw. What a ticket said whose stake was
    taken counts for nothing.
    """
    found, is_convicted = view.state.attestations.values(), view.books.registry.is_convicted
    return {(a.round, a.seat) for a in found if not is_convicted(a.ticket)} & view.state.works.keys()


# --- inside


def _generation(view: RunView, generation: int) -> CardGeneration:
    if generation == 0:
        return CardGeneration(0, "genesis", _hex(view.facts.genesis), 0)
    root = view.votes(generation).root
    updates = sum(len(_merged(view, Round(generation - 1), group)) for group in _groups(view, Round(generation - 1)))
    return CardGeneration(
        generation, view.status(generation).name.lower(), None if root is None else _hex(root), updates
    )


def _groups(view: RunView, round_: Round) -> Sequence[int]:
    """Groups of which a round's generation is made: above 64 seats one whose sum does not count brings nothing."""
    return view.groups() if view.rules.by_seats else nodes.counted_groups(view, round_)


def _merged(view: RunView, round_: Round, group: int) -> frozenset[int]:
    try:
        return frozenset(map(int, view.counted(round_, group)[0]))
    except RejectedError:  # the beacon that draws a group's positions is not known yet: nothing of it is merged
        return frozenset()


def _false_work(view: RunView) -> list[RefutedWork]:
    found = []
    for number, game in sorted(view.games.items()):
        ref = game.ref
        if ref.kind not in (ClaimKind.INTERVAL, ClaimKind.UPDATE) or not game.convicted:
            continue
        group = view.rules.place(ref.seat)[0]
        is_part = group in _groups(view, ref.round) and int(ref.seat) in _merged(view, ref.round, group)
        merged = ref.round + 1 if is_part and view.votes(ref.round + 1).root is not None else None
        what = "its update" if ref.kind is ClaimKind.UPDATE else "its training"
        found.append(RefutedWork(int(ref.round), int(ref.seat), _hex(game.defender), what, number, merged))
    return found


def _false_roots(view: RunView) -> list[RefutedRoot]:
    found = []
    for number, game in sorted(view.games.items()):
        if game.ref.kind is not ClaimKind.OUTER or not game.convicted or game.ref.duty:
            continue
        generation = game.ref.round + 1
        # By party: a backer's reference names seat 0, whose own opening is another.
        root = view.books.generations.openings[generation, party_of(game.ref)].root
        led = root == view.votes(generation).root
        found.append(RefutedRoot(generation, _hex(root), _hex(game.defender), number, led))
    return found


def _audits(view: RunView) -> AuditFigures:
    books, state = view.books, view.state
    attestations = books.duties.attestations
    accusations = [a.status for a in attestations.accusations.values()]
    tickets = books.registry.tickets
    return AuditFigures(
        tickets=len(books.registry.anchors),
        owners=len({t.owner for t in tickets.values()} | set(books.registry.left.values())),
        epochs=sum(epoch.closed for epoch in view.epochs),
        calls=sum(epoch.on_call for epoch in view.epochs if epoch.closed),
        opened=sum(epoch.opened for epoch in view.epochs if epoch.closed),
        findings=len(state.attestations),
        differing=sum(a.differs for a in attestations.attestations.values()),
        fined=books.duties.fined,
        commitments=len(state.works),
        audited=len(replayed(view)),
        upheld=accusations.count(AccusationStatus.UPHELD),
        rejected=accusations.count(AccusationStatus.REJECTED),
        lapsed=accusations.count(AccusationStatus.LAPSED),
        audit_ppm=view.terms.audit_ppm,
        reaudit_ppm=view.terms.reaudit_ppm,
    )


def _generation_line(g: CardGeneration) -> str:
    if g.status == "genesis":
        return f"- 0: genesis, {g.root}"
    return f"- {g.generation}: {g.status}, of {count(g.updates, 'update')}, {g.root or 'without a majority'}"


def _work_line(w: RefutedWork) -> str:
    where = "not merged" if w.generation is None else f"merged into generation {w.generation} before it was refuted"
    return f"- round {w.round}, seat {w.seat} ({w.solver}): {w.what} was false (game {w.game}); {where}"


def _root_line(r: RefutedRoot) -> str:
    led = "it had the majority, and the generation was cut" if r.led else "another root had the majority"
    return f"- generation {r.generation}: root {r.root} by {r.by} was false (game {r.game}); {led}"


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
