// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Precompiles} from "../libraries/Precompiles.sol";
import {Bn254} from "./Bn254.sol";

/// @title HashToG1: messages to points of BN254's G1, by RFC 9380
/// @notice expand_message_xmd with Keccak-256 to 96 bytes, two field elements by reduction modulo p, two Shallue-van de
/// Woestijne maps and one addition. The whole curve is G1: there is no cofactor to clear.
library HashToG1 {
    /// @notice A domain tag is longer than the 255 bytes that one length byte can name.
    /// @custom:remedy Report it: in a run of this release it cannot happen.
    /// @param length of the tag, in bytes
    error TagTooLong(uint256 length);

    uint256 private constant P = Bn254.P;

    /// @dev Gas forwarded, above what EIP-7883 asks for 32-byte numbers (4,048; EIP-2565 asks 1,349).
    uint256 internal constant MODEXP_GAS = 10_000;

    /// @dev 2^256 modulo p.
    uint256 private constant WORD = 0x0e0a77c19a07df2f666ea36f7879462c0a78eb28f5c70b3dd35d438dc58f0d9d;

    // Constants of the map for Z = 1 and g(x) = x^3 + 3 (RFC 9380, section 6.6.1).
    /// @dev g(Z)
    uint256 private constant C1 = 4;
    /// @dev -Z / 2
    uint256 private constant C2 = 0x183227397098d014dc2822db40c0ac2ecbc0b548b438e5469e10460b6c3e7ea3;
    /// @dev sqrt(-g(Z) * 3 Z^2), the even root
    uint256 private constant C3 = 0x16789af3a83522eb353c98fc6b36d713d5d8d1cc5dffffffa;
    /// @dev -4 g(Z) / (3 Z^2)
    uint256 private constant C4 = 0x10216f7ba065e00de81ac1e7808072c9dd2b2385cd7b438469602eb24829a9bd;

    /// @notice hash_to_curve(message) under a domain tag.
    /// @param message what is hashed, any length
    /// @param tag the domain separation tag, at most 255 bytes
    function hashToPoint(bytes memory message, bytes memory tag) internal view returns (uint256 x, uint256 y) {
        (bytes32 w0, bytes32 w1, bytes32 w2) = expandMessage(message, tag);
        // Two elements of 48 bytes lie in three words of 32.
        (uint256 ax, uint256 ay) = mapToPoint(reduce(uint256(w0) >> 128, uint256(w0) << 128 | uint256(w1) >> 128));
        (uint256 bx, uint256 by) = mapToPoint(reduce(uint128(uint256(w1)), uint256(w2)));
        return Bn254.add(ax, ay, bx, by);
    }

    /// @notice expand_message_xmd (RFC 9380, section 5.3.1) with Keccak-256 and an output of 96 bytes.
    function expandMessage(bytes memory message, bytes memory tag)
        internal
        pure
        returns (bytes32 w0, bytes32 w1, bytes32 w2)
    {
        if (tag.length > 255) revert TagTooLong(tag.length);
        bytes memory suffix = abi.encodePacked(tag, uint8(tag.length));
        // Z_pad (one zero block of Keccak-256, 136 bytes), the message, the output's length as two bytes, a zero byte, the tag.
        bytes32 b0 = keccak256(abi.encodePacked(new bytes(136), message, uint16(96), uint8(0), suffix));
        w0 = keccak256(abi.encodePacked(b0, uint8(1), suffix));
        w1 = keccak256(abi.encodePacked(b0 ^ w0, uint8(2), suffix));
        w2 = keccak256(abi.encodePacked(b0 ^ w1, uint8(3), suffix));
    }

    /// @notice (high 2^256 + low) modulo p.
    function reduce(uint256 high, uint256 low) internal pure returns (uint256 u) {
        return addmod(mulmod(high, WORD, P), low, P);
    }

    /// @notice The Shallue-van de Woestijne map of a field element, in the order of RFC 9380, section F.1.
    /// @dev One of the three candidates is always on the curve. 1/2 and -1/2 have no inverse to take and use 0, which the
    /// power gives.
    function mapToPoint(uint256 u) internal view returns (uint256 x, uint256 y) {
        uint256 tv1 = mulmod(mulmod(u, u, P), C1, P);
        uint256 tv2 = addmod(1, tv1, P);
        tv1 = addmod(1, P - tv1, P);
        uint256 tv3 = _power(mulmod(tv1, tv2, P), P - 2);
        uint256 tv4 = mulmod(mulmod(mulmod(u, tv1, P), tv3, P), C3, P);
        bool found;
        x = addmod(C2, P - tv4, P);
        (found, y) = _root(x);
        if (!found) {
            x = addmod(C2, tv4, P);
            (found, y) = _root(x);
        }
        if (!found) {
            uint256 tv5 = mulmod(mulmod(tv2, tv2, P), tv3, P);
            x = addmod(mulmod(mulmod(tv5, tv5, P), C4, P), 1, P);
            (, y) = _root(x);
        }
        if (y % 2 != u % 2) y = P - y;
    }

    /// @dev The root of g(x) if it has one: p is 3 modulo 4.
    function _root(uint256 x) private view returns (bool found, uint256 y) {
        uint256 square = Bn254.g(x);
        y = _power(square, (P + 1) / 4);
        found = mulmod(y, y, P) == square;
    }

    function _power(uint256 base, uint256 exponent) private view returns (uint256) {
        bytes memory input = abi.encode(uint256(32), uint256(32), uint256(32), base, exponent, P);
        return abi.decode(Precompiles.must(Precompiles.MODEXP, MODEXP_GAS, input, 32), (uint256));
    }
}
