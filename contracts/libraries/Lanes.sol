// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Lanes: 64 small counters in two words, added to and compared without a loop
/// @notice Counter i is byte i of the pair, the lowest first. Counters stay below 128.
library Lanes {
    uint256 private constant ONES = type(uint256).max / 255; // a 1 in every byte
    uint256 private constant TOPS = ONES << 7;

    /// @notice Bit i of 32 as byte i of a word.
    function spread(uint256 bits) internal pure returns (uint256 x) {
        x = bits & 0xffffffff;
        x = (x | x << 112) & (type(uint256).max / type(uint128).max * 0xffff);
        x = (x | x << 56) & (type(uint256).max / type(uint64).max * 0xff);
        x = (x | x << 28) & (type(uint256).max / type(uint32).max * 0x0f);
        x = (x | x << 14) & (type(uint256).max / type(uint16).max * 0x03);
        x = (x | x << 7) & ONES;
    }

    /// @notice The inverse of `spread`.
    function gather(uint256 x) internal pure returns (uint256) {
        x = (x | x >> 7) & (type(uint256).max / type(uint16).max * 0x03);
        x = (x | x >> 14) & (type(uint256).max / type(uint32).max * 0x0f);
        x = (x | x >> 28) & (type(uint256).max / type(uint64).max * 0xff);
        x = (x | x >> 56) & (type(uint256).max / type(uint128).max * 0xffff);
        return (x | x >> 112) & 0xffffffff;
    }

    /// @notice Which of 32 counters are at least `least`, from 1 to 128: bit i for counter i.
    function atLeast(uint256 lanes, uint256 least) internal pure returns (uint256) {
        return gather(((lanes + (128 - least) * ONES) & TOPS) >> 7);
    }

    /// @notice How many of 64 bits are set.
    function count(uint64 bits) internal pure returns (uint256) {
        uint256 ones = spread(bits) + spread(bits >> 32);
        // The highest byte of a product with ones is the sum of all bytes.
        unchecked {
            return (ones * ONES) >> 248;
        }
    }
}
