"""`assay gateway`: a server of text, what its users deposit and sign for, refunds, and what gateways redeem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import bonding, serving
from assay.cli.common import (
    address_asked,
    check_money,
    check_run_code,
    confirm,
    open_round_run,
    parse_address,
    print_fields,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import (
    KEY,
    RUN,
    Amount,
    AmountOrNone,
    DryRunOption,
    JsonOption,
    WhoOption,
    YesOption,
    typed_amount_or_none,
    with_settings,
)
from assay.cli.paying import ContractOption, TokenOption, contract_of, token_of
from assay.durations import duration
from assay.protocol.errors import ConfigError, FundsError, RejectedError
from assay.protocol.types import Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.amounts import Currency
    from assay.protocol.payments.voucher import PayerDeposit
    from assay_ledger.bindings.vouchers import VouchersContract
    from assay_ledger.deployment.vouchers import VoucherTerms

app = typer.Typer(no_args_is_help=True, help="A server of text, deposits for it, vouchers, and what is redeemed.")
app.command("start", epilog=serving.EPILOG)(serving.start)
app.command("bond", epilog=bonding.BOND_EPILOG)(bonding.bond)
app.command("unbond", epilog=bonding.UNBOND_EPILOG)(bonding.unbond)
app.command("list", epilog=bonding.LIST_EPILOG)(bonding.list_)
app.command("defend", epilog=bonding.DEFEND_EPILOG)(bonding.defend)

GatewayOption = Annotated[str, typer.Option("--gateway", metavar="ADDRESS", help="The gateway's account.")]


@app.command("deploy", epilog='Example: assay gateway deploy --json  ->  {"contract", "owners_ppm", "refund_delay"}')
@with_settings(*RUN, *KEY, "allow_code")
def deploy(
    settings: Settings,
    owners_ppm: Annotated[int, typer.Option("--owners-ppm", min=0, max=1_000_000, help="The owners' part, ppm.")] = (
        100_000
    ),
    refund_delay: Annotated[
        int, typer.Option("--refund-delay", min=3600, max=90 * 86_400, help="Delay of a refund, in seconds.")
    ] = (7 * 86_400),
    as_json: JsonOption = False,
) -> None:
    """Create a run's contract of vouchers, or find it; anybody may, and its address proves its code and terms."""
    from assay_ledger.deployment.vouchers import VoucherTerms, deploy_vouchers

    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    account = unlock_key(settings).account
    contract = deploy_vouchers(the_run.chain, account, the_run.address, VoucherTerms(owners_ppm, refund_delay))
    document = {"contract": contract.address, "owners_ppm": owners_ppm, "refund_delay": refund_delay}
    _print(document, the_run.currency, as_json=as_json)


