// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Philox4x32-10, the counter-based generator (Salmon et al., SC 2011)
library Philox {
    uint256 private constant M0 = 0xD2511F53;
    uint256 private constant M1 = 0xCD9E8D57;
    uint256 private constant W0 = 0x9E3779B9;
    uint256 private constant W1 = 0xBB67AE85;
    uint256 private constant MASK = 0xffffffff;

    /// @notice Element of `random`: word (element mod 4) at counter (element div 4 mod 2^32, stream, step low, step high).
    function randomWord(uint64 element, uint32 stream, uint32[2] memory step, uint32[2] memory key)
        internal
        pure
        returns (uint32)
    {
        unchecked {
            (uint256 c0, uint256 c1, uint256 c2, uint256 c3) =
                ((uint256(element) >> 2) & MASK, uint256(stream), uint256(step[0]), uint256(step[1]));
            (uint256 k0, uint256 k1) = (key[0], key[1]);
            for (uint256 round = 0; round < 10; ++round) {
                uint256 p0 = c0 * M0;
                uint256 p1 = c2 * M1;
                (c0, c1, c2, c3) = ((p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK);
                (k0, k1) = ((k0 + W0) & MASK, (k1 + W1) & MASK);
            }
            uint256 lane = element & 3;
            return uint32(lane < 2 ? (lane == 0 ? c0 : c1) : (lane == 2 ? c2 : c3));
        }
    }
}
