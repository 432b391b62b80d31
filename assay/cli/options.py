"""The options that commands share. A command names the settings that it needs, and is called with those in force."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate, Final, ParamSpec

import typer

from assay.amounts import check_typed
from assay.cli import completion
from assay.engine.runtime import devices
from assay.engine.runtime.devices import Device
from assay.settings import Settings, resolve

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money moves.")]
WhoOption = Annotated[str | None, typer.Option("--address", metavar="ADDRESS", help="Whose; your key's unless given.")]
ForOption = Annotated[
    str | None, typer.Option("--for", metavar="ADDRESS", help="Whose stake it is; your key's unless given.")
]
MultisigOption = Annotated[
    str | None,
    typer.Option("--multisig", metavar="ADDRESS", help="Send nothing: print what this multisig is to execute."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; send nothing.")]


def typed_amount(text: str | None) -> str | None:
    """An amount as typed. What is one of no token is refused before anybody is asked anything."""
    if text is not None:
        check_typed(text)
    return text


def typed_amount_or_none(text: str) -> str:
    """The same where nothing, `0`, is meant too."""
    return text if text.strip() == "0" else str(typed_amount(text))


AMOUNTS: Final = "Amount of tokens, such as 250 or 12.5, or of their smallest unit: 12500000wei."
Amount = Annotated[str, typer.Argument(metavar="AMOUNT", help=AMOUNTS, callback=typed_amount)]
AmountOrNone = Annotated[str, typer.Argument(metavar="AMOUNT", help=AMOUNTS, callback=typed_amount_or_none)]

CHAIN: Final = ("rpc_url",)
RUN: Final = (*CHAIN, "run")
STORED_RUN: Final = (*CHAIN, "store", "run")
RELAYS: Final = ("drand_relays",)
EVENTS: Final = ("index_url",)
HEADS: Final = ("ws_url",)
SHOWN: Final = ("metrics", "log_format")
KEY: Final = ("key", "keys_dir", "password_file", "signer")


def _ask_for(device: Device | None) -> Device | None:
    if device is not None:
        devices.ask_for(device)
    return device


DeviceOption = Annotated[
    Device | None,
    typer.Option(
        "--device",
        callback=_ask_for,
        help="Run programs on this device: cuda asks for a GPU, cpu keeps it out, auto leaves it open [ASSAY_DEVICE].",
    ),
]
"""Is in force before the command begins, which needs not look at it."""

TextOption = Annotated[
    Path | None, typer.Option("--data", metavar="FILE", help="A text (UTF-8); this Python's documentation.")
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=1, help="Threads of torch.")]

_OPTIONS: Final[dict[str, Any]] = {
    "rpc_url": Annotated[
        list[str] | None,
        typer.Option(
            "--rpc-url",
            metavar="URL",
            help="RPC URL of the chain; again, or with commas between, for more nodes of it [ETH_RPC_URL].",
        ),
    ],
    "ws_url": Annotated[
        str | None,
        typer.Option(
            "--ws-url",
            metavar="URL",
            help="WebSocket of a node that announces new blocks, beside the RPC URL [ASSAY_WS_URL].",
        ),
    ],
    "store": Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Folder or address of the run's store; given again, of a mirror of it [ASSAY_STORE, with commas].",
        ),
    ],
    "run": Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="ADDRESS",
            autocompletion=completion.run_addresses,
            help="Address of the run's charter [ASSAY_RUN].",
        ),
    ],
    "key": Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            autocompletion=completion.key_names,
            help="Name of a key, its folder, or a keystore file [ETH_KEYSTORE].",
        ),
    ],
    "keys_dir": Annotated[
        Path | None, typer.Option("--keys-dir", metavar="DIR", help="Folder that holds the keys [ASSAY_KEYS_DIR].")
    ],
    "password_file": Annotated[
        Path | None,
        typer.Option("--password-file", metavar="FILE", help="File that holds the password [ETH_PASSWORD]."),
    ],
    "signer": Annotated[
        str | None,
        typer.Option(
            "--signer",
            metavar="URL",
            help="Web3Signer or Clef that signs transactions of a key that is elsewhere [ASSAY_SIGNER].",
        ),
    ],
    "data_dir": Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Folder for this actor's journal [ASSAY_DATA_DIR]."),
    ],
    "allow_code": Annotated[
        str | None,
        typer.Option(
            "--allow-code",
            metavar="DIGEST",
            help="Accept contracts that are not this release's: those of this digest [ASSAY_ALLOW_CODE].",
        ),
    ],
    "sponsor": Annotated[
        str | None,
        typer.Option(
            "--sponsor",
            metavar="ADDRESS",
            help="Work for runs of this sponsor, of several with commas between [ASSAY_SPONSOR].",
        ),
    ],
    "index_url": Annotated[
        str | None,
        typer.Option(
            "--index-url",
            metavar="URL",
            help="Keep the run's events there: sqlite:///FILE or postgresql://... [ASSAY_INDEX_URL].",
        ),
    ],
    "drand_relays": Annotated[
        str | None,
        typer.Option(
            "--drand-relays",
            metavar="URLS",
            help="Relays to fetch rounds of drand from, with commas between [ASSAY_DRAND_RELAYS].",
        ),
    ],
    "metrics": Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Serve /metrics, /health and /ready here; port 0 takes a free one [ASSAY_METRICS].",
        ),
    ],
    "log_format": Annotated[
        str | None,
        typer.Option(
            "--log-format", metavar="FORM", help="plain, or json: one document a line on stderr [ASSAY_LOG_FORMAT]."
        ),
    ],
}
"""The option of each setting that a command line may give."""

P = ParamSpec("P")


def _joined(given: Any) -> Any:
    """An option that may be given several times, as its setting is written; None where it was not given."""
    return ",".join(given) or None if isinstance(given, list) else given


def with_settings(*names: str) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[..., None]]:
    """Gives a command options for these settings; it takes the settings in force as its first argument instead."""

    def decorate(command: Callable[Concatenate[Settings, P], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            flags = {name: _joined(given.pop(name)) for name in names}
            command(resolve(flags).settings, **given)  # type: ignore[call-arg]  # typer fills in all the others

        # typer reads a command's options from its signature.
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(name, kind, default=None, annotation=_OPTIONS[name]) for name in names]
        parameters = [*(parameter.replace(kind=kind) for parameter in own), *added]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
