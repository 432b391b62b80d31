// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "../libraries/Float32.sol";

/// @title Float32Gas: what each function of Float32 costs inside a contract that calls it
/// @dev The gas between two readings of the counter around one call. Function 0 is no call: what the readings cost themselves.
contract Float32Gas {
    /// @notice Runs a function on pairs of operands.
    /// @return results patterns; of a comparison 0 or 1, of an integer its two's complement
    /// @return used gas of each call
    function measure(uint256 which, uint256[] calldata xs, uint256[] calldata ys)
        external
        view
        returns (uint256[] memory results, uint256[] memory used)
    {
        results = new uint256[](xs.length);
        used = new uint256[](xs.length);
        for (uint256 i = 0; i < xs.length; ++i) {
            (results[i], used[i]) = which < 8 ? _arithmetic(which, xs[i], ys[i]) : _other(which, xs[i], ys[i]);
        }
    }

    function _arithmetic(uint256 which, uint256 x, uint256 y) private view returns (uint256 result, uint256 used) {
        uint256 before;
        if (which == 0) {
            before = gasleft();
            result = x;
            used = before - gasleft();
        } else if (which == 1) {
            before = gasleft();
            result = Float32.add(x, y);
            used = before - gasleft();
        } else if (which == 2) {
            before = gasleft();
            result = Float32.sub(x, y);
            used = before - gasleft();
        } else if (which == 3) {
            before = gasleft();
            result = Float32.mul(x, y);
            used = before - gasleft();
        } else if (which == 4) {
            before = gasleft();
            result = Float32.div(x, y);
            used = before - gasleft();
        } else if (which == 5) {
            before = gasleft();
            result = Float32.sqrt(x);
            used = before - gasleft();
        } else if (which == 6) {
            before = gasleft();
            result = Float32.rint(x);
            used = before - gasleft();
        } else {
            before = gasleft();
            result = Float32.floor(x);
            used = before - gasleft();
        }
    }

    function _other(uint256 which, uint256 x, uint256 y) private view returns (uint256 result, uint256 used) {
        uint256 before;
        bool holds;
        if (which == 8) {
            before = gasleft();
            result = Float32.min(x, y);
            used = before - gasleft();
        } else if (which == 9) {
            before = gasleft();
            result = Float32.max(x, y);
            used = before - gasleft();
        } else if (which == 10) {
            before = gasleft();
            holds = Float32.eq(x, y);
            used = before - gasleft();
        } else if (which == 11) {
            before = gasleft();
            holds = Float32.lt(x, y);
            used = before - gasleft();
        } else if (which == 12) {
            before = gasleft();
            holds = Float32.le(x, y);
            used = before - gasleft();
        } else if (which == 13) {
            before = gasleft();
            result = Float32.scale2(x, int256(y));
            used = before - gasleft();
        } else if (which == 14) {
            int256 exponent;
            before = gasleft();
            exponent = Float32.exponentOf(x);
            used = before - gasleft();
            result = uint256(exponent);
        } else if (which == 15) {
            before = gasleft();
            result = Float32.fromInt(int256(x));
            used = before - gasleft();
        } else {
            int256 integer;
            before = gasleft();
            integer = Float32.toInt(x, y);
            used = before - gasleft();
            result = uint256(integer);
        }
        // Without a branch, which would cost more for one answer than for the other.
        if (which > 9 && which < 13) assembly { result := holds }
    }
}
