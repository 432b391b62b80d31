// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {FloatOrder} from "../libraries/FloatOrder.sol";
import {Leaf} from "./Leaf.sol";

/// @title MaxLeaf: the largest element of a row (family 4)
/// @notice f32: NaN if any is, a zero is +0; otherwise i32. A part is a maximum: f32 as its normalized bits.
contract MaxLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.MAX;
    }

    /// @dev Only an ill-formed node has an empty row.
    function _nothing(Descriptor.Node memory d) internal pure override returns (uint256) {
        return d.dtype == Elements.F32 ? Elements.NAN : 0;
    }

    /// @dev f32 by the order of keys, which makes NaN win and a zero +0.
    function _combine(Descriptor.Node memory d, int256[] calldata parts) internal pure override returns (int256) {
        if (d.dtype != Elements.F32) return _largest(parts);
        int256 largest = 0;
        for (uint256 i = 0; i < parts.length; ++i) {
            int256 key = FloatOrder.key(uint256(parts[i]));
            if (i == 0 || key > largest) largest = key;
        }
        return int256(FloatOrder.pattern(largest));
    }

    function _term(Descriptor.Node memory d, uint64, uint64, uint256[] calldata, uint256[] calldata values)
        internal
        pure
        override
        returns (int256)
    {
        if (d.dtype != Elements.F32) return int256(Elements.store(d.dtype, _word(values, 0)));
        return int256(FloatOrder.pattern(FloatOrder.key(_word(values, 0))));
    }
}
