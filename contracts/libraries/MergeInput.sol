// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Digests} from "./Digests.sol";
import {StateRoots} from "./StateRoots.sol";

/// @title MergeInput: X of a merge, for any number of seats
library MergeInput {
    /// @notice Root of X of a merge of any number of updates: parameters, momentum, the update of each seat, and the 0/1 mask
    /// as a list of one f32 tensor. At most 252 seats, which one leaf of the mask and one state hold.
    function root(bytes32 parameters, bytes32 momentum, bytes32[] memory updates, uint256 mask)
        internal
        pure
        returns (bytes32)
    {
        uint256 count = updates.length;
        bytes32[] memory lists = new bytes32[](count + 3);
        (lists[0], lists[1]) = (parameters, momentum);
        bytes memory elements = new bytes(4 * count);
        for (uint256 k = 0; k < count; ++k) {
            lists[2 + k] = updates[k];
            // 1.0 = 0x3f800000, little-endian
            if (mask >> k & 1 == 1) (elements[4 * k + 2], elements[4 * k + 3]) = (0x80, 0x3f);
        }
        bytes32[] memory tensors = new bytes32[](1);
        tensors[0] = StateRoots.smallTensor(abi.encodePacked(uint8(0), uint8(1), uint64(count)), elements);
        lists[count + 2] = StateRoots.listRoot(tensors);
        return Digests.state(lists);
    }
}
