"""The end of a demo for a person: who ended with what, how disputes went, how the model got better, what to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eth_utils.address import to_checksum_address
from rich.console import Console, ConsoleRenderable
from rich.table import Table
from rich.text import Text

from assay.amounts import tokens
from assay.demo.measured import Quality
from assay.demo.play import RunningDemo
from assay.demo.report import strangers
from assay.protocol.types import Address

Print = Callable[[str | ConsoleRenderable], None]


def show(scene: RunningDemo, document: dict[str, Any], quality: Quality, console: Console) -> None:
    """Prints the tables and five sentences."""
    say: Print = lambda what: console.print(what)  # noqa: E731 - a shorthand
    say("")
    say(_ledger(scene, document))
    if document["disputes"]:
        say(disputes_table(scene.addresses, document["disputes"]))
    say(model_table(quality))
    for title, sample in (("before", quality.sample_before), ("after", quality.sample_after)):
        say(Text(f"\n200 characters {title} training:", style="bold"))
        say(Text(sample))
    say("")
    for sentence in _sentences(scene, document):
        say(Text(sentence))


def _ledger(scene: RunningDemo, document: dict[str, Any]) -> Table:
    table = Table(title="Final ledger, in tokens", title_justify="left")
    table.add_column("actor", no_wrap=True)
    for column in ("stake", "earned", "slashed", "shares", "claimed"):
        table.add_column(column, justify="right")
    run = scene.run
    people = [(p.name, scene.addresses[p.name]) for p in scene.cast.players]
    people += [(f"0x{address.hex()[:8]}…", address) for address in strangers(scene)]
    for name, address in people:
        who = to_checksum_address(address)
        slashed = sum(entry["amount"] for entry in document["slashed"] if entry["address"] == who)
        free = run.chain.ask(run.vault.free(address))
        bond = run.chain.ask(run.audit.attester_of(address)).stake
        earned, shares, claimed = (document[name].get(who, 0) for name in ("earned", "shares", "claimed"))
        cells = (rounded(amount) for amount in (free + bond, earned, slashed, shares, claimed))
        table.add_row(name, *cells, style="red" if slashed else "")
    return table


def disputes_table(addresses: Mapping[str, Address], disputes: Sequence[dict[str, Any]]) -> Table:
    """Every game that is over; `addresses` are those of actors by name."""
    table = Table(title="Disputes, from challenge to verdict", title_justify="left")
    for column in ("claim", "loser"):
        table.add_column(column, overflow="fold")
    for column in ("selections", "ended in", "txs", "gas", "last"):
        table.add_column(column, justify="right")
    names = {to_checksum_address(address): name for name, address in addresses.items()}
    for entry in disputes:
        table.add_row(
            f"{entry['kind'].lower()} {entry['claim'][:8]}…",
            names.get(entry["loser"], entry["loser"]),
            str(entry["levels"]),
            entry["leaf_family"] or entry["ended_by"],
            str(entry["transactions"]),
            f"{entry['gas_total']:,}",
            f"{entry['gas_leaf']:,}",
        )
    return table


def model_table(quality: Quality) -> Table:
    """How good the model was and is."""
    table = Table(title=f"The model, {quality.parameters:,} parameters", title_justify="left")
    for column in ("validation loss", "nats per character"):
        table.add_column(column)
    table.add_row("before", f"{quality.loss_before:.4f}")
    table.add_row("after", f"{quality.loss_after:.4f}")
    table.add_row("letter frequencies alone", f"{quality.letter_entropy:.4f}")
    return table


def _sentences(scene: RunningDemo, document: dict[str, Any]) -> list[str]:
    """What happened, and which commands look closer."""
    cast, slashed = scene.cast, document["slashed"]
    names = {to_checksum_address(address): name for name, address in scene.addresses.items()}
    losers = sorted({names.get(entry["address"], entry["address"]) for entry in slashed})
    families = sorted({entry["leaf_family"] for entry in document["disputes"] if entry["leaf_family"]})
    caught = (
        f"{', '.join(losers)} lost {tokens(sum(e['amount'] for e in slashed))} tokens in "
        f"{len(document['disputes'])} dispute{'' if len(document['disputes']) == 1 else 's'}"
        + (f" that ended in {', '.join(families)}" if families else "")
        if slashed
        else "No stake was slashed"
    )
    return [
        f"{len(cast.solvers)} solvers trained one model together for {document['rounds']} rounds; "
        f"{len(cast.verifiers)} verifiers replayed what they drew, and a whistleblower re-audited them.",
        f"{caught}; the contract computed every disputed number itself, and no vote decided anything.",
        f"Those whose work stood own the model's shares and claimed {rounded(sum(document['claimed'].values()))} "
        "tokens of revenue.",
        f"Tokens are conserved to the last unit (difference {document['conservation_difference']}); all processes "
        f"together used {sum(document['cpu_seconds'].values()):.0f} CPU seconds in {document['wall_seconds']:.0f} s.",
        "`assay demo --keep DIR` leaves everything in place; then `assay run show`, `assay dispute list`, "
        "`assay ledger shares` and `assay bundle export` look closer.",
    ]


def rounded(wei: int) -> str:
    """An amount in tokens, to two digits."""
    return f"{wei / 10**18:,.2f}"
