"""The money of games and how they are opened: what `Game.sol` and `Challenges.sol` do besides judging moves.

A challenger locks a bond per game. Every reply of the defender is paid `move_refund` from it **at once**, so defence
needs no capital, as long as the claim's lock can answer for it: all such advances under one lock stay within half of
the bounty that the lock would give. Beyond that a refund waits in the bond until the game is over.

- The defender wins: it gets the refunds that wait and half of the rest of the bond; the other half burns.
- The challenger wins: it gets back what is left of its bond. The first conviction takes the claim's lock: the bounty
  share goes to the winner (who is thereby repaid its advances and its own moves), the rest burns. Set aside from the
  bounty share is what refunds in other open games under this lock amount to; from this reserve later winners are made
  whole, or it burns as those games are lost.

So an honest challenger never loses a bond, in whatever order games end; and a coalition of both sides loses the burnt
share whatever it plays. Amounts are wei; shares are rounded so that the burn is rounded up.
Source: docs/game.md; rules E1 and E4 (docs/economics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from assay.protocol import abi
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import refuse
from assay.protocol.game.descent import position_key
from assay.protocol.game.errors import (
    CommitmentExists,
    CommitmentNotFound,
    MayNotChallenge,
    NotChallengeable,
    RevealTooEarly,
    RevealTooLate,
    UnknownProgram,
    WrongDigest,
    WrongStage,
)
from assay.protocol.game.machine import open_game, process_defer, process_move, process_timeout
from assay.protocol.game.moves import AnyMove, PostDigests
from assay.protocol.game.state import REVEAL_BLOCKS, DisputedClaim, GameConfig, GameState, ProgramHeader, Rules
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimRef, challenge_commitment
from assay.protocol.types import Address, Digest, Wei

PPM: Final = 1_000_000


class Beneficiary(Protocol):
    """An account that bounties are paid to which belong to several (`IBeneficiary`)."""

    address: Address

    def on_bounty(self, lock_id: Digest, amount: Wei) -> None:
        """A conviction paid so much of a lock."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What a book says of a claim (`ClaimView` in IClaims.sol); challengeable_until = 0: it does not exist."""

    claim: DisputedClaim
    challengeable_from: int
    challengeable_until: int
    lock_amount: Wei
    fallen: bool
    bounty_ppm: int
    """Share of the lock that a conviction pays, in parts per million; the rest burns."""
    beneficiary: Beneficiary | None = None
    """Whose the bounty is; None: the winner's."""


NO_CLAIM: Final = ClaimView(DisputedClaim(ZERO, Address(bytes(20)), ZERO, ZERO, ZERO, 0, ZERO), 0, 0, Wei(0), False, 0)
"""What a book answers for a claim that does not exist."""


class ClaimBook(Protocol):
    """A book of claims (`IClaims`)."""

    def claim_of(self, ref: ClaimRef) -> ClaimView: ...
    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool: ...
    def on_opened(self, ref: ClaimRef, challenger: Address) -> None: ...
    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool: ...


class GameVault(Protocol):
    """The locks that the game may touch (`IVault`); each method raises when the money is not there."""

    def lock_amount(self, lock_id: Digest) -> Wei: ...
    def lock(self, lock_id: Digest, owner: Address, amount: Wei) -> None: ...
    def release(self, lock_id: Digest) -> None: ...
    def seize(self, lock_id: Digest, to: Address, amount: Wei) -> None: ...
    def burn(self, lock_id: Digest, amount: Wei) -> None: ...


@dataclass(frozen=True, slots=True)
class ChallengeCommitment:
    """A committed third-party challenge."""

    owner: Address
    block: int
    time: int


@dataclass(frozen=True, slots=True)
class OpenGame:
    """A game with what its money needs: where the claim stands, the account of its advances and what backs them."""

    state: GameState
    ref: ClaimRef
    account: Digest
    backing: Wei


def game_lock(game_id: int) -> Digest:
    """The lock of a challenger's bond: K("game", id)."""
    return keccak(abi.text(b"game") + abi.uint(game_id))


