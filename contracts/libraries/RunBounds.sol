// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Program, RunEconomics, RunLaunch, RunTerms, RunTiming, RunTraining} from "../interfaces/RunTypes.sol";
import {Digests} from "./Digests.sol";
import {GovernanceBounds} from "./GovernanceBounds.sol";
import {RunPrices} from "./RunPrices.sol";
import {RunTimes} from "./RunTimes.sol";

/// @title RunBounds: what the terms of a run must be (equal to assay/protocol/economics/run_bounds.py)
library RunBounds {
    uint256 internal constant ONE_LEVEL = 64;
    uint256 internal constant MOST_SEATS = 1024;
    uint256 internal constant MOST_POSITIONS = 63;
    uint256 internal constant MAX_REVENUE_TOKENS = 4;
    uint256 internal constant MAX_ARITY = 64;
    uint256 internal constant LEAST_TICKETS = 5;
    uint256 internal constant MAX_HEADER = 2048; // bytes: two lists of 255 sizes and what stands around them

    /// @notice Reverts by name where the terms are out of their ranges or contradict each other.
    function check(RunTerms memory terms) internal view {
        if (terms.sponsor == address(0)) revert IRunCharter.ValueZero("sponsor");
        if (terms.token == address(0)) revert IRunCharter.ValueZero("token");
        if (terms.beacon == address(0)) revert IRunCharter.ValueZero("beacon");
        _checkTraining(terms.training, terms.rounds);
        _checkProgram(terms.step);
        _checkProgram(terms.update);
        _checkProgram(terms.merge);
        _checkProgram(terms.witness);
        // One level has no partial sums, two levels cannot do without.
        if (terms.training.seats > ONE_LEVEL) _checkProgram(terms.partialSum);
        else if (terms.partialSum.root != 0) revert IRunCharter.ProgramMismatch(terms.partialSum.root, 0);
        if (terms.clocks.arity < 2) revert IRunCharter.ValueZero("arity");
        checkAtMost("arity", terms.clocks.arity, MAX_ARITY);
        if (terms.expiry <= block.timestamp) {
            revert IRunCharter.WindowTooShort("expiry", terms.expiry, block.timestamp + 1);
        }
        checkAtMost("expiry", terms.expiry, type(uint40).max);
        _checkLaunch(terms);
        RunEconomics memory e = terms.economics;
        uint256 units = terms.training.maxUnits;
        RunPrices.checkAmount("shares per commitment", e.sharesPerUnit * units, RunPrices.MAX_AMOUNT);
        RunTiming memory t = terms.timing;
        // U is counted in rounds of C.
        checkNotZero("commit", t.commit);
        uint256 unsettled = RunTimes.unsettledRounds(t, terms.chain.inclusionDelay);
        RunPrices.check(e, e.unitPrice * units, unsettled);
        RunTimes.check(terms);
        if (terms.revenueTokens.length > MAX_REVENUE_TOKENS) {
            revert IRunCharter.TooManyRevenueTokens(terms.revenueTokens.length, MAX_REVENUE_TOKENS);
        }
        GovernanceBounds.check(terms);
    }

    /// @dev The scalars are i32 and the step is a pair of them; nothing in the schedule may wrap.
    function _checkTraining(RunTraining memory t, uint64 rounds) private pure {
        checkNotZero("seats", t.seats);
        checkAtMost("seats", t.seats, MOST_SEATS);
        if (t.seats > ONE_LEVEL) {
            checkNotZero("group size", t.groupSize);
            checkAtMost("group size", t.groupSize, ONE_LEVEL);
            checkNotZero("positions", t.positions);
            checkNotZero("top positions", t.topPositions);
        }
        checkAtMost("positions", t.positions, MOST_POSITIONS);
        checkAtMost("top positions", t.topPositions, MOST_POSITIONS);
        checkNotZero("least units", t.minUnits);
        checkAtMost("least units", t.minUnits, t.maxUnits);
        checkNotZero("steps per unit", t.stepsPerUnit);
        checkNotZero("shard length", t.shardLength);
        checkNotZero("rounds", rounds);
        checkAtMost("rounds", rounds, type(uint24).max);
        checkAtMost("steps", uint256(t.maxUnits) * t.stepsPerUnit, type(uint32).max);
        if (t.shards < t.seats) revert IRunCharter.ShardsFewerThanSeats(t.shards, t.seats);
        checkAtMost("data", uint256(t.shards) * t.shardLength, uint32(type(int32).max));
        // A NaN has many patterns, of which tensors know one: no step would end in this start.
        if (t.learningRate & 0x7f800000 == 0x7f800000) revert IRunCharter.NotFinite("learning rate", t.learningRate);
        if (t.parameters == 0) revert IRunCharter.ValueZero("parameters");
        if (t.momentum == 0) revert IRunCharter.ValueZero("momentum");
        if (t.zeroOptimizer == 0) revert IRunCharter.ValueZero("zero optimizer");
        if (t.zeroUpdate == 0) revert IRunCharter.ValueZero("zero update");
        if (t.data == 0) revert IRunCharter.ValueZero("data");
    }

    /// @dev After two bribes of three auditors nobody is left who looks, and of four one.
    function _checkLaunch(RunTerms memory terms) private pure {
        RunLaunch memory l = terms.launch;
        if (l.tickets < LEAST_TICKETS) revert IRunCharter.TooFewTickets(l.tickets, LEAST_TICKETS);
        checkNotZero("least seats", l.seats);
        checkAtMost("least seats", l.seats, terms.training.seats);
        checkAtMost("open from", l.openFrom, terms.expiry);
    }

    function _checkProgram(Program memory program) private pure {
        checkAtMost("header", program.header.length, MAX_HEADER);
        bytes32 computed = Digests.program(program.header, program.tree);
        if (computed != program.root) revert IRunCharter.ProgramMismatch(program.root, computed);
    }

    function checkAtMost(bytes32 what, uint256 value, uint256 maximum) internal pure {
        if (value > maximum) revert IRunCharter.ScheduleTooLong(what, value, maximum);
    }

    function checkNotZero(bytes32 what, uint256 value) internal pure {
        if (value == 0) revert IRunCharter.ValueZero(what);
    }
}
