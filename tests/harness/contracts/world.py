"""A run on a node of its own, driven by unlocked accounts at exact chain times, for tests of the run's contracts."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eth_abi import decode, encode
from eth_account import Account
from eth_hash.auto import keccak

from assay.protocol.digests import program_digest
from assay.protocol.run.charter import ChainProfile, Charter, ClockTerms, Economics, ProgramRef, Training, Windows
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.chain import artifacts
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_run
from assay_ledger.deployment.places import MODULE_CONTRACTS
from tests.harness.contracts import harness

ETHER = 10**18
START = 1_800_000_000
GAS = 16_000_000
PUPPETS = {**MODULE_CONTRACTS, "game": "PuppetGame"}
"""The contracts of a run whose games a test decides."""

NAMES = [*PUPPETS.values(), "Deployer", "Charter", "TestToken", "FixedSeed"]
NOBODY = Address(bytes(19) + b"\x01")


def digest(label: str) -> Digest:
    """A 32-byte value that a label names."""
    return Digest(keccak(label.encode()))


def program(label: str) -> ProgramRef:
    """A reference that is consistent, to a program that nobody runs here."""
    header, tree = label.encode(), digest(f"tree {label}")
    return ProgramRef(program_digest(header, tree), tree, header)


def economics(**changes: Any) -> Economics:
    """Small round numbers: W = 100 tokens, p = 2, all bounds kept with little to spare."""
    values = Economics(
        unit_price=Wei(ETHER),
        units=100,
        pays=True,
        shares_per_unit=Wei(ETHER),
        shares_per_duty=Wei(3 * ETHER),
        claim_lock=Wei(60 * ETHER),
        verifier_bond=Wei(200 * ETHER),
        wage=Wei(26 * ETHER),
        seat_fee=Wei(2 * ETHER),
        challenge_bond=Wei(10 * ETHER),
        challenge_deposit=Wei(ETHER),
        audit_ppm=2_000_000,
        whistle_ppm=500_000,
        trap_ppm=0,
        cartel_ppm=333_333,
        bounty_ppm=500_000,
    )
    return replace(values, **changes)


WINDOWS = Windows(
    commit=1200,
    receipt=600,
    seed_delay=600,
    attest=900,
    draw=600,
    whistle=900,
    reveal=600,
    challenge=3600,
    rescue=1800,
    longest_dispute=7200,
    exit=31_000,
)

PROFILE = ChainProfile(reorg_depth=0, inclusion_delay=0, fee_cap=100 * 10**9, gas_price=Wei(10**9))

TRAINING = Training(
    intervals=3,
    steps_per_interval=2,
    shards=9,
    shard_length=1000,
    learning_rate=0x3A83126F,
    parameters=digest("parameters"),
    momentum=digest("momentum"),
    zero_optimizer=digest("blank optimizer"),
    zero_update=digest("zero update"),
    data=digest("data"),
)


def charter(**changes: Any) -> Charter:
    """A charter that every check accepts."""
    values = Charter(
        name=digest("test run"),
        sponsor=NOBODY,
        token=NOBODY,
        seed=NOBODY,
        rounds=1000,
        expiry=START + 10**9,
        training=TRAINING,
        windows=WINDOWS,
        economics=economics(),
        clocks=ClockTerms(600, 300, 300, 64),
        chain=PROFILE,
        step=program("step"),
        update=program("update"),
        outer=program("outer"),
    )
    return replace(values, **changes)


def write_artifact(folder: Path, name: str) -> None:
    """One contract as its sources stand now, as forge would write it."""
    built = harness.artifact(name)
    (folder / f"{name}.sol").mkdir(parents=True, exist_ok=True)
    codes = {"bytecode": built.bytecode, "deployedBytecode": built.deployed}
    document: dict[str, Any] = {"abi": built.abi, "rawMetadata": built.metadata}
    document |= {kind: {"object": "0x" + code.hex()} for kind, code in codes.items()}
    (folder / f"{name}.sol" / f"{name}.json").write_text(json.dumps(document))


@contextmanager
def fresh_artifacts(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """The contracts as the sources stand now, where `load_artifact` finds them."""
    for name in names:
        write_artifact(folder, name)
    before = os.environ.get("ASSAY_ARTIFACTS")
    os.environ["ASSAY_ARTIFACTS"] = str(folder)
    artifacts.load_artifact.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ["ASSAY_ARTIFACTS"]
        else:
            os.environ["ASSAY_ARTIFACTS"] = before
        artifacts.load_artifact.cache_clear()


class Rejected(Exception):
    """A transaction reverted: the custom error's name and values."""

    def __init__(self, name: str, values: tuple[Any, ...], data: bytes) -> None:
        self.name, self.values = name, values
        super().__init__(f"{name}{values}" if name else f"0x{data.hex()}")


