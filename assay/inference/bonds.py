"""What gateways and their readers do with bonds on a chain: bond, pledge, look, accuse, and play.

Nothing is kept but on the chain: whoever is interrupted begins again and goes on. Source: ADR 67.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from web3.exceptions import Web3Exception

from assay.inference.answer_program import answer_program
from assay.inference.claims import honest_trace, said_of
from assay.inference.model import LanguageModel
from assay.inference.statement import SignedStatement
from assay.inference.verify import AnotherModel
from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, FraudError, FundsError, InvariantError, RejectedError, UnavailableError
from assay.protocol.game.state import REVEAL_BLOCKS
from assay.protocol.game.table import Side
from assay.protocol.payments.gateway_books import answer_ref
from assay.protocol.program.program import Program
from assay.protocol.run.answers import HELD, MAX_TOKENS, REFUTED, SaidAnswer, answer_claim
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.bindings.gateways import AnswerAccused, GatewayBonded, ModelPledged
from assay_ledger.bindings.token import TokenContract
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.index.games import Game

if TYPE_CHECKING:
    from assay.protocol.program.trace import Trace
    from assay_ledger.keys.keystore import ActorKeys

LOOKED_UP_S: Final = 30.0
"""A conviction is seen so much later by who pays: a few answers."""

_SALT: Final = b"assay.answer.salt"

TraceOf = Callable[[Program, LanguageModel, SaidAnswer, int], "Trace"]


class NotCovered(RejectedError):
    """No bond answers for a statement."""

    remedy = "Ask a gateway that `assay gateway list` shows, and pledged for longer than an accusation takes."


class NothingToDefend(FraudError):
    """A gateway's own statement is not what the model says."""

    remedy = "Stop the gateway and test the machine: the bond is lost, and so would the next one be."


@dataclass(frozen=True, slots=True)
class GatewayStanding:
    """A gateway that ever bonded. until: end of its pledge of the model that was asked about, 0 for none."""

    gateway: Address
    is_bonded: bool
    is_convicted: bool
    disputes: int
    until: int


def deposit_for(gates: AnswerGates, keys: ActorKeys, wanted: Wei) -> Wei:
    """Brings a key's free balance in the vault of gateways up to an amount; what was deposited.

    Raises FundsError (TokensShort).
    """
    chain, me = gates.run.chain, keys.address
    lacks = Wei(max(0, wanted - chain.ask(gates.vault.free(me))))
    if not lacks:
        return lacks
    token = TokenContract(gates.run.charter.token)
    if (held := chain.ask(token.balance_of(me))) < lacks:
        money = gates.run.currency
        raise FundsError(
            f"{keys.account.address} holds {money.both(held)}; {money.both(lacks)} more are needed.",
            code="TokensShort",
            remedy="Get tokens first.",
        )
    # The exact amount is approved, never more: a stolen allowance is worth nothing.
    chain.send(keys.account, token.approve(gates.vault.address, lacks))
    chain.send(keys.account, gates.vault.deposit(lacks))
    return lacks


def bond(gates: AnswerGates, keys: ActorKeys) -> Wei:
    """Bonds a gateway; what was deposited for it. Raises RejectedError (AlreadyBonded, GatewayConvicted), FundsError
    (TokensShort).
    """
    found = gates.run.chain.ask(gates.gateways.bond_of(keys.address))
    deposited = Wei(0)
    if not (found.is_bonded or found.is_convicted):
        deposited = deposit_for(gates, keys, gates.terms.bond)
    gates.run.chain.send(keys.account, gates.gateways.bond())
    return deposited


def pledge_model(gates: AnswerGates, model: LanguageModel, keys: ActorKeys, seconds: int) -> int:
    """Pledges a gateway for so many seconds of chain time from now; until when. A pledge that lasts longer stands.

    Raises ConfigError (AnotherModel), RejectedError (NotBonded, PledgeTooLong).
    """
    if model.program.root != gates.terms.forward:
        raise AnotherModel(
            f"The gateways here answer for the program 0x{gates.terms.forward.hex()}; the model at hand has "
            f"0x{model.program.root.hex()}."
        )
    until = gates.run.chain.head().timestamp + seconds
    if (standing := gates.run.chain.ask(gates.gateways.pledge_of(keys.address, model.root))) >= until:
        return standing
    gates.run.chain.send(keys.account, gates.gateways.pledge(model.root, until))
    return until


