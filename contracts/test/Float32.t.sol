// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Finish} from "../libraries/Finish.sol";
import {Float32} from "../libraries/Float32.sol";
import {Philox} from "../libraries/Philox.sol";
import {Quantize} from "../libraries/Quantize.sol";
import {ScalarMachine} from "../libraries/ScalarMachine.sol";
import {Test} from "./Test.sol";

/// @dev Laws that hold for every pattern, and the published vectors (tests/vectors/arithmetic.json).
contract Float32Test is Test {
    uint256 private constant ONE = 0x3f800000;

    function evaluate(bytes calldata code, uint256[] calldata operands) external pure returns (uint256) {
        return ScalarMachine.evaluate(code, operands);
    }

    function test_sums_and_products_commute(uint32 x, uint32 y) public pure {
        assertEq(Float32.add(x, y), Float32.add(y, x), "sum");
        assertEq(Float32.mul(x, y), Float32.mul(y, x), "product");
        assertEq(Float32.min(x, y), Float32.min(y, x), "min");
        assertEq(Float32.max(x, y), Float32.max(y, x), "max");
    }

    function test_the_neutral_elements_change_nothing_but_a_nan(uint32 x) public pure {
        assertEq(Float32.mul(x, ONE), Float32.canonical(x), "x * 1");
        assertEq(Float32.div(x, ONE), Float32.canonical(x), "x / 1");
        assertEq(Float32.add(x, Float32.SIGN), Float32.canonical(x), "x + -0");
        assertEq(Float32.scale2(x, 0), Float32.canonical(x), "x * 2^0");
    }

    function test_a_negated_difference_is_the_difference_of_the_other_order(uint32 x, uint32 y) public pure {
        uint256 forth = Float32.sub(x, y);
        uint256 back = Float32.sub(y, x);
        if (forth == 0) assertEq(back, 0, "x - x is +0 both ways");
        else assertEq(back, Float32.neg(forth), "sign");
    }

    function test_bits_above_the_low_32_are_ignored(uint256 x, uint256 y) public pure {
        (uint256 a, uint256 b) = (uint32(x), uint32(y));
        assertEq(Float32.add(x, y), Float32.add(a, b), "add");
        assertEq(Float32.mul(x, y), Float32.mul(a, b), "mul");
        assertEq(Float32.div(x, y), Float32.div(a, b), "div");
        assertEq(Float32.sqrt(x), Float32.sqrt(a), "sqrt");
        assertEq(Float32.rint(x), Float32.rint(a), "rint");
        assertEq(Float32.floor(x), Float32.floor(a), "floor");
        assertEq(Float32.scale2(x, 3), Float32.scale2(a, 3), "scale2");
        assertTrue(Float32.lt(x, y) == Float32.lt(a, b), "lt");
        assertEq(Float32.exponentOf(x), Float32.exponentOf(a), "exponent");
        assertEq(Float32.toInt(x, 32), Float32.toInt(a, 32), "toInt");
    }

    function test_the_root_of_a_square_is_the_number_again(uint32 m) public pure {
        // 12 bits squared are exact, so that nothing is rounded
        uint256 x = Float32.fromInt(int256(uint256(m & 0xfff)));
        assertEq(Float32.sqrt(Float32.mul(x, x)), x, "root");
    }

    function test_comparison_is_trichotomous_except_for_nan(uint32 x, uint32 y) public pure {
        uint256 holds = _bit(Float32.lt(x, y)) + _bit(Float32.eq(x, y)) + _bit(Float32.lt(y, x));
        assertEq(holds, Float32.isNaN(x) || Float32.isNaN(y) ? 0 : 1, "trichotomy");
    }

    function test_finish_splits_any_total_with_one_rounding(int256 total, int16 n) public pure {
        // scaling the total by two and the exponent back changes nothing, as long as it fits
        total >>= 2;
        assertEq(Finish.finish(total, n), Finish.finish(2 * total, int256(n) - 1), "shifted");
        uint256 pattern = Finish.finish(total, n);
        assertTrue(!Float32.isNaN(pattern), "a number");
        if (total == 0) assertEq(pattern, 0, "zero");
    }

    function test_the_machine_is_total(bytes calldata code, uint256[] calldata operands) public view {
        uint256 word = this.evaluate(code, operands);
        if (code.length % 8 != 0 || code.length > 512 || operands.length > 8) assertEq(word, 0, "malformed");
    }

    function test_operations_have_the_published_results() public view {
        string memory json = vm.readFile("tests/vectors/arithmetic.json");
        string[6] memory names = ["F32_ADD", "F32_MUL", "F32_DIV", "F32_SQRT", "F32_SCALE2", "I64_TO_F32"];
        for (uint256 i = 0; i < names.length; ++i) {
            string memory entry = string.concat(".operations.", names[i]);
            bytes memory code = vm.parseJsonBytes(json, string.concat(entry, ".code"));
            uint256 arity = vm.parseJsonUint(json, string.concat(entry, ".operands"));
            uint256[] memory words = vm.parseJsonUintArray(json, string.concat(entry, ".words"));
            _compare(names[i], code, arity, words);
        }
    }

    function test_roundings_and_random_words_have_the_published_results() public view {
        string memory json = vm.readFile("tests/vectors/arithmetic.json");
        uint256[] memory rows = vm.parseJsonUintArray(json, ".finish");
        for (uint256 i = 0; i < rows.length; i += 3) {
            assertEq(Finish.finish(_signed(rows[i]), _signed(rows[i + 1])), rows[i + 2], "finish");
        }
        rows = vm.parseJsonUintArray(json, ".quantize");
        for (uint256 i = 0; i < rows.length; i += 4) {
            assertEq(Quantize.quantize(rows[i], rows[i + 1], _signed(rows[i + 2])), _signed(rows[i + 3]), "quantize");
        }
        rows = vm.parseJsonUintArray(json, ".random");
        for (uint256 i = 0; i < rows.length; i += 7) {
            uint256 word = Philox.element(rows[i], rows[i + 1], rows[i + 2], rows[i + 3], rows[i + 4], rows[i + 5]);
            assertEq(int256(word), _signed(rows[i + 6]), "random");
        }
    }

    function _compare(string memory name, bytes memory code, uint256 arity, uint256[] memory words) private view {
        uint256[] memory operands = new uint256[](arity);
        for (uint256 i = 0; i < words.length; i += arity + 1) {
            for (uint256 k = 0; k < arity; ++k) {
                operands[k] = uint256(_signed(words[i + k]));
            }
            assertEq(this.evaluate(code, operands), uint256(_signed(words[i + arity])), name);
        }
    }

    /// @dev A published word: 64-bit two's complement.
    function _signed(uint256 word) private pure returns (int256) {
        return int256(int64(uint64(word)));
    }

    function _bit(bool value) private pure returns (uint256) {
        return value ? 1 : 0;
    }
}
