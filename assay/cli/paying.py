"""What commands name that pay by voucher: the contract of vouchers, and the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import parse_address
from assay.protocol.errors import UsageError
from assay.protocol.types import Address

if TYPE_CHECKING:
    from assay_ledger.bindings.vouchers import VouchersContract
    from assay_ledger.deployment.vouchers import VoucherTerms
    from assay_ledger.rounds.run import Run

TokenOption = Annotated[
    str | None, typer.Option("--token", metavar="ADDRESS", help="Revenue token; the run's first unless given.")
]
ContractOption = Annotated[
    str | None,
    typer.Option("--contract", metavar="ADDRESS", help="Contract of vouchers; the run's usual one unless given."),
]


def contract_of(run: Run, named: str | None) -> tuple[VouchersContract, VoucherTerms]:
    """A run's contract of vouchers, and its terms. Raises RejectedError (VouchersMissing), UnknownCode."""
    from assay_ledger.deployment.vouchers import check_vouchers

    return check_vouchers(run, None if named is None else Address(parse_address(named)))


def token_of(run: Run, named: str | None) -> Address:
    """The token that is meant. Raises UsageError (TokenNotListed)."""
    listed = run.charter.revenue_tokens
    chosen = listed[0] if named is None and listed else Address(parse_address(named or ""))
    if chosen not in listed:
        raise UsageError(
            f"0x{chosen.hex()} is no revenue token of this run.", code="TokenNotListed", remedy="See `assay run show`."
        )
    return chosen
