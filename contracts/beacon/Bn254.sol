// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Precompiles} from "../libraries/Precompiles.sol";

/// @title Bn254: points of the curve y^2 = x^3 + 3 and one pairing check (EIP-196, EIP-197)
/// @notice Signatures and hashes lie in G1, which is the whole curve: a point on it has no other subgroup to lie in. Keys
/// lie in G2, a small part of the twist, which the pairing precompile checks.
library Bn254 {
    /// @notice A coordinate of the signature is not reduced: it is at least the field's modulus.
    /// @dev The same point with the modulus added would be a second encoding, and so a second randomness.
    /// @custom:remedy Send the signature as the beacon publishes it.
    /// @param x coordinate, as given
    /// @param y coordinate, as given
    error CoordinateTooLarge(uint256 x, uint256 y);

    /// @notice The signature is the point at infinity.
    /// @dev No round is signed by it.
    /// @custom:remedy Send the signature as the beacon publishes it.
    error PointAtInfinity();

    /// @notice The signature is no point of the curve.
    /// @custom:remedy Send the signature as the beacon publishes it: 64 bytes, x before y, not compressed.
    /// @param x coordinate, as given
    /// @param y coordinate, as given
    error NotOnCurve(uint256 x, uint256 y);

    /// @notice The field's modulus.
    uint256 internal constant P = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47;

    address internal constant ADD = address(0x06);
    address internal constant PAIRING = address(0x08);

    /// @dev Gas forwarded, above the prices of EIP-1108 (addition 150, pairing 45,000 and 34,000 a pair).
    uint256 internal constant ADD_GAS = 1_000;
    uint256 internal constant PAIRING_GAS = 200_000;

    // The generator of G2 with its y negated, in the order of EIP-197.
    uint256 private constant NEGATED_G2_X1 = 0x198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2;
    uint256 private constant NEGATED_G2_X0 = 0x1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed;
    uint256 private constant NEGATED_G2_Y1 = 0x275dc4a288d1afb3cbb1ac09187524c7db36395df7be3b99e673b13a075a65ec;
    uint256 private constant NEGATED_G2_Y0 = 0x1d9befcd05a5323e6da4d435f3b617cdb3af83285c2df711ef39c01571827f9d;

    /// @notice Reverts unless (x, y) is a point of the curve in its one encoding.
    function checkSignature(uint256 x, uint256 y) internal pure {
        // Attack: other bytes for the same point, of which the submitter could choose the hash that it likes.
        if (x >= P || y >= P) revert CoordinateTooLarge(x, y);
        if (x == 0 && y == 0) revert PointAtInfinity();
        if (mulmod(y, y, P) != g(x)) revert NotOnCurve(x, y);
    }

    /// @notice Is this a point of G2 other than infinity, in its one encoding? In the order of EIP-197.
    function isKey(uint256[4] memory key) internal view returns (bool) {
        if (key[0] | key[1] | key[2] | key[3] == 0) return false;
        // e(infinity, key) = 1 whatever key is: the precompile answers if and only if key lies in G2.
        bytes memory input = abi.encode(uint256(0), uint256(0), key[0], key[1], key[2], key[3]);
        (bool ok,) = Precompiles.tryCall(PAIRING, PAIRING_GAS, input, 32);
        return ok;
    }

    /// @notice e(signature, -G2) e(hash, key) = 1: did the holder of `key` sign `hash`?
    /// @dev Both points must be on the curve and `key` a key: the precompile cannot reject them.
    function isSigned(uint256 x, uint256 y, uint256 hashX, uint256 hashY, uint256[4] memory key)
        internal
        view
        returns (bool)
    {
        bytes memory input = bytes.concat(
            abi.encode(x, y, NEGATED_G2_X1, NEGATED_G2_X0, NEGATED_G2_Y1, NEGATED_G2_Y0),
            abi.encode(hashX, hashY, key[0], key[1], key[2], key[3])
        );
        return abi.decode(Precompiles.must(PAIRING, PAIRING_GAS, input, 32), (uint256)) == 1;
    }

    /// @notice The sum of two points of the curve.
    function add(uint256 ax, uint256 ay, uint256 bx, uint256 by) internal view returns (uint256 x, uint256 y) {
        return abi.decode(Precompiles.must(ADD, ADD_GAS, abi.encode(ax, ay, bx, by), 64), (uint256, uint256));
    }

    /// @notice x^3 + 3, which is y^2 of a point.
    function g(uint256 x) internal pure returns (uint256) {
        return addmod(mulmod(mulmod(x, x, P), x, P), 3, P);
    }
}
