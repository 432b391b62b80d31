"""What refusals mean: custom errors of our contracts by name, funds that are short, errors of the node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from eth_abi.abi import decode as abi_decode
from eth_abi.exceptions import DecodingError
from eth_utils.abi import function_abi_to_4byte_selector, get_abi_input_types
from web3.exceptions import ContractCustomError, ContractLogicError, ContractPanicError

from assay.protocol.errors import AssayError, FundsError, RejectedError, UnavailableError
from assay_ledger.chain.artifacts import load_artifact

_CONTRACTS: Final = (
    "Deployer",
    "Charter",
    "Vault",
    "Rounds",
    "Outers",
    "Audit",
    "Settlement",
    "Game",
    "ModelShares",
    "Vesting",
    "Revenue",
    "TestToken",
    "ERC20",
)


@cache
def _error_table() -> dict[bytes, dict[str, Any]]:
    """Selector to ABI of every custom error that a contract of a run can raise."""
    table: dict[bytes, dict[str, Any]] = {}
    for name in _CONTRACTS:
        try:
            abi = load_artifact(name).abi
        except AssayError:
            continue
        for entry in abi:
            if entry["type"] == "error":
                table[function_abi_to_4byte_selector(entry)] = entry  # type: ignore[arg-type]
    return table


def decode_revert(data: bytes) -> tuple[str, dict[str, Any]] | None:
    """Name and named values of a custom error, or None for bytes that are none of ours."""
    entry = _error_table().get(data[:4])
    if entry is None:
        return None
    try:
        values = abi_decode(get_abi_input_types(entry), data[4:])  # type: ignore[arg-type]
    except DecodingError:
        return None
    names = [item["name"] or str(k) for k, item in enumerate(entry["inputs"])]
    return entry["name"], {n: _plain(v) for n, v in zip(names, values, strict=True)}


def rejection(error: Exception) -> AssayError:
    """The error that a person sees for what a node or a contract refused."""
    data = getattr(error, "data", None)
    if isinstance(error, ContractCustomError | ContractLogicError) and isinstance(data, str) and data.startswith("0x"):
        decoded = decode_revert(bytes.fromhex(data[2:]))
        if decoded is not None:
            name, values = decoded
            shown = ", ".join(f"{k} = {v}" for k, v in values.items())
            return RejectedError(
                f"The contract refused: {name}({shown}).",
                code=name,
                remedy=f"See `assay explain {name}`.",
                **{str(k): v for k, v in values.items()},
            )
    if isinstance(error, ContractPanicError):
        return RejectedError(f"The contract stopped: {error}.", code="Panic")
    text = str(error)
    if "insufficient funds" in text.lower():
        return gas_short()
    if isinstance(error, ContractLogicError):
        return RejectedError(f"The contract refused: {text}.", code="Reverted")
    return UnavailableError(f"The node answered with an error: {text[:300]}", code="RpcError")


def gas_short() -> FundsError:
    """An account without enough of the chain's own coin."""
    return FundsError(
        "The account cannot pay for gas.", code="GasShort", remedy="Send it some of the chain's own coin."
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value
