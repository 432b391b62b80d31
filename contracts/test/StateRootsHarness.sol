// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Times} from "../interfaces/IRounds.sol";
import {Economics, Windows} from "../interfaces/ICharter.sol";
import {EconomicsBounds} from "../libraries/Economics.sol";
import {Scalars} from "../libraries/Scalars.sol";
import {Schedule} from "../libraries/Schedule.sol";
import {StateRoots} from "../libraries/StateRoots.sol";

/// @title StateRootsHarness: the ledger's libraries, callable
contract StateRootsHarness {
    function scalars(Scalars.Start calldata start) external pure returns (bytes32) {
        return Scalars.listRoot(start);
    }

    function outerInput(bytes32 parameters, bytes32 momentum, bytes32[8] calldata updates, uint8 mask)
        external
        pure
        returns (bytes32)
    {
        return StateRoots.outerInput(parameters, momentum, updates, mask);
    }

    function tree(bytes32[] calldata digests) external pure returns (bytes32) {
        return StateRoots.treeRoot(digests);
    }

    function times(Windows calldata windows, uint64 t0) external pure returns (Times memory) {
        return Schedule.timesOf(windows, t0);
    }

    function bounds(Economics calldata e, Windows calldata w, uint64 inclusionDelay, uint256 intervals)
        external
        pure
        returns (uint256 claimLock, uint256 bond, uint256 exit, uint256 vesting, uint256 wages)
    {
        claimLock = EconomicsBounds.minClaimLock(e, intervals);
        bond = EconomicsBounds.minBond(e);
        exit = EconomicsBounds.minExit(w, inclusionDelay);
        vesting = EconomicsBounds.vestingDelay(w, inclusionDelay, 20);
        wages = EconomicsBounds.wageCap(e.auditPpm);
    }
}
