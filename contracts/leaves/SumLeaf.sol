// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Descriptor} from "../libraries/Descriptor.sol";
import {QuantizedSumLeaf} from "./QuantizedSumLeaf.sol";

/// @title SumLeaf: a sum of quantized elements (family 6)
/// @notice Head: e. A part is a sum of q_31(x, e).
contract SumLeaf is QuantizedSumLeaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.SUM;
    }

    function _term(Descriptor.Node memory, uint64, uint64, uint256[] calldata heads, uint256[] calldata values)
        internal
        pure
        override
        returns (int256)
    {
        return _quantized(_word(values, 0), heads);
    }
}
