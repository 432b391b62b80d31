"""What refusals mean: custom errors of our contracts in their own words, funds that are short, errors of the node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from eth_abi.abi import decode as abi_decode
from eth_abi.exceptions import DecodingError
from eth_utils.abi import function_abi_to_4byte_selector, get_abi_input_types
from web3.exceptions import ContractCustomError, ContractLogicError, ContractPanicError

from assay.protocol.errors import AssayError, ConfigError, FundsError, RejectedError, UnavailableError
from assay_ledger.chain import natspec
from assay_ledger.chain.artifacts import artifacts_dir, load_artifact
from assay_ledger.chain.contract_names import REFUSING

_Entry = tuple[str, dict[str, Any]]
"""A contract, and an entry of its ABI."""


def rejection(error: Exception, called: bytes = b"") -> AssayError:
    """The error that a person sees for what a node or a contract refused.

    Errors of several contracts may have one selector: `called`, the calldata that was refused, tells which is meant.
    """
    data = _data_of(error)
    if isinstance(error, ContractCustomError | ContractLogicError) and data.startswith("0x"):
        with suppress(ValueError):  # digits that are none
            if (refused := _refusal(bytes.fromhex(data[2:]), called)) is not None:
                return refused
    if isinstance(error, ContractPanicError):
        return RejectedError(f"The contract stopped: {error}.", code="Panic")
    text = str(error)
    if "insufficient funds" in text.lower():
        return gas_short()
    if isinstance(error, ContractLogicError):
        return RejectedError(f"The contract refused: {text}.", code="Reverted")
    return UnavailableError(f"The node answered with an error: {text[:300]}", code="RpcError")


def _data_of(error: Exception) -> str:
    """What a contract reverted with, in hexadecimal digits, as clients send it: plain (geth, reth), within an object
    beside the transaction (Hardhat), behind a word (Nethermind). Empty where there is none."""
    data = getattr(error, "data", None)
    if isinstance(data, dict):
        data = data.get("data")
    return data.removeprefix("Reverted ") if isinstance(data, str) else ""


def gas_short() -> FundsError:
    """An account without enough of the chain's own coin."""
    return FundsError(
        "The account cannot pay for gas.", code="GasShort", remedy="Send it some of the chain's own coin."
    )


def _refusal(data: bytes, called: bytes) -> RejectedError | None:
    """A custom error with its values and what NatSpec says of it; None for bytes that are none of ours."""
    found = _entries("error").get(data[:4])
    if found is None:
        return None
    asked = {contract for contract, _ in _entries("function").get(called[:4], ())}
    own = [(contract, entry) for contract, entry in found if contract in asked]
    entry = (own or found)[0][1]
    try:
        decoded = abi_decode(get_abi_input_types(entry), data[4:])  # type: ignore[arg-type]
    except (DecodingError, ValueError, OverflowError):
        return None
    names = [item["name"] or str(k) for k, item in enumerate(entry["inputs"])]
    values = {name: _plain(value) for name, value in zip(names, decoded, strict=True)}
    return _explained(entry["name"], values, [contract for contract, _ in own or found])


def _explained(name: str, values: dict[str, Any], contracts: Sequence[str]) -> RejectedError:
    """What these contracts say of their error. Where they differ the code is all that is known."""
    sentences = [
        s
        for s in natspec.sentences("error", name)
        if [value for value, _ in s.values] == list(values) and not set(contracts).isdisjoint(s.contracts)
    ]
    notices, remedies = {s.notice for s in sentences}, {s.remedy for s in sentences}
    # Errors of OpenZeppelin's have no sentence of ours, and `assay explain` knows none.
    elsewhere = f"See `assay explain {name}`." if sentences else "Its name, and the values beside it, say why."
    shown = f"{name}({', '.join(f'{k} = {v}' for k, v in values.items())})"
    return RejectedError(
        f"The contract refused: {shown}." + (f" {notices.pop()}" if len(notices) == 1 else ""),
        code=name,
        remedy=remedies.pop() if len(remedies) == 1 else elsewhere,
        **values,
    )


def _entries(kind: str) -> dict[bytes, tuple[_Entry, ...]]:
    """By selector: every custom error, or every function, of the contracts of a run."""
    return _read(kind, artifacts_dir())


@cache
def _read(kind: str, _folder: Path) -> dict[bytes, tuple[_Entry, ...]]:
    table: dict[bytes, tuple[_Entry, ...]] = {}
    for contract, entry in _compiled():
        if entry["type"] == kind:
            selector = function_abi_to_4byte_selector(entry)  # type: ignore[arg-type]
            table[selector] = (*table.get(selector, ()), (contract, entry))
    return table


def _compiled() -> Iterator[_Entry]:
    for contract in REFUSING:
        with suppress(ConfigError):
            yield from ((contract, entry) for entry in load_artifact(contract).abi)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value
