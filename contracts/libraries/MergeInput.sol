// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Digests} from "./Digests.sol";
import {StateRoots} from "./StateRoots.sol";

/// @title MergeInput: X of a merge, for any number of seats or groups
library MergeInput {
    /// @notice Root of X of a merge of updates: parameters, momentum, the update of each seat, and the 0/1 mask as a list of
    /// one f32 tensor. At most 252 seats, which one leaf of the mask and one state hold.
    function root(bytes32 parameters, bytes32 momentum, bytes32[] memory updates, uint256 mask)
        internal
        pure
        returns (bytes32)
    {
        uint256[] memory weights = new uint256[](updates.length);
        for (uint256 k = 0; k < updates.length; ++k) {
            weights[k] = mask >> k & 1;
        }
        return weighed(parameters, momentum, updates, weights);
    }

    /// @notice Root of X of a merge of partial sums: parameters, momentum, the sum of each group, and the weights as a list of
    /// one f32 tensor. A weight is below 2^16.
    function weighed(bytes32 parameters, bytes32 momentum, bytes32[] memory sums, uint256[] memory weights)
        internal
        pure
        returns (bytes32)
    {
        uint256 count = sums.length;
        bytes32[] memory lists = new bytes32[](count + 3);
        (lists[0], lists[1]) = (parameters, momentum);
        bytes memory elements = new bytes(4 * count);
        for (uint256 k = 0; k < count; ++k) {
            lists[2 + k] = sums[k];
            // The low byte of the bits is zero below 2^16; elements are little-endian.
            uint256 bits = _toFloat(weights[k]);
            (elements[4 * k + 1], elements[4 * k + 2]) = (bytes1(uint8(bits >> 8)), bytes1(uint8(bits >> 16)));
            elements[4 * k + 3] = bytes1(uint8(bits >> 24));
        }
        bytes32[] memory tensors = new bytes32[](1);
        tensors[0] = StateRoots.smallTensor(abi.encodePacked(uint8(0), uint8(1), uint64(count)), elements);
        lists[count + 2] = StateRoots.listRoot(tensors);
        return Digests.state(lists);
    }

    /// @dev The binary32 of a number below 2^16.
    function _toFloat(uint256 number) private pure returns (uint256) {
        if (number == 0) return 0;
        uint256 exponent = Math.log2(number);
        return (127 + exponent) << 23 | (number << (23 - exponent) & 0x7fffff);
    }
}
