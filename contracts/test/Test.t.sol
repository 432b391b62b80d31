// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Test} from "./Test.sol";

/// @dev The assertions themselves must be able to fail.
contract TestTest is Test {
    function callEq(uint256 a, uint256 b) external pure {
        assertEq(a, b, "callEq");
    }

    function test_equal_values_pass_and_unequal_values_revert(uint256 a) public {
        this.callEq(a, a);
        uint256 b = a ^ 1;
        vm.expectRevert(abi.encodeWithSelector(NotEqualUint.selector, a, b, "callEq"));
        this.callEq(a, b);
    }

    function test_bound_stays_inside(uint256 x, uint256 low, uint256 high) public pure {
        if (low > high) (low, high) = (high, low);
        uint256 y = bound(x, low, high);
        assertTrue(y >= low && y <= high, "bound");
    }
}
