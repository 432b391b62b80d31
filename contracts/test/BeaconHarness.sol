// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Bn254} from "../beacon/Bn254.sol";
import {HashToG1} from "../beacon/HashToG1.sol";

/// @title BeaconHarness: the beacon libraries' internal functions, callable from a test
contract BeaconHarness {
    function expandMessage(bytes calldata message, bytes calldata tag)
        external
        pure
        returns (bytes32 w0, bytes32 w1, bytes32 w2)
    {
        return HashToG1.expandMessage(message, tag);
    }

    function reduce(uint256 high, uint256 low) external pure returns (uint256 u) {
        return HashToG1.reduce(high, low);
    }

    function hashToPoint(bytes calldata message, bytes calldata tag) external view returns (uint256 x, uint256 y) {
        return HashToG1.hashToPoint(message, tag);
    }

    /// @dev Many at once, x and y in turn: a test compares hundreds without hundreds of calls.
    function mapMany(uint256[] calldata elements) external view returns (uint256[] memory points) {
        points = new uint256[](2 * elements.length);
        for (uint256 i = 0; i < elements.length; ++i) {
            (points[2 * i], points[2 * i + 1]) = HashToG1.mapToPoint(elements[i]);
        }
    }

    function hashMany(bytes[] calldata messages, bytes calldata tag) external view returns (uint256[] memory points) {
        points = new uint256[](2 * messages.length);
        for (uint256 i = 0; i < messages.length; ++i) {
            (points[2 * i], points[2 * i + 1]) = HashToG1.hashToPoint(messages[i], tag);
        }
    }

    function add(uint256 ax, uint256 ay, uint256 bx, uint256 by) external view returns (uint256 x, uint256 y) {
        return Bn254.add(ax, ay, bx, by);
    }

    function isKey(uint256[4] calldata key) external view returns (bool) {
        return Bn254.isKey(key);
    }

    function isSigned(uint256 x, uint256 y, uint256 hashX, uint256 hashY, uint256[4] calldata key)
        external
        view
        returns (bool)
    {
        return Bn254.isSigned(x, y, hashX, hashY, key);
    }
}
