// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Float32: IEEE 754 binary32 on bit patterns, equal to assay.protocol.arithmetic.f32 on every bit
/// @notice Patterns come in the low 32 bits of a word (what stands above is ignored) and go out with nothing above.
/// Results are rounded once, ties to even, subnormals kept. There is one NaN: any NaN may come in, only that one goes out.
/// No function reverts. Everything is unchecked, since every intermediate value is bounded where it is computed.
library Float32 {
    uint256 internal constant NAN = 0x7fc00000;
    uint256 internal constant INF = 0x7f800000;
    uint256 internal constant SIGN = 0x80000000;

    uint256 private constant _WORD = 0xffffffff;
    uint256 private constant _ABS = 0x7fffffff;
    uint256 private constant _MANTISSA = 0x7fffff;
    uint256 private constant _HIDDEN = 0x800000;

    /// @dev Exponent of the smallest subnormal: every finite value is an integer multiple of 2^-149.
    int256 private constant _LOWEST = -149;

    /// @notice The pattern nearest to (-1)^sign * magnitude * 2^exponent, in one rounding.
    /// @param sign 0 or 1
    /// @param magnitude at most 2^255
    /// @param exponent within +-2^254
    function roundPack(uint256 sign, uint256 magnitude, int256 exponent) internal pure returns (uint256) {
        return magnitude == 0 ? sign << 31 : _round(sign, magnitude, bitLength(magnitude), exponent);
    }

    /// @dev roundPack of a magnitude that is not zero and whose bit length is known.
    function _round(uint256 sign, uint256 magnitude, uint256 bits, int256 exponent) private pure returns (uint256) {
        unchecked {
            int256 top = int256(bits) + exponent; // the value lies in [2^(top-1), 2^top)
            if (top > 128) return sign << 31 | INF;
            if (top < _LOWEST) return sign << 31; // below half of the smallest subnormal
            int256 lsb = top - 24; // exponent of the last bit that the result keeps
            if (lsb < _LOWEST) lsb = _LOWEST;
            if (lsb > exponent) {
                uint256 shift = uint256(lsb - exponent);
                magnitude = (magnitude + (1 << (shift - 1)) - 1 + ((magnitude >> shift) & 1)) >> shift;
            } else {
                magnitude <<= uint256(exponent - lsb);
            }
            // A subnormal has no hidden bit and field 0; adding the fields lets a carry walk into the exponent by itself.
            return sign << 31 | ((uint256(lsb - _LOWEST) << 23) + magnitude);
        }
    }

    /// @notice Position of the highest bit plus one; 0 for 0.
    function bitLength(uint256 x) internal pure returns (uint256 n) {
        unchecked {
            if (x >> 64 != 0) {
                if (x >> 128 != 0) (x, n) = (x >> 128, 128);
                if (x >> 64 != 0) (x, n) = (x >> 64, n + 64);
            }
            if (x >> 32 != 0) (x, n) = (x >> 32, n + 32);
            if (x >> 16 != 0) (x, n) = (x >> 16, n + 16);
            if (x >> 8 != 0) (x, n) = (x >> 8, n + 8);
            if (x >> 4 != 0) (x, n) = (x >> 4, n + 4);
            if (x >> 2 != 0) (x, n) = (x >> 2, n + 2);
            n += x >> 1 != 0 ? 2 : x;
        }
    }

    /// @notice The pattern with every NaN replaced by the one NaN.
    function canonical(uint256 x) internal pure returns (uint256) {
        return x & _ABS > INF ? NAN : x & _WORD;
    }

    /// @notice x + y; a sum of zeros is -0 only if both are -0.
    function add(uint256 x, uint256 y) internal pure returns (uint256) {
        unchecked {
            (x, y) = (x & _WORD, y & _WORD);
            if (x & _ABS < y & _ABS) (x, y) = (y, x); // from here on |x| >= |y|, and a NaN is x
            bool same = (x ^ y) < SIGN;
            uint256 sign = x >> 31;
            (x, y) = (x & _ABS, y & _ABS);
            if (x >= INF) return x > INF || (y == INF && !same) ? NAN : sign << 31 | INF;
            uint256 ex = x >> 23;
            if (ex == 0) {
                // two subnormals: exact, and a carry makes a normal number by itself
                if (same) return sign << 31 | (x + y);
                return x == y ? 0 : sign << 31 | (x - y);
            }
            (uint256 my, uint256 distance) = _finite(y);
            distance = ex - distance;
            // y is below a quarter of the last bit of x, and below half of the finer one under a power of two
            if (distance > 25) return sign << 31 | x;
            uint256 total = ((x & _MANTISSA) | _HIDDEN) << distance;
            uint256 bits = distance + 24;
            if (same) {
                total += my;
                bits += total >> bits;
            } else {
                total -= my;
                if (total == 0) return 0;
                if (distance < 2) bits = bitLength(total);
                else bits = bits - 1 + (total >> (bits - 1));
            }
            return _round(sign, total, bits, int256(ex) - int256(distance) - 150);
        }
    }

    /// @notice x - y.
    function sub(uint256 x, uint256 y) internal pure returns (uint256) {
        return add(x, y ^ SIGN);
    }

    /// @notice x * y; zero times infinity is NaN.
    function mul(uint256 x, uint256 y) internal pure returns (uint256) {
        unchecked {
            uint256 sign = (x ^ y) >> 31 & 1;
            (x, y) = (x & _ABS, y & _ABS);
            if (x >= INF || y >= INF) {
                return x > INF || y > INF || x == 0 || y == 0 ? NAN : sign << 31 | INF;
            }
            (uint256 mx, uint256 ex) = _finite(x);
            (uint256 my, uint256 ey) = _finite(y);
            mx *= my;
            // of two normal numbers the product has 47 or 48 bits
            if (mx >> 46 != 0) return _round(sign, mx, 47 + (mx >> 47), int256(ex + ey) - 300);
            return roundPack(sign, mx, int256(ex + ey) - 300);
        }
    }

    /// @notice x / y; 0/0 and inf/inf are NaN, a finite non-zero over zero is infinite.
    function div(uint256 x, uint256 y) internal pure returns (uint256) {
        unchecked {
            uint256 sign = (x ^ y) >> 31 & 1;
            (x, y) = (x & _ABS, y & _ABS);
            if (x >= INF || y >= INF) {
                if (x > INF || y > INF || x == y) return NAN;
                return x == INF ? sign << 31 | INF : sign << 31;
            }
            if (y == 0) return x == 0 ? NAN : sign << 31 | INF;
            (uint256 mx, uint256 ex) = _finite(x);
            (uint256 my, uint256 ey) = _finite(y);
            // 50 extra bits leave at least 26 in the quotient of the smallest subnormal; the remainder is sticky
            mx <<= 50;
            uint256 quotient = mx / my;
            quotient = quotient << 1 | (quotient * my == mx ? 0 : 1);
            int256 exponent = int256(ex) - int256(ey) - 51;
            // of two normal numbers the quotient with its sticky bit has 51 or 52 bits
            if (quotient >> 50 != 0 && quotient >> 52 == 0) {
                return _round(sign, quotient, 51 + (quotient >> 51), exponent);
            }
            return roundPack(sign, quotient, exponent);
        }
    }

    /// @notice The square root; of -0 it is -0, of anything below it is NaN.
    function sqrt(uint256 x) internal pure returns (uint256) {
        unchecked {
            x &= _WORD;
            if (x & _ABS == 0 || x == INF) return x;
            if (x > INF) return NAN; // NaN of either sign, and everything negative
            (uint256 m, uint256 e) = _finite(x);
            // m in [2^49, 2^51) and an even exponent: the root has 25 or 26 bits, the remainder is sticky
            uint256 shift = 50 - bitLength(m);
            int256 exponent = int256(e) - 150 - int256(shift);
            if (exponent & 1 != 0) (m, exponent) = (m << 1, exponent - 1);
            m <<= shift;
            // The first guess is at most 6 % too large, and Newton's steps stay above the root: three leave less than one.
            uint256 root = (m >> 26) + (1 << 24);
            root = (root + m / root) >> 1;
            root = (root + m / root) >> 1;
            root = (root + m / root) >> 1;
            if (root * root > m) --root;
            root = root << 1 | (root * root == m ? 0 : 1);
            return _round(0, root, 26 + (root >> 26), exponent / 2 - 1);
        }
    }

    /// @notice -x.
    function neg(uint256 x) internal pure returns (uint256) {
        return canonical(x & _ABS > INF ? x : x ^ SIGN);
    }

    /// @notice |x|.
    function abs(uint256 x) internal pure returns (uint256) {
        x &= _ABS;
        return x > INF ? NAN : x;
    }

    /// @notice The smaller; NaN if any is NaN, a zero result is +0.
    function min(uint256 x, uint256 y) internal pure returns (uint256) {
        if (isNaN(x) || isNaN(y)) return NAN;
        (int256 kx, int256 ky) = (_key(x), _key(y));
        return _pattern(kx < ky ? kx : ky);
    }

    /// @notice The larger; NaN if any is NaN, a zero result is +0.
    function max(uint256 x, uint256 y) internal pure returns (uint256) {
        if (isNaN(x) || isNaN(y)) return NAN;
        (int256 kx, int256 ky) = (_key(x), _key(y));
        return _pattern(kx < ky ? ky : kx);
    }

    /// @notice x == y; false with a NaN, true for the two zeros.
    function eq(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && _key(x) == _key(y);
    }

    /// @notice x < y; false with a NaN.
    function lt(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && _key(x) < _key(y);
    }

    /// @notice x <= y; false with a NaN.
    function le(uint256 x, uint256 y) internal pure returns (bool) {
        return !isNaN(x) && !isNaN(y) && _key(x) <= _key(y);
    }

    /// @notice Whether the pattern is a NaN.
    function isNaN(uint256 x) internal pure returns (bool) {
        return x & _ABS > INF;
    }

    /// @notice The nearest integral value, ties to even, the sign of zero kept.
    function rint(uint256 x) internal pure returns (uint256) {
        unchecked {
            (uint256 m, uint256 e) = _finite(x & _ABS);
            if (e >= 150) return canonical(x); // integral, infinite or NaN
            uint256 shift = 150 - e;
            m = (m + (1 << (shift - 1)) - 1 + ((m >> shift) & 1)) >> shift;
            return roundPack(x >> 31 & 1, m, 0);
        }
    }

    /// @notice The largest integral value not above x, the sign of zero kept.
    function floor(uint256 x) internal pure returns (uint256) {
        unchecked {
            (uint256 m, uint256 e) = _finite(x & _ABS);
            if (e >= 150) return canonical(x);
            uint256 sign = x >> 31 & 1;
            uint256 shift = 150 - e;
            if (sign != 0) m += (1 << shift) - 1;
            return roundPack(sign, m >> shift, 0);
        }
    }

    /// @notice x * 2^n, rounded once.
    /// @param n within +-2^253
    function scale2(uint256 x, int256 n) internal pure returns (uint256) {
        unchecked {
            if (x & _ABS >= INF) return canonical(x);
            (uint256 m, uint256 e) = _finite(x & _ABS);
            uint256 bits = m < _HIDDEN ? bitLength(m) : 24;
            return m == 0 ? x & SIGN : _round(x >> 31 & 1, m, bits, int256(e) - 150 + n);
        }
    }

    /// @notice E(x): the e with |x| in [2^(e-1), 2^e); -149 for zero, 129 for NaN and infinity.
    function exponentOf(uint256 x) internal pure returns (int256) {
        unchecked {
            uint256 field = (x & _ABS) >> 23;
            if (field != 0) return int256(field) - 126; // 129 for field 255
            return int256(bitLength(x & _MANTISSA)) + _LOWEST;
        }
    }

    /// @notice The pattern nearest to an integer, in one rounding; 0 gives +0.
    function fromInt(int256 value) internal pure returns (uint256) {
        unchecked {
            return value < 0 ? roundPack(1, uint256(-value), 0) : roundPack(0, uint256(value), 0);
        }
    }

    /// @notice x truncated toward zero; NaN gives 0, out of range saturates.
    /// @param bits width of the signed result, 2 to 128
    function toInt(uint256 x, uint256 bits) internal pure returns (int256) {
        unchecked {
            if (isNaN(x)) return 0;
            bool negative = x & SIGN != 0;
            uint256 limit = 1 << (bits - 1); // 2^(bits-1) below, one less above
            (uint256 m, uint256 e) = _finite(x & _ABS);
            if (e >= 150) m = e - 150 > 128 ? limit : m << (e - 150); // infinity has field 255, one above the largest
            else m >>= 150 - e;
            if (negative) return -int256(m > limit ? limit : m);
            return int256(m >= limit ? limit - 1 : m);
        }
    }

    /// @dev Magnitude m and exponent field e >= 1 of a pattern: its size is m * 2^(e - 150); the sign is ignored.
    function _finite(uint256 x) private pure returns (uint256 m, uint256 e) {
        unchecked {
            e = (x >> 23) & 0xff;
            m = x & _MANTISSA;
            if (e == 0) e = 1;
            else m |= _HIDDEN;
        }
    }

    /// @dev An integer that orders patterns by value, both zeros as 0.
    function _key(uint256 x) private pure returns (int256) {
        unchecked {
            return x & SIGN == 0 ? int256(x & _ABS) : -int256(x & _ABS);
        }
    }

    /// @dev The pattern with this key.
    function _pattern(int256 key) private pure returns (uint256) {
        unchecked {
            return key < 0 ? SIGN | uint256(-key) : uint256(key);
        }
    }
}
