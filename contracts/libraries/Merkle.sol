// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Digests} from "./Digests.sol";

/// @title Merkle: binary trees with promotion, and the prefix tree of fixed depth (docs/protocol.md, section 2)
/// @notice Level 0 is the digests; the last entry of a level with an odd count is promoted unchanged. The shape follows
/// from the count alone, so every path has one exact length: with any other, one digest could be proved at two places.
library Merkle {
    /// @notice A path has not exactly the number of siblings that its place in the tree demands.
    /// @dev With any other length one digest could be proved at two places.
    /// @custom:remedy Give the path whole and no longer.
    /// @param got siblings given
    /// @param wanted siblings that belong there
    error WrongCount(uint256 got, uint256 wanted);

    /// @notice Depth of every prefix tree: 2^20 nodes.
    uint256 internal constant PREFIX_DEPTH = 20;

    /// @notice P_0: the prefix root over no outputs, 2^20 ZERO leaves.
    bytes32 internal constant EMPTY_PREFIX = 0x7a618954dca87e1f844c2e2222e632b1697192ee82989632bbd501114adabe6d;

    /// @notice The level of the root of a tree over `count` digests; 0 for none or one.
    function height(uint256 count) internal pure returns (uint256 level) {
        while (count > (uint256(1) << level)) ++level;
    }

    /// @notice How many entries a level of a tree over `count` digests has.
    function levelCount(uint256 count, uint256 level) internal pure returns (uint256) {
        return (count + (uint256(1) << level) - 1) >> level;
    }

    /// @notice The level and the number of the entries that open entry (level, index) by at most `levels` levels.
    function opening(uint256 count, uint256 level, uint256 index, uint256 levels)
        internal
        pure
        returns (uint256 below, uint256 first, uint256 number)
    {
        below = level > levels ? level - levels : 0;
        uint256 span = level - below;
        uint256 end = (index + 1) << span;
        uint256 all = levelCount(count, below);
        first = index << span;
        number = (end < all ? end : all) - first;
    }

    /// @notice The root of the tree over these digests; ZERO when there are none. At most 64 by every caller.
    function root(bytes32[] calldata digests) internal view returns (bytes32) {
        uint256 count = digests.length;
        if (count == 0) return Digests.ZERO;
        bytes32[] memory level = digests;
        while (count > 1) {
            uint256 pairs = count / 2;
            for (uint256 i = 0; i < pairs; ++i) {
                level[i] = _pair(Digests.NODE, level[2 * i], level[2 * i + 1]);
            }
            if (count % 2 == 1) level[pairs] = level[count - 1];
            count = (count + 1) / 2;
        }
        return level[0];
    }

    /// @notice The root that a path leads to from digest `index` of `count` (index < count).
    function rootFromPath(bytes32 digest, uint256 index, uint256 count, bytes32[] calldata path)
        internal
        view
        returns (bytes32)
    {
        uint256 wanted = pathLength(index, count);
        // Attack: truncated or over-long proofs.
        if (path.length != wanted) revert WrongCount(path.length, wanted);
        uint256 used = 0;
        unchecked {
            while (count > 1) {
                if (index & 1 == 1) digest = _pair(Digests.NODE, path[used++], digest);
                else if (index + 1 < count) digest = _pair(Digests.NODE, digest, path[used++]);
                index >>= 1;
                count = (count + 1) >> 1;
            }
        }
        return digest;
    }

    /// @notice The exact number of siblings of digest `index` of `count`.
    function pathLength(uint256 index, uint256 count) internal pure returns (uint256 length) {
        unchecked {
            while (count > 1) {
                if (index ^ 1 < count) ++length;
                index >>= 1;
                count = (count + 1) >> 1;
            }
        }
    }

    /// @notice The prefix root with `digest` at leaf `index` (index < 2^20).
    function prefixRoot(bytes32 digest, uint256 index, bytes32[] calldata path) internal view returns (bytes32) {
        if (path.length != PREFIX_DEPTH) revert WrongCount(path.length, PREFIX_DEPTH);
        unchecked {
            for (uint256 level = 0; level < PREFIX_DEPTH; ++level) {
                (bytes32 left, bytes32 right) = index & 1 == 0 ? (digest, path[level]) : (path[level], digest);
                digest = _pair(Digests.PREFIX, left, right);
                index >>= 1;
            }
        }
        return digest;
    }

    /// @dev H(tag, left, right), as Digests.node and Digests.prefix compute it. A proof hashes up to 400 pairs: calling the
    /// precompile on memory that is not kept costs a third of what encoding each pair anew does.
    function _pair(uint8 tag, bytes32 left, bytes32 right) private view returns (bytes32 digest) {
        assembly ("memory-safe") {
            let at := mload(0x40)
            mstore8(at, tag)
            mstore(add(at, 1), left)
            mstore(add(at, 33), right)
            if iszero(staticcall(gas(), 2, at, 65, 0, 32)) { revert(0, 0) }
            digest := mload(0)
        }
    }
}
