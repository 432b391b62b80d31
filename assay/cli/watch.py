"""`assay watch`: tells a webhook what concerns an address, from a process apart from the one that acts."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO, cast

import typer

from assay.cli.common import address_asked, open_blobs, open_round_run, print_json, talk
from assay.cli.options import SHOWN, STORED_RUN, WhoOption, with_settings
from assay.protocol.errors import ConfigError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.watchdog.personal import PersonalWatch
    from assay.watchdog.shown import LookMetrics
    from assay.watchdog.told import ToldAlarms
    from assay.watchdog.watch import Watchdog
    from assay.watchdog.webhooks import WatchedPlace, Webhook
    from assay_ledger.chain.client import Chain

EPILOG: Final = (
    "Example: assay watch --run 0xabc... --store ./store --address 0xdef... --webhook https://hooks.example/assay "
    "--secret-file ./secret --data-dir ./watch"
)


def usual_age(chain: Chain) -> float | None:
    """Seconds that the newest block may be old; any, where the chain is a local one, which keeps a time of its own."""
    from assay.node.local import is_local
    from assay.watchdog.looking import OLD_S

    return None if is_local(chain) else OLD_S


def say_strangers(dog: Watchdog) -> bool:
    """Says whose addresses are nobody's in the run, once that was read; whether it was."""
    if dog.is_read:
        for who in dog.strangers():
            talk.print(
                f"0x{who.hex()} has no seat, ticket or game in this run yet: is it the address that you mean?",
                markup=False,
            )
    return dog.is_read


LinesOption = Annotated[bool, typer.Option("--json", help="Print each notice as one JSON document a line on stdout.")]


@with_settings(*STORED_RUN, "key", "keys_dir", "data_dir", *SHOWN)
def watch(
    settings: Settings,
    webhook: Annotated[str, typer.Option(metavar="URL", help="Where notices are posted.", envvar="ASSAY_WEBHOOK")],
    secret_file: Annotated[Path, typer.Option(metavar="FILE", help="File with the secret that signs them.")],
    who: WhoOption = None,
    gas_low: Annotated[int, typer.Option(min=0, metavar="WEI", help="Coin below which gas is low.")] = 2 * 10**16,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
    as_json: LinesOption = False,
) -> None:
    """Post a notice when something begins or ends to concern an address; needs no password and changes nothing.

    Challenged, a deadline near, gas low, convicted, node or store away, its process silent.
    """
    from assay.cli.showing import showing
    from assay.observing import logs
    from assay.watchdog.looking import WatchOptions
    from assay.watchdog.personal import PersonalWatch
    from assay.watchdog.told import ToldAlarms
    from assay.watchdog.webhooks import WatchedPlace, Webhook, held_folder

    logs.hide_url(webhook)
    if settings.data_dir is None:
        raise ConfigError("No folder is named for notices.", code="DataDirMissing", remedy="Give --data-dir DIR.")
    try:
        secret = secret_file.read_bytes().strip()
    except OSError as error:
        raise ConfigError(
            f"The secret cannot be read ({error.strerror}).", code="WebhookSecretUnfit", remedy="Name another file."
        ) from None
    hook = Webhook(webhook, secret, settings.data_dir, say=lambda text: talk.print(text, markup=False))
    with held_folder(settings.data_dir), showing(settings, "watch") as shown:
        looks = shown.looks(every)
        address, run = address_asked(settings, who), open_round_run(settings)
        store = open_blobs(settings) if settings.store is not None else None
        shown.follow(run, store, who=address)
        options = WatchOptions(frozenset({address}), max_age=usual_age(run.chain), allowed_code=settings.allowed_code)
        dog = PersonalWatch(run, address, store, gas_low, options=options)
        place = WatchedPlace("0x" + run.address.hex(), "0x" + address.hex())
        told = ToldAlarms(settings.data_dir / f"told-{run.address.hex()}-{address.hex()}.json")
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        _watch_on(dog, looks, hook, told, place, stop, every, as_json=as_json)


def _watch_on(
    dog: PersonalWatch,
    looks: LookMetrics,
    hook: Webhook,
    told: ToldAlarms,
    place: WatchedPlace,
    stop: threading.Event,
    every: float,
    *,
    as_json: bool,
) -> None:
    from assay.observing.unhurried import UnhurriedStream
    from assay.watchdog.webhooks import notice_of

    has_said = False
    # Attack on oneself: a file of notices on a full disk, or a reader that stalls, and the webhook hears no more.
    out = UnhurriedStream(sys.stdout)
    try:
        while not stop.is_set():
            looks.begun()
            after = dict(dog.look())
            looks.looked(after.values())
            has_said = has_said or say_strangers(dog)
            for raised, alarm in told.changes(after, is_read=dog.is_read):
                notice = notice_of(place, alarm, raised, *dog.head)
                hook.keep(notice)
                if as_json:
                    print_json(notice, cast("TextIO", out))
                talk.print(f"{'raised' if raised else 'cleared'}: {alarm.about}: {alarm.text}", markup=False)
            told.are_told()
            hook.send()
            looks.rests()
            stop.wait(every)
    finally:
        out.finish()
