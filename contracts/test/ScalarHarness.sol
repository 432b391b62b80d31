// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Finish} from "../libraries/Finish.sol";
import {Philox} from "../libraries/Philox.sol";
import {ScalarMachine} from "../libraries/ScalarMachine.sol";

/// @title The arithmetic libraries, callable from tests
contract ScalarHarness {
    function evaluate(bytes calldata code, uint256[] calldata operands) external pure returns (uint256) {
        return ScalarMachine.evaluate(code, operands);
    }

    /// @notice The word of the code for each row of operand words.
    function evaluateRows(bytes calldata code, uint256[][] calldata rows)
        external
        pure
        returns (uint256[] memory words)
    {
        words = new uint256[](rows.length);
        for (uint256 i = 0; i < rows.length; ++i) {
            words[i] = ScalarMachine.evaluate(code, rows[i]);
        }
    }

    /// @notice The gas of one evaluation.
    function gasOf(bytes calldata code, uint256[] calldata operands) external view returns (uint256) {
        uint256 before = gasleft();
        ScalarMachine.evaluate(code, operands);
        return before - gasleft();
    }

    /// @notice One operation on many pairs of words.
    function execute(uint8 op, uint256[2][] calldata pairs) external view returns (uint256[] memory results) {
        results = new uint256[](pairs.length);
        bytes memory code = abi.encodePacked(op, uint8(0), uint8(1), uint8(0), uint32(0));
        uint256[] memory operands = new uint256[](2);
        for (uint256 i = 0; i < pairs.length; ++i) {
            (operands[0], operands[1]) = (pairs[i][0], pairs[i][1]);
            results[i] = this.evaluate(code, operands);
        }
    }

    function finish(int256[] calldata sums, int256[] calldata scales) external pure returns (uint256[] memory results) {
        results = new uint256[](sums.length);
        for (uint256 i = 0; i < sums.length; ++i) {
            results[i] = Finish.finish(sums[i], scales[i]);
        }
    }

    function randomWord(uint64 element, uint32 stream, uint32[2] calldata step, uint32[2] calldata key)
        external
        pure
        returns (uint32)
    {
        return uint32(Philox.element(element, stream, step[0], step[1], key[0], key[1]));
    }
}
