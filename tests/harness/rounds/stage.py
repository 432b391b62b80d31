"""Model and contracts of rounds side by side in one process: every call must end alike on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyrevm import BlockEnv

from assay.protocol.errors import RejectedError
from assay.protocol.rounds.timeline import Timeline
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, artifact
from tests.harness.contracts.node_evm import NodeEvm
from tests.harness.rounds.samples import ETHER, START
from tests.harness.rounds.staged import charter_arguments, modules_at

EXIT = 86_400


def person(number: int) -> Address:
    """The account of a person."""
    return Address((0xA0000 + number).to_bytes(20, "big"))


def text(address: bytes) -> str:
    """An address as pyrevm wants it."""
    return "0x" + address.hex()


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> str:
    """The name under which model and contract refuse a call."""
    with pytest.raises(RejectedError) as rejected:
        call(*args, **more)
    return rejected.value.code


class StagedCalls:
    """Epochs that a test begins; CallsStage.sol is its contract."""

    def __init__(self) -> None:
        self.calls: dict[int, Timeline] = {}
        self.epoch, self.start = 0, 0

    def begin(self, epoch: int, start: int, shift: int) -> None:
        """An epoch begins and calls a shift."""
        self.epoch, self.start = epoch, start
        called = self.calls.setdefault(shift, Timeline())
        called.push(start, called.latest() + 1)

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""
        return self.calls.get(shift, Timeline()).at(time)

    def newest(self) -> tuple[int, int]:
        """The newest epoch and when it began."""
        return self.epoch, self.start

    def over_since(self, epoch: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more; every epoch fines."""
        return self.start if self.epoch > epoch + 2 else 0


class ModelAndContracts:
    """A vault, people with free stake in it, and a clock. With `contracts` a call must end alike on both."""

    def __init__(
        self, people: int, stake: int = 1000 * ETHER, contracts: bool = False, node: NodeEvm | None = None
    ) -> None:
        self.now = START
        self.vault = Vault(EXIT)
        self.people = [person(k) for k in range(people)]
        self.stake = stake
        self.evm: Evm | NodeEvm | None = (node or Evm(timestamp=START)) if contracts else None
        self.contracts: dict[str, EvmContract] = {}
        self.gas: dict[str, int] = {}
        for who in self.people:
            self.vault.deposit(who, stake)

    def deploy(self, peers: Mapping[str, str], modules: Mapping[str, str], **terms: Any) -> None:
        """Deploy a token, a staged charter, a vault that the others may lock in, and these.

        `peers`: name to contract; those that are built with a charter get this one. `modules`: module of the run to the
        name of the one that plays it.
        """
        assert self.evm is not None
        token = self.evm.deploy("TestToken")
        caller = Address(bytes.fromhex(self.evm.caller.removeprefix("0x")))
        nonce = self.evm.evm.basic(self.evm.caller).nonce
        places = {name: text(create_address(caller, nonce + k)) for k, name in enumerate(["charter", "vault", *peers])}
        played = {module: places[name] for module, name in modules.items()}
        at = modules_at(charter=places["charter"], vault=places["vault"], **played)
        lockers = [places[name] for name in peers]
        arguments = charter_arguments(token.address, at, lockers, exit_delay=EXIT, **terms)
        self.contracts["charter"] = self.evm.deploy("StageCharter", *arguments)
        for name, contract in {"vault": "Vault", **peers}.items():
            built = [places["charter"]] if any(e["type"] == "constructor" for e in artifact(contract).abi) else []
            self.contracts[name] = self.evm.deploy(contract, *built)
        assert {name: found.address.lower() for name, found in self.contracts.items()} == places
        for who in self.people:
            token.call("mint", text(who), self.stake, caller=text(who))
            token.call("approve", places["vault"], self.stake, caller=text(who))
            self.contracts["vault"].call("deposit", self.stake, caller=text(who))

    def pass_time(self, seconds: int) -> None:
        """Let chain time pass."""
        self.now += seconds
        if self.evm is not None:
            self.evm.evm.set_block_env(
                BlockEnv(number=1, timestamp=self.now, gas_limit=30_000_000, prevrandao=bytes(32))
            )

    def both(self, model: Callable[[], Any], name: str, function: str, *args: Any, caller: bytes | str) -> Any:
        """A call on the model, and on the contract `name`: same error, or same number where both return one.

        Raises RejectedError as the model does.
        """
        error: RejectedError | None = None
        answer: Any = None
        try:
            answer = model()
        except RejectedError as rejected:
            error = rejected
        if self.evm is not None:
            contract = self.contracts[name]
            sender = caller if isinstance(caller, str) else text(caller)
            try:
                shown = contract.call(function, *args, caller=sender)
                refused = ""
                if isinstance(answer, int) and shown not in (None, b""):
                    number = int.from_bytes(shown, "big") if isinstance(shown, bytes) else int(shown)
                    assert error is not None or number == int(answer), (function, args, shown, answer)
                self.gas[function] = contract.gas
            except Reverted as reverted:
                refused = self.error_of(reverted.data) or str(reverted)
            assert refused == (error.code if error else ""), (function, args, refused, error)
        if error is not None:
            raise error
        return answer

    def error_of(self, data: bytes) -> str:
        """The custom error of any of the contracts that revert data carries."""
        abi = [entry for contract in self.contracts.values() for entry in contract.artifact.abi]
        return Reverted(data, abi).name
