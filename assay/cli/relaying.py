"""`assay inference relay`: OpenAI's interface on this machine, paid for at a gateway by vouchers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.asked_model import ModelOption, TierOption, asked_model
from assay.cli.common import check_money, check_run_code, open_round_run, parse_address, print_json, talk, unlock_key
from assay.cli.noted_decimals import parse_as_noted
from assay.cli.options import KEY, RUN, SHOWN, JsonOption, typed_amount, with_settings
from assay.cli.paying import contract_of, token_of
from assay.durations import duration
from assay.protocol.errors import RejectedError, UsageError
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.inference.cover import CoverWatch
    from assay.inference.relay.upstream import GatewayModel
    from assay_ledger.rounds.run import Run

EPILOG = (
    "Example: assay inference relay --gateway http://127.0.0.1:8090 --key me --most 5 --port 0 --json"
    '  ->  {"url", "gateway", "price", "covered", "bonded_until"}, then serves until Ctrl-C'
)


@with_settings(*RUN, *KEY, "allow_code", *SHOWN)
def relay(
    settings: Settings,
    gateway: Annotated[str, typer.Option("--gateway", metavar="URL", help="Where the gateway is.")],
    most: Annotated[
        str,
        typer.Option(
            "--most", metavar="AMOUNT", help="Tokens of money to be signed for in all.", callback=typed_amount
        ),
    ],
    by: Annotated[
        str | None, typer.Option("--by", metavar="ADDRESS", help="The gateway's account; what it says unless given.")
    ] = None,
    purse: Annotated[
        Path | None, typer.Option("--purse", metavar="DIR", help="Where it is kept what was signed.")
    ] = None,
    model: ModelOption = None,
    tier: TierOption = "fixed14",
    verify_ppm: Annotated[
        int, typer.Option("--verify-ppm", min=0, max=1_000_000, help="Of the answers, drawn again by --model.")
    ] = 0,
    bonds: Annotated[
        str | None,
        typer.Option("--bonds", metavar="ADDRESS", help="Only pay for what a bond at this contract answers for."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8091,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Also answer requests to this name, and pages of it."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="Seconds that an answer may take.")] = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Serve OpenAI's interface on 127.0.0.1: each request is paid for at the gateway by a voucher of --key, and its
    answer's statement is checked. Without --model, the text of an answer and the tokens of a text that is asked with
    are the gateway's word. Never signs for more than --most in all.
    """
    from assay.cli.actor_folders import actors_dir
    from assay.cli.showing import showing
    from assay.inference.relay.app import make_relay
    from assay.inference.relay.paying import PaidAnswers
    from assay.inference.relay.server import serve_relay
    from assay.inference.relay.upstream import Upstream
    from assay.observing import names
    from assay.web.listening import listen
    from assay_ledger.vouchers.purse import Purse, PursePlace

    if verify_ppm and model is None:
        raise UsageError("Nothing to draw answers again by.", code="ModelNotNamed", remedy="Give --model DIR.")
    with showing(settings, "relay") as shown, ExitStack() as stack:
        metrics = shown.server()
        the_run = open_round_run(settings)
        check_run_code(the_run, settings)
        keys = unlock_key(settings)
        shown.follow(the_run, None, who=keys.address)
        listener = listen("The relay", "127.0.0.1", port)
        own = None if model is None else asked_model(settings, model, tier=tier).model
        upstream = Upstream(gateway, seconds)
        stack.callback(upstream.close)
        found = upstream.model()
        named = found.till.gateway if by is None else Address(parse_address(by))
        _check_terms(the_run, found, named)
        check_money(the_run, found.till.token)
        money = the_run.currency_of(found.till.token)
        contract, _ = contract_of(the_run, "0x" + found.till.domain.contract.hex())
        deposit = the_run.chain.ask(contract.deposit_of(keys.address, named, found.till.token))
        place = PursePlace(found.till.domain, named, found.till.token)
        folder = purse or actors_dir().parent / "purses"
        # Attack: a token that says more decimals at the next start, and has a million times as much signed for.
        limit = parse_as_noted(folder / found.till.token.hex(), found.till.token, money, most)
        kept = Purse(folder, keys, place, deposit.redeemed, limit)
        stack.callback(kept.close)
        cover = None if bonds is None else _cover(the_run, bonds, found, named)
        answers = PaidAnswers(upstream, found, kept, named, own, verify_ppm, cover)
        if metrics is not None:
            metrics.counts |= {names.ANSWER_TOKENS: lambda: answers.tokens, names.SIGNED: lambda: kept.signed}
            metrics.wants["gateway"] = lambda: answers.false is None
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def ready() -> None:
            if as_json:
                document = {"url": url, "gateway": named, "price": found.till.price, "covered": deposit.covered}
                print_json(document | {"most": limit, "bonded_until": None if cover is None else cover.until})
                return
            typer.echo(url)
            each, covered = money.both(found.till.price), money.both(deposit.covered)
            talk.print(f"A token of text costs {each}; the deposit at 0x{named.hex()} covers {covered} in all.")
            if cover is not None:
                left = duration(cover.until - the_run.chain.head().timestamp)
                talk.print(f"Its bond answers for this model for another {left} of chain time.")
            talk.print("Ctrl-C ends it.")

        app = make_relay(answers, seconds, hosts=allow_host or ())
        serve_relay(app, listener, ready=ready, end=answers.end, observer=metrics)


def _cover(run: Run, bonds: str, found: GatewayModel, named: Address) -> CoverWatch:
    """Looked up once before anything is paid. Raises NotCovered, GatewaysMissing, UnknownCode."""
    from assay.cli.bonding import gates_of
    from assay.inference.cover import CoverWatch

    watch = CoverWatch(gates_of(run, bonds), named, found.model)
    watch.check()
    return watch


def _check_terms(run: Run, found: GatewayModel, named: Address) -> None:
    """Raises RejectedError (GatewayOther), UsageError (TokenNotListed)."""
    # Attack: a gateway that has its answers paid for to somebody, and signed by nobody in particular.
    if found.till.gateway != named or found.signer != named or found.till.domain.chain_id != run.chain.chain_id:
        raise RejectedError(
            f"The gateway is paid at 0x{found.till.gateway.hex()} on chain {found.till.domain.chain_id} and signs by "
            f"0x{found.signer.hex()}; wanted is 0x{named.hex()} on chain {run.chain.chain_id}.",
            code="GatewayOther",
            remedy="Name the gateway's account with --by, and a node of its chain.",
        )
    token_of(run, "0x" + found.till.token.hex())
