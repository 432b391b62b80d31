// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {FloatOrder} from "../libraries/FloatOrder.sol";
import {Views} from "../libraries/Views.sol";
import {Leaf} from "./Leaf.sol";

/// @title RankLeaf: how many f32 of a row stand before this one in descending order (family 9)
/// @notice Head: s = X[o, k = last component of o]. A part is a count.
contract RankLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.RANK;
    }

    function _headReads(bytes calldata node, Descriptor.Node memory d, uint64 element)
        internal
        pure
        override
        returns (Read[] memory reads)
    {
        uint256[] memory own = new uint256[](1);
        own[0] = _own(d, element);
        reads = new Read[](1);
        reads[0] = Views.read(node, d.operands[0], Views.join(Views.unravel(d.dims, element), own));
    }

    function _term(
        Descriptor.Node memory d,
        uint64 element,
        uint64 k,
        uint256[] calldata heads,
        uint256[] calldata values
    ) internal pure override returns (int256) {
        int256 s = FloatOrder.key(_word(heads, 0));
        int256 x = FloatOrder.key(_word(values, 0));
        return x > s || (x == s && k < _own(d, element)) ? int256(1) : int256(0);
    }

    /// @dev The last component of the element's index: its own place in the row.
    function _own(Descriptor.Node memory d, uint64 element) private pure returns (uint64) {
        return uint64(element % d.dims[d.dims.length - 1]);
    }
}
