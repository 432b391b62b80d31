"""A card in the form that model hubs read: a block of YAML, then Markdown.

Attack: a sponsor, or whoever may write to a store, words a name so that a hub shows a link, a script, another card's
heading or another licence. Of strangers' words no sign has a meaning here, and none of them is in the YAML.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Any, Final

from assay.counts import count
from assay.provenance.document import NOT_STATED

MARK: Final = "# Written by assay model pull"
"""A comment in the first block, by which a later pull knows the file as its own."""

MOST_SHOWN: Final = 20
"""Lines of each kind; model-card.json has the others."""

MOST_LETTERS: Final = 200

_HTML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def words_shown(text: str) -> str:
    """A stranger's words as Markdown that shows them and nothing else."""
    cut = text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + "..."
    return "".join(map(_letter, cut))


def readme(document: dict[str, Any]) -> bytes:
    """README.md of a card: the same document gives the same bytes."""
    return "".join(line + "\n" for line in _lines(document)).encode()


# --- inside


def _letter(c: str) -> str:
    if c in _HTML:
        return _HTML[c]
    if c in string.punctuation:
        return "\\" + c
    return c if c.isprintable() else "\ufffd"


def _lines(d: dict[str, Any]) -> Iterator[str]:
    weights, told = d["weights"], d["told"]
    yield from ("---", MARK, "license: unknown", "tags:", "- assay", "- verifiable-training", "assay:")
    yield f"  format: {d['format']}"
    yield f'  chain_id: "{d["chain_id"]}"'
    yield f'  run: "{d["run"]}"'
    yield f"  generation: {weights['generation']}"
    yield f'  root: "{weights["root"]}"'
    yield from ("---", "", f"# Generation {weights['generation']} of run {d['run']}", "")
    state = {"final": "nothing can refute it any more", "genesis": "what the run started from"}
    yield f"The weights have the root `{weights['root']}`: {state.get(weights['status'], 'it may yet be refuted')}."
    yield ""
    yield "Everything here follows from the chain's events, but what is marked as *said*: that is the word of whoever"
    yield "wrote the run's card into its store. `assay model verify` finds the weights on chain again,"
    is_stated = told.get("licence", NOT_STATED) != NOT_STATED
    licence = "A licence of the model is said below" if is_stated else "No licence of the model is stated"
    yield f"`assay model replay` trains any part of their history again. {licence}."
    yield from ("", "## The run", "", f"- chain {d['chain_id']}, contract `{d['run']}`, sponsor `{d['sponsor']}`")
    yield f"- as of block {d['block']}, in which its newest event lies"
    t = d["terms"]
    yield (
        f"- {count(t['rounds'], 'round')} planned, {d['counts']['generations'] - 1} begun; {count(t['seats'], 'seat')}"
        f", up to {count(t['units'], 'unit')} of {count(t['steps_per_unit'], 'step')} each"
    )
    yield from (f"- program of the {name}: `{root}`" for name, root in sorted(d["programs"].items()))
    yield from ("", "## What is said of it", "", *_told(told))
    yield from ("", "## What it started from", "", *_start(d["start"]))
    yield from ("", "## Data", "", *_data(d["data"]))
    yield from ("", "## Generations", "", *_generations(d))
    yield from ("", "## Who made it", "", *_contributors(d))
    yield from ("", "## How it was audited", "", *_audits(d))
    yield from ("", "## Disputes", "", *_disputes(d))


def _told(told: dict[str, Any]) -> Iterator[str]:
    if "why" in told:
        yield f"Nothing: {words_shown(told['why'])}"
        return
    what = ("preset", told["preset"]) if told["preset"] is not None else ("recipe", told["recipe"])
    yield f"- said: {what[0]} {words_shown(str(what[1]))}"
    for name in ("tier", "update", "merge"):
        yield f"- said: {name} {words_shown(told[name])}"
    yield f"- {_said('licence of the model', told.get('licence', NOT_STATED))}"


def _start(start: dict[str, Any]) -> Iterator[str]:
    said = start["said"]
    yield f"- parameters `{start['parameters']}`, outer momentum `{start['momentum']}`: bound by the charter"
    if said["kind"] == "files":
        shown = said["files"][:MOST_SHOWN]
        yield from (f"- said: from the file {words_shown(f['name'])}, SHA-256 `{f['sha256']}`" for f in shown)
        yield from _more(said["files"], len(said["files"]), "files")
        yield "- `assay model diff FILE 0` compares such a file with what the run started from"
    elif said["kind"] == "run":
        goes_on = "goes on with" if said["with_momentum"] else "starts from the weights of"
        yield f"- said: it {goes_on} generation {said['generation']} of run `{said['run']}` on chain {said['chain_id']}"
        yield "- so it is if `assay model pull` of that generation names the same root"
    elif said["kind"] == "own":
        yield "- said: from the first values of its own module"
    else:
        yield "- where they came from is not stated, and cannot be known from the chain: it has their roots alone"


