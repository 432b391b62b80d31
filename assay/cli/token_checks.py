"""An existing token as the money of a run: what can be found out of it before anything is captured or deployed.

A vault refuses a token that keeps a fee at each deposit (`FeeOnTransfer`). Found here, that costs a question; found by
the vault, all that was deployed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from assay.amounts import MOST_DECIMALS, Currency
from assay.protocol.errors import AssayError, FundsError, UserError

if TYPE_CHECKING:
    from assay.protocol.types import Address, Wei
    from assay_ledger.chain.client import Chain
    from assay_ledger.contract import Call, Query

DELEGATION: Final = bytes.fromhex("ef0100")
"""What the code of an account begins with that is a person's and lends its address to a contract (EIP-7702)."""

STRANGER: Final = bytes.fromhex("5afe") * 10
"""Who holds tokens in the simulation as a vault would: an address that nobody has."""

LATER_S: Final = 30 * 24 * 60 * 60
"""After which a balance must be what it was: a run lasts as long."""


def check_token(chain: Chain, token: Address, sponsor: Address, needed: Wei) -> str:
    """What is known of a token as a run's money, in a sentence; `needed` wei go into the escrow.

    Raises UserError (TokenMissing, TokenUnreadable, TokenTakesFee, TokenRebases, TokenRefuses),
    FundsError (TokensShort).
    """
    from assay_ledger.bindings.token import TokenContract
    from assay_ledger.rounds.currencies import read_currency

    name, contract = to_checksum_address(token), TokenContract(token)
    code = chain.code_at(token)
    if not code or code.startswith(DELEGATION):
        raise UserError(
            f"There is no contract at {name}.", code="TokenMissing", remedy="Give the address of an ERC-20 token."
        )
    money = read_currency(chain, token)
    try:
        held = int(chain.ask(contract.balance_of(sponsor)))
    except AssayError as error:
        if error.code == "NodeUnreachable":
            raise
        raise UserError(
            f"The contract at {name} answers no `balanceOf` as a token does.",
            code="TokenUnreadable",
            remedy="Give the address of an ERC-20 token.",
        ) from error
    if not money.is_known:
        raise UserError(
            f"The token at {name} says no decimals that a token can have, so nobody can say what amounts of it are.",
            code="TokenUnreadable",
            remedy=f"Use a token whose `decimals` are 0 to {MOST_DECIMALS}, or leave --token out for a test token.",
        )
    if held < needed:
        raise FundsError(
            f"{to_checksum_address(sponsor)} holds {money.both(held)} of the token at {name}; the escrow takes "
            f"{money.both(needed)}.",
            code="TokensShort",
            remedy="Get what is missing, or give a smaller --escrow, fewer --rounds or --seats.",
        )
    says = f"{money.decimals} decimals" + (f', calls itself "{money.symbol}"' if money.symbol else "")
    tried = _tried(chain, token, sponsor, needed, money)
    return f"{name}: {says}; {money.show(held)} held, the escrow takes {money.both(needed)}; {tried}"


def _tried(chain: Chain, token: Address, sponsor: Address, amount: Wei, money: Currency) -> str:
    """Has the node simulate a deposit, and the balance a month later. Nothing is sent."""
    from assay.protocol.types import Address
    from assay_ledger.bindings.token import TokenContract

    contract, vault, now = TokenContract(token), Address(STRANGER), chain.head().timestamp
    asked = contract.balance_of(vault)
    deposit: list[tuple[Address, Call | Query[Any]]] = [
        (vault, asked),
        (sponsor, contract.approve(vault, amount)),
        (vault, contract.transfer_from(sponsor, vault, amount)),
        (vault, asked),
    ]
    try:
        wanted = _simulation([(now + 1, deposit), (now + LATER_S, [(vault, asked)])])
        blocks = chain.rpc("eth_simulateV1", wanted, "latest")
        answers = [answer for block in blocks for answer in block["calls"]]
        before, approved, moved, after, later = answers
        refused = [answer for answer in (approved, moved) if int(answer["status"], 16) != 1]
        # A token that answers at all answers true (SafeERC20).
        refused += [a for a in (approved, moved) if len(a["returnData"]) > 2 and not int(a["returnData"], 16)]
        numbers = [int(answer["returnData"], 16) for answer in (before, after, later)]
    except (AssayError, LookupError, TypeError, ValueError):
        return "this node simulates nothing (eth_simulateV1), so whether it keeps a fee shows at the first deposit"
    if refused:
        raise UserError(
            f"The token refuses that {to_checksum_address(sponsor)} approves and pays {money.show(amount)} tokens.",
            code="TokenRefuses",
            remedy="Ask its issuer whether it is paused, or keeps a list of who may hold it.",
        )
    if numbers[1] - numbers[0] != amount:
        arrived = money.show(numbers[1] - numbers[0])
        raise UserError(
            f"Of {money.show(amount)} tokens sent, {arrived} arrive: no vault takes such a token.",
            code="TokenTakesFee",
            remedy="Use a token without a fee, or leave --token out for a test token.",
        )
    if numbers[2] != numbers[1]:
        raise UserError(
            "The token's balances change with time: a vault would owe more than it holds, or hold what nobody owns.",
            code="TokenRebases",
            remedy="Wrap it in a token whose balances stay, or leave --token out for a test token.",
        )
    return (
        "a deposit was simulated: it keeps no fee, and a balance stays for a month. What its issuer may still change, "
        "nobody can tell"
    )


def _simulation(blocks: list[tuple[int, list[tuple[Address, Call | Query[Any]]]]]) -> dict[str, object]:
    """The argument of eth_simulateV1: what is called when and by whom."""
    return {
        "blockStateCalls": [
            {
                "blockOverrides": {"time": hex(time)},
                "calls": [
                    {"from": "0x" + who.hex(), "to": "0x" + call.to.hex(), "data": "0x" + call.data.hex()}
                    for who, call in calls
                ],
            }
            for time, calls in blocks
        ]
    }
