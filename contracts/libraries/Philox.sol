// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Philox: the counter-based generator Philox4x32-10 (Salmon et al., SC 2011), equal to assay.protocol.arithmetic.philox
library Philox {
    uint256 private constant _MASK = 0xffffffff;
    uint256 private constant _M0 = 0xd2511f53;
    uint256 private constant _M1 = 0xcd9e8d57;
    uint256 private constant _W0 = 0x9e3779b9;
    uint256 private constant _W1 = 0xbb67ae85;

    /// @notice Element i of a `random` node as an i32 word: word i mod 4 at counter (i div 4, stream, step low, step high).
    /// @dev Arguments are taken mod 2^32 (i / 4 too), so sign-extended words are welcome.
    function element(uint256 i, uint256 stream, uint256 step0, uint256 step1, uint256 key0, uint256 key1)
        internal
        pure
        returns (uint256)
    {
        unchecked {
            (uint256 c0, uint256 c1, uint256 c2, uint256 c3) =
                ((i >> 2) & _MASK, stream & _MASK, step0 & _MASK, step1 & _MASK);
            (key0, key1) = (key0 & _MASK, key1 & _MASK);
            for (uint256 round = 0; round < 10; ++round) {
                uint256 p0 = c0 * _M0;
                uint256 p1 = c2 * _M1;
                (c0, c1, c2, c3) = ((p1 >> 32) ^ c1 ^ key0, p1 & _MASK, (p0 >> 32) ^ c3 ^ key1, p0 & _MASK);
                (key0, key1) = ((key0 + _W0) & _MASK, (key1 + _W1) & _MASK);
            }
            uint256 word = i & 2 == 0 ? (i & 1 == 0 ? c0 : c1) : (i & 1 == 0 ? c2 : c3);
            return uint256(int256(int32(uint32(word))));
        }
    }
}
