// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title Elements: tensor elements as words (docs/protocol.md, section 1)
/// @notice A word holds f32 as its 32 bits, i32, i64 and i8 sign-extended to 256 bits, u8, u16 and bool zero-extended.
/// An unknown type code reads as u8, so that every function here is total.
library Elements {
    uint8 internal constant F32 = 0;
    uint8 internal constant I32 = 1;
    uint8 internal constant I64 = 2;
    uint8 internal constant BOOL = 3;
    uint8 internal constant U8 = 4;
    uint8 internal constant I8 = 5;
    uint8 internal constant U16 = 6;

    /// @dev The one NaN.
    uint256 internal constant NAN = Float32.NAN;

    /// @dev Bytes of a full tensor leaf.
    uint256 internal constant LEAF_BYTES = 1024;

    /// @notice Bytes of one element; divides LEAF_BYTES.
    function size(uint256 dtype) internal pure returns (uint256) {
        if (dtype <= I32) return 4;
        if (dtype == I64) return 8;
        return dtype == U16 ? 2 : 1;
    }

    /// @notice The element at an offset of a leaf as it stands there: a NaN keeps its payload, a bool its byte.
    /// @param leaf bytes of the leaf; what lies after its end reads as zero
    /// @param index offset in elements
    function raw(bytes calldata leaf, uint256 dtype, uint256 index) internal pure returns (uint256 word) {
        uint256 width = size(dtype);
        uint256 at = index * width;
        if (at >= leaf.length) return 0;
        uint256 bigEndian = uint256(bytes32(leaf[at:]));
        for (uint256 i = 0; i < width; ++i) {
            word |= ((bigEndian >> (248 - 8 * i)) & 0xff) << (8 * i);
        }
        return extend(dtype, word);
    }

    /// @notice What a node computes from a raw word: one NaN, a bool is 0 or 1.
    function canonical(uint256 dtype, uint256 word) internal pure returns (uint256) {
        if (dtype == F32) return Float32.canonical(word);
        if (dtype == BOOL) return word == 0 ? 0 : 1;
        return word;
    }

    /// @notice The raw word that a computed value has in a leaf: the low bits of an integer, one NaN, a bool 0 or 1.
    function store(uint256 dtype, uint256 word) internal pure returns (uint256) {
        return dtype == BOOL || dtype == F32 ? canonical(dtype, word) : extend(dtype, word);
    }

    /// @notice Sign- or zero-extends the low bits that a type has.
    function extend(uint256 dtype, uint256 word) internal pure returns (uint256) {
        if (dtype == F32) return word & 0xffffffff;
        if (dtype == I32) return uint256(signed32(word));
        if (dtype == I64) return uint256(int256(int64(uint64(word))));
        if (dtype == I8) return uint256(int256(int8(uint8(word))));
        return dtype == U16 ? word & 0xffff : word & 0xff;
    }

    /// @notice The i32 in the low bits of a word.
    function signed32(uint256 word) internal pure returns (int256) {
        return int256(int32(uint32(word)));
    }
}
