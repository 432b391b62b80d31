// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "./Descriptor.sol";

/// @title Views: where an operand reads, for one multi-index (docs/protocol.md, section 3)
/// @notice Outside the bounds it is the fill; an address that no u64 holds, which only an ill-formed program has, is a
/// fill of 0.
library Views {
    uint256 private constant PREFIX = 13; // node u32, rank u8, offset i64
    uint256 private constant DIM = 24; // stride i64, lo i64, hi i64
    uint256 private constant FILL = 8;

    /// @notice What an operand reads at an index.
    /// @param node descriptor
    /// @param at cursor of an operand whose view has the rank of the index (Descriptor has checked it)
    function read(bytes calldata node, uint256 at, uint256[] memory index) internal pure returns (Read memory result) {
        result.node = uint32(Descriptor.take(node, at, 4));
        int256 address_ = _signed(Descriptor.take(node, at + 5, 8));
        bool inside = true;
        at += PREFIX;
        unchecked {
            // 16 products of a 64-bit stride and a 64-bit index stay far inside 256 bits.
            for (uint256 d = 0; d < index.length; ++d) {
                uint256 dim = Descriptor.take(node, at, DIM);
                int256 i = int256(index[d]);
                address_ += i * _signed(dim >> 128);
                if (i < _signed(dim >> 64) || i >= _signed(dim)) inside = false;
                at += DIM;
            }
        }
        if (!inside) {
            result.isFill = true;
            result.fill = Descriptor.take(node, at, FILL);
        } else if (address_ < 0 || address_ > int256(uint256(type(uint64).max))) {
            result.isFill = true;
        } else {
            result.address_ = uint64(uint256(address_));
        }
    }

    /// @notice The multi-index of a row-major position; 0 along a dimension of size 0.
    function unravel(uint256[] memory dims, uint256 position) internal pure returns (uint256[] memory index) {
        index = new uint256[](dims.length);
        for (uint256 d = dims.length; d > 0; --d) {
            uint256 size = dims[d - 1];
            if (size == 0) continue;
            index[d - 1] = position % size;
            position /= size;
        }
    }

    /// @notice One index after another.
    function join(uint256[] memory a, uint256[] memory b) internal pure returns (uint256[] memory index) {
        index = new uint256[](a.length + b.length);
        for (uint256 i = 0; i < a.length; ++i) {
            index[i] = a[i];
        }
        for (uint256 i = 0; i < b.length; ++i) {
            index[a.length + i] = b[i];
        }
    }

    /// @dev The i64 in the low bits.
    function _signed(uint256 word) private pure returns (int256) {
        return int256(int64(uint64(word)));
    }
}
