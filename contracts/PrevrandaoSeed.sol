// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ISeed} from "./interfaces/ISeed.sol";

/// @title PrevrandaoSeed: the seed is the RANDAO mix of the drawing block (EIP-4399)
/// @notice A proposer can withhold its block to reject one mix, at the price of that block's reward: one bit of bias
/// per withheld block, spent on draws it cannot see.
contract PrevrandaoSeed is ISeed {
    /// @inheritdoc ISeed
    function draw() external view returns (bytes32 seed) {
        return bytes32(block.prevrandao);
    }
}
