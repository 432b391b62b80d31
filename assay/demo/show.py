"""The end of a demo for a person: who ended with what, how disputes went, how the model got better, what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eth_utils.address import to_checksum_address
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.amounts import TEST_MONEY
from assay.demo.measured import Quality
from assay.demo.report import strangers
from assay.demo.scene import DemoScene
from assay.protocol.types import Address


def show(scene: DemoScene, document: dict[str, Any], quality: Quality, console: Console) -> None:
    """Prints the tables and some sentences."""
    console.print("")
    console.print(_ledger(scene, document))
    if document["disputes"]:
        console.print(disputes_table(scene.addresses, document["disputes"]))
    console.print(model_table(quality))
    for title, sample in (("before", quality.sample_before), ("after", quality.sample_after)):
        console.print(Text(f"\n200 characters {title} training:", style="bold"))
        console.print(Text(sample))
    if scene.asking is not None:
        console.print(Text("\nWhat a reader paid for:", style="bold"))
        console.print(Text(scene.asking.texts[0]))
    console.print("")
    for sentence in sentences(names_of(scene), document):
        console.print(Text(sentence))


def names_of(scene: DemoScene) -> dict[str, str]:
    """Everybody's name by the address that documents say; strangers are called by how theirs begins."""
    people = [(scene.addresses[p.name], p.name) for p in scene.cast.players]
    people += [(who, f"0x{who.hex()[:8]}…") for who in strangers(scene)]
    return {str(to_checksum_address(who)): name for who, name in people}


def _ledger(scene: DemoScene, document: dict[str, Any]) -> Table:
    """Stake is what was deposited, and earned, less what was lost."""
    table = Table(title="Final ledger, in tokens", title_justify="left")
    table.add_column("actor", no_wrap=True)
    columns = ("deposited", "earned", "lost", "stake", "shares", "claimed")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    punished = {entry["address"] for entry in document["slashed"]} | document["fined"].keys()
    for who, name in names_of(scene).items():
        cells = (rounded(document[column].get(who, 0)) for column in columns)
        table.add_row(name, *cells, style="red" if who in punished else "")
    return table


def disputes_table(addresses: Mapping[str, Address], disputes: Sequence[dict[str, Any]]) -> Table:
    """Every game that is over; `addresses` are those of actors by name."""
    table = Table(title="Disputes, from challenge to verdict", title_justify="left")
    for column in ("claim", "loser"):
        table.add_column(column, overflow="fold")
    for column in ("selections", "ended in", "txs", "gas", "last"):
        table.add_column(column, justify="right", overflow="fold")
    names = {to_checksum_address(address): name for name, address in addresses.items()}
    for entry in disputes:
        table.add_row(
            f"{CLAIMS.get(entry['kind'], entry['kind'].lower())} {entry['claim'][:8]}…",
            names.get(entry["loser"], entry["loser"]),
            str(entry["levels"]),
            entry["leaf_family"] or entry["ended_by"],
            str(entry["transactions"]),
            f"{entry['gas_total']:,}",
            f"{entry['gas_leaf']:,}",
        )
    return table


CLAIMS = {"INTERVAL": "training", "OUTER": "merge", "ATTESTATION": "finding"}
"""What a claim is about, where its kind does not say it in the field's words."""


def model_table(quality: Quality) -> Table:
    """How good the model was and is."""
    table = Table(title=f"The model, {quality.parameters:,} parameters", title_justify="left")
    for column in ("validation loss", "nats per character"):
        table.add_column(column)
    table.add_row("before", f"{quality.loss_before:.4f}")
    table.add_row("after", f"{quality.loss_after:.4f}")
    table.add_row("letter frequencies alone", f"{quality.letter_entropy:.4f}")
    return table


def sentences(names: Mapping[str, str], document: dict[str, Any]) -> Iterator[str]:
    """What happened, and which commands look closer; `names` are those of actors by address."""
    audits = document["card"]["audits"]
    solvers = sum(name.startswith(("solver", "0x")) for name in names.values())
    yield (
        f"{solvers} solvers trained one model together for {document['rounds']} rounds, of which "
        f"{document['final_generations']} generations are final; {audits['owners']} auditors replayed what they "
        f"drew in {document['epochs']} epochs and opened {document['findings']} findings."
    )
    yield f"{_caught(names, document)}; the contract computed every disputed number, and no vote decided anything."
    if document["fined"]:
        fines = (f"{names.get(who, who)} {rounded(amount)}" for who, amount in document["fined"].items())
        yield f"Fined in tokens for duties left undone: {', '.join(fines)}."
    yield from _card(names, document["card"])
    if (asked := document["inference"]) is not None:
        yield (
            f"A reader paid {rounded(asked['paid'])} tokens by vouchers for {asked['answers']} answers of that model, "
            f"{rounded(asked['to_owners'])} of them to its owners; {asked['verified']} was drawn again from the signed "
            "statement alone, bit for bit."
        )
        if asked["false_answers_convicted"]:
            yield (
                "Another gateway lied under a bond: the reader found the false token, the contract computed it, and "
                "the bond is lost."
            )
    yield (
        f"Those whose work stood own the model's shares and claimed {rounded(sum(document['claimed'].values()))} "
        "tokens of revenue."
    )
    yield (
        f"Tokens are conserved to the last unit (difference {document['conservation_difference']}); all processes "
        f"together used {sum(document['cpu_seconds'].values()):.0f} CPU seconds in {document['wall_seconds']:.0f} s."
    )
    yield (
        "`assay demo --keep DIR` leaves everything in place and serves the explorer, with the model card; then "
        "`assay run show` and `assay ledger shares` look closer."
    )


def _caught(names: Mapping[str, str], document: dict[str, Any]) -> str:
    slashed, count = document["slashed"], len(document["disputes"])
    if not slashed:
        return "No stake was slashed"
    losers = sorted({names.get(entry["address"], entry["address"]) for entry in slashed})
    families = sorted({entry["leaf_family"] for entry in document["disputes"] if entry["leaf_family"]})
    return (
        f"{', '.join(losers)} lost {rounded(sum(e['amount'] for e in slashed))} tokens in "
        f"{count} dispute{'' if count == 1 else 's'}" + (f" that ended in {', '.join(families)}" if families else "")
    )


def _card(names: Mapping[str, str], card: dict[str, Any]) -> Iterator[str]:
    """What the model card names as false."""
    for work in card["false_work"]:
        who = names.get(to_checksum_address(work["solver"]), work["solver"])
        where = "was not merged" if work["generation"] is None else f"is part of generation {work['generation']}"
        yield (
            f"The model card names the false update: {work['what'].removeprefix('its ')} of round {work['round']}, "
            f"seat {work['seat']}, by {who} (game {work['game']}), which {where}."
        )
    for root in card["false_roots"]:
        who = names.get(to_checksum_address(root["by"]), root["by"])
        yield f"The model card names a false root of generation {root['generation']}, by {who} (game {root['game']})."


def rounded(wei: int) -> str:
    """An amount of test tokens or shares, to two digits."""
    return TEST_MONEY.about(wei)
