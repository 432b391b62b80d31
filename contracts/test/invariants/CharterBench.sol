// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Admitted, Modules, Terms} from "../../interfaces/ICharter.sol";
import {ClaimKind, IClaims} from "../../interfaces/IClaims.sol";

/// @title CharterBench: a charter whose terms and modules the test writes, for contracts that read no more of it
contract CharterBench {
    bytes32 public constant run = "bench";

    Terms private _terms;
    Modules private _modules;

    function write(Terms memory terms_, Modules memory modules_) external {
        (_terms, _modules) = (terms_, modules_);
    }

    function terms() external view returns (Terms memory) {
        return _terms;
    }

    function modules() external view returns (Modules memory) {
        return _modules;
    }

    function lockers() external view returns (address[] memory all) {
        all = new address[](5);
        (all[0], all[1], all[2]) = (_modules.rounds, _modules.outers, _modules.audit);
        (all[3], all[4]) = (_modules.settlement, _modules.game);
    }

    function programs() external view returns (Admitted[] memory all) {
        all = new Admitted[](3);
        (all[0].program, all[0].steps) = (_terms.step, _terms.training.stepsPerInterval);
        (all[1].program, all[1].steps) = (_terms.update, 1);
        (all[2].program, all[2].steps) = (_terms.outer, 1);
    }

    /// @notice One book for claims of every kind: whoever the test calls the rounds.
    function bookOf(ClaimKind) external view returns (IClaims) {
        return IClaims(_modules.rounds);
    }
}
