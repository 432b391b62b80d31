// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title OddToken: has decimals of its own, and may be paused, or have balances that grow with time
contract OddToken is ERC20 {
    uint8 private immutable _decimals;
    uint256 public immutable since;
    bool public grows;
    bool public paused;

    constructor(uint8 decimals_) ERC20("Odd", "ODD") {
        _decimals = decimals_;
        since = block.timestamp;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function behave(bool grows_, bool paused_) external {
        (grows, paused) = (grows_, paused_);
    }

    function decimals() public view override returns (uint8) {
        return _decimals;
    }

    /// @dev By a hundredth a day, at the end of each.
    function balanceOf(address account) public view override returns (uint256) {
        uint256 held = super.balanceOf(account);
        return grows ? held + held * ((block.timestamp - since) / 1 days) / 100 : held;
    }

    function _update(address from, address to, uint256 value) internal override {
        require(!paused, "paused");
        super._update(from, to, value);
    }
}
