// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameBounds} from "../libraries/GameBounds.sol";
import {Merkle} from "../libraries/Merkle.sol";
import {Programs} from "../libraries/Programs.sol";

/// @title GameHarness: the game's libraries, callable from a test
contract GameHarness {
    Programs.Info private _info;

    function mostReplies(uint256 arity, uint256 levels) external pure returns (uint256) {
        return GameBounds.mostReplies(arity, levels);
    }

    function longestGame(
        GameBounds.Shape calldata shape,
        uint256 arity,
        uint256 levels,
        GameBounds.Clock calldata clock
    ) external pure returns (uint256) {
        return GameBounds.longestGame(shape, arity, levels, clock);
    }

    function parseHeader(bytes calldata header) external pure returns (Programs.Info memory) {
        return Programs.parse(header, bytes32(uint256(1)));
    }

    function outputNode(bytes calldata header, uint256 list, uint256 index) external returns (uint256) {
        _info = Programs.parse(header, bytes32(uint256(1)));
        return Programs.outputNode(_info, list, index);
    }

    function root(bytes32[] calldata digests) external view returns (bytes32) {
        return Merkle.root(digests);
    }

    function rootFromPath(bytes32 digest, uint256 index, uint256 count, bytes32[] calldata path)
        external
        view
        returns (bytes32)
    {
        return Merkle.rootFromPath(digest, index, count, path);
    }

    function opening(uint256 count, uint256 level, uint256 index, uint256 levels)
        external
        pure
        returns (uint256, uint256, uint256)
    {
        return Merkle.opening(count, level, index, levels);
    }

    function prefixRoot(bytes32 digest, uint256 index, bytes32[] calldata path) external view returns (bytes32) {
        return Merkle.prefixRoot(digest, index, path);
    }

    function emptyPrefix() external pure returns (bytes32) {
        return Merkle.EMPTY_PREFIX;
    }
}
