// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title ReentrantToken: calls back into whatever it was told to, in the middle of every transfer
/// @dev It also owns a stake, so that a call back comes from somebody who has something to take out.
contract ReentrantToken is ERC20 {
    address private _target;
    bytes private _call;

    /// @notice Calls back that went through, and the data of the last one that did not.
    uint256 public succeeded;
    bytes public refusal;

    constructor() ERC20("Reentrant", "RE") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function arm(address target, bytes calldata call) external {
        (_target, _call) = (target, call);
    }

    function act(address target, bytes calldata call) external {
        (bool done, bytes memory answer) = target.call(call);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    function _update(address from, address to, uint256 value) internal override {
        super._update(from, to, value);
        if (_target == address(0)) return;
        address target = _target;
        // Once per arming, or it would call itself for ever.
        _target = address(0);
        (bool done, bytes memory answer) = target.call(_call);
        if (done) ++succeeded;
        else refusal = answer;
    }
}
