// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Opening} from "../interfaces/GameTypes.sol";
import {IGame} from "../interfaces/IGame.sol";
import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "./Descriptor.sol";
import {Digests} from "./Digests.sol";
import {Elements} from "./Elements.sol";
import {Merkle} from "./Merkle.sol";

/// @title Openings: elements of earlier nodes under an agreed prefix root (docs/protocol.md, section 5)
/// @notice The opened type and dims are bound by the tensor root, the tensor root by the node's place in the prefix tree,
/// the leaf by its place and exact length: one read has one value, whichever side opens it.
library Openings {
    /// @notice Opens reads in order; an opening stands at every read, also where it is not looked at.
    /// @param prefix root P_k that both sides agree on
    /// @param k the node whose element is computed; it may read nodes before it
    /// @return values what the node loads: f32 with one NaN, bool 0 or 1, integers extended
    function load(Read[] memory reads, Opening[] calldata openings, bytes32 prefix, uint256 k)
        internal
        view
        returns (uint256[] memory values)
    {
        if (openings.length != reads.length) revert IGame.WrongCount(openings.length, reads.length);
        values = new uint256[](reads.length);
        for (uint256 i = 0; i < reads.length; ++i) {
            values[i] = loadOne(reads[i], openings[i], prefix, k);
        }
    }

    /// @notice Opens one read. Outside the view's bounds it is the fill. A node that is not before k, which only an
    /// ill-formed program names, reads 0, as does an address outside the source: then the opening has an empty leaf and the
    /// root of the tree over the source's leaves as its only path entry, which still proves the source's size.
    function loadOne(Read memory read, Opening calldata opening, bytes32 prefix, uint256 k)
        internal
        view
        returns (uint256)
    {
        if (read.isFill) return read.fill;
        if (read.node >= k) return 0;
        (bytes memory header, uint256 numel) = _header(opening.dtype, opening.dims);
        bool inside = read.address_ < numel;
        bytes32 tree = inside ? _tree(opening, read.address_, numel) : _bare(opening);
        bytes32 got = Merkle.prefixRoot(Digests.tensor(header, tree), read.node, opening.prefixPath);
        // Attack: openings inconsistent with their root.
        if (got != prefix) revert IGame.WrongDigest(got, prefix);
        if (!inside) return 0;
        uint256 offset = read.address_ % (Elements.LEAF_BYTES / Elements.size(opening.dtype));
        return Elements.canonical(opening.dtype, Elements.raw(opening.leaf, opening.dtype, offset));
    }

    /// @dev The root of the tree over a tensor's leaves, from the leaf that holds an element.
    function _tree(Opening calldata opening, uint256 element, uint256 numel) private view returns (bytes32) {
        uint256 width = Elements.size(opening.dtype);
        uint256 size = numel * width;
        uint256 index = element * width / Elements.LEAF_BYTES;
        uint256 rest = size - index * Elements.LEAF_BYTES;
        uint256 length = rest < Elements.LEAF_BYTES ? rest : Elements.LEAF_BYTES;
        // Attack: padding, a leaf of another length.
        if (opening.leaf.length != length) revert IGame.WrongCount(opening.leaf.length, length);
        uint256 count = (size + Elements.LEAF_BYTES - 1) / Elements.LEAF_BYTES;
        return Merkle.rootFromPath(Digests.leaf(opening.leaf), index, count, opening.path);
    }

    /// @dev The root of the tree over a tensor's leaves, as given.
    function _bare(Opening calldata opening) private pure returns (bytes32) {
        if (opening.leaf.length != 0) revert IGame.WrongCount(opening.leaf.length, 0);
        if (opening.path.length != 1) revert IGame.WrongCount(opening.path.length, 1);
        return opening.path[0];
    }

    /// @dev What a tensor root binds besides the leaves, and the number of elements.
    function _header(uint8 dtype, uint64[] calldata dims) private pure returns (bytes memory header, uint256 numel) {
        if (dims.length > Descriptor.MAX_RANK) revert IGame.WrongCount(dims.length, Descriptor.MAX_RANK);
        uint256[2] memory packed; // four sizes each, from the left
        numel = 1;
        unchecked {
            for (uint256 d = 0; d < dims.length; ++d) {
                uint256 size = dims[d];
                packed[d >> 2] |= size << (192 - 64 * (d & 3));
                numel *= size;
                if (numel > type(uint64).max) numel = type(uint64).max; // as Descriptor.volume
            }
        }
        header = abi.encodePacked(dtype, uint8(dims.length), packed);
        uint256 length = 2 + 8 * dims.length;
        assembly ("memory-safe") {
            mstore(header, length) // cut the unused sizes off
        }
    }
}
