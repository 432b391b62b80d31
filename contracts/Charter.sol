// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "./interfaces/IClaims.sol";
import {Admitted, ICharter, Modules, Program, Terms, Training} from "./interfaces/ICharter.sol";
import {SEAT_COUNT} from "./interfaces/IRounds.sol";
import {ChainBounds} from "./libraries/ChainBounds.sol";
import {Digests} from "./libraries/Digests.sol";
import {EconomicsBounds} from "./libraries/Economics.sol";

/// @title Charter: the terms of one run, checked once and fixed
contract Charter is ICharter {
    uint256 internal constant MAX_INTERVALS = 40; // so that eight seats' leaves fit into one transaction
    uint256 internal constant MAX_REVENUE_TOKENS = 4;
    uint256 internal constant MAX_ARITY = 64;
    uint256 internal constant MAX_HEADER = 2048; // bytes: two lists of 255 sizes and what stands around them

    bytes32 public immutable run;

    Terms private _terms;
    Modules private _modules;

    constructor(Terms memory terms_, Modules memory modules_) {
        _checkTraining(terms_.training, terms_.rounds);
        EconomicsBounds.check(terms_.economics, terms_.training, terms_.windows, terms_.chain.inclusionDelay);
        _checkProgram(terms_.step);
        _checkProgram(terms_.update);
        _checkProgram(terms_.outer);
        if (terms_.sponsor == address(0)) revert ValueZero("sponsor");
        if (terms_.token == address(0)) revert ValueZero("token");
        if (terms_.seed == address(0)) revert ValueZero("seed");
        if (terms_.clocks.arity < 2) revert ValueZero("arity");
        _checkAtMost("arity", terms_.clocks.arity, MAX_ARITY);
        ChainBounds.check(terms_.chain, terms_.windows, terms_.clocks, terms_.economics);
        if (terms_.expiry <= block.timestamp) revert WindowTooShort("expiry", terms_.expiry, block.timestamp + 1);
        _checkAtMost("expiry", terms_.expiry, type(uint40).max);
        if (terms_.revenueTokens.length > MAX_REVENUE_TOKENS) {
            revert TooManyRevenueTokens(terms_.revenueTokens.length, MAX_REVENUE_TOKENS);
        }
        run = keccak256(abi.encode(terms_));
        _terms = terms_;
        _modules = modules_;
    }

    /// @inheritdoc ICharter
    function terms() external view returns (Terms memory) {
        return _terms;
    }

    /// @inheritdoc ICharter
    function modules() external view returns (Modules memory) {
        return _modules;
    }

    /// @inheritdoc ICharter
    function lockers() external view returns (address[] memory all) {
        all = new address[](5);
        (all[0], all[1], all[2]) = (_modules.rounds, _modules.outers, _modules.audit);
        (all[3], all[4]) = (_modules.settlement, _modules.game);
    }

    /// @inheritdoc ICharter
    function programs() external view returns (Admitted[] memory all) {
        all = new Admitted[](3);
        (all[0].program, all[0].steps) = (_terms.step, _terms.training.stepsPerInterval);
        (all[1].program, all[1].steps) = (_terms.update, 1);
        (all[2].program, all[2].steps) = (_terms.outer, 1);
    }

    /// @inheritdoc ICharter
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree) {
        Program storage program;
        if (root == _terms.step.root) program = _terms.step;
        else if (root == _terms.update.root) program = _terms.update;
        else if (root == _terms.outer.root) program = _terms.outer;
        else revert ProgramNotFound(root);
        return (program.header, program.tree);
    }

    /// @inheritdoc ICharter
    function bookOf(ClaimKind kind) external view returns (IClaims) {
        if (kind == ClaimKind.INTERVAL || kind == ClaimKind.UPDATE) return IClaims(_modules.rounds);
        if (kind == ClaimKind.OUTER) return IClaims(_modules.outers);
        if (kind == ClaimKind.ATTESTATION) return IClaims(_modules.audit);
        revert BookNotFound(kind);
    }

    /// @dev The scalars are i32 and the step is a pair of them; nothing in the schedule may wrap.
    function _checkTraining(Training memory t, uint64 rounds) private pure {
        if (t.intervals == 0) revert ValueZero("intervals");
        if (t.stepsPerInterval == 0) revert ValueZero("steps per interval");
        if (t.shardLength == 0) revert ValueZero("shard length");
        if (rounds == 0) revert ValueZero("rounds");
        // A NaN has many patterns, of which tensors know one: no step would end in this start.
        if (t.learningRate & 0x7f800000 == 0x7f800000) revert NotFinite("learning rate", t.learningRate);
        if (t.shards < SEAT_COUNT) revert ShardsFewerThanSeats(t.shards, SEAT_COUNT);
        _checkAtMost("intervals", t.intervals, MAX_INTERVALS);
        _checkAtMost("rounds", rounds, type(uint24).max);
        _checkAtMost("steps", uint256(t.intervals) * t.stepsPerInterval, type(uint32).max);
        _checkAtMost("data", uint256(t.shards) * t.shardLength, uint32(type(int32).max));
        if (t.parameters == 0) revert ValueZero("parameters");
        if (t.momentum == 0) revert ValueZero("momentum");
        if (t.zeroOptimizer == 0) revert ValueZero("zero optimizer");
        if (t.zeroUpdate == 0) revert ValueZero("zero update");
        if (t.data == 0) revert ValueZero("data");
    }

    function _checkProgram(Program memory program) private pure {
        _checkAtMost("header", program.header.length, MAX_HEADER);
        bytes32 computed = Digests.program(program.header, program.tree);
        if (computed != program.root) revert ProgramMismatch(program.root, computed);
    }

    function _checkAtMost(bytes32 what, uint256 value, uint256 maximum) private pure {
        if (value > maximum) revert ScheduleTooLong(what, value, maximum);
    }
}
