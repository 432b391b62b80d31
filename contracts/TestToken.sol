// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title TestToken: a token without value for demonstrations; everybody mints
contract TestToken is ERC20 {
    /// @notice More test tokens are asked for than are made at a time.
    /// @custom:remedy Ask for no more than the maximum, as often as you like.
    /// @param amount in wei
    /// @param maximum in wei
    error MintTooLarge(uint256 amount, uint256 maximum);

    uint256 public constant MAX_MINT = 1_000_000 ether;

    constructor() ERC20("Assay test token", "TEST") {}

    /// @notice Makes tokens for anybody, at most MAX_MINT wei at a time.
    function mint(address to, uint256 amount) external {
        if (amount > MAX_MINT) revert MintTooLarge(amount, MAX_MINT);
        _mint(to, amount);
    }
}
