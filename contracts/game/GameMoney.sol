// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {GameState, Outcome, Side, Stage} from "../interfaces/GameTypes.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {ICharter, Terms} from "../interfaces/ICharter.sol";
import {IGame} from "../interfaces/IGame.sol";
import {IVault} from "../interfaces/IVault.sol";
import {GameBounds} from "../libraries/GameBounds.sol";
import {Programs} from "../libraries/Programs.sol";
import {GameClocks} from "./GameClocks.sol";

/// @title GameMoney: how games are opened, refunded and settled (assay.protocol.model.games)
/// @notice A challenger locks a bond per game, in a lock of its own: K("game", id). Every reply of the defender is paid
/// `moveRefund` from it at once while all advances under the claim's lock stay within half of the bounty that this lock
/// would give; later refunds wait in the bond. The first conviction takes the claim's lock: the bounty share less a
/// reserve for what other open games have advanced goes to the winner, the rest burns. So an honest challenger never loses
/// a bond, and a coalition of both sides loses the burnt share, whatever it plays. Calls go out only to the run's own
/// vault and books, after the game's state is final, and whatever moves money is guarded besides.
abstract contract GameMoney is GameClocks, ReentrancyGuardTransient {
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant REVEAL_BLOCKS = 2;
    uint256 internal constant REVEAL_WINDOW = 1 hours; // beyond reorg depth and inclusion delay
    uint8 internal constant NO_FAMILY = 255;

    struct CommittedChallenge {
        address owner;
        uint64 block_;
        uint64 time;
    }

    IVault public immutable vault;
    uint256 internal immutable _bond;
    uint256 internal immutable _commitDeposit;
    uint256 internal immutable _bountyPpm;
    uint256 public immutable moveRefund;
    uint256 private immutable _reorgDepth;
    uint256 private immutable _revealWindow;

    uint256 public games;
    mapping(bytes32 commitment => CommittedChallenge) public committedChallenge;
    mapping(bytes32 account => uint256) private _advanced;
    mapping(bytes32 lockId => uint256) private _epochs;

    constructor(ICharter charter_) GameClocks(charter_) {
        Terms memory terms = charter_.terms();
        vault = IVault(charter_.modules().vault);
        _bond = terms.economics.challengeBond;
        _commitDeposit = terms.economics.challengeDeposit;
        _bountyPpm = terms.economics.bountyPpm;
        // Half of the bond survives the longest defence that the encodings admit: a lost challenge always burns something.
        moveRefund = _bond / (2 * GameBounds.mostReplies(_arity, _levels));
        _reorgDepth = terms.chain.reorgDepth;
        _revealWindow = REVEAL_WINDOW + terms.chain.reorgDepth + terms.chain.inclusionDelay;
    }

    // --- opening

    /// @inheritdoc IGame
    function commitChallenge(bytes32 commitment) external nonReentrant {
        if (committedChallenge[commitment].owner != address(0)) revert CommitmentExists(commitment);
        committedChallenge[commitment] = CommittedChallenge(msg.sender, uint64(block.number), uint64(block.timestamp));
        _lock(_commitmentLock(commitment), msg.sender, _commitDeposit);
        emit ChallengeCommitted(commitment, msg.sender);
    }

    /// @inheritdoc IGame
    function revealChallenge(ClaimRef calldata ref, bytes32 ownRoot, bytes32 salt) external returns (uint256 gameId) {
        bytes32 commitment = keccak256(abi.encode(ref, ownRoot, salt, msg.sender));
        CommittedChallenge memory committed = committedChallenge[commitment];
        // Attack: a challenge copied from the mempool. The digest names its sender: no other account can reveal it,
        // whichever paid the deposit.
        if (committed.owner == address(0)) revert CommitmentNotFound(commitment);
        if (block.number < committed.block_ + REVEAL_BLOCKS) {
            revert RevealTooEarly(block.number, committed.block_ + REVEAL_BLOCKS);
        }
        // Attack: a reveal that a reorganization shows early, to somebody who then commits before it.
        if (block.timestamp < committed.time + _reorgDepth) {
            revert RevealTooEarly(block.timestamp, committed.time + _reorgDepth);
        }
        if (block.timestamp > committed.time + _revealWindow) {
            revert RevealTooLate(block.timestamp, committed.time + _revealWindow);
        }
        ClaimView memory claim = _bookOf(ref.kind).claimOf(ref);
        // Attack: a blank challenge, committed to in advance; it must name another root than the claim's.
        if (claim.y == ownRoot) revert WrongDigest(ownRoot, claim.y);
        delete committedChallenge[commitment];
        _release(_commitmentLock(commitment), _commitDeposit);
        // A challenger that committed in time and found the claim fallen or closed has done nothing wrong.
        if (_isChallengeable(claim)) gameId = _open(ref, claim);
        emit ChallengeUncommitted(commitment, gameId, false);
    }

    /// @inheritdoc IGame
    function expireChallenge(bytes32 commitment) external nonReentrant {
        CommittedChallenge memory committed = committedChallenge[commitment];
        if (committed.owner == address(0)) revert CommitmentNotFound(commitment);
        if (block.timestamp <= committed.time + _revealWindow) {
            revert RevealTooEarly(block.timestamp, committed.time + _revealWindow);
        }
        delete committedChallenge[commitment];
        _burn(_commitmentLock(commitment), _commitDeposit);
        emit ChallengeUncommitted(commitment, 0, true);
    }

    /// @inheritdoc IGame
    function challenge(ClaimRef calldata ref) external returns (uint256 gameId) {
        IClaims book = _bookOf(ref.kind);
        ClaimView memory claim = book.claimOf(ref);
        if (!_isChallengeable(claim)) revert NotChallengeable(claim.id);
        // Attack: a challenge copied from the mempool.
        if (!book.mayChallengeDirectly(ref, msg.sender)) revert MayNotChallenge(msg.sender);
        return _open(ref, claim);
    }

    function _bookOf(ClaimKind kind) private view returns (IClaims) {
        return charter.bookOf(kind);
    }

    function _isChallengeable(ClaimView memory claim) private view returns (bool) {
        return claim.challengeableUntil != 0 && !claim.fallen && block.timestamp >= claim.challengeableFrom
            && block.timestamp <= claim.challengeableUntil;
    }

    function _open(ClaimRef calldata ref, ClaimView memory claim) private nonReentrant returns (uint256 gameId) {
        Programs.Info storage program = _programs[claim.program];
        if (program.nodes == 0 || claim.steps == 0) revert UnknownProgram(claim.program);
        gameId = ++games;
        GameState storage game = _games[gameId];
        (game.challenger, game.defender, game.family) = (msg.sender, claim.claimant, NO_FAMILY);
        (game.defenderBudget, game.challengerBudget) = (_budget, _budget);
        (game.claimId, game.program, game.lockId, game.ref) = (claim.id, claim.program, claim.lockId, ref);
        game.account = _account(claim.lockId);
        game.backing = uint128(_bounty(claim.lockAmount) / 2);
        (game.stage, game.turn) = (claim.steps > 1 ? Stage.STEPS : Stage.NODES, Side.DEFENDER);
        if (claim.steps > 1) (game.hi, game.agreed, game.disputed) = (claim.steps, claim.x, claim.y);
        else _beginNodes(game, program, 1, claim.x, claim.y);
        _lock(_bondLock(gameId), msg.sender, _bond);
        _bookOf(ref.kind).onOpened(ref, msg.sender);
        emit GameOpened(gameId, claim.id, msg.sender, claim.claimant, ref);
        _startTurn(gameId, game);
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
            uint256 lockAmount = book.claimOf(game.ref).lockAmount;
            _release(_bondLock(gameId), _bond - advanced);
            // An earlier conviction took the lock and left what this game had advanced.
            if (taken) _seize(account, game.challenger, advanced);
            if (book.onClosed(game.ref, true)) _take(gameId, game, lockAmount);
        } else {
            uint256 rest = _bond - advanced - game.held;
            _seize(_bondLock(gameId), game.defender, game.held + rest / 2);
            // Attack: a sock puppet against oneself, lost by garbage or by silence: half burns.
            _burn(_bondLock(gameId), rest - rest / 2);
            if (taken) _burn(account, advanced);
            book.onClosed(game.ref, false);
        }
    }

    /// @dev The first conviction takes the lock: burn, reserve for other games' advances, the rest to the winner.
    function _take(uint256 gameId, GameState storage game, uint256 amount) private {
        bytes32 lockId = game.lockId;
        bytes32 account = _account(lockId);
        // A lock with less in it than its book says must not keep a game from ending.
        (, uint256 held) = vault.lockOf(lockId);
        if (amount > held) amount = held;
        uint256 bounty = _bounty(amount);
        uint256 reserve = _advanced[account];
        // Attack: two honest challengers, to dilute each other: what later winners advanced is kept for them.
        if (reserve > bounty) reserve = bounty;
        ++_epochs[lockId];
        // Attack: a sock puppet that convicts its own claim: the burnt share of the lock is lost.
        _burn(lockId, amount - bounty);
        _seize(lockId, game.challenger, bounty - reserve);
        _seize(lockId, address(this), reserve);
        _lock(account, address(this), reserve);
        emit LockTaken(gameId, lockId, bounty - reserve, amount - bounty, reserve);
    }

    /// @dev The share of a lock that does not burn, rounded down.
    function _bounty(uint256 amount) private view returns (uint256) {
        return amount * _bountyPpm / PPM;
    }

    function _bondLock(uint256 gameId) private pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("game"), gameId));
    }

    function _commitmentLock(bytes32 commitment) private pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("challenge"), commitment));
    }

    /// @dev The account of advances under a lock as it stands, and the lock of their reserve. An epoch ends when a conviction
    /// takes the lock: advances under a new lock of the same name are another account's.
    function _account(bytes32 lockId) private view returns (bytes32) {
        return keccak256(abi.encode(bytes32("advance"), lockId, _epochs[lockId]));
    }

    // --- the vault refuses amounts of zero

    function _lock(bytes32 id, address owner, uint256 amount) private {
        if (amount != 0) vault.lock(id, owner, amount);
    }

    function _release(bytes32 id, uint256 amount) private {
        if (amount != 0) vault.release(id);
    }

    function _seize(bytes32 id, address to, uint256 amount) private {
        if (amount != 0) vault.seize(id, to, amount);
    }

    function _burn(bytes32 id, uint256 amount) private {
        if (amount != 0) vault.burn(id, amount);
    }
}
