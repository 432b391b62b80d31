"""The arena of tests.harness.games on contracts: the same games on `Game.sol` with `Challenges.sol` and the pure
model, compared after every call.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from functools import cache, partial
from typing import Any

from eth_abi import decode
from eth_hash.auto import keccak
from pyrevm import BlockEnv

from assay.protocol.game.book import ClaimView, GameBook
from assay.protocol.game.descent import position_key
from assay.protocol.game.errors import GameError
from assay.protocol.game.moves import AnyMove, PostDigests
from assay.protocol.game.openings import Opening
from assay.protocol.game.state import GameConfig, GameState
from assay.protocol.game.table import POSTINGS, Side, Turn
from assay.protocol.program.program import Program
from assay.protocol.run.claims import NO_ADDRESS, ClaimRef
from assay.protocol.types import Address, Digest
from assay_ledger.deployment.places import by_code, create_address
from tests.harness.contracts.arena import arena_charter
from tests.harness.contracts.game_fields import same, stored
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, _type, transaction_gas
from tests.harness.contracts.leaf_cases import CONTRACTS, NO_LEAF
from tests.harness.contracts.node_chain import NodeChain, NodeContract
from tests.harness.games import GameWorld, address
from tests.harness.rounds.staged import modules_at

START = 1_700_000_000
TOKENS = 500_000 * 10**18
THIRD_PARTY = ("commitChallenge", "revealChallenge", "expireChallenge")
ANYBODY = address("anybody")


@dataclass(frozen=True, slots=True)
class Gas:
    """What a call took: execution alone, and as a transaction with its calldata (EIP-7623 included).

    The in-process chain counts all calls of a test as one transaction, so only a node's figures are those of real ones.
    """

    execution: int
    transaction: int
    calldata: int


class ChainGames:
    """One run with the real charter, vault, arbiter, leaves and game, and a book in which tests write claims."""

    def __init__(
        self,
        program: Program,
        settings: GameConfig,
        on: Evm | NodeChain | None = None,
        steps: int = 64,
        other: Program | None = None,
        token: str = "TestToken",
    ) -> None:
        """`other`: a second program of the run. `token`: another than the test token mints any amount at once."""
        self.most = TOKENS if token == "TestToken" else 1 << 127
        self.chain = chain = on or Evm(timestamp=START)
        self.block, self.now, self.base_fee = 1, 0, 0
        first = chain.nonce() if isinstance(chain, NodeChain) else 0
        leaves = {family: chain.deploy(name).address for family, name in CONTRACTS.items()}
        arbiter = chain.deploy("Arbiter", by_code(leaves, NO_LEAF))
        self.token = chain.deploy(token)
        sender = bytes.fromhex(chain.caller[2:])
        # Charter, vault, book, game and challenges know each other from the addresses that they will have.
        nonce = first + len(leaves) + 2
        names = ("charter", "vault", "book", "game", "challenges")
        at = {name: "0x" + create_address(Address(sender), nonce + k).hex() for k, name in enumerate(names)}
        books = dict.fromkeys(("commitments", "generations", "attestations", "escrow"), at["book"])
        modules = modules_at(
            charter=at["charter"], vault=at["vault"], game=at["game"], challenges=at["challenges"], **books
        )
        terms = arena_charter(program, other or program, settings, steps)
        token_address = Address(bytes.fromhex(self.token.address[2:]))
        self.charter = chain.deploy("RunCharter", replace(terms, token=token_address).as_tuple(), astuple(modules))
        self.vault = chain.deploy("Vault", self.charter.address)
        self.book = chain.deploy("ClaimsBench", self.charter.address)
        self.game = chain.deploy("Game", self.charter.address, arbiter.address)
        self.challenges = chain.deploy("Challenges", self.charter.address)
        assert {name: getattr(self, name).address.lower() for name in names} == at
        self.address = modules.game

    # --- time and calls

    def set_time(self, now: int, block: int | None = None) -> None:
        """Chain time in seconds since the start."""
        self.now, self.block = now, self.block if block is None else block
        if isinstance(self.chain, NodeChain):
            self.chain.set_env(self.block, START + now, self.base_fee)
        else:
            env = BlockEnv(number=self.block, timestamp=START + now, gas_limit=30_000_000, prevrandao=bytes(32))
            self.chain.evm.set_block_env(env)

    def call(self, who: Address, function: str, *args: Any, contract: EvmContract | None = None) -> tuple[Any, Gas]:
        """Call as a party. Raises Reverted."""
        target = contract or self.game
        result = target.call(function, *args, caller="0x" + who.hex())
        self.logs = self._logs(target)
        data = target.calldata(function, *args)
        return result, Gas(target.gas, transaction_gas(data, target.gas), len(data))

    def _logs(self, target: EvmContract) -> list[tuple[list[bytes], bytes]]:
        """Topics and data of the events of the last call."""
        if isinstance(target, NodeContract):
            return [([_bytes(t) for t in log["topics"]], _bytes(log["data"])) for log in target.logs]
        result = self.chain.evm.result
        assert result is not None
        return [([_bytes(t) for t in log.topics], bytes(log.data[1])) for log in result.logs]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The game's events of this name in the last call, by field."""
        entry = self.game.artifact.entry("event", name)
        inputs = entry["inputs"]
        topic = keccak(f"{name}({','.join(_type(i) for i in inputs)})".encode())
        indexed, plain = ([i for i in inputs if i["indexed"] is flag] for flag in (True, False))
        found = []
        for topics, data in self.logs:
            if topics[0] == topic:
                values = decode([_type(i) for i in plain], data)
                named = dict(zip((i["name"] for i in plain), values, strict=True))
                for item, word in zip(indexed, topics[1:], strict=True):
                    named[item["name"]] = decode([_type(item)], word)[0]
                found.append(named)
        return found

    def contract_of(self, function: str) -> EvmContract:
        """The contract that a call is made to: third parties come through Challenges."""
        return self.challenges if function in THIRD_PARTY else self.game

    def error_of(self, reverted: Reverted) -> str:
        """The error by name, whichever of the contracts raised it."""
        entries = [entry for contract in (self.game, self.challenges) for entry in contract.artifact.abi]
        return Reverted(reverted.data, entries).name

    def view(self, function: str, *args: Any, contract: EvmContract | None = None) -> Any:
        """Read."""
        return (contract or self.game).call(function, *args)

    # --- money and claims

    def deposit(self, who: Address, amount: int) -> None:
        """Give a party tokens in the vault."""
        for _ in range(amount // self.most):
            self._deposit(who, self.most)
        if amount % self.most:
            self._deposit(who, amount % self.most)

    def _deposit(self, who: Address, amount: int) -> None:
        self.call(who, "mint", who, amount, contract=self.token)
        self.call(who, "approve", self.vault.address, amount, contract=self.token)
        self.call(who, "deposit", amount, contract=self.vault)

    def put(self, ref: ClaimRef, view: ClaimView, fresh: int) -> None:
        """Write a claim into the book."""
        self.call(ANYBODY, "put", ref_tuple(ref), view_tuple(view), fresh, contract=self.book)

    def allow(self, ref: ClaimRef, who: Address) -> None:
        """Let a party challenge directly."""
        self.call(ANYBODY, "allow", ref_tuple(ref), who, contract=self.book)

    def free(self, who: Address) -> int:
        """A party's free balance."""
        return int(self.view("free", who, contract=self.vault))

    def lock_amount(self, lock_id: Digest) -> int:
        """What a lock holds."""
        return int(self.view("lockOf", lock_id, contract=self.vault)[1])

    def burned(self) -> int:
        """What was burned."""
        return int(self.view("totals", contract=self.vault)[3])

    # --- games

    def move(self, game_id: int, mover: Address, move: AnyMove) -> Gas:
        """Make a move. Raises Reverted."""
        return self.call(mover, move.kind.function, game_id, *arguments(move))[1]

    def state(self, game_id: int) -> dict[str, Any]:
        """A game's fields by name."""
        components = self.game.artifact.entry("function", "gameOf")["outputs"][0]["components"]
        return dict(zip((c["name"] for c in components), self.view("gameOf", game_id), strict=True))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def ref_tuple(ref: ClaimRef) -> tuple[Any, ...]:
    """A ClaimRef for the encoder."""
    return (int(ref.kind), ref.round, ref.seat, ref.duty, ref.party, ref.outer_root)


def view_tuple(view: ClaimView) -> tuple[Any, ...]:
    """A ClaimView for the encoder; its times count from the start."""
    c = view.claim
    window = (START + view.challengeable_from, START + view.challengeable_until)
    money = (c.lock_id, view.lock_amount, view.fallen, view.bounty_ppm, NO_ADDRESS)
    return (c.id, c.claimant, c.x, c.y, c.program, c.steps, *window, *money)


def arguments(move: AnyMove) -> tuple[Any, ...]:
    """The arguments of a move after the game's number."""
    return tuple(_plain(getattr(move, f.name)) for f in fields(move))


def _plain(value: Any) -> Any:
    if isinstance(value, Opening):
        return tuple(_plain(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in value)
    return value


class Twin(GameWorld):
    """A world whose every call is made on the contracts as well, and must come out the same.

    The parts of tests.harness.games that drive a world drive both.
    """

    def __init__(self, program: Program, settings: GameConfig, games: ChainGames | None = None) -> None:
        super().__init__(program, settings)
        self.games = games or ChainGames(program, settings)
        # The in-process chain has no base fee; a node has.
        on_node = isinstance(self.games.chain, NodeChain)
        self.spikes, self.seconds_per_block = (0.2, 20) if on_node else (0.0, 0)
        self.gas: dict[str, list[Gas]] = {}
        self.book = TwinBook(self)
        self.block = 1

    def claim(self, trace: Any, claimant: Address, lock: int, *args: Any, **kwargs: Any) -> ClaimRef:
        """As World.claim, on both."""
        before = dict(self.vault.locks)
        ref = super().claim(trace, claimant, lock, *args, **kwargs)
        view = self.claims.views[ref]
        fresh = 0 if view.claim.lock_id in before else lock
        self.games.deposit(claimant, fresh)
        self.games.put(ref, view, fresh)
        return ref

    def challenge(self, ref: ClaimRef, who: Address, now: int = 0) -> int:
        """As World.challenge, on both."""
        self.games.deposit(who, self.settings.bond)
        self.games.allow(ref, who)
        return super().challenge(ref, who, now)

    def check_money(self) -> None:
        """Balances, locks and burns are the same on both."""
        for who, amount in sorted(self.vault.free.items()):
            assert self.games.free(who) == amount, who
        for lock_id, (_, amount) in sorted(self.vault.locks.items()):
            assert self.games.lock_amount(lock_id) == amount
        assert self.games.burned() == self.vault.burned
        locked = int(self.games.view("totals", contract=self.games.vault)[1])
        assert locked == sum(amount for _, amount in self.vault.locks.values())


class TwinBook(GameBook):
    """A GameBook that repeats every call on the contract and compares what came of it."""

    def __init__(self, twin: Twin) -> None:
        base = twin.book
        super().__init__(twin.games.address, base.config, base.programs, base.vault, base.book_of)
        self.twin = twin

    def challenge(self, who: Address, ref: ClaimRef, now: int) -> int:
        return self._both(
            who, now, "challenge", (ref_tuple(ref),), lambda: super(TwinBook, self).challenge(who, ref, now)
        )

    def commit_challenge(self, who: Address, commitment: Digest, now: int, block: int) -> None:
        self.twin.block = block
        self._both(
            who,
            now,
            "commitChallenge",
            (commitment,),
            lambda: super(TwinBook, self).commit_challenge(who, commitment, now, block),
        )

    def reveal_challenge(
        self, who: Address, ref: ClaimRef, own_root: Digest, salt: Digest, now: int, block: int
    ) -> int:
        self.twin.block = block
        return self._both(
            who,
            now,
            "revealChallenge",
            (ref_tuple(ref), own_root, salt),
            lambda: super(TwinBook, self).reveal_challenge(who, ref, own_root, salt, now, block),
        )

    def expire_challenge(self, commitment: Digest, now: int) -> None:
        self._both(
            ANYBODY,
            now,
            "expireChallenge",
            (commitment,),
            lambda: super(TwinBook, self).expire_challenge(commitment, now),
        )

    def move(self, game_id: int, mover: Address, move: AnyMove, now: int) -> GameState:
        args = (game_id, *arguments(move))
        before = self.games[game_id].state if game_id in self.games else None
        after: GameState = self._both(
            mover, now, move.kind.function, args, lambda: super(TwinBook, self).move(game_id, mover, move, now), game_id
        )
        if isinstance(move, PostDigests) and before is not None:
            assert self.twin.games.view("positionCache", position_key(before)) == after.posted
        return after

    def defer(self, game_id: int, mover: Address, now: int, base_fee: int) -> GameState:
        model = partial(super().defer, game_id, mover, now, base_fee)
        self.twin.games.base_fee = base_fee
        try:
            return self._both(mover, now, "defer", (game_id,), model, game_id)
        finally:
            self.twin.games.base_fee = 0

    def timeout(self, game_id: int, now: int) -> GameState:
        return self._both(
            ANYBODY, now, "timeout", (game_id,), lambda: super(TwinBook, self).timeout(game_id, now), game_id
        )

    def _both(self, who: Address, now: int, function: str, args: tuple[Any, ...], model: Any, game_id: int = 0) -> Any:
        """The call on contract and model: the same error by name, or the same state."""
        games = self.twin.games
        games.set_time(now, self.twin.block)
        reverted = ""
        gas = None
        try:
            _, gas = games.call(who, function, *args, contract=games.contract_of(function))
        except Reverted as error:
            reverted = games.error_of(error)
            assert reverted, f"{function}: {error}"
        try:
            result = model()
        except GameError as error:
            assert reverted == error.code, f"{function}: contract {reverted or 'accepted'}, model {error.code}: {error}"
            raise
        assert not reverted, f"{function}: contract {reverted}, model accepted"
        assert gas is not None
        self.twin.gas.setdefault(function, []).append(gas)
        if game_id or (function in ("challenge", "revealChallenge") and result):
            compare(self, game_id or result)
            self._compare_events(game_id or result)
            if function != "defer":
                self._compare_lists(self.games[game_id or result].state)
        return result

    def _compare_lists(self, state: GameState) -> None:
        """A list that is to be bisected at STEPS or NODES was shown in the call, whichever game it was posted in."""
        games = self.twin.games
        told = [e["list"] for name in ("DigestsPosted", "DigestsReused") for e in games.events(name)]
        if Turn(state.stage, Side.DEFENDER) in POSTINGS:
            assert told == ([state.posted] if state.turn is Side.CHALLENGER else [])
        if state.turn is Side.DEFENDER and not state.is_over:
            assert not games.events("DigestsReused")

    def _compare_events(self, game_id: int) -> None:
        """The event of the next turn, and that of a verdict, say what the model says."""
        state, games = self.games[game_id].state, self.twin.games
        (moved,) = games.events("Moved")
        told = (moved["gameId"], moved["stage"], moved["turn"], moved["deadline"])
        assert told == (game_id, state.stage, state.turn, START + state.deadline)
        verdicts = games.events("Verdict")
        assert len(verdicts) == (state.verdict is not None)
        if state.verdict is not None:
            (told_verdict,) = verdicts
            expected = {"gameId": game_id, "claimId": state.claim.id, "loser": "0x" + state.verdict.loser.hex()}
            for name in ("outcome", "family", "node", "element", "term", "expected", "claimed"):
                expected[name] = getattr(state.verdict, name)
            assert told_verdict == expected


def compare(book: TwinBook, game_id: int) -> None:
    """The stored game is the model's, field by field."""
    chain, model = book.twin.games.state(game_id), book.games[game_id]
    assert {k: same(v) for k, v in chain.items()} == stored(model, ref_tuple(model.ref), START)


@cache
def shared_games(program: Program, settings: GameConfig) -> ChainGames:
    """One deployment for many games of a test module."""
    return ChainGames(program, settings)
