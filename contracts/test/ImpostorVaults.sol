// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Vault} from "../Vault.sol";

/// @title EvilVault: the vault with a way out for the sponsor
contract EvilVault is Vault {
    constructor(IRunCharter charter_) Vault(charter_) {}

    function sweep() external {
        token.transfer(charter.runTerms().sponsor, token.balanceOf(address(this)));
    }
}

/// @title PresetVault: the vault to the last byte, over storage in which its author has a balance already
contract PresetVault is Vault {
    constructor(IRunCharter charter_) Vault(charter_) {
        free[charter_.runTerms().sponsor] = 1e24;
    }
}
