// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Precompiles} from "./Precompiles.sol";

/// @title HashToCurve: messages to points of BLS12-381's G2, by RFC 9380
/// @notice Suite BLS12381G2_XMD:SHA-256_SSWU_RO_ (RFC 9380, section 8.8.2): expand_message_xmd with SHA-256 to 256
/// bytes, four field elements by reduction modulo p, two SSWU maps and one addition. The map precompile of EIP-2537
/// clears the cofactor, which commutes with the addition, so the result is the suite's.
/// Points are EIP-2537 encodings: x.c0, x.c1, y.c0, y.c1, each 64 big-endian bytes of which the first 16 are zero.
library HashToCurve {
    /// @notice A domain tag is longer than the 255 bytes that one length byte can name.
    /// @custom:remedy Report it: in a run of this release it cannot happen.
    /// @param length of the tag, in bytes
    error TagTooLong(uint256 length);

    address internal constant G2_ADD = address(0x0d);
    address internal constant PAIRING = address(0x0f);
    address internal constant MAP_FP2_TO_G2 = address(0x11);

    /// @dev Gas forwarded, about twice the price in EIP-2537 (MAP 23,800; ADD 600) and EIP-7883 (modexp 500). A
    /// precompile that rejects its input burns everything it was given, so it is never given everything.
    uint256 internal constant MODEXP_GAS = 2_000;
    uint256 internal constant G2_ADD_GAS = 2_000;
    uint256 internal constant MAP_GAS = 50_000;

    /// @dev The base field's modulus p = 0x1a0111ea...ffffaaab in 64 bytes.
    bytes32 private constant P_HIGH = 0x000000000000000000000000000000001a0111ea397fe69a4b1ba7b6434bacd7;
    bytes32 private constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;

    /// @notice hash_to_curve(message) under a domain tag.
    /// @param message what is hashed, any length
    /// @param tag the domain separation tag, at most 255 bytes
    /// @return point 256 bytes, in the subgroup, infinity with negligible probability only
    function hashToG2(bytes memory message, bytes memory tag) internal view returns (bytes memory point) {
        bytes32[8] memory uniform = expandMessage(message, tag);
        bytes memory q0 = _map(_reduce(uniform[0], uniform[1]), _reduce(uniform[2], uniform[3]));
        bytes memory q1 = _map(_reduce(uniform[4], uniform[5]), _reduce(uniform[6], uniform[7]));
        return Precompiles.must(G2_ADD, G2_ADD_GAS, bytes.concat(q0, q1), 256);
    }

    /// @notice expand_message_xmd (RFC 9380, section 5.3.1) with SHA-256 and an output of 256 bytes.
    function expandMessage(bytes memory message, bytes memory tag) internal pure returns (bytes32[8] memory uniform) {
        if (tag.length > 255) revert TagTooLong(tag.length);
        bytes memory suffix = abi.encodePacked(tag, uint8(tag.length));
        // Z_pad (one zero block of SHA-256), the message, the output length as two bytes, a zero byte, the tag.
        bytes32 b0 = sha256(abi.encodePacked(bytes32(0), bytes32(0), message, uint16(256), uint8(0), suffix));
        uniform[0] = sha256(abi.encodePacked(b0, uint8(1), suffix));
        for (uint8 i = 1; i < 8; ++i) {
            uniform[i] = sha256(abi.encodePacked(b0 ^ uniform[i - 1], i + 1, suffix));
        }
    }

    /// @dev 512 bits modulo p as a 64-byte field element: modexp with exponent 1, result as long as the modulus.
    function _reduce(bytes32 high, bytes32 low) private view returns (bytes memory element) {
        bytes memory input = abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), P_HIGH, P_LOW);
        return Precompiles.must(Precompiles.MODEXP, MODEXP_GAS, input, 64);
    }

    function _map(bytes memory c0, bytes memory c1) private view returns (bytes memory point) {
        return Precompiles.must(MAP_FP2_TO_G2, MAP_GAS, bytes.concat(c0, c1), 256);
    }
}
