// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

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

    /// @notice The transaction has too little gas to reach a verdict; nothing was decided.
    /// @dev A signature must not seem wrong because gas ran out.
    /// @custom:remedy Send it again with more gas.
    /// @param available gas left
    /// @param needed gas that the check takes
    error GasTooLow(uint256 available, uint256 needed);

    /// @notice The chain has not the curve operations of EIP-2537, or prices them beyond what is forwarded.
    /// @dev A precompile that rejects its input burns the gas it was given, so it is never given everything.
    /// @custom:remedy Use a chain with the precompiles of EIP-2537.
    /// @param precompile its address
    error PrecompileFailed(address precompile);

    address internal constant MODEXP = address(0x05);
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
        return _must(G2_ADD, G2_ADD_GAS, bytes.concat(q0, q1), 256);
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

    /// @notice Calls a precompile with bounded gas; says whether it answered with the expected number of bytes.
    /// @dev Running out of gas looks like a refusal from outside, and a caller could be made to believe that a good
    /// signature is bad by sending just too little: this reverts instead of answering.
    function tryPrecompile(address precompile, uint256 gasLimit, bytes memory input, uint256 outputLength)
        internal
        view
        returns (bool ok, bytes memory output)
    {
        // The EVM keeps 1/64 of what is left back from every call (EIP-150); 10,000 covers the call and the copies.
        uint256 needed = gasLimit + gasLimit / 63 + 10_000;
        if (gasleft() < needed) revert GasTooLow(gasleft(), needed);
        (ok, output) = precompile.staticcall{gas: gasLimit}(input);
        // A call to an address without code succeeds and returns nothing.
        ok = ok && output.length == outputLength;
    }

    /// @dev 512 bits modulo p as a 64-byte field element: modexp with exponent 1, result as long as the modulus.
    function _reduce(bytes32 high, bytes32 low) private view returns (bytes memory element) {
        bytes memory input = abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), P_HIGH, P_LOW);
        return _must(MODEXP, MODEXP_GAS, input, 64);
    }

    function _map(bytes memory c0, bytes memory c1) private view returns (bytes memory point) {
        return _must(MAP_FP2_TO_G2, MAP_GAS, bytes.concat(c0, c1), 256);
    }

    function _must(address precompile, uint256 gasLimit, bytes memory input, uint256 outputLength)
        private
        view
        returns (bytes memory output)
    {
        bool ok;
        (ok, output) = tryPrecompile(precompile, gasLimit, input, outputLength);
        if (!ok) revert PrecompileFailed(precompile);
    }
}
