// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title FloatOrder: one integer per binary32 value whose order is the one of `max` and `rank`
/// @notice NaN lies above +infinity and equals NaN; the two zeros are equal. The maximum of keys is therefore the key of
/// `max`: NaN if any is NaN, and a zero comes back as +0.
library FloatOrder {
    /// @notice The key of a pattern in the low 32 bits of a word.
    function key(uint256 word) internal pure returns (int256) {
        uint256 magnitude = word & 0x7fffffff;
        if (magnitude > Float32.INF) return int256(Float32.NAN);
        return word & Float32.SIGN == 0 ? int256(magnitude) : -int256(magnitude);
    }

    /// @notice The pattern with this key.
    function pattern(int256 key_) internal pure returns (uint256) {
        return key_ < 0 ? Float32.SIGN | uint256(-key_) : uint256(key_);
    }
}
