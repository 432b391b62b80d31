// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {
    GroupState,
    ICommitments,
    Presence,
    RoundState,
    Work,
    WorkState,
    WorkStatus
} from "../interfaces/ICommitments.sol";
import {ICalls} from "../interfaces/ICalls.sol";
import {GenerationStatus, IGenerations} from "../interfaces/IGenerations.sol";
import {IAccusers, RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";
import {Lanes} from "../libraries/Lanes.sol";
import {Scalars} from "../libraries/Scalars.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {Committees} from "./Committees.sol";

/// @title Commitments: what seats did in a round
/// @notice A commitment is a digest and one slot. Updates with weight go into an accumulator of their group, over which
/// positions say what they hold.
contract Commitments is Committees {
    IGenerations private immutable _generations;
    IAccusers private immutable _accusers;
    ICalls private immutable _duties;
    address private immutable _payments;
    address private immutable _game;
    address private immutable _charter;
    uint256 private immutable _seatLock;
    uint32 private immutable _minUnits;
    uint32 private immutable _maxUnits;
    uint32 private immutable _stepsPerUnit;
    uint32 private immutable _learningRate;
    uint32 private immutable _shards;
    uint32 private immutable _shardLength;
    bytes32 private immutable _run;
    bytes32 private immutable _stepProgram;
    bytes32 private immutable _updateProgram;
    bytes32 private immutable _data;
    bytes32 private immutable _zeroOptimizer;

    /// @dev What `prepare` built.
    struct PreparedClaim {
        bytes32 x;
        bytes32 y;
        uint32 steps;
    }

    mapping(ClaimKind kind => mapping(uint64 round => mapping(uint32 seat => PreparedClaim))) private _claims;

    constructor(IRunCharter charter) Committees(charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        _generations = IGenerations(modules.generations);
        (_accusers, _duties) = (IAccusers(modules.attestations), ICalls(modules.duties));
        (_payments, _game, _charter) = (modules.payments, modules.game, modules.charter);
        _seatLock = terms.seatLock;
        (_minUnits, _maxUnits) = (terms.minUnits, terms.maxUnits);
        (_stepsPerUnit, _learningRate) = (terms.stepsPerUnit, terms.learningRate);
        (_shards, _shardLength) = (terms.shards, terms.shardLength);
        (_run, _stepProgram, _updateProgram) = (terms.run, terms.stepProgram, terms.updateProgram);
        (_data, _zeroOptimizer) = (terms.data, terms.zeroOptimizer);
    }

    // ------------------------------------------------------------------------------------------------ rounds

    /// @inheritdoc ICommitments
    function openRound(uint64 parent, bytes32 base) external returns (uint64 round) {
        if (msg.sender != address(_generations)) revert NotGenerations(msg.sender);
        return _begin(parent, base, uint32(_tenures.seatedAt(opened)));
    }

    /// @inheritdoc ICommitments
    function commit(uint64 round, uint32 seat, uint32 tenure, bytes32 base, Work calldata work) external {
        uint48 until = commitUntil(round);
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
        RoundState storage r = _rounds[round];
        // Attack: a reorganization that puts another base under work that is done; it would be false.
        if (base != r.base) revert BaseMismatch(base, r.base);
        // Attack: a seat, and a full voice, for a fraction of the work.
        if (work.units < _minUnits || work.units > _maxUnits) {
            revert UnitsOutOfRange(work.units, _minUnits, _maxUnits);
        }
        (uint32 held, bool weighs) = _tenures.charge(tenure, round, msg.sender);
        // Attack: a reorganization in which the tenure has another seat; its work starts from other scalars.
        if (seat != held) revert SeatMismatch(seat, held);
        (uint32 group, uint64 bit) = _place(seat);
        GroupState storage g = _groups[round][group];
        if (g.committed & bit != 0) revert AlreadyCommitted(round, seat);
        bool late = !weighs || block.timestamp > r.maskAt;
        g.committed |= bit;
        if (!late) {
            if (g.maskable == 0) ++r.groups;
            g.maskable |= bit;
            g.acc = keccak256(abi.encode(g.acc, seat, work.update, work.units));
        }
        WorkState storage w = _works[round][seat];
        w.digest = digestOf(round, seat, tenure, work);
        (w.tenure, w.units, w.late) = (tenure, work.units, late);
        _onCommitted(round, r);
        emit WorkCommitted(round, seat, tenure, work, g.acc, late);
    }

    /// @inheritdoc ICommitments
    function settle(uint64 round, uint32 seat) external returns (WorkStatus status) {
        if (msg.sender != _payments) revert NotPayments(msg.sender);
        WorkState storage w = _existing(round, seat);
        if (w.settled) revert AlreadySettled(round, seat);
        uint256 accusations = _tenures.tenureOf(w.tenure).accusations;
        // Attack: further lies that are paid while the game that takes the lock is stalled.
        if (w.games != 0 || accusations != 0) revert StillDisputed(w.games, accusations);
        status = _statusOf(round, w.tenure);
        w.settled = true;
        _tenures.acquit(w.tenure);
        emit WorkSettled(round, seat, status);
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc ICommitments
    function prepare(ClaimKind kind, uint64 round, uint32 seat, Work calldata work) external {
        WorkState storage w = _existing(round, seat);
        bytes32 digest = digestOf(round, seat, w.tenure, work);
        // Attack: X or Y of the challenger's own choice.
        if (digest != w.digest) revert WorkMismatch(digest, w.digest);
        (bytes32 parameters,,, bytes32 start) = startOf(round, seat);
        PreparedClaim storage claim = _claims[kind][round][seat];
        if (kind == ClaimKind.INTERVAL) {
            (claim.x, claim.y) = (start, StateRoots.state3(work.ends[0], work.ends[1], work.ends[2]));
            claim.steps = work.units * _stepsPerUnit;
        } else if (kind == ClaimKind.UPDATE) {
            (claim.x, claim.y) = (StateRoots.state2(parameters, work.ends[0]), StateRoots.state1(work.update));
            claim.steps = 1;
        } else {
            revert ClaimNotFound(kind, round, seat, 0);
        }
        emit ClaimPrepared(round, seat, kind, claim.x, claim.y);
    }

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        PreparedClaim storage claim = _claims[ref.kind][ref.round][ref.seat];
        if (claim.steps == 0) return view_;
        WorkState storage w = _works[ref.round][ref.seat];
        view_.claimant = _tenures.holderOf(w.tenure);
        (view_.x, view_.y, view_.steps) = (claim.x, claim.y, claim.steps);
        view_.id = ClaimIds.claim(_charter, _run, ref.kind, view_.claimant, claim.x, claim.y);
        view_.program = ref.kind == ClaimKind.UPDATE ? _updateProgram : _stepProgram;
        view_.challengeableFrom = _rounds[ref.round].maskAt + 1;
        view_.challengeableUntil = _mayOpen(ref, w) ? type(uint64).max : 0;
        (view_.lockId, view_.lockAmount) = (_tenures.lockOf(w.tenure), _seatLock);
        view_.fallen = _tenures.isConvicted(w.tenure);
        (view_.bountyPpm, view_.beneficiary) = _accusers.bountyOf(true, w.tenure);
    }

    /// @inheritdoc IClaims
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        bytes32 digest = _works[ref.round][ref.seat].digest;
        return _claims[ref.kind][ref.round][ref.seat].steps != 0 && _accusers.mayTry(ref.outerRoot, digest, who);
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address challenger) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        WorkState storage w = _works[ref.round][ref.seat];
        if (_claims[ref.kind][ref.round][ref.seat].steps == 0) {
            revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        }
        if (!_mayOpen(ref, w)) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++w.games;
        _tenures.onGameOpened(w.tenure);
        if (ref.outerRoot != 0) _accusers.onTried(ref.outerRoot, w.digest, challenger);
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        WorkState storage w = _works[ref.round][ref.seat];
        --w.games;
        first = _tenures.onGameClosed(w.tenure, convicted);
        if (ref.outerRoot != 0) _accusers.onJudged(ref.outerRoot, convicted);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICommitments
    function digestOf(uint64 round, uint32 seat, uint32 tenure, Work calldata work) public pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, tenure, work));
    }

    /// @inheritdoc ICommitments
    function isDisputable(uint64 round, uint32 seat) public view returns (bool) {
        if (_works[round][seat].settled) return false;
        // Attack: puppets' games of which each is opened before the last one ends: nothing is paid until the run is wound down.
        // Time alone decides, never a game.
        return _duties.overAfter(commitUntil(round)) == 0 || _isOpen(_generations.statusOf(_rounds[round].parent));
    }

    /// @inheritdoc ICommitments
    function presenceOf(uint64 round, uint32 seat) external view returns (Presence) {
        if (block.timestamp <= commitUntil(round)) return Presence.UNKNOWN;
        (uint32 group, uint64 bit) = _place(seat);
        GroupState storage g = _groups[round][group];
        if (g.committed & bit == 0) return Presence.MISSED;
        (uint64 counted, bool closed) = countedOf(round, group);
        if (!closed) return Presence.UNKNOWN;
        // Late work is work; and a committee of which nobody spoke says nothing about anybody.
        bool unheard = g.maskable & bit == 0 || g.spoke == 0;
        if (unheard || counted & bit != 0) return Presence.PRESENT;
        // Attack: a third of the voices leaves out what everybody else holds, and those seats are put off. Fewer than a third hold
        // it (3 h < s) only where liars are more than two thirds, or where nobody else does.
        bool held = _heldBy(round, group, (Lanes.count(g.spoke) + 2) / 3) & bit != 0;
        return held ? Presence.UNCOUNTED : Presence.UNHELD;
    }

    /// @inheritdoc ICommitments
    function startOf(uint64 round, uint32 seat)
        public
        view
        returns (bytes32 parameters, bytes32 optimizer, bytes32 scalars, bytes32 state)
    {
        parameters = _generations.parametersOf(_rounds[round].parent);
        // Attack: a list carried from round to round, false once and true ever after. Moments start at zero.
        optimizer = _zeroOptimizer;
        scalars = Scalars.listRoot(
            Scalars.Start({
                run: _run,
                round: round,
                seat: seat,
                stepsPerRound: _maxUnits * _stepsPerUnit,
                learningRate: _learningRate,
                shards: _shards,
                shardLength: _shardLength,
                data: _data
            })
        );
        state = StateRoots.state3(parameters, optimizer, scalars);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev Whoever accused in time has as long as its accusation is recorded: nothing of the accused settles before.
    function _mayOpen(ClaimRef calldata ref, WorkState storage w) private view returns (bool) {
        return ref.outerRoot != 0 ? !w.settled : isDisputable(ref.round, ref.seat);
    }

    function _isOpen(GenerationStatus status) private pure returns (bool) {
        return status != GenerationStatus.FINAL && status != GenerationStatus.CUT;
    }

    function _statusOf(uint64 round, uint32 tenure) private view returns (WorkStatus) {
        if (_tenures.isConvicted(tenure)) return WorkStatus.CONVICTED;
        uint64 parent = _rounds[round].parent;
        GenerationStatus status = _generations.statusOf(parent);
        if (status == GenerationStatus.FINAL) return WorkStatus.FINAL;
        // Attack: a base whose bytes only its authors hold. Nobody can replay work on it, so nobody is paid for it.
        if (status == GenerationStatus.CUT) return WorkStatus.VOID;
        revert ParentOpen(parent);
    }

    function _existing(uint64 round, uint32 seat) private view returns (WorkState storage w) {
        w = _works[round][seat];
        if (w.tenure == 0) revert CommitmentNotFound(round, seat);
    }
}
