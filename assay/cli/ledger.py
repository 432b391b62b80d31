"""`assay ledger`: stake, shares, revenue. Money verbs check first, restate cost and delay, and show the receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.amounts import COIN, SHARES, Currency
from assay.cli.common import (
    address_asked,
    check_run_code,
    confirm,
    open_round_run,
    parse_address,
    parse_checked_address,
    print_batch,
    print_fields,
    print_json,
    send_unless_done,
    talk,
    unlock_key,
)
from assay.cli.options import (
    KEY,
    RUN,
    Amount,
    DryRunOption,
    ForOption,
    JsonOption,
    MultisigOption,
    WhoOption,
    YesOption,
    typed_amount,
    with_settings,
)
from assay.cli.shares_owned import check_owned, ripe_grants, shares_of
from assay.cli.sponsors import check_sponsor
from assay.cli.terms_checks import check_before_staking
from assay.durations import duration
from assay.protocol.errors import FundsError, UsageError
from assay.protocol.types import Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from eth_typing import ChecksumAddress

    from assay_ledger.chain.client import Chain
    from assay_ledger.chain.transaction_signer import TransactionSigner
    from assay_ledger.rounds.run import Run

app = typer.Typer(no_args_is_help=True, help="Stake, shares and revenue of a run.")


@app.command("stake", epilog='Example: assay ledger stake 500 --yes --json  ->  {"staked", "free", "tx"}')
@with_settings(*RUN, *KEY, "allow_code", "sponsor")
def stake(
    settings: Settings,
    amount: Amount,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Move tokens into the run's vault, where your own claims lock them."""
    from assay.sponsor.launching import deposit

    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    check_sponsor(the_run, settings)
    check_before_staking(the_run)
    money, wei = the_run.currency, the_run.currency.parse(amount)
    keys = unlock_key(settings)
    held = the_run.chain.ask(the_run.token.balance_of(keys.address))
    if held < wei:
        raise FundsError(
            f"{keys.account.address} holds {money.show(held)} tokens, {money.show(wei)} are to be staked.",
            code="TokensShort",
            remedy="Stake less, or get tokens first (`assay node fund` on a local chain).",
        )
    free = the_run.chain.ask(the_run.vault.free(keys.address))  # for whoever stakes again: the first answer was lost
    beside = f" beside {money.show(free)} of free stake that are there" if free else ""
    leaving = duration(the_run.charter.timing.exit)
    talk.print(f"Stakes {money.both(wei)}{beside}; leaving takes {leaving} of chain time.")
    if dry_run:
        return
    confirm(f"Stake {money.both(wei)} of {keys.account.address}{beside}?", yes=yes)
    receipt = deposit(the_run.chain, keys.account, the_run, wei)
    _done({"staked": wei, "free": the_run.chain.ask(the_run.vault.free(keys.address))}, receipt, money, as_json=as_json)


