// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IChallenges} from "../interfaces/IChallenges.sol";
import {ClaimRef} from "../interfaces/IClaims.sol";
import {IGame} from "../interfaces/IGame.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";

/// @title Challenges: the challenges of third parties, apart from the game that they open (assay.protocol.game.book)
/// @notice Only deposits lie here; the game locks its own bond, from the same account.
contract Challenges is IChallenges, ReentrancyGuardTransient {
    uint256 private constant REVEAL_BLOCKS = 2;
    uint256 private constant REVEAL_WINDOW = 1 hours; // beyond reorg depth and inclusion delay

    struct CommittedChallenge {
        address owner;
        uint64 block_;
        uint64 time;
    }

    IGame private immutable _game;
    IVault private immutable _vault;
    uint256 private immutable _deposit;
    uint256 private immutable _reorgDepth;
    uint256 private immutable _revealWindow;

    /// @inheritdoc IChallenges
    mapping(bytes32 commitment => CommittedChallenge) public committedChallenge;

    constructor(IRunCharter charter) {
        RunTerms memory terms = charter.runTerms();
        RunModules memory modules = charter.roundModules();
        (_game, _vault) = (IGame(modules.game), IVault(modules.vault));
        _deposit = terms.economics.challengeDeposit;
        _reorgDepth = terms.chain.reorgDepth;
        _revealWindow = REVEAL_WINDOW + terms.chain.reorgDepth + terms.chain.inclusionDelay;
    }

    /// @inheritdoc IChallenges
    function commitChallenge(bytes32 commitment) external {
        if (committedChallenge[commitment].owner != address(0)) revert CommitmentExists(commitment);
        committedChallenge[commitment] = CommittedChallenge(msg.sender, uint64(block.number), uint64(block.timestamp));
        _lockDeposit(_commitmentLock(commitment), msg.sender, _deposit);
        emit ChallengeCommitted(commitment, msg.sender);
    }

    /// @inheritdoc IChallenges
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
        delete committedChallenge[commitment];
        _endDeposit(_commitmentLock(commitment), _deposit, false);
        // A challenger that committed in time and found the claim fallen or closed has done nothing wrong.
        gameId = _game.openFor(ref, msg.sender, ownRoot);
        emit ChallengeUncommitted(commitment, gameId, false);
    }

    /// @inheritdoc IChallenges
    function expireChallenge(bytes32 commitment) external {
        CommittedChallenge memory committed = committedChallenge[commitment];
        if (committed.owner == address(0)) revert CommitmentNotFound(commitment);
        if (block.timestamp <= committed.time + _revealWindow) {
            revert RevealTooEarly(block.timestamp, committed.time + _revealWindow);
        }
        delete committedChallenge[commitment];
        _endDeposit(_commitmentLock(commitment), _deposit, true);
        emit ChallengeUncommitted(commitment, 0, true);
    }

    function _lockDeposit(bytes32 id, address owner, uint256 amount) private nonReentrant {
        // The vault refuses amounts of zero.
        if (amount != 0) _vault.lock(id, owner, amount);
    }

    function _endDeposit(bytes32 id, uint256 amount, bool burned) private nonReentrant {
        if (amount == 0) return;
        if (burned) _vault.burn(id, amount);
        else _vault.release(id);
    }

    function _commitmentLock(bytes32 commitment) private pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("challenge"), commitment));
    }
}
