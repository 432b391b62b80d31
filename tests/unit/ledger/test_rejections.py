"""A refusal says what happened and what to do, in the words of the contract that threw it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from eth_abi.abi import encode
from eth_utils.abi import function_abi_to_4byte_selector
from web3.exceptions import ContractCustomError, ContractLogicError

from assay.explorer.explain import explain_code
from assay.protocol.errors import AssayError
from assay_ledger.chain import natspec
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.contract_names import MET
from assay_ledger.chain.rejections import rejection
from tests.harness.contracts.fresh import fresh_artifacts


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The contracts as the sources stand now, with what they say of themselves."""
    with fresh_artifacts(tmp_path_factory.mktemp("artifacts"), MET):
        yield


def selector(contract: str, kind: str, name: str) -> bytes:
    (entry,) = (e for e in load_artifact(contract).abi if (e["type"], e.get("name")) == (kind, name))
    return function_abi_to_4byte_selector(entry)  # type: ignore[arg-type]


def refused(contract: str, name: str, *values: int, called: bytes = b"") -> AssayError:
    data = selector(contract, "error", name) + encode(["uint256"] * len(values), values)
    return rejection(ContractCustomError("0x" + data.hex(), data="0x" + data.hex()), called)


def test_a_refusal_carries_code_values_meaning_and_remedy() -> None:
    error = refused("Vault", "VaultFull", 9, 4)
    (sentence,) = natspec.sentences("error", "VaultFull")
    assert error.code == "VaultFull"
    assert error.details == {"amount": 9, "room": 4}
    assert error.message == f"The contract refused: VaultFull(amount = 9, room = 4). {sentence.notice}"
    assert error.remedy == sentence.remedy


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda data: data, id="plain"),
        pytest.param(lambda data: {"message": "reverted", "txHash": "0x01", "data": data}, id="in an object"),
        pytest.param(lambda data: f"Reverted {data}", id="behind a word"),
    ],
)
def test_a_refusal_has_its_name_in_every_form_that_clients_send(form: Callable[[str], object]) -> None:
    data = "0x" + (selector("Vault", "error", "VaultFull") + encode(["uint256"] * 2, [9, 4])).hex()
    error = rejection(ContractLogicError("execution reverted", data=form(data)))  # type: ignore[arg-type]
    assert error.code == "VaultFull" and error.details == {"amount": 9, "room": 4}


@pytest.mark.parametrize("data", [{}, {"data": None}, {"data": {}}, "Reverted", 7])
def test_data_of_any_other_form_is_a_refusal_without_a_name(data: object) -> None:
    assert rejection(ContractLogicError("execution reverted", data=data)).code == "Reverted"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("contract", "function", "values"),
    [
        ("Commitments", "commit", {"now_": 7, "deadline": 8}),
        ("Duties", "open", {"now_": 7, "deadline": 8}),
        ("Game", "openLeaf", {"gameId": 7, "deadline": 8}),
    ],
)
def test_of_errors_with_one_selector_the_one_that_was_called_is_meant(
    contract: str, function: str, values: dict[str, int]
) -> None:
    error = refused(contract, "TooLate", 7, 8, called=selector(contract, "function", function) + bytes(32))
    (sentence,) = (s for s in natspec.sentences("error", "TooLate") if contract in s.contracts)
    assert error.details == values
    assert error.message.endswith(sentence.notice)
    assert error.remedy == sentence.remedy


def test_an_error_of_a_contract_behind_the_one_called_is_left_to_be_looked_up() -> None:
    error = refused("Commitments", "NotPayments", 7, called=selector("Payments", "function", "settleWork"))
    assert error.message == f"The contract refused: NotPayments(caller = {7:#042x})."
    # What Commitments and Grants say differs; what they advise does not.
    assert error.remedy == "None: people do not make this call."


def test_of_an_error_that_nobody_here_explains_no_explanation_is_promised() -> None:
    """OpenZeppelin's have no sentence of ours: `assay explain` answers that nothing is called so."""
    error = refused("ModelShares", "ERC20InsufficientBalance", 7, 8, 9)
    assert (error.code, error.details["balance"], error.details["needed"]) == ("ERC20InsufficientBalance", 8, 9)
    assert explain_code(error.code) is None and "assay explain" not in (error.remedy or "")


def test_bytes_that_are_no_error_of_ours_are_told_as_they_came() -> None:
    error = rejection(ContractCustomError("0x12345678", data="0x12345678"))
    assert error.code == "Reverted"
    assert "0x12345678" in error.message
