// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ILeaf, Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Views} from "../libraries/Views.sol";

/// @title Leaf: what all families share, equal to assay.protocol.program.leaf word for word
/// @notice Decodes the node once per call; an element of a malformed descriptor, or of another family's, is 0 without heads
/// and terms. Families fill in the hooks, which see valid nodes only. Heads and values come from the game in the order of
/// the reads; a missing one is 0.
abstract contract Leaf is ILeaf {
    /// @dev E of a NaN or an infinity: such an exponent turns a reduction into NaN.
    int256 internal constant E_NONFINITE = 129;

    /// @inheritdoc ILeaf
    function headReads(bytes calldata node, uint64 element) external pure returns (Read[] memory) {
        Descriptor.Node memory d = _decode(node);
        if (!d.valid || d.numel == 0) return new Read[](0);
        return _headReads(node, d, element);
    }

    /// @inheritdoc ILeaf
    function start(bytes calldata node, uint64 element, uint256[] calldata heads)
        external
        pure
        returns (bool done, uint256 value, uint64 terms)
    {
        Descriptor.Node memory d = _decode(node);
        if (!d.valid || d.numel == 0) return (true, 0, 0);
        (done, value, terms) = _start(node, d, element, heads);
        if (!done && terms == 0) return (true, _nothing(d), 0);
    }

    /// @inheritdoc ILeaf
    function fold(bytes calldata node, uint256[] calldata heads, int256[] calldata parts)
        external
        pure
        returns (uint256)
    {
        Descriptor.Node memory d = _decode(node);
        return d.valid ? _fold(d, heads, _combine(d, parts)) : 0;
    }

    /// @inheritdoc ILeaf
    function combine(bytes calldata node, int256[] calldata parts) external pure returns (int256) {
        Descriptor.Node memory d = _decode(node);
        return d.valid ? _combine(d, parts) : int256(0);
    }

    /// @inheritdoc ILeaf
    function termReads(bytes calldata node, uint64 element, uint64 k, uint256[] calldata heads)
        external
        pure
        returns (Read[] memory)
    {
        Descriptor.Node memory d = _decode(node);
        if (!d.valid || d.numel == 0) return new Read[](0);
        return _termReads(node, d, element, k, heads);
    }

    /// @inheritdoc ILeaf
    function term(bytes calldata node, uint64 element, uint64 k, uint256[] calldata heads, uint256[] calldata values)
        external
        pure
        returns (int256)
    {
        Descriptor.Node memory d = _decode(node);
        if (!d.valid || d.numel == 0) return 0;
        return _term(d, element, k, heads, values);
    }

    // --- what a family fills in

    /// @dev The family's code.
    function _family() internal pure virtual returns (uint8);

    /// @dev The reads that decide how the element goes on; none by default.
    function _headReads(bytes calldata, Descriptor.Node memory, uint64) internal pure virtual returns (Read[] memory) {
        return new Read[](0);
    }

    /// @dev The element if the heads decide it, otherwise its terms; by default as many as red has.
    function _start(bytes calldata, Descriptor.Node memory d, uint64, uint256[] calldata)
        internal
        pure
        virtual
        returns (bool done, uint256 value, uint64 terms)
    {
        return (false, 0, d.terms);
    }

    /// @dev The element of a reduction over no terms; by default 0, in f32 +0.
    function _nothing(Descriptor.Node memory) internal pure virtual returns (uint256) {
        return 0;
    }

    /// @dev The element that a combined part stands for; by default its low bits.
    function _fold(Descriptor.Node memory d, uint256[] calldata, int256 part) internal pure virtual returns (uint256) {
        return Elements.store(d.dtype, uint256(part));
    }

    /// @dev One part of finer ones; by default their sum modulo 2^256. Wrapping is no way out for the poster: true parts are
    /// far smaller, so some part of a list that wraps is wrong, and the game descends into any part.
    function _combine(Descriptor.Node memory, int256[] calldata parts) internal pure virtual returns (int256 total) {
        unchecked {
            for (uint256 i = 0; i < parts.length; ++i) {
                total += parts[i];
            }
        }
    }

    /// @dev The reads of a term; by default the first operand over out+red.
    function _termReads(bytes calldata node, Descriptor.Node memory d, uint64 element, uint64 k, uint256[] calldata)
        internal
        pure
        virtual
        returns (Read[] memory)
    {
        return _readInner(node, d, element, k, 1);
    }

    /// @dev One part from its reads; none by default.
    function _term(Descriptor.Node memory, uint64, uint64, uint256[] calldata, uint256[] calldata)
        internal
        pure
        virtual
        returns (int256)
    {
        return 0;
    }

    // --- for families

    /// @dev Operands first..first+count-1 over the node's dims.
    function _readOuter(bytes calldata node, Descriptor.Node memory d, uint64 element, uint256 first, uint256 count)
        internal
        pure
        returns (Read[] memory reads)
    {
        uint256[] memory index = Views.unravel(d.dims, element);
        reads = new Read[](count);
        for (uint256 i = 0; i < count; ++i) {
            reads[i] = Views.read(node, d.operands[first + i], index);
        }
    }

    /// @dev The first `count` operands over out+red at term k; none when there are no terms.
    function _readInner(bytes calldata node, Descriptor.Node memory d, uint64 element, uint64 k, uint256 count)
        internal
        pure
        returns (Read[] memory reads)
    {
        if (d.terms == 0) return reads;
        uint256[] memory index = Views.join(Views.unravel(d.dims, element), Views.unravel(d.red, k));
        reads = new Read[](count);
        for (uint256 i = 0; i < count; ++i) {
            reads[i] = Views.read(node, d.operands[i], index);
        }
    }

    /// @dev The largest of some integers; 0 of none.
    function _largest(int256[] calldata parts) internal pure returns (int256 largest) {
        for (uint256 i = 0; i < parts.length; ++i) {
            if (i == 0 || parts[i] > largest) largest = parts[i];
        }
    }

    /// @dev A word by number, 0 if it was not given.
    function _word(uint256[] calldata words, uint256 i) internal pure returns (uint256) {
        return i < words.length ? words[i] : 0;
    }

    /// @dev The i32 in a word by number: exponents and indices.
    function _int(uint256[] calldata words, uint256 i) internal pure returns (int256) {
        return Elements.signed32(_word(words, i));
    }

    function _decode(bytes calldata node) private pure returns (Descriptor.Node memory d) {
        d = Descriptor.decode(node);
        if (d.family != _family()) d.valid = false;
    }
}
