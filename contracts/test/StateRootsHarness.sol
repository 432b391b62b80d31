// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {MergeInput} from "../libraries/MergeInput.sol";
import {Scalars} from "../libraries/Scalars.sol";
import {StateRoots} from "../libraries/StateRoots.sol";

/// @title StateRootsHarness: the ledger's libraries, callable
contract StateRootsHarness {
    function scalars(Scalars.Start calldata start) external pure returns (bytes32) {
        return Scalars.listRoot(start);
    }

    function weighed(bytes32 parameters, bytes32 momentum, bytes32[] calldata sums, uint256[] calldata weights)
        external
        pure
        returns (bytes32)
    {
        return MergeInput.weighed(parameters, momentum, sums, weights);
    }

    function tree(bytes32[] calldata digests) external pure returns (bytes32) {
        return StateRoots.treeRoot(digests);
    }
}
