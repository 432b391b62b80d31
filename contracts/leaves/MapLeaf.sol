// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Read} from "../interfaces/ILeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {ScalarMachine} from "../libraries/ScalarMachine.sol";
import {Leaf} from "./Leaf.sol";

/// @title MapLeaf: a scalar program on up to eight operands (family 2)
/// @notice The heads are the operands and decide the element.
contract MapLeaf is Leaf {
    function _family() internal pure override returns (uint8) {
        return Descriptor.MAP;
    }

    function _headReads(bytes calldata node, Descriptor.Node memory d, uint64 element)
        internal
        pure
        override
        returns (Read[] memory)
    {
        return _readOuter(node, d, element, 0, d.operands.length);
    }

    function _start(bytes calldata node, Descriptor.Node memory d, uint64, uint256[] calldata heads)
        internal
        pure
        override
        returns (bool, uint256, uint64)
    {
        return (true, Elements.store(d.dtype, ScalarMachine.evaluate(node[d.tail:], heads)), 0);
    }
}
