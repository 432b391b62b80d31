// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title Finish: the last rounding of an exact-integer reduction (docs/protocol.md, section 1)
library Finish {
    /// @notice The binary32 pattern nearest to total * 2^n, ties to even, subnormal and overflow as IEEE, in one rounding;
    /// total = 0 gives +0.
    /// @param total any integer: what parts claim need not be what a well-formed node can reach
    /// @param n within +-2^253
    function finish(int256 total, int256 n) internal pure returns (uint256) {
        unchecked {
            return total < 0 ? Float32.roundPack(1, uint256(-total), n) : Float32.roundPack(0, uint256(total), n);
        }
    }
}