def standings(gates: AnswerGates, model: Digest | None) -> list[GatewayStanding]:
    """Every gateway that ever bonded, by its address; with its pledge of a model, of all models unless one is named."""
    chain, book = gates.run.chain, gates.gateways
    bonded = chain.events(GatewayBonded.search(book.address), gates.run.first_block)
    found = []
    for gateway in sorted({logged.event.gateway for logged in bonded}):
        told = chain.ask(book.bond_of(gateway))
        until = told.until if model is None else chain.ask(book.pledge_of(gateway, model))
        found.append(GatewayStanding(gateway, told.is_bonded, told.is_convicted, told.disputes, until))
    return found


def pledges(gates: AnswerGates, gateway: Address) -> dict[Digest, int]:
    """The models that a gateway has pledged itself to serve, and until when."""
    found = gates.run.chain.events(ModelPledged.search(gates.gateways.address, gateway=gateway), gates.run.first_block)
    return {logged.event.model: logged.event.until for logged in found}


def accusing_time(gates: AnswerGates) -> int:
    """Seconds of chain time that a reader needs, from a false answer until it is presented, at the most."""
    terms = gates.run.charter
    return terms.chain.reorg_depth + 2 * terms.chain.inclusion_delay + terms.clocks.replay


def check_covered(gates: AnswerGates, signed: SignedStatement) -> int:
    """Until when a statement can be presented, in seconds of chain time. Raises NotCovered."""
    check_presentable(gates, signed)
    return check_pledged(gates, signed.signer, signed.statement.model)


def check_presentable(gates: AnswerGates, signed: SignedStatement) -> None:
    """That a statement is of the run and program that gateways here answer for; asks no node. Raises NotCovered."""
    said, run = signed.statement, gates.run
    if (said.chain_id, said.run) != (run.chain.chain_id, run.address):
        raise NotCovered("The statement is of another run, or of none.")
    if said.program != gates.terms.forward:
        raise NotCovered("The statement names another forward program than the gateways here answer for.")
    if (tokens := len(said.prompt) + len(said.answer)) > MAX_TOKENS:
        raise NotCovered(f"Prompt and answer have {tokens} tokens; {MAX_TOKENS} can be presented.")


def check_pledged(gates: AnswerGates, gateway: Address, model: Digest) -> int:
    """Until when what a gateway signs now can be presented, in seconds of chain time. Raises NotCovered."""
    run = gates.run
    found = run.chain.ask(gates.gateways.bond_of(gateway))
    if not found.is_bonded:
        what = "was convicted of a false answer" if found.is_convicted else "has no bond here"
        raise NotCovered(f"The gateway 0x{gateway.hex()} {what}.")
    until = run.chain.ask(gates.gateways.pledge_of(gateway, model))
    now = run.chain.head().timestamp
    # Attack: an answer in the last minutes of a pledge, which nobody has the time to present.
    if until < now + accusing_time(gates):
        raise NotCovered(f"The pledge ends at {until}, in {max(0, until - now)} s: too soon for an accusation.")
    return until


