"""Bonded gateways in an EVM beside their model: keys, statements, accusations, and games on them, on both at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from functools import cache
from typing import Any, Final

from eth_abi import encode
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_hash.auto import keccak

from assay.inference.answer_program import answer_program
from assay.inference.claims import answer_terms, said_of
from assay.inference.generate import generate
from assay.inference.model import LanguageModel
from assay.inference.rows import WindowRows
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import AnswerStatement, SignedStatement, recovered, sign, statement_of
from assay.protocol.errors import RejectedError
from assay.protocol.game.clock import Clocks
from assay.protocol.game.state import GameConfig, GameState
from assay.protocol.game.table import Side
from assay.protocol.payments.gateway_books import GatewayBooks, answer_ref, gateway_lock
from assay.protocol.program.trace import Trace
from assay.protocol.run.answers import SaidAnswer
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.deployment.places import by_code, create_address
from tests.harness.contracts.game_chain import START, ChainGames, Twin, ref_tuple
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, artifact
from tests.harness.contracts.leaf_cases import CONTRACTS, NO_LEAF
from tests.harness.game_books import MoneyError
from tests.harness.games import play_out, player, silent_after
from tests.harness.inference.models import small_gpt
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.staged import modules_at

CHAIN_ID: Final = 1
"""Of pyrevm."""
BOND: Final = Wei(50 * ETHER)
CONTRACTS_BESIDE: Final = ("AnswerCharter", "Vault", "Gateways", "Game", "Challenges")
KEYS: Final[tuple[LocalAccount, ...]] = tuple(Account.from_key((0x6A7E + k).to_bytes(32, "big")) for k in range(4))
SALT: Final = Digest(bytes(32))
ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of secp256k1."""


def account(key: LocalAccount) -> Address:
    """The 20 bytes of a key's address."""
    return Address(bytes.fromhex(key.address[2:]))


@cache
def own_model() -> LanguageModel:
    """A small language model, whose programs are captured once."""
    return small_gpt()


class AnswerChain(ChainGames):
    """The charter of a run, and gateways beside it by their deployer, with the real arbiter and leaves."""

    def __init__(self, model: LanguageModel) -> None:
        self.most = 1 << 100
        self.chain = chain = Evm(timestamp=START)
        self.block, self.now, self.base_fee = 1, 0, 0
        leaves = {family: chain.deploy(name).address for family, name in CONTRACTS.items()}
        self.arbiter = chain.deploy("Arbiter", by_code(leaves, NO_LEAF))
        self.token = chain.deploy("TestToken")
        token = Address(bytes.fromhex(self.token.address[2:]))
        self.run_terms = replace(RUN, token=token)
        self.run_charter = chain.deploy("RunCharter", self.run_terms.as_tuple(), astuple(modules_at()))
        self.terms = answer_terms(model, BOND)
        codes = [artifact(name).bytecode for name in CONTRACTS_BESIDE]
        self.deployer = chain.deploy(
            "AnswerDeployer",
            self.run_charter.address,
            terms_digest(self.terms),
            self.arbiter.address,
            list(map(keccak, codes)),
        )
        self.deployer.call("createCharter", codes[0], astuple(self.terms))
        for code in codes[1:]:
            self.deployer.call("create", code)
        creator = Address(bytes.fromhex(self.deployer.address[2:]))
        made = [
            EvmContract(chain, artifact(name), "0x" + create_address(creator, 1 + k).hex())
            for k, name in enumerate(CONTRACTS_BESIDE)
        ]
        self.charter, self.vault, self.gateways, self.game, self.challenges = made
        self.book = self.gateways
        self.address = Address(bytes.fromhex(self.game.address[2:]))


def terms_digest(terms: Any) -> bytes:
    """keccak256(abi.encode(terms))."""
    return keccak(encode(["((bytes32,bytes32,bytes),bytes32,uint32,uint32,uint128)"], [astuple(terms)]))


@cache
def _chain() -> AnswerChain:
    return AnswerChain(own_model())


