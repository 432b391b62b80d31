// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Views} from "../libraries/Views.sol";
import {QuantizedSumLeaf} from "./QuantizedSumLeaf.sol";

/// @title ScatterSumLeaf: a sum of the elements whose index names the row (family 8)
/// @notice Head: e. A part is a sum of q_31(x, e) over the terms whose index equals the first component of the element's
/// index. A term reads its index, then x.
contract ScatterSumLeaf is QuantizedSumLeaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.SCATTER_SUM;
    }

    function _termReads(bytes calldata node, Descriptor.Node memory d, uint64 element, uint64 k, uint256[] calldata)
        internal
        pure
        override
        returns (Read[] memory)
    {
        Read[] memory reads = _readInner(node, d, element, k, 2);
        if (reads.length == 2) (reads[0], reads[1]) = (reads[1], reads[0]);
        return reads;
    }

    function _term(
        Descriptor.Node memory d,
        uint64 element,
        uint64,
        uint256[] calldata heads,
        uint256[] calldata values
    ) internal pure override returns (int256) {
        bool hit = _int(values, 0) == int256(Views.unravel(d.dims, element)[0]);
        return hit ? _quantized(_word(values, 1), heads) : int256(0);
    }
}
