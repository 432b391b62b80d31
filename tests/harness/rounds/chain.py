"""The contracts of rounds in an in-process EVM beside their model: each call on both must end alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field
from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak
from pyrevm import BlockEnv

from assay.protocol.errors import RejectedError, refuse
from assay.protocol.rounds.ledger import GroupedLedger, RoundLedger
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address, Digest, Round
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, _revert_data, _type, artifact
from tests.harness.rounds.samples import START, TICKET_TERMS
from tests.harness.rounds.stage import StagedCalls
from tests.harness.rounds.staged import charter_arguments, deploy_charter, modules_at

PERIOD = 30


@dataclass
class Neighbours:
    """Beacon and gate as the bench has them."""

    known: dict[int, Digest] = field(default_factory=dict)
    is_open: bool = True

    def round_after(self, time: int) -> int:
        return time // PERIOD + 1

    def time_of(self, beacon_round: int) -> int:
        return beacon_round * PERIOD

    def randomness_of(self, beacon_round: int) -> Digest:
        if beacon_round not in self.known:
            raise refuse("BeaconNotSubmitted", beacon_round=beacon_round)
        return self.known[beacon_round]

    def may_open(self, seated: int, now: int) -> bool:
        return self.is_open

    def carries(self, seated: int, now: int) -> bool:
        return True

    def is_stopped(self) -> bool:
        return False

    def stopped_at(self) -> int:
        return 0

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        """Nothing is counted here."""

    def over_after(self, time: int) -> int:
        return 0


def generations_of(terms: RoundTerms) -> str:
    """The contract of generations of a run with so many seats."""
    return "Generations" if terms.by_seats else "GroupedGenerations"


class RoundChain:
    """The contracts on a chain of their own; snapshots make it as new for every test."""

    def __init__(self, terms: RoundTerms, node: Any = None) -> None:
        """`node`: a NodeEvm in the place of the EVM in process."""
        self.terms = terms
        self.evm: Evm = node or Evm(timestamp=START)
        self.token = self.evm.deploy("TestToken")
        names = [
            "StageCharter",
            "RoundsBench",
            "Tenures",
            "Commitments",
            "Generations",
            "Tickets",
            "Vault",
            "PuppetGame",
        ]
        at = dict(zip(names, self._next(), strict=False))
        named = {name.lower(): place for name, place in at.items()}
        self.modules = modules_at(at["RoundsBench"], charter=at["StageCharter"], game=at["PuppetGame"], **named)
        lockers = [at[name] for name in ("Tenures", "Generations", "Tickets", "PuppetGame")]
        self.contracts: dict[str, EvmContract] = {}
        for name in names:
            if name == "StageCharter":
                made = self.evm.deploy(name, *charter_arguments(self.token.address, self.modules, lockers, terms))
            elif name == "RoundsBench":
                made = self.evm.deploy(name, astuple(self.modules))
            elif name == "Generations":
                made = self.evm.deploy(generations_of(terms), at["StageCharter"])
            else:
                made = self.evm.deploy(name, at["StageCharter"])
            assert made.address.lower() == at[name]
            self.contracts[name] = made

    def try_deploy(self, name: str, terms: RoundTerms) -> None:
        """Deploy one more contract beside the others. Raises Reverted."""
        built = artifact(name)
        types = [_type(i) for i in built.entry("constructor", "")["inputs"]]
        charter = deploy_charter(self.evm, self.modules, rounds=terms)
        code = built.bytecode + encode(types, [charter.address])
        try:
            self.evm.evm.deploy(self.evm.caller, code, 0, 30_000_000)
        except RuntimeError as error:
            raise Reverted(_revert_data(str(error)), built.abi, str(error)) from None

    def _next(self) -> Iterable[str]:
        """Addresses of the next contracts that this chain's deployer makes."""
        caller = bytes.fromhex(self.evm.caller[2:])
        nonce = self.evm.evm.basic(self.evm.caller).nonce
        for n in range(nonce, nonce + 8):
            number = bytes([n]) if 0 < n < 128 else b"\x80"
            body = b"\x94" + caller + number
            yield "0x" + keccak(bytes([0xC0 + len(body)]) + body)[12:].hex()


class RoundCalls:
    """Calls on model and contracts at once. `now` is chain time; `do` compares how a call ended on both."""

    def __init__(self, chain: RoundChain) -> None:
        self.chain, self.terms = chain, chain.terms
        self.now = START
        self.neighbours = Neighbours()
        self.vault = Vault(exit_delay=1)
        n = self.neighbours
        self.calls = StagedCalls()
        self.tickets = Tickets(self.vault, self.calls, TICKET_TERMS)
        books = RoundLedger if chain.terms.by_seats else GroupedLedger
        self.model = books(chain.terms, self.vault, n, self.tickets, n, n)
        self.gas: dict[str, int] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        """How often a function ended in an error, or in none."""
        self.tick(0)

    def tick(self, seconds: int) -> None:
        """Time goes on."""
        self.at(self.now + seconds)

    def at(self, now: int) -> None:
        """It is this second of chain time."""
        self.now = now
        env = BlockEnv(number=1 + (now - START) // 12, timestamp=now, gas_limit=30_000_000, prevrandao=bytes(32))
        self.chain.evm.evm.set_block_env(env)

    def call(self, contract: str, function: str, *args: Any, who: Address | None = None) -> Any:
        """A call of a contract alone."""
        return self.chain.contracts[contract].call(function, *args, caller=None if who is None else "0x" + who.hex())

    def refusal(self, contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """The error of a call of a contract alone; "" if it went through."""
        try:
            self.call(contract, function, *args, who=who)
        except Reverted as error:
            return error.name or _selector_name(error.data, self.chain)
        self.gas[function] = self.chain.contracts[contract].gas
        return ""

    def do(self, model: Callable[[], Any], contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """Play a call on both; "" if it went through, else the error's name."""
        try:
            model()
            wanted = ""
        except RejectedError as error:
            wanted = error.code
        got = self.refusal(contract, function, *args, who=who)
        assert got == wanted, f"{function}{args} at {self.now}: contract says {got!r}, model {wanted!r}"
        self.ended[function, got] += 1
        return got


def _selector_name(data: bytes, chain: RoundChain) -> str:
    """The name of an error of a contract further down."""
    for contract in chain.contracts.values():
        if name := Reverted(data, contract.artifact.abi).name:
            return name
    return f"0x{data.hex()}"
