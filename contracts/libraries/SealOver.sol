// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title SealOver: what a root is over, as its seal names it (docs/protocol/round.md, GN-2)
library SealOver {
    /// @notice A merge of updates: K("assay.over", base, counted, acc).
    /// @param base state root that the round starts from
    /// @param counted updates that count, one bit each
    /// @param acc accumulator of all that were committed with weight
    function updates(bytes32 base, uint64 counted, bytes32 acc) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.over", base, counted, acc));
    }

    /// @notice A merge of sums, which begins as the base and takes in each sum that counts: K(over, group, root, weight).
    /// @param over all before it
    /// @param group number of the group plus one
    /// @param root state root of its sum
    /// @param weight updates that count in it
    function withSum(bytes32 over, uint64 group, bytes32 root, uint256 weight) internal pure returns (bytes32) {
        return keccak256(abi.encode(over, group, root, weight));
    }
}
