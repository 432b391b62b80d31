"""`assay gateway start`: a server of text whose every answer can be replayed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.asked_model import (
    AskedModel,
    ContextOption,
    GenerationOption,
    ModelOption,
    RecipeOption,
    TierOption,
    asked_model,
    check_source,
)
from assay.cli.common import parse_address, print_json, talk, unlock_key
from assay.cli.noted_decimals import parse_as_noted
from assay.cli.options import KEY, SHOWN, STORED_RUN, DeviceOption, JsonOption, typed_amount, with_settings
from assay.cli.paying import ContractOption, TokenOption, contract_of, token_of
from assay.protocol.errors import UsageError
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.cli.showing import Showing
    from assay.inference.gateway.till import Till
    from assay_ledger.keys.keystore import ActorKeys

EPILOG = (
    "Example: assay gateway start --model pulled --key gate --port 0 --json"
    '  ->  {"url", "model", "signer", "payment", "pledged_until"}, then serves until Ctrl-C'
)


@with_settings(*STORED_RUN, *KEY, *SHOWN)
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
    price: Annotated[
        str | None,
        typer.Option(
            "--price",
            metavar="AMOUNT",
            help="Tokens of money for each token of text; else none.",
            callback=typed_amount,
        ),
    ] = None,
    vouchers: Annotated[
        Path | None, typer.Option("--vouchers", metavar="DIR", help="Where vouchers are kept; needed with --price.")
    ] = None,
    token: TokenOption = None,
    contract: ContractOption = None,
    bonds: Annotated[
        str | None, typer.Option("--bonds", metavar="ADDRESS", help="Contract at which --key is bonded, to pledge it.")
    ] = None,
    pledge_for: Annotated[
        int, typer.Option("--pledge-for", min=1, help="Seconds of chain time to pledge for, with --bonds.")
    ] = 86_400,
    rate: Annotated[float, typer.Option("--rate", min=0.01, help="Requests a second of one address.")] = 20.0,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve /v1/completions and /v1/models by OpenAI's interface until Ctrl-C. Every answer carries a statement signed
    by --key, which `assay inference verify` draws again. With --price each request carries a voucher that pays for it;
    without, whoever reaches it may ask. With --bonds the bond of --key answers for them: run `gateway defend` too.
    """
    from assay.cli.showing import showing
    from assay.inference.gateway.app import GatewayTerms
    from assay.inference.gateway.batcher import TextBatch
    from assay.inference.gateway.limits import AskerLimits
    from assay.inference.gateway.server import serve_batch
    from assay.inference.rows import rows_of
    from assay.inference.statement import NO_RUN
    from assay.observing import names
    from assay.web.listening import listen

    check_source(settings, model)
    if price is not None and vouchers is None:
        raise UsageError("Nowhere to keep vouchers.", code="VouchersNotNamed", remedy="Name a folder: --vouchers DIR.")
    with showing(settings, "gateway") as shown, ExitStack() as stack:
        metrics = shown.server()
        keys = unlock_key(settings)
        account = keys.local
        listener = listen("The gateway", host, port)
        asked = asked_model(settings, model, recipe, context, tier, generation)
        pledged = None if bonds is None else _pledge(settings, keys, asked, bonds, pledge_for)
        till, each = None, ""
        if price is not None and vouchers is not None:
            till, each = _till(settings, keys, price, vouchers, token, contract, shown, stack)
        terms = GatewayTerms(
            asked.model,
            account,
            name,
            tokens,
            seconds,
            0 if asked.run is None else asked.run.chain_id,
            NO_RUN if asked.run is None else asked.run.address,
            AskerLimits(rate=rate, burst=max(1, round(2 * rate))),
            till,
        )
        url = f"http://{host}:{listener.getsockname()[1]}/"
        payment = None if till is None else till.terms.document()

        def ready() -> None:
            if as_json:
                shown = {"url": url, "model": "0x" + asked.model.root.hex(), "signer": account.address.lower()}
                print_json(shown | {"payment": payment, "pledged_until": pledged})
                return
            typer.echo(url)
            if till is not None:
                talk.print(f"A token of prompt or answer costs {each} of 0x{till.terms.token.hex()}.")
            talk.print("Ctrl-C ends it.")

        batch = TextBatch(rows_of(terms.model, rows), waiting)
        if metrics is not None:
            metrics.counts[names.ANSWER_TOKENS] = lambda: batch.tokens
            if till is not None:
                metrics.counts[names.EARNED] = lambda: till.earned
        serve_batch(terms, batch, listener, ready=ready, observer=metrics)


def _pledge(settings: Settings, keys: ActorKeys, asked: AskedModel, bonds: str, seconds: int) -> int:
    """Pledges the gateway to the model that it serves; until when. A pledge that lasts longer stands.

    Raises UsageError (ModelOfNoRun): statements of a folder alone name no run, and no bond answers for them.
    """
    from assay.cli.common import open_round_run
    from assay.inference.bonds import pledge_model
    from assay_ledger.deployment.answers import check_answers

    if asked.run is None:
        raise UsageError(
            "Statements about a folder's model name no run: no bond answers for them.",
            code="ModelOfNoRun",
            remedy="Serve the run's model: --run and --store in place of --model.",
        )
    gates = check_answers(open_round_run(settings), Address(parse_address(bonds)))
    return pledge_model(gates, asked.model, keys, seconds)


def _till(
    settings: Settings,
    keys: ActorKeys,
    price: str,
    folder: Path,
    token: str | None,
    contract: str | None,
    shown: Showing,
    stack: ExitStack,
) -> tuple[Till, str]:
    """Where this gateway is paid, and its price as people read it.

    What it keeps is closed with the stack, after all that was begun is on disk.
    """
    from assay.cli.common import check_money, open_round_run
    from assay.inference.gateway.till import Till, TillTerms
    from assay.protocol.payments.voucher import VoucherDomain
    from assay_ledger.vouchers.cashier import Cashier
    from assay_ledger.vouchers.kept import KeptVouchers

    the_run = open_round_run(settings)
    shown.follow(the_run, None, who=keys.address)
    vouchers, _ = contract_of(the_run, contract)
    of = token_of(the_run, token)
    check_money(the_run, of)
    money = the_run.currency_of(of)
    # Attack: a token that says more decimals at the next start, and has every answer sold for a millionth.
    wei = parse_as_noted(folder, of, money, price)
    domain = VoucherDomain(the_run.chain.chain_id, vouchers.address)
    kept = KeptVouchers(folder, domain, keys.address)
    stack.callback(kept.close)
    till = Till(Cashier(the_run.chain, vouchers, kept, [of]), TillTerms(domain, keys.address, of, wei))
    stack.callback(till.close)
    return till, money.both(wei)
