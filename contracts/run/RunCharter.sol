// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "../interfaces/IClaims.sol";
import {DutyTerms} from "../interfaces/AuditTypes.sol";
import {RunModules, RoundTerms, TicketTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Admitted, Program, RunEconomics, RunTerms, RunTiming, RunTraining} from "../interfaces/RunTypes.sol";
import {RunBounds} from "../libraries/RunBounds.sol";

/// @title RunCharter: the terms of one run, checked once and fixed
contract RunCharter is IRunCharter {
    bytes32 public immutable run;

    RunTerms private _terms;
    RunModules private _modules;

    constructor(RunTerms memory terms_, RunModules memory modules_) {
        RunBounds.check(terms_);
        run = keccak256(abi.encode(terms_));
        _terms = terms_;
        _modules = modules_;
        (_modules.charter, _modules.beacon) = (address(this), terms_.beacon);
    }

    /// @inheritdoc IRunCharter
    function runTerms() external view returns (RunTerms memory) {
        return _terms;
    }

    /// @inheritdoc IRunCharter
    function roundModules() external view returns (RunModules memory) {
        return _modules;
    }

    /// @inheritdoc IRunCharter
    function ticketTerms() external view returns (TicketTerms memory) {
        return TicketTerms(_terms.economics.ticketBond, _terms.timing.seasoning, _terms.economics.shifts);
    }

    /// @inheritdoc IRunCharter
    function dutyTerms() external view returns (DutyTerms memory) {
        RunEconomics storage e = _terms.economics;
        RunTiming storage t = _terms.timing;
        return DutyTerms({
            start: t.auditsFrom,
            length: t.epoch,
            delay: t.seedDelay,
            capacity: uint8(e.capacity),
            auditPpm: e.auditPpm,
            reauditPpm: e.reauditPpm,
            wage: e.wage
        });
    }

    /// @inheritdoc IRunCharter
    function roundTerms() external view returns (RoundTerms memory r) {
        RunTraining storage work = _terms.training;
        RunTiming storage t = _terms.timing;
        (r.seats, r.groupSize) = (work.seats, work.groupSize);
        (r.positions, r.topPositions) = (work.positions, work.topPositions);
        (r.minUnits, r.maxUnits, r.stepsPerUnit) = (work.minUnits, work.maxUnits, work.stepsPerUnit);
        (r.learningRate, r.shards, r.shardLength) = (work.learningRate, work.shards, work.shardLength);
        (r.rounds, r.expiry) = (uint32(_terms.rounds), uint48(_terms.expiry));
        (r.commit, r.inclusion, r.grace) = (t.commit, _terms.chain.inclusionDelay, t.grace);
        (r.hold, r.groupMerge, r.merge, r.beaconDelay) = (t.hold, t.groupMerge, t.merge, t.beaconDelay);
        (r.challenge, r.rescue, r.longestDispute) = (t.challenge, t.rescue, t.longestDispute);
        (r.run, r.stepProgram, r.updateProgram) = (run, _terms.step.root, _terms.update.root);
        (r.outerProgram, r.witnessProgram) = (_terms.merge.root, _terms.witness.root);
        (r.partialProgram, r.data) = (_terms.partialSum.root, work.data);
        (r.zeroOptimizer, r.zeroUpdate, r.zeroPartial) = (work.zeroOptimizer, work.zeroUpdate, work.zeroPartial);
        (r.parameters, r.momentum) = (work.parameters, work.momentum);
        (r.seatLock, r.seatFee) = (_terms.economics.seatLock, _terms.economics.seatFee);
        (r.drawnBountyPpm, r.thirdBountyPpm) = (_terms.economics.drawnBountyPpm, _terms.economics.thirdBountyPpm);
    }

    /// @inheritdoc IRunCharter
    function lockers() external view returns (address[] memory all) {
        all = new address[](7);
        (all[0], all[1], all[2]) = (_modules.tickets, _modules.tenures, _modules.generations);
        (all[3], all[4]) = (_modules.escrow, _modules.bounties);
        (all[5], all[6]) = (_modules.game, _modules.challenges);
    }

    /// @inheritdoc IRunCharter
    function programs() external view returns (Admitted[] memory all) {
        all = new Admitted[](_terms.partialSum.root == 0 ? 4 : 5);
        uint256 steps = uint256(_terms.training.maxUnits) * _terms.training.stepsPerUnit;
        (all[0].program, all[0].steps) = (_terms.step, steps);
        (all[1].program, all[1].steps) = (_terms.witness, steps);
        (all[2].program, all[2].steps) = (_terms.update, 1);
        (all[3].program, all[3].steps) = (_terms.merge, 1);
        if (all.length == 5) (all[4].program, all[4].steps) = (_terms.partialSum, 1);
    }

    /// @inheritdoc IRunCharter
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree) {
        Program storage program;
        if (root == _terms.step.root) program = _terms.step;
        else if (root == _terms.update.root) program = _terms.update;
        else if (root == _terms.merge.root) program = _terms.merge;
        else if (root == _terms.witness.root) program = _terms.witness;
        else if (root == _terms.partialSum.root && root != 0) program = _terms.partialSum;
        else revert ProgramNotFound(root);
        return (program.header, program.tree);
    }

    /// @inheritdoc IRunCharter
    function bookOf(ClaimKind kind) external view returns (IClaims) {
        if (kind == ClaimKind.INTERVAL || kind == ClaimKind.UPDATE) return IClaims(_modules.commitments);
        if (kind == ClaimKind.OUTER) return IClaims(_modules.generations);
        if (kind == ClaimKind.ATTESTATION) return IClaims(_modules.attestations);
        revert BookNotFound(kind);
    }
}