class CoverWatch:
    """Whether a gateway's bond answers for a model, looked up on the chain for who pays it; safe for threads."""

    def __init__(
        self, gates: AnswerGates, gateway: Address, model: Digest, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gates, self._gateway, self._model, self._clock = gates, gateway, model, clock
        self._looked_at = float("-inf")
        self.until = 0
        """The end of its pledge, in seconds of chain time, when it was last looked up."""

    def check(self) -> None:
        """Before anything is signed for it; the chain is asked every LOOKED_UP_S seconds. Raises NotCovered, and what
        a node that does not answer raises: nobody pays for what nobody may answer for."""
        if self._clock() - self._looked_at >= LOOKED_UP_S:
            try:
                self.until = check_pledged(self._gates, self._gateway, self._model)
            except Web3Exception as error:
                text = f"The node did not answer as expected ({type(error).__name__})."
                raise UnavailableError(text, code="RpcError") from None
            self._looked_at = self._clock()

    def why_not(self, signed: SignedStatement) -> str:
        """Why no bond answers for an answer; empty where one does.

        No node is asked: the answer is paid for, and one that fails then must not cost its reader both.
        """
        try:
            check_presentable(self._gates, signed)
        except NotCovered as error:
            return error.message
        return ""


class AnswerGames:
    """One account's games on statements of a model. `trace_of`: other than the honest runs, for liars."""

    def __init__(
        self,
        gates: AnswerGates,
        model: LanguageModel,
        keys: ActorKeys,
        trace_of: TraceOf = honest_trace,
    ) -> None:
        self.gates, self.model, self.keys = gates, model, keys
        self._passed: dict[int, int] = {}
        """Games that are over or another's, and since which chain time they were seen to be."""
        self._chain, self._trace_of = gates.run.chain, trace_of
        arity = gates.run.charter.clocks.arity
        self._player = GamePlayer(gates.games, keys.account, arity, self._trace)

    @cached_property
    def program(self) -> Program:
        """The answer program, which the contracts know by its root."""
        return answer_program(self.model.program)

    # --- an accuser's

    def stake(self) -> Wei:
        """What an accuser locks until its game is won."""
        economics = self.gates.run.charter.economics
        return Wei(economics.challenge_bond + economics.challenge_deposit)

    def commit(self, signed: SignedStatement, place: int) -> Digest:
        """Commits to a challenge before anybody sees the statement; found again where that is done. The claim's name.

        Raises FundsError (TokensShort).
        """
        claim = answer_claim(signed.statement.digest, signed.signer, place)
        commitment = self._commitment(claim)
        if not self._committed(commitment):
            deposit_for(self.gates, self.keys, self.stake())
            self._chain.send(self.keys.account, self.gates.challenges.commit_challenge(commitment))
        return claim

    def is_committed(self, signed: SignedStatement, place: int) -> bool:
        """Whether this account has committed to accusing it already."""
        return self.has_committed(answer_claim(signed.statement.digest, signed.signer, place))

    def has_committed(self, claim: Digest) -> bool:
        """The same of a claim by its name."""
        return self._committed(self._commitment(claim))

    def reveals_at(self, claim: Digest) -> tuple[int, int]:
        """Block and chain time from which a committed challenge can be revealed."""
        _, block, at = self._chain.ask(self.gates.challenges.committed_challenge(self._commitment(claim)))
        return block + REVEAL_BLOCKS, at + self.gates.run.charter.chain.reorg_depth

    def present(self, signed: SignedStatement, place: int) -> int:
        """Presents the statement and reveals the challenge; the game's number, 0 where the gateway has fallen already.

        Raises RejectedError under the contract's own names.
        """
        claim = answer_claim(signed.statement.digest, signed.signer, place)
        chain, account = self._chain, self.keys.account
        chain.send(account, self.gates.gateways.accuse(said_of(signed.statement), place, signed.signature))
        chain.send(account, self.gates.challenges.reveal_challenge(answer_ref(claim), REFUTED, self._salt(claim)))
        return self.game_on(claim)

    def game_on(self, claim: Digest) -> int:
        """The newest game that this account opened on a claim, open or over; 0 for none."""
        for number in range(self.gates.games.count(), 0, -1):
            game = self.gates.games.game(number)
            if game.ref.outer_root == claim and game.state.challenger == self.keys.address:
                return number
        return 0

    def wait_to_reveal(self, claim: Digest, pause: Callable[[], None]) -> None:
        """Until a committed challenge can be revealed, `pause` by `pause`."""
        block, at = self.reveals_at(claim)
        while (head := self._chain.head()).number < block or head.timestamp < at:
            pause()

    # --- both sides'

    def own(self) -> list[Game]:
        """The games of this account that are not over, by number.

        Attack: a thousand games of strangers against each other, so that looking at all takes longer than a move may.
        What is over, or somebody else's, is not looked at again once that was so for as long as the chain may be
        reorganized: before, its number may still become another's.
        """
        now, depth = self._chain.head().timestamp, self.gates.run.charter.chain.reorg_depth
        found = list[Game]()
        for number in range(1, self.gates.games.count() + 1):
            if now - self._passed.get(number, now) > depth:
                continue
            game = self.gates.games.game(number)
            if game.state.is_over or game.side_of(self.keys.address) is Side.NONE:
                self._passed.setdefault(number, now)
            else:
                self._passed.pop(number, None)
                found.append(game)
        return found

    def step(self, game_id: int) -> bool:
        """Moves where that is due, or ends the game where the other side is late; whether anything was sent.

        Raises NothingToDefend, RejectedError.
        """
        game = self.gates.games.game(game_id)
        if self._player.is_due(game):
            return self._player.move(game) is not None
        late = self._player.overdue_call(game, self._chain.head().timestamp)
        if late is None:
            return False
        self._chain.send(self.keys.account, late)
        return True

    def step_all(self, failed: Callable[[int, Exception], None]) -> tuple[set[int], bool]:
        """One move in each game of this account that is not over: those games, and whether anything was sent.

        Attack: two games, of which one waits for its accuser for hours while the gateway's clock in the other runs.
        What a game fails with is told to `failed`, and holds up no other. Raises UnavailableError, Web3Exception,
        InvariantError.
        """
        games, moved = self.own(), False
        for game in games:
            try:
                moved |= self.step(game.game_id)
            except InvariantError:
                raise
            except (AssayError, Web3Exception) as error:
                failed(game.game_id, error)
        return {game.game_id for game in games}, moved

    def has_won(self, game_id: int) -> bool | None:
        """Whether this account won a game; None where there is no verdict, as after a reorganization."""
        found = self.gates.games.verdict(game_id)
        if found is None:
            return None
        return found[0].side is not self.gates.games.game(game_id).side_of(self.keys.address)

    def play(self, game_id: int, pause: Callable[[], None] = lambda: time.sleep(0.2)) -> bool:
        """Plays a game to its end; whether this account won. A node that fails, or a move that came too early, is met
        by another try: who leaves a game loses it.
        """
        while True:
            try:
                if (won := self.has_won(game_id)) is not None:
                    return won
                moved = self.step(game_id)
            except (UnavailableError, RejectedError, Web3Exception):
                moved = False
            if not moved:
                pause()

    def _trace(self, game: Game) -> Trace:
        """The run behind a game's claim, from what the contract told of it."""
        search = AnswerAccused.search(self.gates.gateways.address, claim=game.ref.outer_root)
        (told,) = self._chain.events(search, self.gates.run.first_block)
        trace = self._trace_of(self.program, self.model, told.event.said, told.event.place)
        # A gateway whose claim is false has nothing to move with; one that lies brings another trace.
        if game.side_of(self.keys.address) is Side.DEFENDER and (trace.state_root(1), told.event.y) != (HELD, HELD):
            raise NothingToDefend(f"Token {told.event.place} of a statement of ours is false (game {game.game_id}).")
        return trace

    # --- commitments

    def _salt(self, claim: Digest) -> Digest:
        """Follows from the key, so that whoever is interrupted can still reveal."""
        return keccak(_SALT + bytes(self.keys.local.key) + claim)

    def _commitment(self, claim: Digest) -> Digest:
        return challenge_commitment(answer_ref(claim), REFUTED, self._salt(claim), self.keys.address)

    def _committed(self, commitment: Digest) -> bool:
        _, _, at = self._chain.ask(self.gates.challenges.committed_challenge(commitment))
        return at != 0
