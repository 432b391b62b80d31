// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "../../interfaces/IClaims.sol";
import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {Admitted, RunTerms} from "../../interfaces/RunTypes.sol";

/// @title CharterBench: a charter whose terms and modules the test writes, for contracts that read no more of it
contract CharterBench {
    bytes32 public constant run = "bench";

    RunTerms private _terms;
    RunModules private _modules;

    function write(RunTerms memory terms_, RunModules memory modules_) external {
        (_terms, _modules) = (terms_, modules_);
    }

    function runTerms() external view returns (RunTerms memory) {
        return _terms;
    }

    function roundModules() external view returns (RunModules memory) {
        return _modules;
    }

    function lockers() external view returns (address[] memory all) {
        all = new address[](3);
        (all[0], all[1], all[2]) = (_modules.commitments, _modules.game, _modules.challenges);
    }

    function programs() external view returns (Admitted[] memory all) {
        all = new Admitted[](3);
        (all[0].program, all[0].steps) = (_terms.step, _terms.training.stepsPerUnit);
        (all[1].program, all[1].steps) = (_terms.update, 1);
        (all[2].program, all[2].steps) = (_terms.merge, 1);
    }

    /// @notice One book for claims of every kind: whoever the test calls the commitments.
    function bookOf(ClaimKind) external view returns (IClaims) {
        return IClaims(_modules.commitments);
    }
}
