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
from assay.protocol.game.state import REVEAL_BLOCKS, reveal_window
from assay.protocol.game.table import Side
from assay.protocol.payments.gateway_books import answer_ref
from assay.protocol.program.program import Program
from assay.protocol.run.answers import HELD, REFUTED, SaidAnswer, answer_claim
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.bindings.gateways import AnswerAccused, GatewayBonded, ModelPledged
from assay_ledger.bindings.token import TokenContract
from assay_ledger.contract import Call
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.index.games import Game

if TYPE_CHECKING:
    from assay.protocol.program.trace import Trace
    from assay_ledger.keys.keystore import ActorKeys

_SALT: Final = b"assay.answer.salt"

TraceOf = Callable[[Program, LanguageModel, SaidAnswer, int], "Trace"]


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

        One that was not revealed in time is let expire, which burns its deposit, and committed to anew. Raises
        FundsError (TokensShort).
        """
        claim = answer_claim(signed.statement.digest, signed.signer, place)
        commitment, challenges = self._commitment(claim), self.gates.challenges
        if self.is_late(claim):
            self._bring(commitment, challenges.expire_challenge(commitment), committed=False)
        if not self._committed(commitment):
            deposit_for(self.gates, self.keys, self.stake())
            # Attack: ours, copied from the pool and paid for by somebody else first. Still only we can reveal it.
            self._bring(commitment, challenges.commit_challenge(commitment), committed=True)
        return claim

    def has_committed(self, claim: Digest) -> bool:
        """Whether a challenge of this account is committed already."""
        return self._committed(self._commitment(claim))

    def is_late(self, claim: Digest) -> bool:
        """Whether a committed challenge can be revealed no more."""
        at = self._committed_at(self._commitment(claim))[1]
        return at != 0 and self._chain.head().timestamp > at + reveal_window(self.gates.run.charter.chain)

    def reveals_at(self, claim: Digest) -> tuple[int, int]:
        """Block and chain time from which a committed challenge can be revealed."""
        block, at = self._committed_at(self._commitment(claim))
        return block + REVEAL_BLOCKS, at + self.gates.run.charter.chain.reorg_depth

    def present(self, signed: SignedStatement, place: int) -> int:
        """Presents the statement and reveals the challenge; the game's number, 0 where the gateway has fallen already.

        Raises RejectedError under the contract's own names, FundsError (TokensShort).
        """
        claim = answer_claim(signed.statement.digest, signed.signer, place)
        try:
            told = self.gates.gateways.accuse(said_of(signed.statement), place, signed.signature)
            self._chain.send(self.keys.account, told)
        except RejectedError as error:
            # Another reader was first, or the pledge is over: the reveal opens no game, and gives the deposit back.
            if error.code not in ("NotBonded", "NotPledged"):
                raise
        self._reveal(claim)
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
        """The run behind a game's claim, from what the contract told of it.

        Raises UnavailableError (EventsMissing) where the node does not find that, NothingToDefend.
        """
        search = AnswerAccused.search(self.gates.gateways.address, claim=game.ref.outer_root)
        found = self._chain.events(search, self.gates.run.first_block)
        if not found:
            # Behind one URL are nodes that do not have the newest block yet: whoever ended here would lose by silence.
            raise UnavailableError(
                f"The node does not find the accusation that game {game.game_id} is about.",
                code="EventsMissing",
                remedy="It is asked again; if it goes on, name another node. Nothing is lost as long as time is left.",
            )
        told = found[0]
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
        return self._committed_at(commitment)[1] != 0

    def _committed_at(self, commitment: Digest) -> tuple[int, int]:
        """Block and chain time; zeros where there is none."""
        _, block, at = self._chain.ask(self.gates.challenges.committed_challenge(commitment))
        return block, at

    def _bring(self, commitment: Digest, call: Call, *, committed: bool) -> None:
        """Sends what commits to a challenge, or lets it expire; somebody else may have done it first."""
        try:
            self._chain.send(self.keys.account, call)
        except RejectedError:
            if self._committed(commitment) is not committed:
                raise

    def _reveal(self, claim: Digest) -> None:
        call = self.gates.challenges.reveal_challenge(answer_ref(claim), REFUTED, self._salt(claim))
        try:
            self._chain.send(self.keys.account, call)
        except RejectedError as error:
            if error.code != "InsufficientFree":
                raise
            # Another game of this account has taken the bond since it was put up.
            deposit_for(self.gates, self.keys, self.gates.run.charter.economics.challenge_bond)
            self._chain.send(self.keys.account, call)
