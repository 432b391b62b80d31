// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Digests} from "./Digests.sol";

/// @title StateRoots: the roots that contracts build themselves (docs/protocol.md, sections 2 and 4)
library StateRoots {
    /// @notice Root of the tree over digests that the contract holds in memory; the array is used up.
    function treeRoot(bytes32[] memory level) internal pure returns (bytes32) {
        uint256 count = level.length;
        if (count == 0) return Digests.ZERO;
        while (count > 1) {
            uint256 pairs = count / 2;
            for (uint256 i = 0; i < pairs; ++i) {
                level[i] = Digests.node(level[2 * i], level[2 * i + 1]);
            }
            if (count % 2 == 1) level[pairs] = level[count - 1];
            count = (count + 1) / 2;
        }
        return level[0];
    }

    /// @notice Root of a list of tensors from their roots; the array is used up.
    function listRoot(bytes32[] memory tensors) internal pure returns (bytes32) {
        return Digests.list(uint32(tensors.length), treeRoot(tensors));
    }

    /// @notice Root of a tensor of at most one leaf (1,024 bytes of elements, little-endian).
    /// @param header dtype u8, rank u8, dims u64[rank]
    function smallTensor(bytes memory header, bytes memory elements) internal pure returns (bytes32) {
        return Digests.tensor(header, sha256(abi.encodePacked(Digests.LEAF, elements)));
    }

    /// @notice Root of a state of one list: the result of an update.
    function state1(bytes32 a) internal pure returns (bytes32) {
        bytes32[] memory lists = new bytes32[](1);
        lists[0] = a;
        return Digests.state(lists);
    }

    /// @notice Root of a state of any number of lists: the input of a partial sum.
    function state(bytes32[] memory lists) internal pure returns (bytes32) {
        return Digests.state(lists);
    }

    /// @notice Root of a state of two lists: an outer state, the input of an update.
    function state2(bytes32 a, bytes32 b) internal pure returns (bytes32) {
        bytes32[] memory lists = new bytes32[](2);
        (lists[0], lists[1]) = (a, b);
        return Digests.state(lists);
    }

    /// @notice Root of a training state: parameters, optimizer, scalars.
    function state3(bytes32 a, bytes32 b, bytes32 c) internal pure returns (bytes32) {
        bytes32[] memory lists = new bytes32[](3);
        (lists[0], lists[1], lists[2]) = (a, b, c);
        return Digests.state(lists);
    }
}
