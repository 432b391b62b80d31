"""The end of a demo of the second round for a person: who ended with what, how disputes went, what to look at."""

from __future__ import annotations

from typing import Any

from eth_utils.address import to_checksum_address
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.demo.measured import Quality
from assay.demo.round_play import RoundDemo
from assay.demo.round_report import strangers
from assay.demo.show import disputes_table, model_table, rounded


def show(scene: RoundDemo, document: dict[str, Any], quality: Quality, console: Console) -> None:
    """Prints the tables and some sentences."""
    console.print("")
    console.print(_ledger(scene, document))
    if document["disputes"]:
        console.print(disputes_table(scene.addresses, document["disputes"]))
    console.print(model_table(quality))
    for title, sample in (("before", quality.sample_before), ("after", quality.sample_after)):
        console.print(Text(f"\n200 characters {title} training:", style="bold"))
        console.print(Text(sample))
    console.print("")
    for sentence in _sentences(scene, document):
        console.print(Text(sentence))


def _ledger(scene: RoundDemo, document: dict[str, Any]) -> Table:
    table = Table(title="Final ledger, in tokens", title_justify="left")
    table.add_column("actor", no_wrap=True)
    for column in ("stake", "earned", "slashed", "shares", "claimed"):
        table.add_column(column, justify="right")
    stakes = stakes_of(scene)
    people = [(p.name, scene.addresses[p.name]) for p in scene.cast.players]
    people += [(f"0x{address.hex()[:8]}…", address) for address in strangers(scene)]
    for name, address in people:
        who = to_checksum_address(address)
        slashed = sum(entry["amount"] for entry in document["slashed"] if entry["address"] == who)
        earned, shares, claimed = (document[name].get(who, 0) for name in ("earned", "shares", "claimed"))
        cells = (rounded(amount) for amount in (stakes.get(address, 0), earned, slashed, shares, claimed))
        table.add_row(name, *cells, style="red" if slashed else "")
    return table


def stakes_of(scene: RoundDemo) -> dict[bytes, int]:
    """Wei that each has in the vault: free, and locked behind seats and tickets."""
    from assay.protocol.rounds.round_ids import tenure_lock
    from assay.protocol.rounds.ticket_types import ticket_lock

    ask, vault, books = scene.chain.ask, scene.run.vault, scene.view.books
    found: dict[bytes, int] = {}
    for who in [*scene.addresses.values(), *strangers(scene)]:
        found[who] = ask(vault.free(who))
    locks = [tenure_lock(number) for number in books.tenures.tenures]
    locks += [ticket_lock(number) for number in books.registry.tickets]
    for lock in locks:
        owner, amount = ask(vault.lock_of(lock))
        if amount:
            found[owner] = found.get(owner, 0) + amount
    return found


def _sentences(scene: RoundDemo, document: dict[str, Any]) -> list[str]:
    """What happened, and which commands look closer."""
    cast, slashed = scene.cast, document["slashed"]
    names = {to_checksum_address(address): name for name, address in scene.addresses.items()}
    losers = sorted({names.get(entry["address"], entry["address"]) for entry in slashed})
    families = sorted({entry["leaf_family"] for entry in document["disputes"] if entry["leaf_family"]})
    count = len(document["disputes"])
    caught = (
        f"{', '.join(losers)} lost {rounded(sum(e['amount'] for e in slashed))} tokens in "
        f"{count} dispute{'' if count == 1 else 's'}" + (f" that ended in {', '.join(families)}" if families else "")
        if slashed
        else "No stake was slashed"
    )
    return [
        f"{len(cast.solvers)} solvers trained one model together for {document['rounds']} rounds, of which "
        f"{document['final_generations']} generations are final; {len(cast.auditors)} auditors replayed what they "
        f"drew in {document['epochs']} epochs and bound {document['findings']} findings.",
        f"{caught}; the contract computed every disputed number itself, and no vote decided anything.",
        f"Those whose work stood own the model's shares and claimed {rounded(sum(document['claimed'].values()))} "
        "tokens of revenue.",
        f"Tokens are conserved to the last unit (difference {document['conservation_difference']}); all processes "
        f"together used {sum(document['cpu_seconds'].values()):.0f} CPU seconds in {document['wall_seconds']:.0f} s.",
        "`assay demo --keep DIR` leaves everything in place; then `assay run show` and `assay ledger shares` look "
        "closer.",
    ]
