// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title ChangingToken: says of itself what its issuer likes at any time, or nothing at all
contract ChangingToken is ERC20 {
    uint256 public constant MAX_MINT = type(uint256).max; // at a time: as a test token says it

    uint8 private _decimals = 6;
    string private _symbol = "USDC";
    bool public silent;

    constructor() ERC20("Changing", "CHG") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function say(uint8 decimals_, string calldata symbol_, bool silent_) external {
        (_decimals, _symbol, silent) = (decimals_, symbol_, silent_);
    }

    function decimals() public view override returns (uint8) {
        require(!silent);
        return _decimals;
    }

    function symbol() public view override returns (string memory) {
        require(!silent);
        return _symbol;
    }
}
