"""`assay run bring-beacon`: what every actor does in its turn, by hand and by anybody."""

from __future__ import annotations

from typing import Final

import typer

from assay.cli.common import open_round_run, print_json, send_unless_done, talk, unlock_key
from assay.cli.options import KEY, RELAYS, RUN, JsonOption, with_settings
from assay.cli.seeing import sight
from assay.protocol.errors import UserError
from assay.settings import Settings

EPILOG: Final = 'Example: assay run bring-beacon --key me --json  ->  {"brought", "waits_until"}'


@with_settings(*RUN, *KEY, *RELAYS)
def bring_beacon(settings: Settings, as_json: JsonOption = False) -> None:
    """Submit the rounds of the beacon that a run waits for, where nobody did. It takes gas and no stake."""
    from assay_ledger.agents.keeper import missing_beacons
    from assay_ledger.beacon.sources import source_of
    from assay_ledger.deployment.places import beacon_name

    run = open_round_run(settings)
    view, source = sight(run, settings), source_of(run.chain, run.beacon, settings.relays)
    if source is None:
        raise UserError(
            f"Nobody here knows where the rounds of the beacon at 0x{run.charter.beacon.hex()} are published.",
            code="BeaconForeign",
            remedy="Submit a round's proof to its contract yourself: `submit(round, proof)`.",
        )
    times = {wanted: view.books.beacon.time_of(wanted) for wanted, _ in missing_beacons(view)}
    due = [wanted for wanted, at in times.items() if at <= view.now]
    brought = []
    if due:
        account = unlock_key(settings).account
        for wanted in due:
            talk.print(f"{beacon_name(run.charter.beacon)}: round {wanted}", markup=False)
            call = run.beacon.submit(wanted, source.proof(wanted))
            if send_unless_done(run.chain, account, call, "BeaconAlreadySubmitted") is None:
                talk.print("somebody else brought it first")
            else:
                brought.append(wanted)
    waits_until = min((at for at in times.values() if at > view.now), default=None)
    if as_json:
        print_json({"brought": brought, "waits_until": waits_until})
    elif brought:
        typer.echo(f"brought: {', '.join(map(str, brought))}")
    else:
        later = "" if waits_until is None else f"; a round is waited for that is due at {waits_until} s of chain time"
        typer.echo(f"no round is missing{later}")