def commitment_lock(commitment: Digest) -> Digest:
    """The lock of a commit deposit: K("challenge", commitment)."""
    return keccak(abi.text(b"challenge") + abi.bytes32(commitment))


def advance_account(lock_id: Digest, epoch: int) -> Digest:
    """The account of advances under a claim's lock, and the lock of their reserve: K("advance", lock id, epoch).

    An epoch ends when a conviction takes the lock: advances under a new lock of the same name are another account's.
    """
    return keccak(abi.text(b"advance") + abi.bytes32(lock_id) + abi.uint(epoch))


@dataclass
class GameBook:
    """All games of a run: the executable model of `Game.sol`.

    `address` is the game's own account in the vault, which a reserve passes through; `lists` holds K(list) of what was
    posted, by position, for all games that come to stand there. Every method raises before it
    changes anything, or changes everything. `now` is chain time in seconds, `block` the block number.
    """

    address: Address
    config: GameConfig
    programs: Mapping[Digest, ProgramHeader]
    vault: GameVault
    book_of: Callable[[ClaimRef], ClaimBook]
    games: dict[int, OpenGame] = field(default_factory=dict)
    commitments: dict[Digest, ChallengeCommitment] = field(default_factory=dict)
    advanced: dict[Digest, Wei] = field(default_factory=dict)
    epochs: dict[Digest, int] = field(default_factory=dict)
    position_cache: dict[Digest, Digest] = field(default_factory=dict)
    is_stopped: Callable[[], bool] = lambda: False
    """Whether the run was cancelled or wound down: its locks are released, and no game opens any more."""

    # --- opening

    def commit_challenge(self, who: Address, commitment: Digest, now: int, block: int) -> None:
        """Commit to a third-party challenge; takes the commit deposit. Raises CommitmentExists."""
        if commitment in self.commitments:
            raise CommitmentExists("This challenge is committed already.", commitment=commitment)
        self._lock(commitment_lock(commitment), who, self.config.commit_deposit)
        self.commitments[commitment] = ChallengeCommitment(who, block, now)

    def reveal_challenge(
        self, who: Address, ref: ClaimRef, own_root: Digest, salt: Digest, now: int, block: int
    ) -> int:
        """Open the game that a committed challenge names; the deposit returns. 0 if the claim fell or closed meanwhile.

        Raises:
            CommitmentNotFound, RevealTooEarly, RevealTooLate: not committed by the caller, or not at this time.
            WrongDigest: the root committed to is the claimant's own. In a run that was stopped nobody looks.
            UnknownProgram: the claim names a program that is not the run's.
        """
        commitment = challenge_commitment(ref, own_root, salt, who)
        committed = self.commitments.get(commitment)
        if committed is None:
            raise CommitmentNotFound("No such challenge is committed by this account.", commitment=commitment)
        if block < committed.block + REVEAL_BLOCKS:
            raise RevealTooEarly(
                f"Block {block} is too early.", block=block, not_before=committed.block + REVEAL_BLOCKS
            )
        # A reorganization must not let a reader of the reveal commit before it.
        if now < (earliest := committed.time + self.config.chain.reorg_depth):
            raise RevealTooEarly("The commitment can still be undone.", now=now, not_before=earliest)
        if now > (deadline := committed.time + self.config.reveal_window):
            raise RevealTooLate("The time to reveal is over.", now=now, deadline=deadline)
        view, stopped = self.book_of(ref).claim_of(ref), self.is_stopped()
        if view.claim.y == own_root and not stopped:
            raise WrongDigest("The root committed to is the one claimed.", got=own_root, wanted=view.claim.y)
        self._release(commitment_lock(commitment))
        del self.commitments[commitment]
        # A challenger that committed in time and found the claim fallen or closed has done nothing wrong.
        return self._open(who, ref, view, now) if is_challengeable(view, now) and not stopped else 0

    def expire_challenge(self, commitment: Digest, now: int) -> None:
        """Burn the deposit of a challenge that was not revealed in time; anyone may call.

        Raises:
            CommitmentNotFound: there is none.
            RevealTooEarly: it may still be revealed.
        """
        committed = self.commitments.get(commitment)
        if committed is None:
            raise CommitmentNotFound("No such challenge is committed.", commitment=commitment)
        if now <= (deadline := committed.time + self.config.reveal_window):
            raise RevealTooEarly("It may still be revealed.", now=now, not_before=deadline)
        self._burn(commitment_lock(commitment), self.config.commit_deposit)
        del self.commitments[commitment]

    def challenge(self, who: Address, ref: ClaimRef, now: int) -> int:
        """Open a game at once, as a party that the book of the claim lets: whose accusation it is, or who trains.

        Raises:
            RunStopped: the run was cancelled or wound down.
            NotChallengeable: the claim does not exist, its window is over, or it has fallen.
            MayNotChallenge: the caller is no such party.
            UnknownProgram: the claim names a program that is not the run's.
        """
        # Attack: after a wind-down, convict claims whose locks were released, and suspend or freeze what has left.
        if self.is_stopped():
            raise refuse("RunStopped")
        claims = self.book_of(ref)
        view = claims.claim_of(ref)
        if not is_challengeable(view, now):
            raise NotChallengeable("The claim cannot be challenged now.", claim=view.claim.id)
        if not claims.may_challenge_directly(ref, who):
            raise MayNotChallenge("Bind and reveal the challenge instead.", caller=who)
        return self._open(who, ref, view, now)

    def _open(self, who: Address, ref: ClaimRef, view: ClaimView, now: int) -> int:
        """Lock the bond and open."""
        program = self.programs.get(view.claim.program)
        if program is None:
            raise UnknownProgram("The program is not the run's.", program=view.claim.program)
        game_id = len(self.games) + 1
        self._lock(game_lock(game_id), who, self.config.bond)
        state = open_game(game_id, view.claim, who, now, Rules(self.config, program, self.position_cache))
        # Attack: puppets whose advances the accused keeps, and the pot of its drawn accusers repays.
        backing = Wei(view.lock_amount * self.config.bounty_ppm // (2 * PPM))
        self.games[game_id] = OpenGame(state, ref, self._account(view.claim.lock_id), backing)
        self.book_of(ref).on_opened(ref, who)
        return game_id

    # --- playing

    def move(self, game_id: int, mover: Address, move: AnyMove, now: int) -> GameState:
        """Make a move; a reply of the defender is refunded, a verdict settles. Raises what `process_move` raises."""
        game = self._game(game_id)
        rules = Rules(self.config, self.programs[game.state.claim.program], self.position_cache)
        state = process_move(game.state, mover, move, now, rules)
        if isinstance(move, PostDigests):
            self.position_cache[position_key(game.state)] = state.posted
        if state.is_over:
            return self._settle(game, state)
        if move.kind.side is Side.DEFENDER:
            state = self._refund(game, state)
        self.games[game_id] = replace(game, state=state)
        return state

    def defer(self, game_id: int, mover: Address, now: int, base_fee: int) -> GameState:
        """Defer a turn because of the base fee; no money moves. Raises what `process_defer` raises."""
        game = self._game(game_id)
        rules = Rules(self.config, self.programs[game.state.claim.program])
        state = process_defer(game.state, mover, now, base_fee, rules)
        self.games[game_id] = replace(game, state=state)
        return state

    def timeout(self, game_id: int, now: int) -> GameState:
        """End a game whose clock ran out; anyone may call. Raises what `process_timeout` raises."""
        game = self._game(game_id)
        return self._settle(game, process_timeout(game.state, now))

    def _game(self, game_id: int) -> OpenGame:
        """A game. Raises WrongStage when there is none of this number."""
        if game_id not in self.games:
            raise WrongStage(f"There is no game {game_id}.", actual=Stage.NONE)
        return self.games[game_id]

    def _refund(self, game: OpenGame, state: GameState) -> GameState:
        """Pay for a reply from the bond, at once if the claim's lock answers for it."""
        refund, out = self.config.move_refund, self.advanced.get(game.account, Wei(0))
        if refund == 0:
            return state
        taken = game.account != self._account(state.claim.lock_id)
        if taken or out + refund > game.backing:
            return replace(state, held=Wei(state.held + refund))
        self.advanced[game.account] = Wei(out + refund)
        self.vault.seize(game_lock(state.game_id), state.defender, refund)
        return replace(state, advanced=Wei(state.advanced + refund))

    # --- settling

    def _settle(self, game: OpenGame, state: GameState) -> GameState:
        """One exit path per bond and lock."""
        assert state.verdict is not None
        self.games[state.game_id] = replace(game, state=state)
        self.advanced[game.account] = Wei(self.advanced.get(game.account, 0) - state.advanced)
        taken = game.account != self._account(state.claim.lock_id)
        if state.verdict.side is Side.DEFENDER:
            self._release(game_lock(state.game_id))
            if taken:
                self._seize(game.account, state.challenger, state.advanced)
            view = self.book_of(game.ref).claim_of(game.ref)
            if self.book_of(game.ref).on_closed(game.ref, True):
                self._take(state, view)
        else:
            rest = self.config.bond - state.advanced - state.held
            kept = state.held + rest // 2
            self._seize(game_lock(state.game_id), state.defender, Wei(kept))
            self._burn(game_lock(state.game_id), Wei(rest - rest // 2))
            if taken:
                self._burn(game.account, state.advanced)
            self.book_of(game.ref).on_closed(game.ref, False)
        return state

    def _take(self, state: GameState, view: ClaimView) -> None:
        """The first conviction takes the lock: burn, reserve for other games' advances, the rest to the winner.

        Where it has a beneficiary, the winner is paid first what it advanced, and its gas.
        """
        lock_id = state.claim.lock_id
        # A lock with less in it than its book says must not keep a game from ending.
        amount = min(view.lock_amount, self.vault.lock_amount(lock_id))
        account, bounty = self._account(lock_id), Wei(amount * view.bounty_ppm // PPM)
        reserve = min(self.advanced.get(account, 0), bounty)
        self.epochs[lock_id] = self.epochs.get(lock_id, 0) + 1
        self._burn(lock_id, Wei(amount - bounty))
        rest = Wei(bounty - reserve)
        beneficiary = view.beneficiary
        own = rest if beneficiary is None else min(rest, Wei(state.advanced + self.config.kept))
        self._seize(lock_id, state.challenger, own)
        if beneficiary is not None and rest != own:
            self._seize(lock_id, beneficiary.address, Wei(rest - own))
            beneficiary.on_bounty(lock_id, Wei(rest - own))
        self._seize(lock_id, self.address, Wei(reserve))
        self._lock(account, self.address, Wei(reserve))

    def _account(self, lock_id: Digest) -> Digest:
        """The account of advances under a lock as it stands."""
        return advance_account(lock_id, self.epochs.get(lock_id, 0))

    # --- the vault refuses amounts of zero

    def _lock(self, lock_id: Digest, owner: Address, amount: Wei) -> None:
        if amount:
            self.vault.lock(lock_id, owner, amount)

    def _release(self, lock_id: Digest) -> None:
        if self.vault.lock_amount(lock_id):
            self.vault.release(lock_id)

    def _seize(self, lock_id: Digest, to: Address, amount: Wei) -> None:
        if amount:
            self.vault.seize(lock_id, to, amount)

    def _burn(self, lock_id: Digest, amount: Wei) -> None:
        if amount:
            self.vault.burn(lock_id, amount)


def is_challengeable(view: ClaimView, now: int) -> bool:
    """Whether a game may be opened on a claim at this time."""
    exists = view.challengeable_until != 0
    return exists and not view.fallen and view.challengeable_from <= now <= view.challengeable_until
