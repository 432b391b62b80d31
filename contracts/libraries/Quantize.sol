// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Quantize: the first rounding of an exact-integer reduction (docs/protocol.md, section 1)
library Quantize {
    /// @notice q_p(x, e): rint(x * 2^(p-1-e)), ties to even, clamped to +-2^(p-1) (p = 8: +-127); 0 for a non-finite x.
    /// @param x binary32 pattern in the low 32 bits
    /// @param p precision in bits, 1 to 31
    /// @param e exponent of the row, within +-2^32
    function quantize(uint256 x, uint256 p, int256 e) internal pure returns (int256) {
        uint256 field = (x >> 23) & 0xff;
        uint256 magnitude = x & 0x7fffff;
        if (field == 0xff || (field == 0 && magnitude == 0)) return 0;
        // A finite x is +-magnitude * 2^(field - 150); a subnormal has the exponent of field 1 and no hidden bit.
        if (field == 0) field = 1;
        else magnitude |= 1 << 23;
        int256 shift = int256(field + p) - 151 - e;
        uint256 q = _shift(magnitude, shift);
        uint256 limit = p == 8 ? 127 : 1 << (p - 1);
        if (q > limit) q = limit;
        return x & 0x80000000 == 0 ? int256(q) : -int256(q);
    }

    /// @dev rint(m * 2^shift) for 0 < m < 2^24; at least 2^31 where that is only a lower bound.
    function _shift(uint256 m, int256 shift) private pure returns (uint256 kept) {
        if (shift > 31) return 1 << 31;
        if (shift >= 0) return m << uint256(shift);
        if (shift < -24) return 0; // below one half
        uint256 down = uint256(-shift);
        kept = m >> down;
        uint256 rest = m & ((1 << down) - 1);
        uint256 half = 1 << (down - 1);
        if (rest > half || (rest == half && kept & 1 == 1)) ++kept;
    }
}
