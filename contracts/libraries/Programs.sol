// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Descriptor} from "./Descriptor.sol";
import {Digests} from "./Digests.sol";
import {Elements} from "./Elements.sol";

/// @title Programs: headers, and what the game reads of a descriptor itself (docs/protocol.md, section 3)
library Programs {
    uint256 internal constant VERSION = 1;
    uint256 internal constant MAX_NODES = 1 << 20;

    /// @notice What a program's header says, and the root of the tree over its descriptors.
    struct Info {
        bytes32 tree;
        uint32 nodes; // 0: unknown
        uint32[] inputs; // slots per list of X
        uint32[] outputs; // slots per list of Y
    }

    /// @notice Reads a header: version u16, nodes u32, inputs u8, sizes u32[], outputs u8, sizes u32[].
    /// @return info nodes = 0 when the header is malformed
    function parse(bytes memory header, bytes32 tree) internal pure returns (Info memory info) {
        if (header.length < 8 || _uint(header, 0, 2) != VERSION) return info;
        uint256 nodes = _uint(header, 2, 4);
        uint256 at;
        uint256 slots;
        uint256 more;
        (info.inputs, at, slots) = _sizes(header, 6);
        if (at >= header.length) return info;
        (info.outputs, at, more) = _sizes(header, at);
        slots += more;
        if (at != header.length || nodes == 0 || nodes > MAX_NODES || slots > nodes) return info;
        info.tree = tree;
        info.nodes = uint32(nodes);
    }

    /// @notice The node whose value is slot `index` of a list of Y.
    function outputNode(Info storage info, uint256 list, uint256 index) internal view returns (uint256 node) {
        node = info.nodes + index;
        for (uint256 i = list; i < info.outputs.length; ++i) {
            node -= info.outputs[i];
        }
    }

    /// @notice Root of a value of a descriptor's type and dims over the root of its leaves' tree.
    function tensorRoot(Descriptor.Head memory head, bytes32 tree) internal pure returns (bytes32) {
        bytes memory header = abi.encodePacked(head.dtype, uint8(head.dims.length));
        for (uint256 d = 0; d < head.dims.length; ++d) {
            header = abi.encodePacked(header, uint64(head.dims[d]));
        }
        return Digests.tensor(header, tree);
    }

    /// @notice Leaves of a value of a descriptor's type and dims, and the bytes of the last one (0 without leaves).
    function leaves(Descriptor.Head memory head) internal pure returns (uint256 count, uint256 last) {
        uint256 size = uint256(Descriptor.volume(head.dims)) * Elements.size(head.dtype);
        count = (size + Elements.LEAF_BYTES - 1) / Elements.LEAF_BYTES;
        last = count == 0 ? 0 : size - (count - 1) * Elements.LEAF_BYTES;
    }

    /// @dev Sizes of lists from a cursor; the cursor after them is beyond the header's end when they are cut short.
    function _sizes(bytes memory header, uint256 at)
        private
        pure
        returns (uint32[] memory sizes, uint256 next, uint256 total)
    {
        uint256 lists = _uint(header, at, 1);
        next = at + 1 + 4 * lists;
        if (next > header.length) return (sizes, next, 0);
        sizes = new uint32[](lists);
        for (uint256 i = 0; i < lists; ++i) {
            sizes[i] = uint32(_uint(header, at + 1 + 4 * i, 4));
            total += sizes[i];
        }
    }

    /// @dev A big-endian integer inside the header.
    function _uint(bytes memory header, uint256 at, uint256 size) private pure returns (uint256 value) {
        for (uint256 i = 0; i < size; ++i) {
            value = (value << 8) | uint8(header[at + i]);
        }
    }
}
