// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title SilentToken: answers nothing where ERC-20 says true, and keeps a list of who may not hold it
contract SilentToken {
    uint8 public constant decimals = 18;
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;
    mapping(address who => bool) public isBlocked;

    error Blocked(address who);

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function blockHolder(address who) external {
        isBlocked[who] = true;
    }

    function approve(address spender, uint256 amount) external {
        allowance[msg.sender][spender] = amount;
    }

    function transfer(address to, uint256 amount) external {
        _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external {
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) private {
        if (isBlocked[from]) revert Blocked(from);
        if (isBlocked[to]) revert Blocked(to);
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
    }
}
