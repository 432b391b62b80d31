// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef} from "./IClaims.sol";

/// @title IChallenges: challenges of third parties, who commit to them before anybody can read them
/// @notice A challenge that was read in the pool could be copied, and the bounty taken. So a third party commits to a digest that names it, pays a
/// deposit, and reveals the challenge two blocks later, which opens its game.
interface IChallenges {
    /// @notice The same challenge is committed already.
    /// @dev A deposit stands behind one challenge.
    /// @custom:remedy Reveal it, or commit to another with a fresh salt.
    /// @param commitment the challenge's digest
    error CommitmentExists(bytes32 commitment);

    /// @notice There is no such committed challenge of this account.
    /// @dev The digest names its sender, so that a copied challenge is worth nothing in another account.
    /// @custom:remedy Check claim, end root, salt and account.
    /// @param commitment the challenge's digest
    error CommitmentNotFound(bytes32 commitment);

    /// @notice A committed challenge is revealed two blocks and the reorg depth later at the earliest, and expires only
    /// after its hour.
    /// @dev A reader of the reveal must not be able to commit a copy before it.
    /// @custom:remedy Wait for the block or time named.
    /// @param now_ block number, or chain time in seconds, of the call
    /// @param notBefore block number or chain time, in the same unit, to wait for
    error RevealTooEarly(uint256 now_, uint256 notBefore);

    /// @notice The committed challenge was not revealed within its hour.
    /// @dev Challenges that could be kept ready for ever would cost nothing.
    /// @custom:remedy Its deposit is lost; commit to a new challenge.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error RevealTooLate(uint256 now_, uint256 deadline);

    /// @notice Somebody committed to a challenge without saying against what, and paid the deposit.
    /// @param commitment the challenge's digest
    /// @param challenger who may reveal it
    event ChallengeCommitted(bytes32 indexed commitment, address indexed challenger);

    /// @notice A committed challenge is gone: revealed, or expired and its deposit burned.
    /// @param commitment the challenge's digest
    /// @param gameId game that it opened; 0 if it expired, or if the claim had fallen or closed meanwhile
    /// @param burned whether the deposit burned
    event ChallengeUncommitted(bytes32 indexed commitment, uint256 gameId, bool burned);

    /// @notice Commits to a third party's challenge: commitment = K(claim ref, own end root, salt, sender). Takes the commit deposit.
    function commitChallenge(bytes32 commitment) external;

    /// @notice Opens a game from a committed challenge, at least two blocks and at most an hour after the commitment; returns the deposit.
    /// @return gameId 0 when the claim fell, or its window closed, after the commitment
    function revealChallenge(ClaimRef calldata ref, bytes32 ownRoot, bytes32 salt) external returns (uint256 gameId);

    /// @notice Burns the deposit of a challenge that was not revealed in time. Anyone may call.
    function expireChallenge(bytes32 commitment) external;

    /// @notice Committed challenges: by whom, in which block and at what chain time; zero when there is none.
    function committedChallenge(bytes32 commitment) external view returns (address owner, uint64 block_, uint64 time);
}
