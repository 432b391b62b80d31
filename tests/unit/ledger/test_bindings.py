"""The typed bindings say what the contracts say: every function and event, compared with web3 on drawn values."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_abi.exceptions import EncodingError
from eth_utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector
from hexbytes import HexBytes
from web3 import Web3
from web3.contract.contract import Contract as WebContract
from web3.types import LogReceipt

from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.commitments import CommitmentsContract, WorkCommitted
from assay_ledger.bindings.game import DigestsPosted, LeafPosted
from assay_ledger.contract import Call, Contract, Event, Logged, abi_value, selector
from tests.harness.contracts import harness
from tools import bindings
from tools.binding_structs import struct_of

ROUNDS = 3
AT = Address(b"\x5a" * 20)
MADE = {
    k: v
    for m in ("structs", *bindings.CONTRACTS.values())
    for k, v in vars(import_module(f"{bindings.PACKAGE}.{m}")).items()
}
CLASSES = {
    **{name: MADE[f"as_{bindings.snake(name)}"] for name in bindings.STRUCTS if name != bindings.TERMS},
    "RunTerms": RunCharter.from_tuple,
}
"""Structs that the protocol has a class for, of the fields that an ABI decoder gives."""


def class_of(name: str) -> type[Contract]:
    """The binding of a contract."""
    module = import_module(f"assay_ledger.bindings.{bindings.CONTRACTS[name]}")
    found: type[Contract] = getattr(module, bindings.class_name(name))
    return found


def by_web3(name: str) -> WebContract:
    """The contract as web3 makes it of its ABI."""
    found: WebContract = Web3().eth.contract(address=Web3.to_checksum_address(AT), abi=harness.artifact(name).abi)  # type: ignore[call-overload]
    return found


def drawn(item: Mapping[str, Any], rng: random.Random) -> Any:
    """A value of an ABI type, as web3 takes it: addresses with checksum, structs as tuples."""
    kind = str(item["type"])
    if kind.endswith("]"):
        inner, _, count = kind[:-1].rpartition("[")
        return [drawn({**item, "type": inner}, rng) for _ in range(int(count or rng.randrange(4)))]
    if kind == "tuple":
        return tuple(drawn(part, rng) for part in item["components"])
    if str(item.get("internalType")).startswith("enum"):
        return rng.randrange(3)
    if kind == "address":
        return Web3.to_checksum_address(rng.randbytes(20))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "string":
        return rng.randbytes(5).hex()
    if kind.startswith("bytes"):
        return rng.randbytes(int(kind[5:] or rng.randrange(70)))
    bits = int(kind.removeprefix("u")[3:])
    return rng.getrandbits(bits) - (0 if kind.startswith("u") else 1 << bits - 1)


def typed(item: Mapping[str, Any], value: Any) -> Any:
    """The same as a caller of a binding has it."""
    name = struct_of(dict(item))
    if name is not None:
        made = CLASSES[name] if name in CLASSES else MADE[f"{name}Fields"].of
        return [made(v) for v in value] if item["type"].endswith("]") else made(value)
    return bytes.fromhex(value[2:]) if item["type"] == "address" else value


def entries(name: str, kind: str) -> list[dict[str, Any]]:
    """The functions or events of a contract that have a binding, as its source stands now."""
    left_out = bindings.LEFT_OUT.get(name, set()) if kind == "function" else set()
    return [entry for entry in harness.artifact(name).abi if entry["type"] == kind and entry["name"] not in left_out]


@pytest.mark.parametrize("name", bindings.CONTRACTS)
def test_a_binding_has_every_function_and_every_event_and_nothing_else(name: str) -> None:
    binding = class_of(name)
    methods = {name for name in vars(binding) if not name.startswith("_")} - {"CALLS", "EVENTS"}
    assert methods == {bindings.snake(entry["name"]) for entry in entries(name, "function")}
    assert {e.__name__: e.topic() for e in binding.EVENTS} == {
        entry["name"]: event_abi_to_log_topic(entry) for entry in entries(name, "event")
    }
    changing = [entry for entry in entries(name, "function") if entry["stateMutability"] not in ("view", "pure")]
    assert sorted(map(selector, binding.CALLS)) == sorted(map(function_abi_to_4byte_selector, changing))


@pytest.mark.parametrize("name", bindings.CONTRACTS)
def test_calldata_is_what_web3_makes_of_the_same_arguments(name: str) -> None:
    rng, contract, web = random.Random(name), class_of(name)(AT), by_web3(name)
    for entry in entries(name, "function") * ROUNDS:
        values = [drawn(item, rng) for item in entry["inputs"]]
        given = [typed(item, value) for item, value in zip(entry["inputs"], values, strict=True)]
        made = getattr(contract, bindings.snake(entry["name"]))(*given)
        assert made.data == HexBytes(web.encode_abi(entry["name"], args=values)), entry["name"]
        assert made.data[:4] == function_abi_to_4byte_selector(entry) and made.to == AT
        assert made.name == f"{name.removeprefix('Test')}.{entry['name']}"
        assert isinstance(made, Call) is (entry["stateMutability"] not in ("view", "pure"))
        if isinstance(made, Call):
            assert made.arguments == tuple(given) and made.value == 0


@pytest.mark.parametrize("name", bindings.CONTRACTS)
def test_results_are_typed_and_lose_nothing(name: str) -> None:
    rng, contract = random.Random(name), class_of(name)(AT)
    for entry in entries(name, "function") * ROUNDS:
        if entry["stateMutability"] not in ("view", "pure"):
            continue
        given = [typed(item, drawn(item, rng)) for item in entry["inputs"]]
        query = getattr(contract, bindings.snake(entry["name"]))(*given)
        types = [bindings.abi_type(item) for item in entry["outputs"]]
        data = encode(types, [drawn(item, rng) for item in entry["outputs"]])
        result = query.decode(data)
        results = [result] if len(types) == 1 else list(result)
        assert encode(types, [abi_value(value) for value in results]) == data, entry["name"]
        for item, value in zip(entry["outputs"], results, strict=True):
            if item["type"] == "address":
                assert isinstance(value, bytes)


def log_of(entry: dict[str, Any], values: list[Any]) -> LogReceipt:
    """A log as a node gives it."""
    pairs = list(zip(entry["inputs"], values, strict=True))
    topics = [encode([i["type"]], [v]) for i, v in pairs if i["indexed"]]
    rest = [(bindings.abi_type(i), v) for i, v in pairs if not i["indexed"]]
    return LogReceipt(
        address=Web3.to_checksum_address(AT),
        topics=[HexBytes(t) for t in (event_abi_to_log_topic(entry), *topics)],  # type: ignore[arg-type]
        data=HexBytes(encode([t for t, _ in rest], [v for _, v in rest])),
        blockNumber=7,  # type: ignore[typeddict-item]
        logIndex=3,
        transactionHash=HexBytes(b"\x11" * 32),
        transactionIndex=0,
        blockHash=HexBytes(b"\x22" * 32),
        removed=False,
    )


def plain(value: Any) -> Any:
    """A value whoever decoded it: addresses as bytes, lists as lists."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    value = abi_value(value)
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", bindings.CONTRACTS)
def test_events_are_what_web3_reads_in_the_same_logs(name: str) -> None:
    rng, web = random.Random(name), by_web3(name)
    kinds: dict[str, type[Event]] = {e.__name__: e for e in class_of(name).EVENTS}
    for entry in entries(name, "event") * ROUNDS:
        log = log_of(entry, [drawn(item, rng) for item in entry["inputs"]])
        found = Logged.of(kinds[entry["name"]], log)
        expected = web.events[entry["name"]]().process_log(log)
        assert plain(found.event.arguments()) == plain(expected["args"])
        assert (found.block, found.log_index, found.transaction) == (7, 3, b"\x11" * 32)


