// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Draws} from "../libraries/Draws.sol";
import {HashToCurve} from "../libraries/HashToCurve.sol";

/// @title DrawsHarness: the draw libraries' internal functions, callable from a test
contract DrawsHarness {
    function message(bytes32 run, uint64 round, Draws.Purpose purpose, bytes32 seed)
        external
        view
        returns (bytes memory)
    {
        return Draws.message(run, round, purpose, seed);
    }

    function verify(bytes calldata pk, bytes calldata y, bytes calldata message_) external view returns (bool) {
        return Draws.verify(pk, y, message_);
    }

    function verifyPossession(bytes calldata pk, bytes calldata proof, address owner) external view returns (bool) {
        return Draws.verifyPossession(pk, proof, owner);
    }

    function isDrawn(bytes calldata y, bytes32 claimId, uint256 j, uint32 ppm, uint256 stake, uint256 total)
        external
        pure
        returns (bool)
    {
        return Draws.isDrawn(y, claimId, j, Draws.threshold(ppm, stake, total));
    }

    function ticket(bytes calldata y, bytes32 claimId, uint256 j) external pure returns (bytes32) {
        return Draws.ticket(y, claimId, j);
    }

    function threshold(uint32 ppm, uint256 stake, uint256 total) external pure returns (uint256) {
        return Draws.threshold(ppm, stake, total);
    }

    function expandMessage(bytes calldata message_, bytes calldata tag) external pure returns (bytes32[8] memory) {
        return HashToCurve.expandMessage(message_, tag);
    }

    function hashToG2(bytes calldata message_, bytes calldata tag) external view returns (bytes memory) {
        return HashToCurve.hashToG2(message_, tag);
    }

    /// @notice Many messages in one call, points concatenated: a test compares hundreds without hundreds of requests.
    function hashManyToG2(bytes[] calldata messages, bytes calldata tag) external view returns (bytes memory points) {
        for (uint256 i = 0; i < messages.length; ++i) {
            points = bytes.concat(points, HashToCurve.hashToG2(messages[i], tag));
        }
    }
}
