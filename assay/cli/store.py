"""`assay store`: what a run's store holds, the removal of what nobody needs any more, and who may write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from assay.cli.common import archive_of, open_blobs, open_round_run, parse_address, print_json, print_table, talk
from assay.cli.options import STORED_RUN, JsonOption, with_settings
from assay.cli.progress import progress
from assay.cli.seeing import sight
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay_ledger.retention.pruning import Pruned
    from assay_ledger.retention.survey import StoredAmount, StoredKind, Usage

LOOKING: Final = "looking through the store"

app = typer.Typer(no_args_is_help=True, help="What a run's store holds, and the removal of what is over.")


@app.command(
    "usage", epilog='Example: assay store usage --json  ->  {"stores": [{"store", "bytes", "kinds", "rounds"}]}'
)
@with_settings(*STORED_RUN)
def usage(settings: Settings, as_json: JsonOption = False) -> None:
    """Bytes and objects of each kind, and of each round, as names and the run's chain say."""
    from assay_ledger.retention.survey import survey
    from assay_ledger.store.mirrored import each_store

    the_run = open_round_run(settings)
    view, stores = sight(the_run), each_store(open_blobs(settings))
    with progress(LOOKING):
        found = [survey(store, view, archive_of(the_run, store).publications) for store in stores]
    if as_json:
        print_json({"stores": [_usage_document(each) for each in found]})
        return
    for each in found:
        rows = [(str(kind), amount.objects, amount.bytes) for kind, amount in sorted(each.kinds.items())]
        rows.append(("all", each.total.objects, each.total.bytes))
        print_table(each.location, ("kind", "objects", "bytes"), rows)


@app.command("prune", epilog='Example: assay store prune --delete --json  ->  {"stores": [{"bytes", "deleted"}]}')
@with_settings(*STORED_RUN)
def prune(
    settings: Settings,
    delete: Annotated[bool, typer.Option("--delete", help="Delete it; without this nothing is touched.")] = False,
    only_run: Annotated[
        bool,
        typer.Option("--only-run", help="Only what this run's transactions say is theirs: for a shared store."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say, and with --delete delete, the updates, marks and bases of rounds that are over and that nobody needs.

    Programs, data, cards and what the run starts from always stay; so do the newest final base that is served and all
    behind it.
    """
    from assay_ledger.retention.pruning import prune as prune_store
    from assay_ledger.store.mirrored import each_store

    the_run = open_round_run(settings)
    view, found = sight(the_run), []
    with progress(LOOKING):
        for store in each_store(open_blobs(settings)):
            found.append(prune_store(store, view, archive_of(the_run, store), delete=delete, only_run=only_run))
    if as_json:
        print_json({"stores": [_pruned_document(each) for each in found]})
        return
    for each in found:
        kept, verb = each.kept, "deleted" if delete else "could be deleted (--delete does it)"
        total = each.total
        typer.echo(f"{each.location}: {total.objects} objects of {total.bytes} bytes {verb}.")
        talk.print(f"What rounds from {kept.first_round} on need stays, since {kept.because}.")
        if each.left:
            talk.print(
                f"{len(each.left)} objects stay that are not what their names say, or that something else needs."
            )


@app.command(
    "grant", epilog='Example: assay store grant --member 0xabc... --json  ->  {"grants": [{"store", "policy"}]}'
)
@with_settings("store")
def grant(
    settings: Settings,
    member: Annotated[str, typer.Option("--member", metavar="ADDRESS", help="The account of the member's actor.")],
    as_json: JsonOption = False,
) -> None:
    """Print the policy that a bucket needs for one member: add objects, replace its own heartbeat, delete nothing.

    For whoever keeps the bucket, who attaches it to credentials of the member's own. Nothing is asked of the bucket.
    """
    from assay_ledger.store.grants import member_policy
    from assay_ledger.store.mirrored import each_store

    who = Address(parse_address(member))
    found = [(store.location, member_policy(store.location, who)) for store in each_store(open_blobs(settings))]
    if as_json:
        print_json({"grants": [{"store": location, "policy": policy} for location, policy in found]})
        return
    for _, policy in found:
        typer.echo(json.dumps(policy, indent=2))


def _usage_document(found: Usage) -> dict[str, Any]:
    rounds = [{"round": number, "kinds": _kinds(kinds)} for number, kinds in sorted(found.rounds.items())]
    return _summed("store", found.location, found.total, found.kinds) | {"rounds": rounds, "markers": found.markers}


def _pruned_document(found: Pruned) -> dict[str, Any]:
    kept = {
        "kept_from_round": found.kept.first_round,
        "kept_from_base": found.kept.first_base,
        "because": found.kept.because,
    }
    done = {"deleted": found.is_deleted, "markers": len(found.markers), "left": len(found.left)}
    return _summed("store", found.location, found.total, found.kinds) | kept | done


def _summed(what: str, name: str, total: StoredAmount, kinds: Mapping[StoredKind, StoredAmount]) -> dict[str, Any]:
    return {what: name, "objects": total.objects, "bytes": total.bytes, "kinds": _kinds(kinds)}


def _kinds(kinds: Mapping[StoredKind, StoredAmount]) -> dict[str, Any]:
    return {str(k): {"objects": a.objects, "bytes": a.bytes} for k, a in sorted(kinds.items())}
