// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Opening} from "./GameTypes.sol";

/// @notice What a node's value is checked against.
/// @param tree of the program's descriptors
/// @param nodes number of them
/// @param k the node's number
/// @param agreed P_k
/// @param disputed P_(k+1)
/// @param levels of a tree that one opening shows
struct NodePlace {
    bytes32 tree;
    uint32 nodes;
    uint32 k;
    bytes32 agreed;
    bytes32 disputed;
    uint8 levels;
}

/// @notice What an opened node is: its family, its value's tensor root, and the list of digests posted, which begins at entry (level, 0) of the
/// tree over `count` leaves, the last of `last` bytes.
struct NodeOpened {
    uint8 family;
    bytes32 value;
    uint8 level;
    uint64 count;
    uint16 last;
}

/// @notice An element whose computation has started.
/// @param element its row-major index
/// @param claimed its word as it stands in the leaf
/// @param done whether it is determined, by `value`; otherwise it has `terms`, 1 or more
/// @param heads the words read
struct Started {
    uint64 element;
    int256 claimed;
    bool done;
    int256 value;
    uint64 terms;
    uint256[] heads;
}

/// @title What proofs show and what an element must be: stateless, and the same for every run.
/// @notice Openings that are not exactly the reads' revert with IGame.WrongCount or IGame.WrongDigest. Values are raw element words, parts are
/// int256 (ILeaf). The node's family is the first byte of its descriptor.
interface IArbiter {
    /// @notice Binds a node's opening: its descriptor to the program, type and dims to the descriptor, the value to P_k and P_(k+1).
    function openNode(
        NodePlace calldata place,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external view returns (NodeOpened memory);

    /// @notice The tensor root that the value of an input, const or output node must have.
    /// @param path input: of the slot in its list; output: the source's 20 siblings; const: empty
    /// @param opening input: the list roots of s_(t-1) and the slot's tensor root; output: the source's tensor root
    /// @param inputs slots per list of X
    /// @param before s_(t-1)
    /// @param agreed P_k
    function rootOf(
        bytes calldata node,
        bytes32[] calldata path,
        bytes calldata opening,
        uint32[] calldata inputs,
        bytes32 before,
        bytes32 agreed
    ) external view returns (bytes32);

    /// @notice The tensor root of an earlier node under an agreed prefix root: its 20 siblings and the root itself.
    function sourceRoot(uint32 source, bytes32[] calldata path, bytes calldata opening, bytes32 agreed)
        external
        view
        returns (bytes32);

    /// @notice Starts the computation of the element that stands at `offset` (in elements) of leaf `index` of node k.
    /// @param node descriptor of node k
    /// @param heads openings of what is read first
    /// @param prefix root P_k that both sides agree on
    function start(
        bytes calldata node,
        bytes calldata leaf,
        uint64 index,
        uint256 offset,
        Opening[] calldata heads,
        bytes32 prefix,
        uint32 k
    ) external view returns (Started memory);

    /// @notice One term of an element.
    /// @param term number of the term
    /// @param heads words from `start`
    /// @param whole returns the element that this term alone stands for, instead of its part
    function computeTerm(
        bytes calldata node,
        uint64 element,
        uint64 term,
        uint256[] calldata heads,
        Opening[] calldata reads,
        bytes32 prefix,
        uint32 k,
        bool whole
    ) external view returns (int256);

    /// @notice What parts stand for: the element's word if `whole`, else the coarser part.
    function standsFor(bytes calldata node, uint256[] calldata heads, int256[] calldata parts, bool whole)
        external
        view
        returns (int256);
}
