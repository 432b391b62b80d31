// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunChain, RunGovernance, RunTerms, RunTiming} from "../interfaces/RunTypes.sol";
import {RunTimes} from "./RunTimes.sol";

/// @title GovernanceBounds: what a charter that names governance must promise (equal to assay/protocol/economics/governance_bounds.py)
/// @notice A charter whose terms of governance are all zero names none: nobody can ever pause its run.
library GovernanceBounds {
    uint256 internal constant PPM = 1e6;
    uint256 internal constant LEAST_QUORUM_PPM = 100_000;
    uint256 internal constant MOST_GUARDIAN_PAUSES = 16;
    uint256 internal constant LEAST_PERIOD = 1 days; // people vote, not machines
    /// @dev Who has a hundredth of the least shares that govern may propose.
    uint256 internal constant PROPOSERS = 100;

    function isNamed(RunGovernance memory g) internal pure returns (bool) {
        return g.votingPeriod != 0;
    }

    /// @notice Reverts by name where a vote could surprise, stop for good, or be bought for a moment.
    function check(RunTerms memory terms) internal pure {
        (RunGovernance memory g, RunTiming memory t, RunChain memory c) = (terms.governance, terms.timing, terms.chain);
        if (!isNamed(g)) {
            RunGovernance memory none;
            // Attack: terms that read as if somebody governed, or nobody.
            if (keccak256(abi.encode(g)) != keccak256(abi.encode(none))) revert IRunCharter.ValueZero("voting period");
            return;
        }
        uint256 seen = uint256(c.inclusionDelay) + c.reorgDepth;
        // Attack: shares that are borrowed for as long as nobody can tell.
        RunTimes.checkRange("voting delay", g.votingDelay, seen + RunTimes.MARGIN, RunTimes.MAX_WINDOW);
        RunTimes.checkRange("voting period", g.votingPeriod, seen + LEAST_PERIOD, RunTimes.MAX_WINDOW);
        // Attack: a decision that is in force before a seat that leaves because of it is out of its last round.
        RunTimes.checkRange(
            "timelock", g.timelock, t.commit + c.inclusionDelay + seen + RunTimes.MARGIN, RunTimes.MAX_WINDOW
        );
        RunTimes.checkRange("longest pause", g.longestPause, 1, RunTimes.MAX_WINDOW);
        bool isGuarded = g.guardian != address(0);
        RunTimes.checkRange("guardian pause", g.guardianPause, isGuarded ? 1 : 0, isGuarded ? RunTimes.MAX_WINDOW : 0);
        RunTimes.checkRange(
            "guardian pauses", g.guardianPauses, isGuarded ? 1 : 0, isGuarded ? MOST_GUARDIAN_PAUSES : 0
        );
        // Attack: a pause after which anybody can wind the run down, with what is not settled. `RunTimes` found the rest.
        uint256 room = t.stall - RunTimes.slowest(t, c.inclusionDelay);
        RunTimes.checkRange("pauses", uint256(g.longestPause) + g.guardianPause, 0, room);
        if (g.quorumPpm < LEAST_QUORUM_PPM) revert IRunCharter.QuorumTooLow(g.quorumPpm, LEAST_QUORUM_PPM);
        _checkRate("quorum", g.quorumPpm);
        if (g.leastPricePpm == 0) revert IRunCharter.ValueZero("least price");
        _checkRate("least price", g.leastPricePpm);
        RunTimes.checkRange("least rounds", g.leastRounds, 1, terms.rounds);
        // Without shares for work nobody could ever vote.
        if (terms.economics.sharesPerUnit == 0) revert IRunCharter.ValueZero("shares per unit");
    }

    /// @notice Seconds in which somebody has a round opened between two pauses, whatever the chain delays or undoes.
    function restOf(RunChain memory c) internal pure returns (uint256) {
        return uint256(c.inclusionDelay) + c.reorgDepth + RunTimes.MARGIN;
    }

    /// @notice Shares that the least seats of the launch earn by the least work in the least rounds, in wei of shares.
    function leastVested(RunTerms memory terms) internal pure returns (uint256) {
        uint256 commitments = uint256(terms.governance.leastRounds) * terms.launch.seats;
        return commitments * terms.training.minUnits * terms.economics.sharesPerUnit;
    }

    function _checkRate(bytes32 what, uint256 ppm) private pure {
        if (ppm > PPM) revert IRunCharter.RateTooHigh(what, ppm, PPM);
    }
}
