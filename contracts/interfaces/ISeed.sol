// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title ISeed: where the seed of a round's draws comes from
/// @notice The round contract calls `draw` exactly once per draw, in the first transaction at or after the draw's
/// time, and stores what it returns. When that may happen (after the commitments, later than the chain's reorg depth)
/// is the caller's business; where the bits come from is the implementation's.
interface ISeed {
    /// @notice The seed of a draw that takes place in this very block.
    /// @dev Whoever can bias the seed gains little: draws are private (signatures on the seed under keys that were
    /// registered before it), so a biased seed only redraws duties that nobody can see.
    /// @return seed 32 bytes that no committed party could have known when it committed
    function draw() external view returns (bytes32 seed);
}