def test_a_search_names_indexed_arguments_alone() -> None:
    wanted = DigestsPosted.search(AT, list=Digest(b"\x07" * 32))
    assert wanted.topics == (DigestsPosted.topic(), None, b"\x07" * 32) and wanted.contract == AT
    assert LeafPosted.search(AT, game_id=258).topics[1] == (258).to_bytes(32, "big")
    with pytest.raises(TypeError, match="no indexed digests"):
        DigestsPosted.search(AT, digests=())


def test_what_does_not_fit_its_solidity_type_is_no_call() -> None:
    contract = CommitmentsContract(AT)
    with pytest.raises(EncodingError):
        contract.open_round(0, Digest(b"\x01" * 31))
    with pytest.raises(EncodingError):
        contract.open_round(1 << 64, Digest(bytes(32)))


def test_a_log_of_another_form_is_an_error() -> None:
    entry = next(e for e in entries("Commitments", "event") if e["name"] == "WorkCommitted")
    log = log_of(entry, [drawn(item, random.Random(1)) for item in entry["inputs"]])
    with pytest.raises(ValueError, match="1 indexed arguments where there are 3"):
        WorkCommitted.decode({**log, "topics": log["topics"][:2]})
    with pytest.raises(ValueError, match="40 bytes of data are too few"):
        WorkCommitted.decode({**log, "data": HexBytes(log["data"][:40])})


def test_no_function_has_the_notice_of_another_beside_its_own() -> None:
    blocks = {
        f"{path.name}: {found[1]}": found[0].count("@notice")
        for path in sorted((bindings.ROOT / "contracts").rglob("*.sol"))
        for found in re.finditer(r"(?:^ *///.*\n)+ *(.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(blocks) > 500
    assert {place for place, notices in blocks.items() if notices > 1} == set()
