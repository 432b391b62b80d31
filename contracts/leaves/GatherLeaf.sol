// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Views} from "../libraries/Views.sol";
import {Leaf} from "./Leaf.sol";

/// @title GatherLeaf: a row of a table by index (family 7)
/// @notice Head: index. One term, the element itself; an index outside [0, N) is NaN (f32) or 0 without a term.
contract GatherLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.GATHER;
    }

    function _headReads(bytes calldata node, Descriptor.Node memory d, uint64 element)
        internal
        pure
        override
        returns (Read[] memory)
    {
        return _readOuter(node, d, element, 1, 1);
    }

    function _start(bytes calldata, Descriptor.Node memory d, uint64, uint256[] calldata heads)
        internal
        pure
        override
        returns (bool, uint256, uint64)
    {
        int256 row = _int(heads, 0);
        if (row >= 0 && row < int256(d.fields[0])) return (false, 0, 1);
        return (true, d.dtype == Elements.F32 ? Elements.NAN : 0, 0);
    }

    function _termReads(bytes calldata node, Descriptor.Node memory d, uint64 element, uint64, uint256[] calldata heads)
        internal
        pure
        override
        returns (Read[] memory reads)
    {
        uint256[] memory row = new uint256[](1);
        row[0] = uint256(_int(heads, 0)); // not negative, or start had decided the element
        reads = new Read[](1);
        reads[0] = Views.read(node, d.operands[0], Views.join(row, Views.unravel(d.dims, element)));
    }

    function _term(Descriptor.Node memory d, uint64, uint64, uint256[] calldata, uint256[] calldata values)
        internal
        pure
        override
        returns (int256)
    {
        return int256(Elements.store(d.dtype, _word(values, 0)));
    }
}
