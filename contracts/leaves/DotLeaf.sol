// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Finish} from "../libraries/Finish.sol";
import {Quantize} from "../libraries/Quantize.sol";
import {Leaf} from "./Leaf.sol";

/// @title DotLeaf: a product of two quantized rows (family 5)
/// @notice Heads: eA, eB. A part is a sum of q_pA(a, eA) q_pB(b, eB).
contract DotLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.DOT;
    }

    function _headReads(bytes calldata node, Descriptor.Node memory d, uint64 element)
        internal
        pure
        override
        returns (Read[] memory)
    {
        return _readOuter(node, d, element, 2, 2);
    }

    function _start(bytes calldata, Descriptor.Node memory d, uint64, uint256[] calldata heads)
        internal
        pure
        override
        returns (bool, uint256, uint64)
    {
        bool finite = _int(heads, 0) < E_NONFINITE && _int(heads, 1) < E_NONFINITE;
        return finite ? (false, 0, d.terms) : (true, Elements.store(d.dtype, Elements.NAN), uint64(0));
    }

    function _fold(Descriptor.Node memory d, uint256[] calldata heads, int256 part)
        internal
        pure
        override
        returns (uint256)
    {
        int256 n = _int(heads, 0) + _int(heads, 1) + 2 - int256(d.fields[0] + d.fields[1]);
        return Elements.store(d.dtype, Finish.finish(part, n));
    }

    function _termReads(bytes calldata node, Descriptor.Node memory d, uint64 element, uint64 k, uint256[] calldata)
        internal
        pure
        override
        returns (Read[] memory)
    {
        return _readInner(node, d, element, k, 2);
    }

    function _term(Descriptor.Node memory d, uint64, uint64, uint256[] calldata heads, uint256[] calldata values)
        internal
        pure
        override
        returns (int256)
    {
        int256 a = Quantize.quantize(_word(values, 0), d.fields[0], _int(heads, 0));
        int256 b = Quantize.quantize(_word(values, 1), d.fields[1], _int(heads, 1));
        return a * b;
    }
}