class AnswerStage(Twin):
    """Calls on model and contracts at once; the chain is as before after `end`. Times count from START."""

    def __init__(self) -> None:
        chain = _chain()
        self.mark = chain.chain.evm.snapshot()
        self.answers = answer_program(own_model().program)
        clocks, economics = RUN.clocks, RUN.economics
        settings = GameConfig(
            clocks.arity,
            Clocks(clocks.budget, clocks.replay, clocks.move),
            economics.challenge_bond,
            economics.challenge_deposit,
            economics.third_bounty_ppm,
            RUN.chain,
        )
        super().__init__(self.answers, settings, chain)
        self.model = own_model()
        self.now = 0
        self.books = GatewayBooks(
            CHAIN_ID,
            Address(bytes.fromhex(chain.charter.address[2:])),
            chain.run_terms.run,
            chain.terms,
            RUN.timing.challenge,
            economics.third_bounty_ppm,
            self.vault,
        )
        self.claims = self.books  # type: ignore[assignment]
        for key in KEYS:
            self.fund(account(key), 200 * ETHER)
        self.pass_time(0)

    def end(self) -> None:
        """The chain is as it was before."""
        self.games.chain.evm.revert(self.mark)

    def fund(self, who: Address, amount: int) -> None:
        """Money in the vault, on both."""
        self.vault.deposit(who, amount)
        self.games.deposit(who, amount)

    def pass_time(self, seconds: int, blocks: int = 1) -> None:
        """Let chain time pass."""
        self.now += seconds
        self.block += blocks
        self.games.set_time(self.now, self.block)

    # --- what gateways do

    def both(self, model: Callable[[], Any], who: Address, function: str, *args: Any) -> Any:
        """A call on both: same error, or both go through. Raises RejectedError as the model does."""
        error: Exception | None = None
        answer = None
        try:
            answer = model()
        except (RejectedError, MoneyError) as rejected:
            error = rejected
        refused = ""
        try:
            found, self.gas_used = self.games.call(who, function, *args, contract=self.games.gateways)
        except Reverted as reverted:
            entries = [e for c in (self.games.gateways, self.games.vault) for e in c.artifact.abi]
            refused = Reverted(reverted.data, entries).name or str(reverted)
        wanted = "" if error is None else "InsufficientFree" if isinstance(error, MoneyError) else error.code
        assert refused == wanted, (function, refused, error)
        if error is not None:
            raise error
        assert answer is None or answer == found, (answer, found)
        return answer

    def bond(self, key: LocalAccount) -> None:
        self.both(lambda: self.books.bond(account(key)), account(key), "bond")

    def unbond(self, key: LocalAccount) -> None:
        self.both(lambda: self.books.unbond(account(key), self.now), account(key), "unbond")

    def pledge(self, key: LocalAccount, until: int, model: Digest | None = None) -> None:
        root = self.model.root if model is None else model
        pledge = lambda: self.books.pledge(account(key), root, until, self.now)  # noqa: E731
        self.both(pledge, account(key), "pledge", root, START + until)

    # --- statements

    def statement(self, terms: SamplingTerms, most: int = 6, prompt: str = "the ") -> AnswerStatement:
        """What an honest gateway says."""
        tokens = self.model.encode(prompt)
        found = generate(self.model, WindowRows(self.model), tokens, terms, most)
        return self.on_chain(statement_of(self.model, tokens, terms, most, found))

    def on_chain(self, statement: AnswerStatement) -> AnswerStatement:
        """The same of this run."""
        run = Address(bytes.fromhex(self.games.run_charter.address[2:]))
        return replace(statement, chain_id=CHAIN_ID, run=run)

    def accuse(self, signed: SignedStatement, place: int, said: SaidAnswer | None = None) -> Digest:
        """Present a statement; `said`: another text than was signed."""
        told = said_of(signed.statement) if said is None else said
        digest = signed.statement.digest
        if told != said_of(signed.statement):
            digest = Digest(self.games.view("digestOf", astuple(told), contract=self.games.gateways))
        signer = recovered(digest, signed.signature) if len(signed.signature) == 65 else None
        accuse = lambda: self.books.accuse(digest, signer, told, place, self.now)  # noqa: E731
        stranger = Address(bytes(19) + b"\x09")
        claim = Digest(self.both(accuse, stranger, "accuse", astuple(told), place, signed.signature))
        # What the contract built is what the model built.
        found = self.books.claims[claim]
        assert self.told_claim(claim) == (found.gateway, found.x, found.y)
        return claim

    def told_claim(self, claim: Digest) -> tuple[Address, Digest, Digest]:
        """Gateway, X and Y of a claim as the contract tells a game."""
        view = self.games.view("claimOf", ref_tuple(answer_ref(claim)), contract=self.games.gateways)
        return Address(bytes.fromhex(view[1][2:])), Digest(view[2]), Digest(view[3])

    # --- games

    def open(self, claim: Digest, who: Address, own_root: Digest) -> int:
        """Commit, wait, and reveal: a game on a claim."""
        self.commit(claim, who, own_root)
        return self.reveal(claim, who, own_root)

    def commit(self, claim: Digest, who: Address, own_root: Digest) -> None:
        commitment = challenge_commitment(answer_ref(claim), own_root, SALT, who)
        self.book.commit_challenge(who, commitment, self.now, self.block)
        self.pass_time(RUN.chain.reorg_depth + 1, 3)

    def reveal(self, claim: Digest, who: Address, own_root: Digest) -> int:
        return self.book.reveal_challenge(who, answer_ref(claim), own_root, SALT, self.now, self.block)

    def play(self, game: int, defends: Trace | None, challenges: Trace) -> GameState:
        """A game to its end; None defends nothing."""
        challenger = player(Side.CHALLENGER, challenges, self.settings.arity)
        defender = (
            silent_after(challenger, 0) if defends is None else player(Side.DEFENDER, defends, self.settings.arity)
        )
        state = play_out(self, game, defender, challenger, self.now)
        self.now = self.games.now
        return state

    def compare(self) -> None:
        """Everything that the contract shows equals the model; nothing is lost."""
        self.check_money()
        for key in KEYS:
            told = self.games.view("bondOf", account(key), contract=self.games.gateways)
            found = self.books.bond_of(account(key))
            until = START + found.until if found.until else 0
            assert told == (found.is_bonded, found.is_convicted, found.disputes, until)
            held = self.vault.lock_amount(gateway_lock(account(key)))
            assert held == (BOND if found.is_bonded else 0)


def signed_by(key: LocalAccount, statement: AnswerStatement) -> SignedStatement:
    """A statement under a key's signature."""
    return sign(statement, key)
