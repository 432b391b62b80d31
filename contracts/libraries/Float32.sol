// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Float32: IEEE 754 binary32 on bit patterns, one rounding per operation, ties to even, subnormals kept
/// @notice A pattern is a word below 2^32. Any NaN may come in, only 0x7fc00000 goes out. No function reverts. protocol/f32.py is the definition.
library Float32 {
    uint256 internal constant NAN = 0x7fc00000;
    uint256 internal constant INF = 0x7f800000;
    uint256 internal constant SIGN = 0x80000000;

    uint256 private constant MAGNITUDE = 0x7fffffff;
    uint256 private constant MANTISSA = 0x007fffff;
    uint256 private constant HIDDEN = 0x00800000;
    int256 private constant LOWEST = -149; // every finite value is an integer multiple of 2^-149
    int256 private constant NONFINITE = 129; // E of a NaN or an infinity

    /// @dev Beyond this distance a summand only says on which side of a boundary the sum lies.
    uint256 private constant FAR = 64;

    function isNaN(uint256 x) internal pure returns (bool) {
        return (x & MAGNITUDE) > INF;
    }

    function isFinite(uint256 x) internal pure returns (bool) {
        return (x & INF) != INF;
    }

    /// @notice The pattern with every NaN replaced by the one NaN.
    function canonical(uint256 x) internal pure returns (uint256) {
        return isNaN(x) ? NAN : x;
    }

    /// @notice Magnitude m and exponent e of a finite pattern of value +-m 2^e.
    function unpack(uint256 x) internal pure returns (uint256 m, int256 e) {
        unchecked {
            uint256 field = (x >> 23) & 0xff;
            if (field == 0) return (x & MANTISSA, LOWEST);
            return ((x & MANTISSA) | HIDDEN, int256(field) - 150);
        }
    }

    /// @notice The binary32 nearest to (-1)^sign m 2^e, in one rounding. `sign` is 0 or 1; |e| < 2^200.
    function roundPack(uint256 sign, uint256 m, int256 e) internal pure returns (uint256) {
        unchecked {
            sign <<= 31;
            if (m == 0) return sign;
            int256 top = int256(Math.log2(m)) + 1 + e; // the value lies in [2^(top-1), 2^top)
            if (top > 128) return sign | INF;
            if (top < LOWEST) return sign; // below half of the smallest subnormal
            int256 lsb = top - 24; // exponent of the last bit kept
            if (lsb < LOWEST) lsb = LOWEST;
            uint256 kept = e >= lsb ? m << uint256(e - lsb) : shiftRoundEven(m, uint256(lsb - e));
            // A subnormal has no hidden bit; adding the fields lets a carry walk into the exponent by itself.
            uint256 bits = (uint256(lsb - LOWEST) << 23) + kept;
            return sign | (bits > INF ? INF : bits);
        }
    }

    /// @notice The integer nearest to m / 2^shift, ties to even; shift >= 1.
    function shiftRoundEven(uint256 m, uint256 shift) internal pure returns (uint256 kept) {
        unchecked {
            kept = m >> shift;
            uint256 rest = m - (kept << shift);
            uint256 half = 1 << (shift - 1);
            if (rest > half || (rest == half && kept & 1 == 1)) ++kept;
        }
    }

    function add(uint256 x, uint256 y) internal pure returns (uint256) {
        if (isNaN(x) || isNaN(y)) return NAN;
        if (!isFinite(x)) return !isFinite(y) && x != y ? NAN : x;
        if (!isFinite(y)) return y;
        return _addFinite(x, y);
    }

    function sub(uint256 x, uint256 y) internal pure returns (uint256) {
        return add(x, y ^ SIGN);
    }

    function mul(uint256 x, uint256 y) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x) || isNaN(y)) return NAN;
            uint256 sign = (x ^ y) >> 31;
            if (!isFinite(x) || !isFinite(y)) {
                return x & MAGNITUDE == 0 || y & MAGNITUDE == 0 ? NAN : (sign << 31) | INF;
            }
            (uint256 mx, int256 ex) = unpack(x);
            (uint256 my, int256 ey) = unpack(y);
            return roundPack(sign, mx * my, ex + ey);
        }
    }

    function div(uint256 x, uint256 y) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x) || isNaN(y)) return NAN;
            uint256 sign = (x ^ y) >> 31;
            if (!isFinite(x)) return isFinite(y) ? (sign << 31) | INF : NAN;
            if (!isFinite(y)) return sign << 31;
            (uint256 mx, int256 ex) = unpack(x);
            (uint256 my, int256 ey) = unpack(y);
            if (my == 0) return mx == 0 ? NAN : (sign << 31) | INF;
            // 50 extra bits leave at least 26 in the quotient even of the smallest subnormal; the remainder is sticky.
            mx <<= 50;
            uint256 quotient = (mx / my) << 1;
            if (mx % my != 0) ++quotient;
            return roundPack(sign, quotient, ex - ey - 51);
        }
    }

    function sqrt(uint256 x) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x)) return NAN;
            if (x & MAGNITUDE == 0 || x == INF) return x;
            if (x >> 31 == 1) return NAN;
            (uint256 m, int256 e) = unpack(x);
            if (e & 1 == 1) (m, e) = (m << 1, e - 1);
            m <<= 52;
            uint256 root = Math.sqrt(m);
            return roundPack(0, (root << 1) | (root * root == m ? 0 : 1), e / 2 - 27);
        }
    }

    function neg(uint256 x) internal pure returns (uint256) {
        return isNaN(x) ? NAN : x ^ SIGN;
    }

    function abs(uint256 x) internal pure returns (uint256) {
        return isNaN(x) ? NAN : x & MAGNITUDE;
    }

    /// @notice The smaller; NaN if any is NaN, a zero result is +0.
    function min(uint256 x, uint256 y) internal pure returns (uint256) {
        if (isNaN(x) || isNaN(y)) return NAN;
        uint256 result = key(x) < key(y) ? x : y;
        return result == SIGN ? 0 : result;
    }

    /// @notice The larger; NaN if any is NaN, a zero result is +0.
    function max(uint256 x, uint256 y) internal pure returns (uint256) {
        if (isNaN(x) || isNaN(y)) return NAN;
        uint256 result = key(x) < key(y) ? y : x;
        return result == SIGN ? 0 : result;
    }

    function eq(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && key(x) == key(y);
    }

    function lt(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && key(x) < key(y);
    }

    function le(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && key(x) <= key(y);
    }

    /// @notice An integer that orders patterns other than NaN by value, both zeros as 0.
    function key(uint256 x) internal pure returns (int256) {
        unchecked {
            return x >> 31 == 1 ? -int256(x & MAGNITUDE) : int256(x);
        }
    }

    /// @notice The nearest integral value, ties to even, the sign of zero kept.
    function rint(uint256 x) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x)) return NAN;
            if (!isFinite(x)) return x;
            (uint256 m, int256 e) = unpack(x);
            if (e >= 0) return x;
            return roundPack(x >> 31, shiftRoundEven(m, uint256(-e)), 0);
        }
    }

    /// @notice The largest integral value not above x, the sign of zero kept.
    function floor(uint256 x) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x)) return NAN;
            if (!isFinite(x)) return x;
            (uint256 m, int256 e) = unpack(x);
            if (e >= 0) return x;
            uint256 whole = m >> uint256(-e);
            if (x >> 31 == 1 && whole << uint256(-e) != m) ++whole;
            return roundPack(x >> 31, whole, 0);
        }
    }

    /// @notice x 2^n, rounded once; |n| < 2^199.
    function scale2(uint256 x, int256 n) internal pure returns (uint256) {
        unchecked {
            if (isNaN(x)) return NAN;
            if (!isFinite(x)) return x;
            (uint256 m, int256 e) = unpack(x);
            return roundPack(x >> 31, m, e + n);
        }
    }

    /// @notice E(x): the e with |x| in [2^(e-1), 2^e); -149 for zero, 129 for NaN and infinity.
    function exponent(uint256 x) internal pure returns (int256) {
        unchecked {
            if (!isFinite(x)) return NONFINITE;
            (uint256 m, int256 e) = unpack(x);
            return m == 0 ? LOWEST : int256(Math.log2(m)) + 1 + e;
        }
    }

    /// @notice The binary32 nearest to an integer; 0 gives +0.
    function fromInt(int256 value) internal pure returns (uint256) {
        unchecked {
            return value < 0 ? roundPack(1, uint256(-value), 0) : roundPack(0, uint256(value), 0);
        }
    }

    /// @notice x truncated toward zero to a signed integer of `bits` bits; NaN gives 0, out of range saturates.
    function toInt(uint256 x, uint256 bits) internal pure returns (int256) {
        unchecked {
            if (isNaN(x)) return 0;
            int256 limit = int256(1 << (bits - 1));
            bool negative = x >> 31 == 1;
            (uint256 m, int256 e) = unpack(x);
            // At e >= bits - 23 the magnitude is beyond the range already (infinity among them).
            if (e >= int256(bits) - 23) return negative ? -limit : limit - 1;
            uint256 whole = e >= 0 ? m << uint256(e) : m >> uint256(-e);
            if (negative) return whole > uint256(limit) ? -limit : -int256(whole);
            return whole >= uint256(limit) ? limit - 1 : int256(whole);
        }
    }

    function _addFinite(uint256 x, uint256 y) private pure returns (uint256) {
        unchecked {
            (uint256 mx, int256 ex) = unpack(x);
            (uint256 my, int256 ey) = unpack(y);
            if (ex < ey) (x, mx, ex, y, my, ey) = (y, my, ey, x, mx, ex);
            uint256 distance = uint256(ex - ey);
            if (distance > FAR) {
                // x has its hidden bit; y is far below half of x's last bit and not zero only in its sign.
                (distance, ey) = (FAR, ex - int256(FAR));
                if (my != 0) my = 1;
            }
            int256 total = int256(mx << distance);
            if (x >> 31 == 1) total = -total;
            total = y >> 31 == 1 ? total - int256(my) : total + int256(my);
            if (total == 0) return mx == 0 && my == 0 ? x & y & SIGN : 0;
            return total < 0 ? roundPack(1, uint256(-total), ey) : roundPack(0, uint256(total), ey);
        }
    }
}