@app.command("unstake", epilog='Example: assay ledger unstake 500 --yes --json  ->  {"leaving", "waited", ..., "tx"}')
@with_settings(*RUN, *KEY)
def unstake(
    settings: Settings,
    amount: Amount,
    owner: ForOption = None,
    multisig: MultisigOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask for free stake back; `withdraw` pays it after the exit delay, which starts anew for what waits already. With
    --for as a withdrawal address."""
    from assay.status.account import withdraw_at

    the_run = open_round_run(settings)
    money, vault = the_run.currency, the_run.vault
    wei, whose = money.parse(amount), None if owner is None else Address(parse_address(owner))
    call = vault.request_exit(wei) if whose is None else vault.request_exit_for(whose, wei)
    delay = f"{duration(the_run.charter.timing.exit)} of chain time"
    if multisig is not None:
        talk.print(f"{money.both(wei)} can be withdrawn {delay} after the call.")
        _say_what_starts_anew(the_run, whose or Address(parse_address(multisig)))
        print_batch(the_run, multisig, f"Ask for {money.both(wei)} of free stake back", [call])
        return
    keys = unlock_key(settings)
    account, whose = keys.account, whose or keys.address
    waited, since = _say_what_starts_anew(the_run, whose)
    the_run.chain.simulate(call, sender=keys.address)
    talk.print(f"{money.both(wei)} can be withdrawn {delay} from now.")
    if dry_run:
        return
    anew = f", and start the delay of {money.both(waited)} anew" if waited else ""
    confirm(f"Take {money.both(wei)} out of {checksummed(whose)}'s stake{anew}?", yes=yes)
    receipt = the_run.chain.send(account, call)
    leaving, after = the_run.chain.ask(vault.exiting(whose))
    done = {"leaving": leaving, "not_before": withdraw_at(after), "waited": waited, "waited_since": since}
    _done(done, receipt, money, as_json=as_json)


@app.command("withdraw", epilog='Example: assay ledger withdraw --json  ->  {"held", "to", "tx"}')
@with_settings(*RUN, *KEY)
def withdraw(
    settings: Settings, owner: ForOption = None, multisig: MultisigOption = None, as_json: JsonOption = False
) -> None:
    """Pay out what `unstake` asked for, once its delay is over. With --for anybody does it for anybody: what is paid
    goes to its owner's withdrawal address, or to the owner."""
    the_run = open_round_run(settings)
    vault, whose = the_run.vault, None if owner is None else Address(parse_address(owner))
    call = vault.withdraw() if whose is None else vault.withdraw_for(whose)
    if multisig is not None:
        _say_what_is_paid(the_run, whose or Address(parse_address(multisig)))
        print_batch(the_run, multisig, "Withdraw what was asked for", [call])
        return
    keys = unlock_key(settings)
    to = _say_what_is_paid(the_run, whose or keys.address)
    receipt = the_run.chain.send(keys.account, call)
    held = the_run.chain.ask(the_run.token.balance_of(to))
    _done({"held": held, "to": checksummed(to)}, receipt, the_run.currency, as_json=as_json)


@app.command(
    "withdrawal-address",
    epilog='Example: assay ledger withdrawal-address 0xAbC... --yes --json  ->  {"owner", "withdrawal_address", "tx"}; '
    "without an address it only says which one is named.",
)
@with_settings(*RUN, *KEY)
def withdrawal_address(
    settings: Settings,
    address: Annotated[
        str | None, typer.Argument(metavar="[ADDRESS]", help="Who is to be paid, with its checksum.")
    ] = None,
    owner: ForOption = None,
    multisig: MultisigOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Name the address that is paid when stake leaves, and gets vested shares and revenue: from then on it alone, not
    your key, can name another. Without ADDRESS: say which one is named; needs no password."""
    the_run = open_round_run(settings)
    vault = the_run.vault
    if address is None:
        whose = address_asked(settings, owner)
        document = _payee_document(whose, the_run.chain.ask(vault.payee_of(whose)))
        if as_json:
            print_json(document | {"tx": None})
        else:
            print_fields(document)
        return
    payee = Address(parse_checked_address(address))
    if multisig is not None:
        whose = Address(parse_address(owner or multisig))
        _say_what_naming_does(the_run.chain, whose, payee)
        print_batch(the_run, multisig, "Name who is paid when stake leaves", [vault.set_payee(whose, payee)])
        return
    keys = unlock_key(settings)
    whose = keys.address if owner is None else Address(parse_address(owner))
    call = vault.set_payee(whose, payee)
    the_run.chain.simulate(call, sender=keys.address)
    _say_what_naming_does(the_run.chain, whose, payee)
    if dry_run:
        return
    confirm(f"Name {checksummed(payee)}?", yes=yes)
    receipt = the_run.chain.send(keys.account, call)
    _done(_payee_document(whose, payee), receipt, the_run.currency, as_json=as_json)


def _say_what_starts_anew(run: Run, owner: Address) -> tuple[Wei, int | None]:
    """Says what of an owner waits to be withdrawn, whose delay another request starts anew; it, and since when."""
    waiting, not_before = run.chain.ask(run.vault.exiting(owner))
    if not waiting:
        return waiting, None
    since, now = not_before - run.charter.timing.exit, run.chain.head().timestamp
    over = " (it is over: `assay ledger withdraw` pays them before)" if now > not_before else ""
    talk.print(
        f"{run.currency.both(waiting)} were asked for {duration(now - since)} ago; their delay starts anew{over}."
    )
    return waiting, since


def _say_what_is_paid(run: Run, owner: Address) -> Address:
    """Says what of an owner is paid out, when, and to whom; the latter."""
    from assay.status.account import withdraw_at
    from assay.status.locks import when

    (leaving, after), to = run.chain.ask(run.vault.exiting(owner)), run.chain.ask(run.vault.payee_of(owner))
    now, due = run.chain.head().timestamp, withdraw_at(after)
    if leaving and due > now:
        talk.print(f"{run.currency.both(leaving)} can be withdrawn {when(due, now)}, to {checksummed(to)}")
    elif leaving:
        talk.print(f"withdraws {run.currency.both(leaving)} to {checksummed(to)}")
    return to


def _say_what_naming_does(chain: Chain, owner: Address, payee: Address) -> None:
    """What whoever names an address to be paid must know first, whether by a key or by a multisig."""
    to = checksummed(payee)
    talk.print(
        f"Whatever leaves of {checksummed(owner)} (stake, vested shares, revenue) will be paid to {to}, "
        "which alone can name another: nobody can give it back for a key that is lost."
    )
    if not is_seen(chain, payee):
        talk.print(f"Nobody has used {to} on this chain yet: be sure that you hold its key.")


def _payee_document(owner: Address, payee: Address) -> dict[str, Any]:
    return {"owner": checksummed(owner), "withdrawal_address": checksummed(payee)}


def is_seen(chain: Chain, who: Address) -> bool:
    """Whether an address has a contract, or has sent anything."""
    return bool(chain.code_at(who)) or bool(chain.read(lambda: chain.w3.eth.get_transaction_count(checksummed(who))))


def checksummed(who: Address) -> ChecksumAddress:
    """An address with its checksum."""
    from eth_utils.address import to_checksum_address

    return to_checksum_address(who)


@app.command("shares", epilog='Example: assay ledger shares --json  ->  {"address", "shares", "pending", "claimable"}')
@with_settings(*RUN, "key", "keys_dir")
def shares(settings: Settings, who: WhoOption = None, as_json: JsonOption = False) -> None:
    """What an address owns of the model, what is pending, and what it can claim; needs no password."""
    the_run = open_round_run(settings)
    address = address_asked(settings, who)
    document = shares_of(the_run, address)
    if as_json:
        print_json(document)
    else:
        kinds = dict.fromkeys(("shares", "pending", "supply"), SHARES) | {"free_stake": the_run.currency}
        shown: dict[str, object] = {
            n: kinds[n].show(v) if n in kinds else v for n, v in document.items() if n != "claimable"
        }
        for token in the_run.charter.revenue_tokens:
            where = "0x" + token.hex()
            shown[f"claimable {where}"] = the_run.currency_of(token).show(document["claimable"][where])
        print_fields(shown)


@app.command("claim", epilog='Example: assay ledger claim --json  ->  {"vested", "claimed": {TOKEN: WEI}, "tx"}')
@with_settings(*RUN, *KEY)
def claim(settings: Settings, owner: ForOption = None, as_json: JsonOption = False) -> None:
    """Turn vested credits into shares, then pay out what your shares have earned; with --for as a withdrawal address.
    Both go to the owner's withdrawal address, where there is one."""
    the_run, keys, receipt = open_round_run(settings), unlock_key(settings), None
    account = keys.account
    whose = keys.address if owner is None else Address(parse_address(owner))
    ripe = ripe_grants(the_run, whose)
    for is_cancelled, text in (
        (False, "releases {} shares that have vested, in {} transactions"),
        (True, "strikes out {} shares that a conviction cancelled before they vested, in {} transactions"),
    ):
        if alike := [grant.amount for grant in ripe if grant.is_cancelled == is_cancelled]:
            talk.print(text.format(SHARES.show(sum(alike)), len(alike)))
    vested = 0
    for grant in ripe:
        done = send_unless_done(the_run.chain, account, the_run.grants.release(grant.name), "GrantNotFound")
        if done is None:
            talk.print(f"somebody else released {SHARES.show(grant.amount)} of them first")
        else:
            receipt, vested = done, vested + (0 if grant.is_cancelled else grant.amount)
    claimed: dict[str, Any] = {}
    for token in the_run.charter.revenue_tokens:
        money, where = the_run.currency_of(token), "0x" + token.hex()
        due = the_run.chain.ask(the_run.revenue.claimable(token, whose))
        if due:
            talk.print(f"claims {money.both(due)} of {where}")
            call = the_run.revenue.claim_for(token, whose)
            done = send_unless_done(the_run.chain, account, call, "NothingToClaim")
            if done is None:
                talk.print("somebody else claimed it first")
            else:
                receipt, claimed[where] = done, due if as_json else money.show(due)
    if receipt is None:
        talk.print("Nothing that has vested or is due is left here; `assay status` shows what vests, and when.")
    shown = {"claimed": claimed} if as_json else {f"claimed of {where}": due for where, due in claimed.items()}
    _done({"vested": vested} | shown, receipt, SHARES, as_json=as_json)


@app.command("pay", epilog='Example: assay ledger pay 1000 --yes --json  ->  {"paid", "token", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def pay(
    settings: Settings,
    amount: Amount,
    token: Annotated[
        str | None, typer.Option("--token", metavar="ADDRESS", help="Revenue token; the first unless given.")
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pay revenue to the owners of the model: it joins the next weekly bucket and streams over four weeks."""
    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    check_owned(the_run)
    account = unlock_key(settings).account
    listed = the_run.charter.revenue_tokens
    chosen = listed[0] if token is None and listed else Address(parse_address(token or ""))
    if chosen not in listed:
        raise UsageError(
            f"0x{chosen.hex()} is no revenue token of this run.", code="TokenNotListed", remedy="See `assay run show`."
        )
    money = the_run.currency_of(chosen)
    wei = money.parse(amount)
    confirm(f"Pay {money.both(wei)} of 0x{chosen.hex()} to the owners? It cannot be taken back.", yes=yes)
    from assay_ledger.bindings.token import TokenContract

    the_run.chain.send(account, TokenContract(chosen).approve(the_run.revenue.address, wei))
    receipt = the_run.chain.send(account, the_run.revenue.deposit(chosen, wei))
    _done({"paid": wei, "token": "0x" + chosen.hex()}, receipt, money, as_json=as_json)


@app.command("faucet", epilog='Example: assay ledger faucet 0xabc... --tokens 1000 --json  ->  {"tokens", "gas", "tx"}')
@with_settings(*RUN, *KEY)
def faucet(
    settings: Settings,
    addresses: Annotated[
        list[str], typer.Argument(metavar="ADDRESS...", help="Who gets tokens and gas, each as much.")
    ],
    amount: Annotated[str, typer.Option("--tokens", help="Test tokens to mint.", callback=typed_amount)] = "1000",
    gas: Annotated[
        str, typer.Option("--gas", help="Coins for gas, from the faucet's account.", callback=typed_amount)
    ] = "1",
    as_json: JsonOption = False,
) -> None:
    """Demo only: mint test tokens for strangers and send gas from the faucet's key."""
    everybody = [Address(parse_address(address)) for address in addresses]
    the_run = open_round_run(settings)
    account = unlock_key(settings).account
    money, receipt = the_run.currency, None
    wei, gas_wei = money.parse(amount), COIN.parse(gas)
    talk.print(f"{len(everybody)} times {money.show(wei)} new test tokens, and {COIN.show(gas_wei)} coins of your own")
    for who in everybody:
        receipt = fund(the_run.chain, the_run, account, who, wei, gas_wei)
    _done({"tokens": wei, "gas": gas_wei}, receipt, money, as_json=as_json)


def fund(chain: Chain, run: Run, faucet_account: TransactionSigner, who: Address, wei: Wei, gas_wei: Wei) -> Any:
    """Mints test tokens and sends gas; returns the last receipt."""
    from assay.sponsor.launching import mint_tokens

    chain.transfer(faucet_account, who, gas_wei)
    return mint_tokens(chain, faucet_account, run.token, who, wei)


def _done(document: dict[str, Any], receipt: Any, money: Currency, *, as_json: bool) -> None:
    """The receipt of a verb; `money` is how its amounts are written, coins and shares apart."""
    tx = None if receipt is None else receipt["transactionHash"].to_0x_hex()
    if as_json:
        print_json(document | {"tx": tx})
        return
    kinds = dict.fromkeys(("staked", "free", "leaving", "waited", "held", "paid", "tokens"), money)
    kinds |= {"vested": SHARES, "gas": COIN}
    print_fields(
        {n: kinds[n].show(v) if n in kinds else v for n, v in document.items()}
        | {"transaction": tx or "-", "gas used": "-" if receipt is None else receipt["gasUsed"]}
    )
