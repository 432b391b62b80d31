// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef} from "./IClaims.sol";
import {IGame} from "./IGame.sol";

/// @title IRoundGame: the dispute game of the second round, which third parties reach through IChallenges
interface IRoundGame is IGame {
    /// @notice Only the contract of challenges opens games for others.
    /// @dev Whoever could would open a game in which another's bond is at stake.
    /// @custom:remedy None: people do not make this call. Commit to a challenge, or challenge yourself.
    /// @param caller who called
    error NotChallenges(address caller);

    /// @notice The run was cancelled or wound down: no game opens any more.
    /// @dev Its locks are released, and what has left could still be convicted.
    /// @custom:remedy None: take back what is staked.
    error RunStopped();

    /// @notice Challenges only: opens a game for a third party that had committed to it.
    /// @param ownRoot the root that it named in place of the claim's
    /// @return gameId 0 when the claim fell, or its window closed, after the commitment
    function openFor(ClaimRef calldata ref, address challenger, bytes32 ownRoot) external returns (uint256 gameId);
}
