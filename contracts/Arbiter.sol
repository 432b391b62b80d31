// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Opening} from "./interfaces/GameTypes.sol";
import {IArbiter, NodeOpened, NodePlace, Started} from "./interfaces/IArbiter.sol";
import {IGame} from "./interfaces/IGame.sol";
import {ILeaf, Read} from "./interfaces/ILeaf.sol";
import {Descriptor} from "./libraries/Descriptor.sol";
import {Digests} from "./libraries/Digests.sol";
import {Elements} from "./libraries/Elements.sol";
import {Merkle} from "./libraries/Merkle.sol";
import {Openings} from "./libraries/Openings.sol";
import {Programs} from "./libraries/Programs.sol";

/// @title Arbiter: checks the game's proofs and computes one element; each family's arithmetic is a contract of its own
contract Arbiter is IArbiter {
    /// @dev The first and the last code of a family that computes; a test reads them.
    uint256 private constant FIRST = 2;
    uint256 private constant LAST = 10;
    uint256 private constant COUNT = LAST - FIRST + 1;

    ILeaf[COUNT] private _leaves;

    /// @param leaves of the families from FIRST to LAST by their codes, zero for a code without one
    constructor(ILeaf[COUNT] memory leaves) {
        _leaves = leaves;
    }

    /// @notice The contract that computes a family's elements; zero for a family without one.
    function leafOf(uint256 family) public view returns (ILeaf) {
        return family < FIRST || family >= FIRST + COUNT ? ILeaf(address(0)) : _leaves[family - FIRST];
    }

    /// @inheritdoc IArbiter
    function openNode(
        NodePlace calldata place,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external view returns (NodeOpened memory opened) {
        // Attack: another node's descriptor, so that another computation justifies a false value.
        _check(Merkle.rootFromPath(Digests.leaf(node), place.k, place.nodes, programPath), place.tree);
        Descriptor.Head memory head = Descriptor.parse(node);
        (uint256 count, uint256 last) = Programs.leaves(head);
        (uint256 below,, uint256 number) = Merkle.opening(count, Merkle.height(count), 0, place.levels);
        if (digests.length != number) revert IGame.WrongCount(digests.length, number);
        // Attack: another header. Type and dims come from the descriptor: a value of another shape has no root here.
        bytes32 value = Programs.tensorRoot(head, Merkle.root(digests));
        // Attack: an earlier output changed between two prefixes, by a second path. Here one path leads to both roots.
        _check(Merkle.prefixRoot(Digests.ZERO, place.k, appendPath), place.agreed);
        _check(Merkle.prefixRoot(value, place.k, appendPath), place.disputed);
        return NodeOpened(head.family, value, uint8(below), uint64(count), uint16(last));
    }

    /// @inheritdoc IArbiter
    function rootOf(
        bytes calldata node,
        bytes32[] calldata path,
        bytes calldata opening,
        uint32[] calldata inputs,
        bytes32 before,
        bytes32 agreed
    ) external view returns (bytes32) {
        Descriptor.Head memory head = Descriptor.parse(node);
        uint256 body = head.body;
        if (head.family == Descriptor.OUTPUT) {
            return _sourceRoot(Descriptor.take(node, body + 5, 4), path, opening, agreed);
        }
        if (head.family == Descriptor.CONST) {
            if (path.length + opening.length != 0) revert IGame.WrongCount(path.length + opening.length, 0);
            return bytes32(Descriptor.take(node, body, 32));
        }
        uint256 list = Descriptor.take(node, body, 1);
        uint256 index = Descriptor.take(node, body + 1, 4);
        uint256 end = 32 * inputs.length;
        if (opening.length != end + 32) revert IGame.WrongCount(opening.length, end + 32);
        _check(sha256(abi.encodePacked(Digests.STATE, uint8(inputs.length), opening[:end])), before);
        if (list >= inputs.length) revert IGame.IndexOutOfRange(list, inputs.length);
        uint32 count = inputs[list];
        if (index >= count) revert IGame.IndexOutOfRange(index, count);
        bytes32 slot = bytes32(opening[end:]);
        _check(Digests.list(count, Merkle.rootFromPath(slot, index, count, path)), bytes32(opening[32 * list:]));
        return slot;
    }

    /// @inheritdoc IArbiter
    function sourceRoot(uint32 source, bytes32[] calldata path, bytes calldata opening, bytes32 agreed)
        external
        view
        returns (bytes32)
    {
        return _sourceRoot(source, path, opening, agreed);
    }

    /// @inheritdoc IArbiter
    function start(
        bytes calldata node,
        bytes calldata leaf,
        uint64 index,
        uint256 offset,
        Opening[] calldata heads,
        bytes32 prefix,
        uint32 k
    ) external view returns (Started memory started) {
        uint256 dtype = Descriptor.take(node, 1, 1);
        uint256 width = Elements.size(dtype);
        if (offset >= leaf.length / width) revert IGame.IndexOutOfRange(offset, leaf.length / width);
        started.element = uint64(uint256(index) * (Elements.LEAF_BYTES / width) + offset);
        // Attack: a NaN with a payload, a bool byte of 2. The bits as they stand are not what a store writes, hence wrong.
        started.claimed = int256(Elements.raw(leaf, dtype, offset));
        ILeaf family = _leafOf(node);
        // A family that does not exist, which only an ill-formed program names, has elements of 0.
        if (address(family) == address(0)) {
            if (heads.length != 0) revert IGame.WrongCount(heads.length, 0);
            started.done = true;
            return started;
        }
        started.heads = Openings.load(family.headReads(node, started.element), heads, prefix, k);
        uint256 value;
        (started.done, value, started.terms) = family.start(node, started.element, started.heads);
        started.value = int256(value);
    }

    /// @inheritdoc IArbiter
    function computeTerm(
        bytes calldata node,
        uint64 element,
        uint64 term,
        uint256[] calldata heads,
        Opening[] calldata reads,
        bytes32 prefix,
        uint32 k,
        bool whole
    ) external view returns (int256 part) {
        ILeaf leaf = _leafOf(node);
        Read[] memory wanted = leaf.termReads(node, element, term, heads);
        uint256[] memory values = Openings.load(wanted, reads, prefix, k);
        part = leaf.term(node, element, term, heads, values);
        if (!whole) return part;
        int256[] memory parts = new int256[](1);
        parts[0] = part;
        return int256(leaf.fold(node, heads, parts));
    }

    /// @inheritdoc IArbiter
    function standsFor(bytes calldata node, uint256[] calldata heads, int256[] calldata parts, bool whole)
        external
        view
        returns (int256)
    {
        ILeaf leaf = _leafOf(node);
        return whole ? int256(leaf.fold(node, heads, parts)) : leaf.combine(node, parts);
    }

    function _leafOf(bytes calldata node) private view returns (ILeaf) {
        return leafOf(node.length == 0 ? 0 : uint8(node[0]));
    }

    /// @dev A node of 2^20 or more, which only an ill-formed program names, is taken modulo 2^20.
    function _sourceRoot(uint256 source, bytes32[] calldata path, bytes calldata opening, bytes32 agreed)
        private
        view
        returns (bytes32 root)
    {
        if (opening.length != 32) revert IGame.WrongCount(opening.length, 32);
        root = bytes32(opening);
        _check(Merkle.prefixRoot(root, source, path), agreed);
    }

    function _check(bytes32 got, bytes32 wanted) private pure {
        if (got != wanted) revert IGame.WrongDigest(got, wanted);
    }
}
