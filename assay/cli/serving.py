"""`assay gateway start`: a server of text whose every answer can be replayed."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.asked_model import (
    ContextOption,
    GenerationOption,
    ModelOption,
    RecipeOption,
    TierOption,
    asked_model,
    check_source,
)
from assay.cli.common import print_json, talk, unlock_key
from assay.cli.options import KEY, STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.settings import Settings

EPILOG = (
    "Example: assay gateway start --model pulled --key gate --port 0 --json"
    '  ->  {"url", "model", "signer"}, then serves until Ctrl-C'
)


@with_settings(*STORED_RUN, *KEY)
def start(
    settings: Settings,
    model: ModelOption = None,
    generation: GenerationOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    name: Annotated[str, typer.Option("--name", help="What the model is called in requests.")] = "assay",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8090,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 shows it to the network.")] = "127.0.0.1",
    rows: Annotated[int, typer.Option("--rows", min=1, max=32, help="Answers that are given at once.")] = 8,
    waiting: Annotated[int, typer.Option("--waiting", min=1, help="Answers that may wait for their turn.")] = 64,
    tokens: Annotated[int, typer.Option("--tokens", min=1, max=1 << 16, help="Tokens of an answer at most.")] = 1024,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="Seconds that an answer may take.")] = 60.0,
    rate: Annotated[float, typer.Option("--rate", min=0.01, help="Requests a second of one address.")] = 20.0,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve /v1/completions and /v1/models by OpenAI's interface until Ctrl-C. Every answer carries a statement signed
    by --key, which `assay inference verify` draws again. It takes no payment yet: whoever reaches it may ask.
    """
    from assay.inference.gateway.app import GatewayTerms
    from assay.inference.gateway.limits import AskerLimits
    from assay.inference.gateway.server import serve
    from assay.inference.statement import NO_RUN
    from assay.listening import listen

    check_source(settings, model)
    account = unlock_key(settings).local
    listener = listen("The gateway", host, port)
    asked = asked_model(settings, model, recipe, context, tier, generation)
    terms = GatewayTerms(
        asked.model,
        account,
        name,
        tokens,
        seconds,
        0 if asked.run is None else asked.run.chain_id,
        NO_RUN if asked.run is None else asked.run.address,
        AskerLimits(rate=rate, burst=max(1, round(2 * rate))),
    )
    url = f"http://{host}:{listener.getsockname()[1]}/"

    def ready() -> None:
        if as_json:
            print_json({"url": url, "model": "0x" + asked.model.root.hex(), "signer": account.address.lower()})
        else:
            typer.echo(url)
            talk.print("Ctrl-C ends it.")

    serve(terms, listener, rows=rows, waiting=waiting, ready=ready)
