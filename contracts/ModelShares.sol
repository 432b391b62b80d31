// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {IRevenue} from "./interfaces/IRevenue.sol";
import {RunModules} from "./interfaces/IRoundTerms.sol";
import {IRunCharter} from "./interfaces/IRunCharter.sol";

/// @title ModelShares: who owns what a run's model earns; one token per run
/// @notice Only vested shares exist here. They promise nothing: they divide what others choose to pay in.
contract ModelShares is ERC20, ERC20Permit, ERC20Votes {
    /// @notice Only the contract of grants makes shares.
    /// @dev Shares that strangers could make would take the owners' revenue.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotGrants(address caller);

    IRunCharter public immutable charter;
    address private immutable _grants;
    IRevenue private immutable _revenue;

    constructor(IRunCharter charter_) ERC20("Assay model shares", "SHARE") ERC20Permit("Assay model shares") {
        RunModules memory modules = charter_.roundModules();
        charter = charter_;
        _grants = modules.grants;
        _revenue = IRevenue(modules.revenue);
    }

    /// @notice Grants only: turns pending shares into tokens.
    function mint(address owner, uint256 amount) external {
        if (msg.sender != _grants) revert NotGrants(msg.sender);
        _mint(owner, amount);
    }

    /// @notice Votes are counted by chain time (ERC-6372).
    function clock() public view override returns (uint48) {
        return uint48(block.timestamp);
    }

    // solhint-disable-next-line func-name-mixedcase
    function CLOCK_MODE() public pure override returns (string memory) {
        return "mode=timestamp";
    }

    function nonces(address owner) public view override(ERC20Permit, Nonces) returns (uint256) {
        return super.nonces(owner);
    }

    /// @dev Both sides are paid what they earned so far before a balance changes.
    function _update(address from, address to, uint256 value) internal override(ERC20, ERC20Votes) {
        _revenue.onTransfer(from, to);
        super._update(from, to, value);
    }
}