def _data(data: dict[str, Any]) -> Iterator[str]:
    yield f"- root `{data['root']}`: bound by the charter"
    if data["text_sha256"] is not None:
        yield f"- said: a text with the SHA-256 `{data['text_sha256']}`"
    yield from (f"- {_said(name, data[name])}" for name in ("kind", "licence", "creator"))
    if data["card_sha256"] is not None:
        yield f"- said: {data['sources']} sources, named by a card of data with the SHA-256 `{data['card_sha256']}`"
    if data["card_names_the_root"] is not None:
        yield f"- that card names {'this root' if data['card_names_the_root'] else 'ANOTHER root: it is of other data'}"


def _said(name: str, text: str) -> str:
    return f"{name}: {NOT_STATED}" if text == NOT_STATED else f"said: {name} {words_shown(text)}"


def _generations(d: dict[str, Any]) -> Iterator[str]:
    yield from ("| generation | became | updates | root | block | transaction |", "|---|---|---|---|---|---|")
    for g in d["generations"][-MOST_SHOWN:]:
        root, tx = (f"`{value}`" if value else "none" for value in (g["root"], g["tx"]))
        block = "" if g["opened_in"] is None else g["opened_in"]
        yield f"| {g['generation']} | {g['status']} | {g['updates']} | {root} | {block} | {tx} |"
    yield from _more(d["generations"], d["counts"]["generations"], "older ones")


def _contributors(d: dict[str, Any]) -> Iterator[str]:
    if not d["contributors"]:
        yield "Nobody yet."
        return
    yield from ("| address | rounds trained | rounds paid | findings paid | shares |", "|---|---|---|---|---|")
    for c in d["contributors"][:MOST_SHOWN]:
        share = f"{c['shares_ppm'] / 10_000:.4f} %"
        yield f"| `{c['address']}` | {c['rounds']} | {c['rounds_paid']} | {c['findings_paid']} | {share} |"
    yield from _more(d["contributors"], d["counts"]["contributors"], "others")


def _audits(d: dict[str, Any]) -> Iterator[str]:
    a, steps = d["audits"], d["audited"]
    share, rate = f"{steps['ppm'] / 10_000:.4f} %", f"{a['audit_ppm'] / 10_000:g} %"
    yield f"- {steps['audited']} of {steps['steps']} steps ({share}) were trained again by auditors"
    yield f"- {a['audited']} of {a['commitments']} commitments; the charter asks for a rate of {rate}"
    yield f"- {count(a['findings'], 'finding')}, of which {a['differing']} differed"
    yield f"- accusations: {a['upheld']} upheld, {a['rejected']} rejected, {a['lapsed']} lapsed"
    yield f"- {a['fined']} misses and absences of auditors were fined"


def _disputes(d: dict[str, Any]) -> Iterator[str]:
    for w in d["false_work"][:MOST_SHOWN]:
        where = "not merged" if w["generation"] is None else f"PART OF GENERATION {w['generation']}, merged before that"
        yield f"- round {w['round']}, seat {w['seat']}, by `{w['solver']}`: {w['what']} was false; {where}"
    yield from _more(d["false_work"], len(d["false_work"]), "works that were false")
    if not d["disputes"]:
        yield "No claim was challenged."
        return
    yield from ("", "| game | about | defender | challenger | ended by | lost |", "|---|---|---|---|---|---|")
    for g in d["disputes"][-MOST_SHOWN:]:
        lost = "" if g["loser"] is None else "defender" if g["loser"] == g["defender"] else "challenger"
        yield (f"| {g['game']} | {g['about']} | `{g['defender']}` | `{g['challenger']}` | {g['outcome']} | {lost} |")
    yield from _more(d["disputes"], d["counts"]["disputes"], "older ones")


def _more(listed: Sequence[Any], count: int, what: str) -> Iterator[str]:
    left = count - min(len(listed), MOST_SHOWN)
    if left > 0:
        yield from ("", f"And {left} {what}.")
