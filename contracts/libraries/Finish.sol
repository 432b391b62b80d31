// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title Finish: the one rounding of an exact integer reduction
library Finish {
    /// @notice The binary32 nearest to s 2^n, ties to even; 0 gives +0. |n| < 2^200.
    function finish(int256 s, int256 n) internal pure returns (uint256) {
        unchecked {
            return s < 0 ? Float32.roundPack(1, uint256(-s), n) : Float32.roundPack(0, uint256(s), n);
        }
    }
}
