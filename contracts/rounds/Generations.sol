// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GenerationStatus, IGenerations, NodeState, OpenedRoot} from "../interfaces/IGenerations.sol";
import {IRoundGate, RoundModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {Lanes} from "../libraries/Lanes.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {GenerationNodes} from "./GenerationNodes.sol";
import {MergeClaims} from "./MergeClaims.sol";

/// @title Generations: seals, openings, cut and restart, at one level
contract Generations is MergeClaims {
    IVault private immutable _vault;
    IRoundGate private immutable _gate;
    address private immutable _launcher;

    constructor(IRunCharter charter) GenerationNodes(charter) MergeClaims(charter) {
        RoundModules memory modules = charter.roundModules();
        _vault = IVault(modules.vault);
        (_gate, _launcher) = (IRoundGate(modules.escrow), modules.escrow);
    }

    // ------------------------------------------------------------------------------------------------ merging

    /// @inheritdoc IGenerations
    function begin() external {
        if (msg.sender != _launcher) revert NotTheLauncher(msg.sender);
        if (_commitments.opened() != 0) revert AlreadyBegun();
        if (!_openNext(0, false)) revert Paused();
    }

    /// @inheritdoc IGenerations
    function seal(uint64 round, uint32 seat, bytes32 seal_) external {
        uint64 generation = round + 1;
        uint48 until = _sealUntil(round);
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
        if (_isCut(generation)) revert GenerationCut(generation);
        // Attack: updates that begin or cease to count while roots are computed; no root would have a majority.
        (, bool closed) = _commitments.countedOf(round, 0);
        if (!closed) revert MaskOpen(round);
        // Attack: a history that a minority goes on with.
        if (_commitments.isUnderHalf(round)) revert TooFewCommitted(round);
        (, uint256 all) = _position(round, seat);
        if (_seals[generation][seat] != 0) revert AlreadySealed(seat);
        _seals[generation][seat] = seal_;
        Votes storage votes = _votes[generation];
        uint256 count = ++votes.sealed_;
        if (count == all) votes.sealUntil = uint48(block.timestamp);
        else if (votes.sealUntil == 0 && 2 * count > all) votes.sealUntil = _sooner(until);
        emit RootSealed(generation, seat, seal_);
    }

    /// @inheritdoc IGenerations
    function open(uint64 round, uint32 seat, bytes32 parameters, bytes32 momentum, bytes32 salt) external {
        uint64 generation = round + 1;
        uint48 until = _commitments.mergeUntil(round);
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
        if (_isCut(generation)) revert GenerationCut(generation);
        uint48 sealUntil = _sealUntil(round);
        // Attack: roots that are copied from whoever opens first, and so stand for nobody's work.
        if (block.timestamp <= sealUntil) revert TooEarly(block.timestamp, uint256(sealUntil) + 1);
        bytes32 root = StateRoots.state2(parameters, momentum);
        bytes32 digest = sealOf(round, seat, root, salt, msg.sender);
        if (digest != _seals[generation][seat]) revert SealMismatch(digest, _seals[generation][seat]);
        (uint32 tenure, uint256 all) = _position(round, seat);
        OpenedRoot storage opening = _openings[generation][partyOf(seat)];
        if (opening.at != 0) revert AlreadySealed(seat);
        (opening.root, opening.tenure, opening.at) = (root, tenure, uint48(block.timestamp));
        Node storage node = _nodes[generation][root];
        (node.parameters, node.momentum) = (parameters, momentum);
        ++node.state.standing;
        uint256 count = ++node.state.votes;
        _tenures.oblige(tenure);
        emit RootOpened(generation, seat, root, parameters, momentum);
        if (2 * count > all && _votes[generation].root == 0) _merge(generation, root);
    }

    /// @inheritdoc IGenerations
    function restart() external {
        uint64 count = _commitments.opened();
        if (count == 0) revert RoundAlive(0);
        uint64 round = count - 1;
        if (_votes[count].root == 0 && !_isCut(count)) _giveUp(round);
        (uint64 parent, bool isEmpty) = _newest(_votes[count].root != 0 ? count : round);
        if (!_openNext(parent, isEmpty)) revert Paused();
    }

    // ------------------------------------------------------------------------------------------------ what stands

    /// @inheritdoc IGenerations
    function drop(uint64 generation, bytes32 party) external {
        OpenedRoot storage opening = _standing(generation, party);
        // Attack: backers of a false root who lose their lock in a puppet's game elsewhere; no game could convict them here.
        if (!_isTakenElsewhere(opening)) revert NotConvicted(generation, party);
        _lose(generation, party, opening);
    }

    /// @inheritdoc IGenerations
    function back(uint64 generation, bytes32 root) external {
        NodeState storage state = _nodes[generation][root].state;
        bytes32 party = backerOf(root, msg.sender);
        bool isKnown = statusOf(generation) == GenerationStatus.MERGED && root == _votes[generation].root;
        if (!isKnown || state.rescueUntil == 0 || _openings[generation][party].at != 0) {
            revert NotBackable(generation, root);
        }
        // Attack: losing again and again, or relieving each other, to keep a root in doubt.
        if (block.timestamp > state.rescueUntil) revert TooLate(block.timestamp, state.rescueUntil);
        OpenedRoot storage opening = _openings[generation][party];
        (opening.root, opening.backer, opening.at) = (root, msg.sender, uint48(block.timestamp));
        ++state.standing;
        _vault.lock(_backLock(generation, party), msg.sender, _seatLock);
        emit RootBacked(generation, root, msg.sender);
    }

    /// @inheritdoc IGenerations
    function finalize(uint64 generation, bytes32 party) external {
        if (statusOf(generation) != GenerationStatus.MERGED) revert NotFinalizable(generation);
        if (statusOf(_commitments.roundOf(generation - 1).parent) != GenerationStatus.FINAL) {
            revert NotFinalizable(generation);
        }
        OpenedRoot storage opening = _standing(generation, party);
        bytes32 root = _votes[generation].root;
        if (opening.root != root || _isTakenElsewhere(opening)) revert NotStanding(generation, party);
        uint48 until = opening.at + _challenge;
        if (block.timestamp <= until) revert TooEarly(block.timestamp, uint256(until) + 1);
        uint256 games = _nodes[generation][root].state.games;
        if (games != 0) revert GamesOpen(games);
        _votes[generation].isFinal = true;
        emit Finalized(generation);
    }

    /// @inheritdoc IGenerations
    function close(uint64 generation, bytes32 party) external {
        OpenedRoot storage opening = _openings[generation][party];
        if (opening.at == 0 || opening.closed) revert NotStanding(generation, party);
        if (opening.games != 0) revert GamesOpen(opening.games);
        GenerationStatus status = statusOf(generation);
        bool isOver = status == GenerationStatus.FINAL || status == GenerationStatus.CUT;
        if (!isOver || block.timestamp <= opening.at + _challenge) revert GenerationOpen(generation);
        opening.closed = true;
        if (opening.tenure != 0) _tenures.acquit(opening.tenure);
        else if (!opening.fallen) _vault.release(_backLock(generation, party));
        emit OpeningClosed(generation, party);
    }

    /// @inheritdoc IGenerations
    function fall(uint64 generation) external {
        if (generation == 0 || statusOf(generation) != GenerationStatus.MERGED) revert NotFallen(generation);
        NodeState storage state = _nodes[generation][_votes[generation].root].state;
        bool isDead = state.standing == 0 && block.timestamp > state.rescueUntil;
        if (!isDead) revert NotFallen(generation);
        _cut(generation);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev The root has its majority: the next round opens in this block, if the run can carry it.
    function _merge(uint64 generation, bytes32 root) private {
        _votes[generation].root = root;
        emit Merged(generation, root);
        // Attack: an escrow that is short by one wei, or a run that is over, and no opening can give a majority.
        bool isNewest = generation == _commitments.opened();
        if (!isNewest || !_openNext(generation, false)) emit RoundWaits(generation);
    }

    /// @dev Opens a round, unless the run is over, has nobody seated, or cannot carry it.
    function _openNext(uint64 parent, bool isEmpty) private returns (bool) {
        uint64 round = _commitments.opened();
        uint256 seated = _tenures.seatedAt(round);
        if (_commitments.isOver() || seated == 0 || !_gate.reserve(round, seated)) return false;
        _continue(round, parent, isEmpty);
        _commitments.openRound(parent, _votes[parent].root);
        return true;
    }

    /// @dev Cuts what the round under way cannot finish.
    function _giveUp(uint64 round) private {
        uint64 parent = _commitments.roundOf(round).parent;
        if (block.timestamp > _commitments.commitUntil(round) && _commitments.isUnderHalf(round)) {
            // Attack: a majority of hidden or false roots that nobody can or will train from.
            _cut(statusOf(parent) == GenerationStatus.FINAL ? round + 1 : parent);
        } else if (block.timestamp > _commitments.mergeUntil(round)) {
            // Attack: a root that is opened after its time, and forks a history that has gone on.
            _cut(round + 1);
        } else {
            revert RoundAlive(round);
        }
    }

    /// @dev The tenure of a position, and how many positions there are. A convicted tenure has no lock to answer with.
    function _position(uint64 round, uint32 seat) private view returns (uint32 tenure, uint256 all) {
        uint64 maskable = _commitments.groupOf(round, 0).maskable;
        tenure = _commitments.workOf(round, seat).tenure;
        bool isMine = seat < _seats && maskable >> seat & 1 == 1 && _tenures.holderOf(tenure) == msg.sender;
        if (!isMine || _tenures.isConvicted(tenure)) revert NotThePosition(seat, msg.sender);
        all = Lanes.count(maskable);
    }

    function _sealUntil(uint64 round) private view returns (uint48) {
        uint48 sealUntil = _votes[round + 1].sealUntil;
        return sealUntil != 0 ? sealUntil : _commitments.mergeUntil(round);
    }

    function _sooner(uint48 until) private view returns (uint48) {
        uint48 then = uint48(block.timestamp) + _commitments.grace();
        return then < until ? then : until;
    }

    function _standing(uint64 generation, bytes32 party) private view returns (OpenedRoot storage opening) {
        opening = _openings[generation][party];
        if (opening.at == 0 || opening.fallen || opening.closed) revert NotStanding(generation, party);
    }
}
