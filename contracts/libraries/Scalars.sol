// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {StateRoots} from "./StateRoots.sol";

/// @title Scalars: the third list of a training state at the start of a round, computed from the round and the seat alone
/// (docs/protocol.md, section 4). Later states follow from the program.
library Scalars {
    uint8 private constant F32 = 0;
    uint8 private constant I32 = 1;

    /// @notice Everything that the scalars are a function of.
    struct Start {
        bytes32 run;
        uint64 round;
        uint32 seat;
        uint32 stepsPerRound; // H
        uint32 learningRate; // bits of a binary32
        uint32 shards;
        uint32 shardLength;
        bytes32 data; // tensor root
    }

    /// @notice List root: step i32[2], lr f32, key i32[2], seat, round, shard_start, shard_length i32, data.
    function listRoot(Start memory s) internal pure returns (bytes32) {
        uint64 step = s.round * s.stepsPerRound;
        bytes8 key = bytes8(sha256(abi.encodePacked("assay-key-v1", s.run, s.seat, s.round)));
        uint32 shard = uint32((s.seat + s.round) % s.shards);
        bytes32[] memory tensors = new bytes32[](8);
        tensors[0] = _pair(uint32(step), uint32(step >> 32));
        tensors[1] = _one(F32, s.learningRate);
        tensors[2] = _pair(uint32(uint64(key) >> 32), uint32(uint64(key)));
        tensors[3] = _one(I32, s.seat);
        tensors[4] = _one(I32, uint32(s.round));
        tensors[5] = _one(I32, shard * s.shardLength);
        tensors[6] = _one(I32, s.shardLength);
        tensors[7] = s.data;
        return StateRoots.listRoot(tensors);
    }

    function _one(uint8 dtype, uint32 word) private pure returns (bytes32) {
        return StateRoots.smallTensor(abi.encodePacked(dtype, uint8(0)), abi.encodePacked(_little(word)));
    }

    function _pair(uint32 first, uint32 second) private pure returns (bytes32) {
        return StateRoots.smallTensor(
            abi.encodePacked(I32, uint8(1), uint64(2)), abi.encodePacked(_little(first), _little(second))
        );
    }

    /// @dev The four bytes in memory order.
    function _little(uint32 x) private pure returns (uint32) {
        x = (x & 0x00ff00ff) << 8 | (x & 0xff00ff00) >> 8;
        return x << 16 | x >> 16;
    }
}
