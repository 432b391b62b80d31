// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Digests: the tagged SHA-256 digests of docs/protocol.md, section 2
/// @notice One tag byte opens every preimage, so that no digest of one kind can be read as one of another.
/// Integers inside preimages are big-endian.
library Digests {
    /// @notice Root of a tree over no digests; an unused leaf of the prefix tree.
    bytes32 internal constant ZERO = bytes32(0);

    uint8 internal constant LEAF = 0x00;
    uint8 internal constant NODE = 0x01;
    uint8 internal constant TENSOR = 0x02;
    uint8 internal constant STATE = 0x03;
    uint8 internal constant PREFIX = 0x04;
    uint8 internal constant LIST = 0x05;
    uint8 internal constant PROGRAM = 0x06;

    /// @notice H(LEAF, data): a tensor's leaf or a node's descriptor.
    function leaf(bytes calldata data) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(LEAF, data));
    }

    /// @notice H(NODE, left, right): an inner entry of a tree.
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(NODE, left, right));
    }

    /// @notice H(PREFIX, left, right): an inner entry of a prefix tree.
    function prefix(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(PREFIX, left, right));
    }

    /// @notice H(TENSOR, header, root).
    /// @param header dtype u8, rank u8, dims u64[rank], as a descriptor carries them after its family byte
    function tensor(bytes memory header, bytes32 root) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(TENSOR, header, root));
    }

    /// @notice H(LIST, count u32, root over the tensor roots).
    function list(uint32 count, bytes32 root) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(LIST, count, root));
    }

    /// @notice H(STATE, number of lists u8, list roots). The caller bounds the number of lists by 255.
    function state(bytes32[] memory listRoots) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(STATE, uint8(listRoots.length), listRoots));
    }

    /// @notice H(PROGRAM, header, root over the descriptors' leaf digests).
    function program(bytes memory header, bytes32 root) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(PROGRAM, header, root));
    }
}
