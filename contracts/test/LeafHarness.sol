// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Opening} from "../interfaces/GameTypes.sol";
import {ILeaf, Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {FloatOrder} from "../libraries/FloatOrder.sol";
import {Openings} from "../libraries/Openings.sol";
import {Quantize} from "../libraries/Quantize.sol";
import {Views} from "../libraries/Views.sol";

/// @title LeafHarness: the leaves' libraries, callable from a test
contract LeafHarness {
    function decode(bytes calldata node) external pure returns (Descriptor.Node memory) {
        return Descriptor.decode(node);
    }

    function parse(bytes calldata node) external pure returns (Descriptor.Head memory) {
        return Descriptor.parse(node);
    }

    function volume(uint256[] memory dims) external pure returns (uint64) {
        return Descriptor.volume(dims);
    }

    function readView(bytes calldata node, uint256 at, uint256[] memory index) external pure returns (Read memory) {
        return Views.read(node, at, index);
    }

    function unravel(uint256[] memory dims, uint256 position) external pure returns (uint256[] memory) {
        return Views.unravel(dims, position);
    }

    function quantize(uint256[] calldata xs, uint256 p, int256 e) external pure returns (int256[] memory qs) {
        qs = new int256[](xs.length);
        for (uint256 i = 0; i < xs.length; ++i) {
            qs[i] = Quantize.quantize(xs[i], p, e);
        }
    }

    function order(uint256[] calldata xs) external pure returns (int256[] memory keys, uint256[] memory patterns) {
        keys = new int256[](xs.length);
        patterns = new uint256[](xs.length);
        for (uint256 i = 0; i < xs.length; ++i) {
            keys[i] = FloatOrder.key(xs[i]);
            patterns[i] = FloatOrder.pattern(keys[i]);
        }
    }

    function word(bytes calldata leaf, uint8 dtype, uint256 index)
        external
        pure
        returns (uint256 raw, uint256 canonical, uint256 stored)
    {
        raw = Elements.raw(leaf, dtype, index);
        return (raw, Elements.canonical(dtype, raw), Elements.store(dtype, raw));
    }

    function load(Read[] memory reads, Opening[] calldata openings, bytes32 prefix, uint256 k)
        external
        view
        returns (uint256[] memory)
    {
        return Openings.load(reads, openings, prefix, k);
    }

    /// @notice What the game does with an element that its heads determine: reads, openings, start.
    function element(
        ILeaf leaf,
        bytes calldata node,
        uint64 index,
        Opening[] calldata openings,
        bytes32 prefix,
        uint256 k
    ) external view returns (bool done, uint256 value, uint64 terms) {
        uint256[] memory heads = Openings.load(leaf.headReads(node, index), openings, prefix, k);
        return leaf.start(node, index, heads);
    }
}
