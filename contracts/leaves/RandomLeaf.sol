// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {Philox} from "../libraries/Philox.sol";
import {Leaf} from "./Leaf.sol";

/// @title RandomLeaf: one word of Philox4x32-10 (family 10)
/// @notice Heads: key[0], key[1], step[0], step[1]; they decide the element.
contract RandomLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.RANDOM;
    }

    function _headReads(bytes calldata, Descriptor.Node memory d, uint64)
        internal
        pure
        override
        returns (Read[] memory reads)
    {
        reads = new Read[](4);
        for (uint64 i = 0; i < 4; ++i) {
            reads[i].node = uint32(d.fields[i < 2 ? 1 : 2]);
            reads[i].address_ = i & 1;
        }
    }

    function _start(bytes calldata, Descriptor.Node memory d, uint64 element, uint256[] calldata heads)
        internal
        pure
        override
        returns (bool, uint256, uint64)
    {
        uint256 word = Philox.element(
            element, d.fields[0], _word(heads, 2), _word(heads, 3), _word(heads, 0), _word(heads, 1)
        );
        return (true, Elements.store(d.dtype, word), 0);
    }
}
