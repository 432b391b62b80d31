"""`assay node`: a local chain with a keeper of its time, its coins and its test tokens."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from assay.amounts import COIN
from assay.cli.common import address_named, open_chain, open_round_run, print_fields, print_json, talk
from assay.cli.options import CHAIN, RUN, JsonOption, typed_amount, with_settings
from assay.durations import duration, parse_duration
from assay.protocol.errors import UnavailableError, UsageError
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.node.keeper import JumpKeeper, WallKeeper
    from assay_ledger.chain.node import Anvil
    from assay_ledger.store.blobs import BlobStore

app = typer.Typer(no_args_is_help=True, help="A local chain of your own, and what only such a chain gives.")

PORT: Final = 8545
LOOK_EVERY_S: Final = 0.2
LONGEST_SKIP_S: Final = 520 * 604_800
"""Ten years: no wait of a run is as long, and time that a chain keeps never goes back."""

LONG_S: Final = 60
"""A jump of at least so many seconds of chain time is told."""

START_EPILOG = (
    "Example: assay node start --for-demo --state ./node --json  ->  "
    '{"rpc_url", "store", "chain_id", "account", "now"}, then keeps time until Ctrl-C.'
)
FUND_EPILOG = 'Example: assay node fund solver-1 0xabc... --tokens 9 --json  ->  [{"address", "coins", "tokens"}, ...]'


@app.command("start", epilog=START_EPILOG)
def start(
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="Keep chain and store here; the same command goes on with them."),
    ] = None,
    for_demo: Annotated[
        bool,
        typer.Option(
            "--for-demo", help="Time jumps to the next deadline as soon as everybody waits; else as on the wall."
        ),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the chain; 0 takes a free one.")] = PORT,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 shows it to the network.")] = "127.0.0.1",
    as_json: JsonOption = False,
) -> None:
    """Start a local chain with a store, and keep its time until Ctrl-C, which ends all that was started."""
    from assay.node.keeper import JumpKeeper, WallKeeper
    from assay.node.local import faucet_of
    from assay_ledger.chain.client import Chain
    from assay_ledger.chain.node import Anvil
    from assay_ledger.processes.scratch import ScratchDir
    from assay_ledger.store.blobs import open_store

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        if state is None:
            scratch = ScratchDir("node")
            stack.callback(scratch.remove)
        folder = scratch.path if state is None else state.resolve()
        node = stack.enter_context(Anvil(data_dir=folder / "chain", port=port, host=host))
        if node.is_mended:
            talk.print("The chain's state was cut short when it was written: it goes on from the one before.")
        chain, store = Chain(node.url), open_store(folder / "store")
        found = {"rpc_url": node.url, "store": store.location, "chain_id": chain.chain_id}
        found |= {"account": faucet_of(chain), "now": chain.head().timestamp}
        if as_json:
            print_json(found)
        else:
            _welcome(found, state, for_demo=for_demo)
        keeper = JumpKeeper(chain, store) if for_demo else WallKeeper(chain)
        _keep(node, keeper, store, stop)


def _welcome(found: dict[str, Any], state: Path | None, *, for_demo: bool) -> None:
    """What a person types next."""
    pace = "jumps to what is waited for as soon as all wait" if for_demo else "goes as on the wall"
    typer.echo(f"A local chain answers at {found['rpc_url']}; its time {pace}. In every other shell type:")
    typer.echo(f"  export ETH_RPC_URL={found['rpc_url']} ASSAY_STORE={found['store']}")
    typer.echo("A key for each who takes part, and coins for its gas:")
    typer.echo("  assay key new sponsor solver-1 verifier-1")
    typer.echo("  assay node fund sponsor solver-1 verifier-1")
    typer.echo("A run, which says what its solvers and auditors type:")
    typer.echo("  assay run new --key sponsor")
    typer.echo(f"Coins come from {found['account']}, whose key everybody knows: they are worth nothing anywhere else.")
    ends = "keeps" if state is not None else "removes"
    typer.echo(f"Ctrl-C ends the chain and {ends} what it wrote; docs/run-your-model.md tells the whole way.")


def _keep(node: Anvil, keeper: JumpKeeper | WallKeeper, store: BlobStore, stop: threading.Event) -> None:
    """Moves time until told to stop. Raises UnavailableError (NodeFailed) where the chain ends by itself."""
    from assay.node.keeper import KEEPER_EVERY_S, say_kept

    told: dict[Address, list[str]] = {}
    spoke = float("-inf")
    while True:
        if time.monotonic() - spoke >= KEEPER_EVERY_S:
            spoke = time.monotonic()
            say_kept(store, node.url)
        if stop.wait(LOOK_EVERY_S):
            return
        node.keep_copy()
        if not node.is_running:
            raise UnavailableError(
                f"The local chain ended by itself (exit code {node.process.returncode}).",
                code="NodeFailed",
                remedy=f"Its log is {node.log_path}; start it again with the same --state.",
            )
        try:
            moved = keeper.tick()
        except UnavailableError as error:
            talk.print(error.explain(), markup=False, soft_wrap=True)
            continue
        if moved is not None and moved.by >= LONG_S:
            talk.print(f"everybody waits: chain time moves by {duration(moved.by)}")
        _tell_held(keeper, told)


def _tell_held(keeper: JumpKeeper | WallKeeper, told: dict[Address, list[str]]) -> None:
    """Runs for whose people time waits, each once until what it waits for changes."""
    from assay_ledger.agents.waiting import waits

    for run, view in getattr(keeper, "held", {}).items():
        lines = [wait.text for wait in waits(view)]
        if told.get(run) != lines:
            told[run] = lines
            text = f"time waits for people in run 0x{run.hex()[:8]}…: {' '.join(lines)}"
            talk.print(text, markup=False, soft_wrap=True)


@app.command("fund", epilog=FUND_EPILOG)
@with_settings(*RUN, "keys_dir")
def fund(
    settings: Settings,
    who: Annotated[list[str], typer.Argument(metavar="KEY|ADDRESS...", help="Who gets them, each as much.")],
    coins: Annotated[str, typer.Option("--coins", help="Coins for gas.", callback=typed_amount)] = "10",
    amount: Annotated[
        str | None,
        typer.Option("--tokens", metavar="AMOUNT", help="Test tokens of the run that is named.", callback=typed_amount),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give coins, and test tokens of a run, on a local chain; it takes no key and no password."""
    from assay.node.local import give_coins, give_tokens

    everybody = {name: address_named(name, settings.keys_dir) for name in who}
    coin_wei, run = COIN.parse(coins), None if amount is None else open_round_run(settings)
    wei = None if amount is None or run is None else run.currency.parse(amount)
    chain = open_chain(settings) if run is None else run.chain
    rows = []
    for name, address in everybody.items():
        give_coins(chain, address, coin_wei)
        if run is not None and wei is not None:
            give_tokens(chain, run.token, address, wei)
        rows.append({"name": name, "address": "0x" + address.hex(), "coins": coin_wei, "tokens": wei or 0})
    if as_json:
        print_json(rows)
        return
    more = f" and {run.currency.show(wei)} test tokens" if run is not None and wei else ""
    for row in rows:
        typer.echo(f"{row['name']} got {COIN.show(coin_wei)} coins{more}.")


@app.command("skip", epilog='Example: assay node skip 36d --json  ->  {"now"}')
@with_settings(*CHAIN)
def skip(
    settings: Settings,
    length: Annotated[str, typer.Argument(metavar="LENGTH", help="Chain time to pass: 90s, 15min, 2h, 3d or 4w.")],
    as_json: JsonOption = False,
) -> None:
    """Let chain time pass at once on a local chain. Whoever was at work may be too late for it.

    Raises UsageError (DurationInvalid, SkipTooLong).
    """
    from assay.node.local import move_time

    seconds = parse_duration(length)
    # A nought too many: past the year 9999 no page shows a date any more, and the chain cannot be wound back.
    if seconds > LONGEST_SKIP_S:
        raise UsageError(
            f"{length!r} is longer than ten years, and a chain's time never goes back.",
            code="SkipTooLong",
            remedy="Skip 520w at most, again if you must.",
        )
    now = move_time(open_chain(settings), seconds)
    if as_json:
        print_json({"now": now})
    else:
        print_fields({"chain time": now})
