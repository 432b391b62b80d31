// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {DutyKind} from "../interfaces/AuditTypes.sol";
import {StateRoots} from "./StateRoots.sol";
import {Digests} from "./Digests.sol";

/// @title DutyDraws: who is drawn for what, and how attestations and their states are named
library DutyDraws {
    uint256 internal constant PPM = 1_000_000;

    uint8 private constant I32 = 1; // type of keys and accumulators

    /// @notice What a ticket draws for a target, of 2^256.
    /// @dev Attack: register a copy of somebody's anchor, and copy its answers. Ticket and kind are hashed too.
    function draw(bytes32 secret, bytes32 seed, bytes32 target, uint32 ticket, DutyKind kind)
        internal
        pure
        returns (uint256)
    {
        return uint256(keccak256(abi.encode("assay.draw", secret, seed, target, ticket, kind)));
    }

    /// @notice The witness key of a duty: its first eight bytes are the two words of the program's key.
    function key(bytes32 secret, bytes32 seed, bytes32 target, uint32 ticket, DutyKind kind)
        internal
        pure
        returns (bytes32)
    {
        return bytes32(bytes8(keccak256(abi.encode("assay.witness", secret, seed, target, ticket, kind))));
    }

    /// @notice Below what a draw is one, when `onCall` tickets share a rate.
    function threshold(uint256 ppm, uint256 onCall) internal pure returns (uint256) {
        uint256 all = PPM * onCall;
        return ppm >= all ? type(uint256).max : type(uint256).max / all * ppm;
    }

    /// @notice A draw relative to its threshold, of 2^128: duties of all kinds and rates rank alike.
    function rank(uint256 drawn, uint256 below) internal pure returns (uint128) {
        return uint128(drawn / ((below >> 128) + 1));
    }

    /// @notice The name of a result.
    function attestation(uint24 epoch, uint32 ticket, DutyKind kind, bytes32 target) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.attestation", epoch, ticket, kind, target));
    }

    /// @notice The name of a miss, which is fined once.
    function missed(uint24 epoch, uint32 ticket, DutyKind kind, bytes32 target) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.missed", epoch, ticket, kind, target));
    }

    /// @notice State root of three lists, then of a list of a witness key and one of an accumulator.
    function stateOf(bytes32[3] memory lists, bytes32 key_, bytes32 accumulator) internal pure returns (bytes32) {
        bytes32[] memory all = new bytes32[](5);
        (all[0], all[1], all[2]) = (lists[0], lists[1], lists[2]);
        all[3] = _list(2, abi.encodePacked(bytes8(key_)));
        all[4] = _list(8, abi.encodePacked(accumulator));
        return Digests.state(all);
    }

    /// @dev List root of one tensor of i32 words.
    function _list(uint64 words, bytes memory elements) private pure returns (bytes32) {
        bytes32[] memory tensors = new bytes32[](1);
        tensors[0] = StateRoots.smallTensor(abi.encodePacked(I32, uint8(1), words), elements);
        return StateRoots.listRoot(tensors);
    }
}
