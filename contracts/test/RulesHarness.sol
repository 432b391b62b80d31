// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Opening} from "../interfaces/GameTypes.sol";
import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Openings} from "../libraries/Openings.sol";
import {Programs} from "../libraries/Programs.sol";

/// @title RulesHarness: what the contract accepts, many at a time, for tests that compare it with other implementations
contract RulesHarness {
    /// @notice Whether descriptors mean something, and the head that the game reads of them all the same.
    /// @return valid rules MAL
    /// @return heads family, type, rank, number of elements (EL-16), terms (0 unless valid)
    function descriptors(bytes[] calldata nodes)
        external
        view
        returns (bool[] memory valid, uint256[5][] memory heads)
    {
        valid = new bool[](nodes.length);
        heads = new uint256[5][](nodes.length);
        for (uint256 i = 0; i < nodes.length; ++i) {
            (valid[i], heads[i]) = this.descriptor(nodes[i]);
        }
    }

    /// @notice One of them; a call of its own, so that its memory is free again.
    function descriptor(bytes calldata data) external pure returns (bool valid, uint256[5] memory head) {
        Descriptor.Head memory h = Descriptor.parse(data);
        Descriptor.Node memory node = Descriptor.decode(data);
        uint256 terms = node.valid ? node.terms : 0;
        return (node.valid, [uint256(h.family), h.dtype, h.dims.length, Descriptor.volume(h.dims), terms]);
    }

    /// @notice The number of nodes of headers; 0 for one that is malformed (rules HDR).
    function headers(bytes[] calldata all) external view returns (uint256[] memory nodes) {
        nodes = new uint256[](all.length);
        for (uint256 i = 0; i < all.length; ++i) {
            nodes[i] = this.header(all[i]);
        }
    }

    function header(bytes calldata data) external pure returns (uint256) {
        return Programs.parse(data, bytes32(0)).nodes;
    }

    /// @notice The word of each read, or what its opening is refused with (rules OPEN).
    function openings(Read[] calldata reads, Opening[] calldata opened, bytes32[] calldata roots, uint256 k)
        external
        view
        returns (bool[] memory loaded, bytes[] memory results)
    {
        loaded = new bool[](reads.length);
        results = new bytes[](reads.length);
        for (uint256 i = 0; i < reads.length; ++i) {
            bytes memory call = abi.encodeCall(this.opening, (reads[i], opened[i], roots[i], k));
            (loaded[i], results[i]) = address(this).staticcall(call);
        }
    }

    function opening(Read memory read, Opening calldata opened, bytes32 root, uint256 k)
        external
        view
        returns (uint256)
    {
        return Openings.loadOne(read, opened, root, k);
    }

    /// @notice As openings of several reads are loaded by the game, their number checked (OPEN-1).
    function load(Read[] memory reads, Opening[] calldata opened, bytes32 root, uint256 k)
        external
        view
        returns (uint256[] memory)
    {
        return Openings.load(reads, opened, root, k);
    }
}
