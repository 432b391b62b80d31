// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Finish} from "../libraries/Finish.sol";
import {Quantize} from "../libraries/Quantize.sol";
import {Leaf} from "./Leaf.sol";

/// @title QuantizedSumLeaf: sums of q_31(x, e) under one exponent
/// @notice Head: e, the last operand.
abstract contract QuantizedSumLeaf is Leaf {
    uint256 private constant PRECISION = 31;

    function _headReads(bytes calldata node, Descriptor.Node memory d, uint64 element)
        internal
        pure
        override
        returns (Read[] memory)
    {
        return _readOuter(node, d, element, d.operands.length - 1, 1);
    }

    function _start(bytes calldata, Descriptor.Node memory d, uint64, uint256[] calldata heads)
        internal
        pure
        override
        returns (bool, uint256, uint64)
    {
        if (_int(heads, 0) < E_NONFINITE) return (false, 0, d.terms);
        return (true, Elements.store(d.dtype, Elements.NAN), 0);
    }

    function _fold(Descriptor.Node memory d, uint256[] calldata heads, int256 part)
        internal
        pure
        override
        returns (uint256)
    {
        return Elements.store(d.dtype, Finish.finish(part, _int(heads, 0) + 1 - int256(PRECISION)));
    }

    /// @dev The part of an element x.
    function _quantized(uint256 x, uint256[] calldata heads) internal pure returns (int256) {
        return Quantize.quantize(x, PRECISION, _int(heads, 0));
    }
}
