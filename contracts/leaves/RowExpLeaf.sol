// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Float32} from "../libraries/Float32.sol";
import {Leaf} from "./Leaf.sol";

/// @title RowExpLeaf: the largest exponent of a row (family 3)
/// @notice A part is a maximum of E(x).
contract RowExpLeaf is Leaf {
    int256 private constant E_ZERO = -149;

    function _family() internal pure override returns (uint8) {
        return Descriptor.ROWEXP;
    }

    /// @dev Only an ill-formed node has an empty row: E of zero.
    function _nothing(Descriptor.Node memory d) internal pure override returns (uint256) {
        return Elements.store(d.dtype, uint256(E_ZERO));
    }

    function _combine(Descriptor.Node memory, int256[] calldata parts) internal pure override returns (int256) {
        return _largest(parts);
    }

    function _term(Descriptor.Node memory, uint64, uint64, uint256[] calldata, uint256[] calldata values)
        internal
        pure
        override
        returns (int256)
    {
        return Float32.exponentOf(_word(values, 0));
    }
}
