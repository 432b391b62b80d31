// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {GameState, Outcome, Side, Stage} from "../interfaces/GameTypes.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {IGame} from "../interfaces/IGame.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {RunEconomics} from "../interfaces/RunTypes.sol";
import {GameBounds} from "../libraries/GameBounds.sol";
import {Programs} from "../libraries/Programs.sol";
import {GameClocks} from "./GameClocks.sol";

/// @title GameMoney: how games are opened, refunded and settled (assay.protocol.game.book)
/// @notice A challenger locks a bond per game, in a lock of its own: K("game", id). Every reply of the defender is paid
/// `moveRefund` from it at once while all advances under the claim's lock stay within half of what a third party would get
/// of this lock; later refunds wait in the bond. The first conviction takes the claim's lock: the bounty share less a
/// reserve for what other open games have advanced goes to the winner, the rest burns. So an honest challenger never loses
/// a bond, and a coalition of both sides loses the burnt share, whatever it plays. Calls go out only to the run's own
/// vault and books, after the game's state is final, and whatever moves money is guarded besides.
abstract contract GameMoney is GameClocks, ReentrancyGuardTransient {
    uint256 internal constant PPM = 1_000_000;
    uint8 internal constant NO_FAMILY = 255;

    IVault public immutable vault;
    uint256 internal immutable _bond;
    uint256 private immutable _backedPpm;
    uint256 public immutable moveRefund;

    uint256 public games;
    mapping(bytes32 account => uint256) private _advanced;
    mapping(bytes32 lockId => uint256) private _epochs;

    constructor(IRunCharter charter_) GameClocks(charter_) {
        RunEconomics memory economics = charter_.runTerms().economics;
        vault = IVault(charter_.roundModules().vault);
        _bond = economics.challengeBond;
        // Half of the bond survives the longest defence that the encodings admit: a lost challenge always burns something.
        moveRefund = _bond / (2 * GameBounds.mostReplies(_arity, _levels));
        _backedPpm = economics.thirdBountyPpm;
    }

    // --- opening

    /// @inheritdoc IGame
    function challenge(ClaimRef calldata ref) external returns (uint256 gameId) {
        return _challenge(msg.sender, ref, ref.outerRoot);
    }

    function _bookOf(ClaimKind kind) internal view returns (IClaims) {
        return charter.bookOf(kind);
    }

    /// @dev Opens a game, at once or as revealed. A revealed one named `ownRoot`, and opens none (0) if the claim fell or closed meanwhile.
    function _challenge(address challenger, ClaimRef calldata ref, bytes32 ownRoot)
        internal
        virtual
        nonReentrant
        returns (uint256 gameId)
    {
        // As an argument it would be a constant, and the compiler would write this function twice.
        bool direct = msg.sig == IGame.challenge.selector;
        IClaims book = _bookOf(ref.kind);
        ClaimView memory claim = book.claimOf(ref);
        // Attack: a blank challenge, committed to in advance; it must name another root than the claim's.
        if (!direct && claim.y == ownRoot) revert WrongDigest(ownRoot, claim.y);
        bool isOpen = claim.challengeableUntil != 0 && !claim.fallen && block.timestamp >= claim.challengeableFrom
            && block.timestamp <= claim.challengeableUntil;
        if (!isOpen && !direct) return 0;
        if (!isOpen) revert NotChallengeable(claim.id);
        // Attack: a challenge copied from the mempool.
        if (direct && !book.mayChallengeDirectly(ref, challenger)) revert MayNotChallenge(challenger);
        Programs.Info storage program = _programs[claim.program];
        if (program.nodes == 0 || claim.steps == 0) revert UnknownProgram(claim.program);
        gameId = ++games;
        GameState storage game = _games[gameId];
        (game.challenger, game.defender, game.family) = (challenger, claim.claimant, NO_FAMILY);
        (game.defenderBudget, game.challengerBudget) = (_budget, _budget);
        (game.claimId, game.program, game.lockId, game.ref) = (claim.id, claim.program, claim.lockId, ref);
        game.account = _account(claim.lockId);
        // Attack: puppets whose advances the accused keeps, and the pot of its drawn accusers repays.
        game.backing = uint128(claim.lockAmount * _backedPpm / (2 * PPM));
        (game.stage, game.turn) = (claim.steps > 1 ? Stage.STEPS : Stage.NODES, Side.DEFENDER);
        if (claim.steps > 1) (game.hi, game.agreed, game.disputed) = (claim.steps, claim.x, claim.y);
        else _beginNodes(game, program, 1, claim.x, claim.y);
        _lock(_bondLock(gameId), challenger, _bond);
        book.onOpened(ref, challenger);
        emit GameOpened(gameId, claim.id, challenger, claim.claimant, ref);
        _startTurn(gameId, game, challenger);
    }

    /// @dev One disputed step: its prefix roots are bisected next, P_0 agreed, s_t disputed at n + 1.
    function _beginNodes(
        GameState storage game,
        Programs.Info storage program,
        uint32 step,
        bytes32 before,
        bytes32 after_
    ) internal virtual;

    // --- refunds and settlement

    /// @dev Pays for a reply of the defender, at once if the claim's lock answers for it.
    function _refund(uint256 gameId, GameState storage game) internal nonReentrant {
        uint256 refund = moveRefund;
        if (refund == 0) return;
        uint256 out = _advanced[game.account] + refund;
        // Attack: ten false challenges of one purse; and a lock put up anew, to answer for old advances.
        if (game.account != _account(game.lockId) || out > game.backing) {
            game.held += uint128(refund);
        } else {
            game.advanced += uint128(refund);
            _advanced[game.account] = out;
            vault.seize(_bondLock(gameId), game.defender, refund);
        }
    }

    /// @dev One exit path per bond and lock. The verdict is out; `side` lost.
    function _settle(uint256 gameId, GameState storage game, Side side) internal nonReentrant {
        IClaims book = _bookOf(game.ref.kind);
        bytes32 account = game.account;
        uint256 advanced = game.advanced;
        bool taken = account != _account(game.lockId);
        _advanced[account] -= advanced;
        if (side == Side.DEFENDER) {
            ClaimView memory claim = book.claimOf(game.ref);
            _release(_bondLock(gameId), _bond - advanced);
            // An earlier conviction took the lock and left what this game had advanced.
            if (taken) _seize(account, game.challenger, advanced);
            if (book.onClosed(game.ref, true)) _take(gameId, game, claim);
        } else {
            uint256 rest = _bond - advanced - game.held;
            _seize(_bondLock(gameId), game.defender, game.held + rest / 2);
            // Attack: a sock puppet against oneself, lost by garbage or by silence: half burns.
            _burn(_bondLock(gameId), rest - rest / 2);
            if (taken) _burn(account, advanced);
            book.onClosed(game.ref, false);
        }
    }

    /// @dev The first conviction takes the lock: burn, reserve for other games' advances, the rest to the winner or its beneficiary.
    function _take(uint256 gameId, GameState storage game, ClaimView memory claim) private {
        bytes32 lockId = game.lockId;
        bytes32 account = _account(lockId);
        // A lock with less in it than its book says must not keep a game from ending.
        (, uint256 amount) = vault.lockOf(lockId);
        if (amount > claim.lockAmount) amount = claim.lockAmount;
        uint256 bounty = _bounty(claim, amount);
        uint256 reserve = _advanced[account];
        // Attack: two honest challengers, to dilute each other: what later winners advanced is kept for them.
        if (reserve > bounty) reserve = bounty;
        ++_epochs[lockId];
        // Attack: a sock puppet that convicts its own claim: the burnt share of the lock is lost.
        _burn(lockId, amount - bounty);
        _pay(game, lockId, bounty - reserve, claim.beneficiary);
        _seize(lockId, address(this), reserve);
        _lock(account, address(this), reserve);
        emit LockTaken(gameId, lockId, bounty - reserve, amount - bounty, reserve);
    }

    /// @dev The share of a lock that does not burn, rounded down.
    function _bounty(ClaimView memory claim, uint256 amount) private pure returns (uint256) {
        return amount * claim.bountyPpm / PPM;
    }

    /// @dev Pays a bounty out of a lock.
    function _pay(GameState storage game, bytes32 lockId, uint256 amount, address beneficiary) internal virtual;

    function _bondLock(uint256 gameId) private pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("game"), gameId));
    }

    /// @dev The account of advances under a lock as it stands, and the lock of their reserve. An epoch ends when a conviction
    /// takes the lock: advances under a new lock of the same name are another account's.
    function _account(bytes32 lockId) private view returns (bytes32) {
        return keccak256(abi.encode(bytes32("advance"), lockId, _epochs[lockId]));
    }

    // --- the vault refuses amounts of zero

    function _lock(bytes32 id, address owner, uint256 amount) internal {
        if (amount != 0) vault.lock(id, owner, amount);
    }

    function _release(bytes32 id, uint256 amount) internal {
        if (amount != 0) vault.release(id);
    }

    function _seize(bytes32 id, address to, uint256 amount) internal {
        if (amount != 0) vault.seize(id, to, amount);
    }

    function _burn(bytes32 id, uint256 amount) internal {
        if (amount != 0) vault.burn(id, amount);
    }
}
