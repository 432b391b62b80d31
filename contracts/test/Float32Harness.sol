// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Finish} from "../libraries/Finish.sol";
import {Philox} from "../libraries/Philox.sol";
import {ScalarMachine} from "../libraries/ScalarMachine.sol";

/// @title Float32Harness: the arithmetic libraries behind external functions, many cases per call
contract Float32Harness {
    /// @notice The word of the code for each row of operand words.
    function evaluate(bytes calldata code, uint256[][] calldata rows) external pure returns (uint256[] memory words) {
        words = new uint256[](rows.length);
        for (uint256 i = 0; i < rows.length; ++i) {
            words[i] = ScalarMachine.evaluate(code, rows[i]);
        }
    }

    /// @notice The gas of one evaluation.
    function gasOf(bytes calldata code, uint256[] calldata operands) external view returns (uint256) {
        uint256[] memory words = operands;
        uint256 before = gasleft();
        ScalarMachine.evaluate(code, words);
        return before - gasleft();
    }

    /// @notice finish(totals[i], exponents[i]) for each i.
    function finish(int256[] calldata totals, int256[] calldata exponents)
        external
        pure
        returns (uint256[] memory patterns)
    {
        patterns = new uint256[](totals.length);
        for (uint256 i = 0; i < totals.length; ++i) {
            patterns[i] = Finish.finish(totals[i], exponents[i]);
        }
    }

    /// @notice Elements of a `random` node.
    function random(uint256[] calldata elements, uint256 stream, uint256[2] calldata step, uint256[2] calldata key)
        external
        pure
        returns (uint256[] memory words)
    {
        words = new uint256[](elements.length);
        for (uint256 i = 0; i < elements.length; ++i) {
            words[i] = Philox.element(elements[i], stream, step[0], step[1], key[0], key[1]);
        }
    }
}
