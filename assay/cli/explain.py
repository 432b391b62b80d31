"""`assay explain`: what a code means; whether a thing is known, counted, paid, and if not, why and until when."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from eth_utils.address import to_checksum_address

from assay.amounts import COIN, SHARES
from assay.cli.common import open_round_run, parse_address, print_json
from assay.cli.options import RUN, JsonOption, with_settings
from assay.cli.seeing import read_run
from assay.protocol.errors import ConfigError, UserError
from assay.protocol.types import Address
from assay.settings import Settings

EPILOG = 'Examples: assay explain WorkMismatch; assay explain 0xabc... --json  ->  {"kind", "known", "answers": [...]}'


class NameUnknown(UserError):
    """No error code and nothing in the run has this name."""

    remedy = "Check the spelling, and that --run and --rpc-url name the run that you mean."


class ContractsUnread(ConfigError):
    """No error code of ours and nothing in the run has this name; those of contracts cannot be read here."""

    remedy = (
        "In a checkout run `make setup`; elsewhere install a package that holds the compiled contracts, as releases "
        "do, or name their folder by ASSAY_ARTIFACTS."
    )


@with_settings(*RUN)
def explain(
    settings: Settings,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An error code, an address, a digest, a transaction, `game 1`.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Known? Counted? Paid? If not: the code, the remedy, the deadline."""
    from assay.explorer.explain import explain_code
    from assay_ledger.chain import natspec

    _address_of(name)  # one with a wrong digit is refused, as everywhere
    document = explain_code(name)
    are_contracts_read = bool(natspec.names("error"))
    if document is None and (settings.run is not None or are_contracts_read):
        document = _in_run(name, settings)
    if document is None or not document["known"]:
        if not are_contracts_read:
            raise ContractsUnread(f"Whether {name!r} is an error of the contracts is unknown: none is compiled here.")
        raise NameUnknown(f"Nothing is called {name!r} here.")
    if as_json:
        print_json(document)
        return
    if document["kind"] == "code":
        _print_code(document)
        return
    for answer in document["answers"]:
        _print(answer)
    if (who := _address_of(document["name"])) is not None and document["kind"] in ("account", "actor"):
        _print_holdings(settings, who)
    if "see" in document:
        typer.echo(f"It belongs to {document['kind']}; the explorer shows it at {document['see']}.")


def _address_of(name: str) -> Address | None:
    """The address that a name is, if it is one."""
    is_one = name.startswith("0x") and len(name) == 42
    return Address(parse_address(name)) if is_one else None


def _print_holdings(settings: Settings, who: Address) -> None:
    """What an account holds: coins, tokens, stake, shares; it is its own alone to say what they are for."""
    from assay.sponsor.vault_stakes import stake_in_vault, with_unlisted

    run, address = open_round_run(settings), to_checksum_address(who)
    listed, ask, money = stake_in_vault(run, who), run.chain.ask, run.currency
    stake = with_unlisted(run, who, listed) or listed
    coins = run.chain.read(lambda: int(run.chain.w3.eth.get_balance(address)))
    held, shares = ask(run.token.balance_of(who)), ask(run.shares.balance_of(who))
    typer.echo(
        f"It holds {COIN.show(coins)} coins, {money.show(held)} tokens, {money.show(stake.free)} of free stake, "
        f"{money.show(stake.locked)} of locked stake, {SHARES.show(shares)} shares."
    )


def _in_run(name: str, settings: Settings) -> dict[str, Any]:
    from assay.explorer.explain import explain as explain_in

    with read_run(open_round_run(settings)).reading() as reader:
        return explain_in(reader, name)


def _print_code(document: dict[str, Any]) -> None:
    """A code of ours has one meaning; contracts may throw one for different reasons, each in its own words."""
    own = {"notice": document["meaning"], "remedy": document["remedy"], "reason": "", "contracts": [], "values": []}
    for sentence in document["sentences"] or [own]:
        of = f" ({', '.join(sentence['contracts'])})" if sentence["contracts"] else ""
        typer.echo(f"{document['name']}{of}: {sentence['notice']}")
        for name, meaning in sentence["values"]:
            typer.echo(f"    {name}: {meaning}")
        if sentence["reason"]:
            typer.echo(f"Why: {sentence['reason']}")
        if sentence["remedy"]:
            typer.echo(f"What to do: {sentence['remedy']}")


def _print(answer: dict[str, Any]) -> None:
    about = f"{answer['about']}: " if "about" in answer else ""
    verdict = {True: "yes", False: "no", None: "not yet"}[answer["yes"]]
    typer.echo(f"{about}{answer['question']}: {verdict}. {answer['text']}")
    if answer["code"] is not None:
        typer.echo(f"    {answer['code']}: {answer['remedy']}")
    if answer["deadline"] is not None:
        typer.echo(f"    until chain time {answer['deadline']}")