@app.command(
    "deposit", epilog='Example: assay gateway deposit 50 --gateway 0xabc... --yes --json  ->  {"balance", "tx"}'
)
@with_settings(*RUN, *KEY, "allow_code")
def deposit(
    settings: Settings,
    amount: Amount,
    gateway: GatewayOption,
    payer: Annotated[
        str | None, typer.Option("--payer", metavar="ADDRESS", help="Whose deposit; your key's unless given.")
    ] = None,
    token: TokenOption = None,
    contract: ContractOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Deposit tokens at a gateway, which takes of them what you sign for and no more."""
    from assay_ledger.bindings.token import TokenContract

    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    vouchers, terms = contract_of(the_run, contract)
    to, of = Address(parse_address(gateway)), token_of(the_run, token)
    check_money(the_run, of)
    money = the_run.currency_of(of)
    wei = money.parse(amount)
    keys = unlock_key(settings)
    whose = keys.address if payer is None else Address(parse_address(payer))
    held = the_run.chain.ask(TokenContract(of).balance_of(keys.address))
    if held < wei:
        raise FundsError(
            f"{keys.account.address} holds {money.both(held)}, {money.both(wei)} are to be deposited.",
            code="TokensShort",
            remedy="Deposit less, or get tokens first.",
        )
    talk.print(
        f"Deposits {money.both(wei)} of 0x{of.hex()} for 0x{whose.hex()} at the gateway 0x{to.hex()}. Of what it "
        f"redeems {terms.owners_ppm / 10_000:g} % are the model's owners'; a refund takes "
        f"{duration(terms.refund_delay)} of chain time."
    )
    if dry_run:
        return
    confirm(f"Deposit {money.both(wei)} of {keys.account.address}?", yes=yes)
    # The exact amount is approved, never more: a stolen allowance is worth nothing.
    the_run.chain.send(keys.account, TokenContract(of).approve(vouchers.address, wei))
    receipt = the_run.chain.send(keys.account, vouchers.deposit(whose, to, of, wei))
    balance = the_run.chain.ask(vouchers.deposit_of(whose, to, of)).balance
    _print({"deposited": wei, "balance": balance, "payer": whose}, money, receipt, as_json=as_json)


@app.command("refund", epilog='Example: assay gateway refund 50 --gateway 0xabc... --json  ->  {"asked", "not_before"}')
@with_settings(*RUN, *KEY)
def refund(
    settings: Settings,
    amount: AmountOrNone,
    gateway: GatewayOption,
    token: TokenOption = None,
    contract: ContractOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask for a part of your deposit back, in place of what you asked for before; 0 takes the request back.

    `assay gateway withdraw` pays it after the delay, less what the gateway has redeemed by then. Where what you asked
    for before can be paid already it asks first: all of it waits anew.
    """
    the_run = open_round_run(settings)
    vouchers, terms = contract_of(the_run, contract)
    to, of = Address(parse_address(gateway)), token_of(the_run, token)
    money = the_run.currency_of(of)
    wei = Wei(0) if amount.strip() == "0" else money.parse(amount)
    keys = unlock_key(settings)
    before = the_run.chain.ask(vouchers.deposit_of(keys.address, to, of))
    call = vouchers.ask_refund(to, of, wei)
    the_run.chain.simulate(call, sender=keys.address)
    if wei:
        talk.print(f"{money.both(wei)} can be withdrawn {duration(terms.refund_delay)} of chain time from now.")
    if before.asked:
        talk.print(f"{money.both(before.asked)} were asked for before; that request is replaced.")
        # Bad luck: another week for money that could have been taken out at once.
        if before.not_before <= the_run.chain.head().timestamp:
            talk.print("Their delay is over: `assay gateway withdraw` pays them before.")
            confirm("Replace the request without taking them out?", yes=yes)
    receipt = the_run.chain.send(keys.account, call)
    found = the_run.chain.ask(vouchers.deposit_of(keys.address, to, of))
    _print({"asked": found.asked, "not_before": found.not_before}, money, receipt, as_json=as_json)


@app.command("withdraw", epilog='Example: assay gateway withdraw --gateway 0xabc... --json  ->  {"withdrawn", "tx"}')
@with_settings(*RUN, *KEY)
def withdraw(
    settings: Settings,
    gateway: GatewayOption,
    token: TokenOption = None,
    contract: ContractOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pay out what `refund` asked for, once its delay is over."""
    from assay.status.locks import when

    the_run = open_round_run(settings)
    vouchers, _ = contract_of(the_run, contract)
    to, of = Address(parse_address(gateway)), token_of(the_run, token)
    keys = unlock_key(settings)
    found, money = the_run.chain.ask(vouchers.deposit_of(keys.address, to, of)), the_run.currency_of(of)
    now = the_run.chain.head().timestamp
    if found.asked and found.not_before > now:
        talk.print(f"{money.both(found.asked)} can be withdrawn {when(found.not_before, now)}.")
    receipt = the_run.chain.send(keys.account, vouchers.withdraw(to, of))
    _print({"withdrawn": found.asked}, money, receipt, as_json=as_json)


@app.command("show", epilog='Example: assay gateway show --gateway 0xabc... --json  ->  {"balance", "covered", ...}')
@with_settings(*RUN, "key", "keys_dir")
def show(
    settings: Settings,
    gateway: GatewayOption,
    who: WhoOption = None,
    token: TokenOption = None,
    contract: ContractOption = None,
    as_json: JsonOption = False,
) -> None:
    """A payer's deposit at a gateway, and the contract's terms; needs no password."""
    from assay.status.locks import when

    the_run = open_round_run(settings)
    vouchers, terms = contract_of(the_run, contract)
    to, of = Address(parse_address(gateway)), token_of(the_run, token)
    payer = address_asked(settings, who)
    found = the_run.chain.ask(vouchers.deposit_of(payer, to, of))
    document = _deposit_document(vouchers, terms, payer, to, of, found)
    if not as_json:
        document["not_before"] = when(found.not_before, the_run.chain.head().timestamp) if found.asked else None
    _print(document, the_run.currency_of(of), as_json=as_json)


@app.command("voucher", epilog="Example: assay gateway voucher 12.5 --gateway 0xabc...  ->  one line, for a request")
@with_settings(*RUN, *KEY)
def voucher(
    settings: Settings,
    amount: Amount,
    gateway: GatewayOption,
    token: TokenOption = None,
    contract: ContractOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign a voucher: AMOUNT is what you have paid this gateway in all, this time included.

    Raises RejectedError (VoucherUncovered).
    """
    from assay.protocol.payments.voucher import Voucher, VoucherDomain
    from assay_ledger.vouchers.signed import sign_voucher

    the_run = open_round_run(settings)
    vouchers, _ = contract_of(the_run, contract)
    to, of = Address(parse_address(gateway)), token_of(the_run, token)
    money = the_run.currency_of(of)
    wei = money.parse(amount)
    keys = unlock_key(settings)
    covered = the_run.chain.ask(vouchers.deposit_of(keys.address, to, of)).covered
    # Attack: one nought too many is signed, and redeemed for all of the deposit and of every later one.
    if wei > covered:
        raise RejectedError(
            f"{money.both(wei)} are more than your deposit covers, {money.both(covered)} in all. Signed, that could be "
            "redeemed for all that is there, and for what you deposit later.",
            code="VoucherUncovered",
            remedy="Sign less, or deposit first (`assay gateway deposit`).",
        )
    domain = VoucherDomain(the_run.chain.chain_id, vouchers.address)
    line = sign_voucher(keys, Voucher(keys.address, to, of, wei), domain).to_text()
    if as_json:
        print_json({"voucher": line, "amount": wei, "covered": covered})
    else:
        typer.echo(line)


@app.command("redeem", epilog='Example: assay gateway redeem --from ./gateway --json  ->  {"vouchers", "paid", ...}')
@with_settings(*RUN, *KEY)
def redeem(
    settings: Settings,
    folder: Annotated[Path, typer.Option("--from", metavar="DIR", help="Folder of the gateway's vouchers.")],
    least: Annotated[
        str,
        typer.Option(
            "--least",
            metavar="AMOUNT",
            help="Redeem nothing worth less in all, and send on no less of what others redeemed.",
            callback=typed_amount_or_none,
        ),
    ] = "0",
    as_json: JsonOption = False,
) -> None:
    """Redeem the vouchers that a gateway has kept; any key may, and the tokens go to the gateway.

    What is owed to the model's owners in these tokens, whoever redeemed it, is sent on to its revenue.
    """
    from assay_ledger.vouchers.kept import read_vouchers
    from assay_ledger.vouchers.redeeming import due_vouchers, pay_owners, redeem_vouchers, worth_redeeming

    the_run = open_round_run(settings)
    domain, kept = read_vouchers(folder)
    if domain.chain_id != the_run.chain.chain_id:
        raise ConfigError(
            f"These vouchers are of chain {domain.chain_id}; the node is of chain {the_run.chain.chain_id}.",
            code="VouchersOfAnother",
            remedy="Name a node of that chain.",
        )
    vouchers, _ = contract_of(the_run, "0x" + domain.contract.hex())
    account = unlock_key(settings).account
    is_any = least.strip() == "0"
    tokens = {signed.voucher.token for signed in kept}
    bounds = {token: Wei(0) if is_any else the_run.currency_of(token).parse(least) for token in tokens}
    due = worth_redeeming(due_vouchers(the_run.chain, vouchers, kept), bounds)
    done = redeem_vouchers(the_run.chain, account, vouchers, due)
    # Attack: a payer that redeems its last voucher itself, so that nothing is due and nobody sends the owners' part on.
    pay_owners(the_run.chain, account, vouchers, bounds, done)
    # What was sent on may be of others: it says nothing of these vouchers.
    if done.errors and not done.vouchers:
        raise done.errors[0]
    for error in done.errors:
        talk.print(error.explain(), markup=False)
    sums = {"paid": done.paid, "to_owners": done.to_owners, "sent_on": done.sent_on}
    document: dict[str, Any] = {"kept": len(kept), "vouchers": done.vouchers}
    document |= {name: {"0x" + of.hex(): amount for of, amount in found.items()} for name, found in sums.items()}
    if as_json:
        errors = [error.to_json() for error in done.errors]
        print_json(document | {"transactions": done.transactions, "errors": errors})
        return
    shown = {
        f"{name} of 0x{of.hex()}": the_run.currency_of(of).show(amount)
        for name, found in sums.items()
        for of, amount in found.items()
    }
    print_fields({"kept": len(kept), "redeemed": done.vouchers, **shown})


def _deposit_document(
    vouchers: VouchersContract, terms: VoucherTerms, payer: Address, gateway: Address, token: Address, d: PayerDeposit
) -> dict[str, Any]:
    return {
        "contract": vouchers.address,
        "owners_ppm": terms.owners_ppm,
        "refund_delay": terms.refund_delay,
        "payer": payer,
        "gateway": gateway,
        "token": token,
        "balance": d.balance,
        "asked": d.asked,
        "redeemed": d.redeemed,
        "covered": d.covered,
        "not_before": d.not_before,
    }


def _print(document: dict[str, Any], money: Currency, receipt: Any = None, *, as_json: bool) -> None:
    tx = {} if receipt is None else {"tx": receipt["transactionHash"].to_0x_hex()}
    if as_json:
        print_json(document | tx)
        return
    amounts = ("deposited", "balance", "asked", "redeemed", "covered", "withdrawn")
    plain = {
        n: money.show(v) if n in amounts else "0x" + v.hex() if isinstance(v, bytes) else v for n, v in document.items()
    }
    print_fields(plain | tx)