class RunWorld:
    """One node, one run, `accounts` unlocked people with tokens and an allowance to the vault."""

    def __init__(
        self,
        folder: Path,
        terms: Charter | None = None,
        *,
        accounts: int = 12,
        tokens: int = 100_000,
        token: str = "TestToken",
        contracts: Mapping[str, str] = PUPPETS,
    ) -> None:
        self.node = Anvil(accounts=accounts, genesis_time=START)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=60)
        self.people = [Address(bytes.fromhex(Account.from_key(k).address[2:])) for k in self.node.dev_keys]
        self.now = START
        self.first_state = ""
        self._ids = 0
        with fresh_artifacts(folder, [*NAMES, *contracts.values(), token]):
            chain = Chain(self.node.url)
            self.chain_id = chain.chain_id
            deployer = Account.from_key(self.node.dev_keys[0])
            token_address, _ = chain.deploy(deployer, token)
            seed, _ = chain.deploy(deployer, "FixedSeed")
            terms = terms or charter()
            terms = replace(
                terms, token=token_address, seed=seed, sponsor=self.people[0], revenue_tokens=(token_address,)
            )
            self.run = deploy_run(chain, deployer, terms, contracts=contracts)
        self.charter = terms
        addresses = {name: getattr(self.run.modules, name) for name in MODULE_CONTRACTS}
        self.addresses: dict[str, Address] = {
            **addresses,
            "charter": self.run.address,
            "token": token_address,
            "seed": seed,
        }
        contract_names = {**contracts, "charter": "Charter", "token": "TestToken"}
        self.artifacts = {key: harness.artifact(name) for key, name in contract_names.items()}
        self.now = int(self.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        for person in self.people:
            self.send(person, "token", "mint", person, tokens * ETHER)
            self.send(person, "token", "approve", self.addresses["vault"], 2**256 - 1)

    def close(self) -> None:
        self._connection.close()
        self.node.close()

    # --- chain

    def rpc(self, method: str, *params: Any) -> Any:
        """One JSON-RPC call on a connection that stays open."""
        self._ids += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": list(params)})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            data = str(answer["error"].get("data", ""))
            if data.startswith("0x"):
                raise self._rejected(bytes.fromhex(data[2:]))
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def send(self, sender: Address, contract: str, function: str, *args: Any, at: int | None = None) -> dict[str, Any]:
        """A transaction mined at chain time `at` (default: one second on). Returns the receipt; raises Rejected."""
        self.now = at if at is not None else self.now + 1
        self.rpc("evm_setNextBlockTimestamp", self.now)
        data = self.calldata(contract, function, *args)
        fields = {"from": _hex(sender), "to": _hex(self.addresses[contract]), "data": _hex(data), "gas": hex(GAS)}
        transaction = self.rpc("eth_sendTransaction", fields)
        # Automatic mining runs beside the answer; it never takes longer than a few requests.
        receipt: dict[str, Any] = next(
            filter(None, (self.rpc("eth_getTransactionReceipt", transaction) for _ in range(10_000)))
        )
        if receipt["status"] != "0x1":
            trace = self.rpc("debug_traceTransaction", transaction, {"tracer": "callTracer"})
            raise self._rejected(bytes.fromhex(trace.get("output", "0x")[2:]))
        return receipt

    def call(self, contract: str, function: str, *args: Any) -> Any:
        """The result of a view function; structs as tuples, addresses as bytes. Raises Rejected."""
        data = self.calldata(contract, function, *args)
        output = self.rpc("eth_call", {"to": _hex(self.addresses[contract]), "data": _hex(data)}, "latest")
        entry = self.artifacts[contract].entry("function", function, len(args))
        values = decode([harness._type(o) for o in entry["outputs"]], bytes.fromhex(output[2:]))
        plain = tuple(_plain(v) for v in values)
        return plain[0] if len(plain) == 1 else plain

    def calldata(self, contract: str, function: str, *args: Any) -> bytes:
        entry = self.artifacts[contract].entry("function", function, len(args))
        types = [harness._type(i) for i in entry["inputs"]]
        return keccak(f"{function}({','.join(types)})".encode())[:4] + encode(types, args)

    def events(self, receipt: Mapping[str, Any], contract: str, name: str) -> list[SimpleNamespace]:
        """The events of this name in a receipt."""
        entry = self.artifacts[contract].entry("event", name)
        types = [harness._type(i) for i in entry["inputs"]]
        topic = _hex(keccak(f"{name}({','.join(types)})".encode()))
        return [_event(entry, log) for log in receipt["logs"] if log["topics"][0] == topic]

    def _rejected(self, data: bytes) -> Rejected:
        for built in self.artifacts.values():
            name, values = harness._error(data, built.abi)
            if name:
                return Rejected(name, tuple(_plain(v) for v in values), data)
        return Rejected("", (), data)


def _event(entry: Mapping[str, Any], log: Mapping[str, Any]) -> SimpleNamespace:
    indexed = [i for i in entry["inputs"] if i["indexed"]]
    plain = [i for i in entry["inputs"] if not i["indexed"]]
    data = decode([harness._type(i) for i in plain], bytes.fromhex(log["data"][2:]))
    values = dict(zip((i["name"] for i in plain), data, strict=True))
    for item, topic in zip(indexed, log["topics"][1:], strict=True):
        values[item["name"]] = decode([harness._type(item)], bytes.fromhex(topic[2:]))[0]
    return SimpleNamespace(**{name: _plain(v) for name, v in values.items()})


def _hex(data: bytes) -> str:
    return "0x" + data.hex()


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("0x") and len(value) == 42:
        return Address(bytes.fromhex(value[2:]))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_plain(v) for v in value)
    return value
