// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GenerationStatus, IGenerations, NodeState, OpenedRoot} from "../interfaces/IGenerations.sol";
import {IRoundGate, RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {MergeClaims} from "./MergeClaims.sol";

/// @title GenerationMoves: how rounds begin, what stands, what is cut, and where rounds start again
abstract contract GenerationMoves is MergeClaims {
    IVault internal immutable _vault;
    IRoundGate private immutable _gate;
    address private immutable _launcher;
    /// @inheritdoc IGenerations
    uint48 public finalAt;

    constructor(IRunCharter charter) MergeClaims(charter) {
        RunModules memory modules = charter.roundModules();
        _vault = IVault(modules.vault);
        (_gate, _launcher) = (IRoundGate(modules.escrow), modules.escrow);
    }

    // ------------------------------------------------------------------------------------------------ rounds

    /// @inheritdoc IGenerations
    function begin() external {
        if (msg.sender != _launcher) revert NotTheLauncher(msg.sender);
        if (_commitments.opened() != 0) revert AlreadyBegun();
        if (!_openNext(0, false)) revert Paused();
    }

    /// @inheritdoc IGenerations
    function restart() external {
        // Attack: nobody commits after a stop, so that a base whose game is not over is cut with the round.
        _mustRun();
        uint64 count = _commitments.opened();
        if (count == 0) revert RoundAlive(0);
        bool givesUp = _votes[count].root == 0 && !_isCut(count);
        if (givesUp) _giveUp(count - 1);
        (uint64 parent, bool isEmpty) = _newestOf(count);
        // Attack: hold the last generation of a run back from its majority. A revert would undo the cut, and what was opened
        // for it would stay locked for good.
        if (!_openNext(parent, isEmpty) && !givesUp) revert Paused();
    }

    // ------------------------------------------------------------------------------------------------ what stands

    /// @inheritdoc IGenerations
    function drop(uint64 node, bytes32 party) external {
        OpenedRoot storage opening = _standing(node, party);
        // Attack: backers of a false root who lose their lock in a puppet's game elsewhere; no game could convict them here.
        if (!_isTakenElsewhere(opening)) revert NotConvicted(node, party);
        _lose(node, party, opening);
    }

    /// @inheritdoc IGenerations
    function back(uint64 node, bytes32 root) external {
        // Nothing becomes final any more by what is opened after a stop.
        _mustRun();
        NodeState storage state = _nodes[node][root].state;
        bytes32 party = backerOf(root, msg.sender);
        bool isKnown = _isOpen(node) && root == _votes[node].root;
        if (!isKnown || state.rescueUntil == 0 || _openings[node][party].at != 0) revert NotBackable(node, root);
        // Attack: losing again and again, or relieving each other, to keep a root in doubt.
        _mustNotBeAfter(state.rescueUntil);
        OpenedRoot storage opening = _openings[node][party];
        (opening.root, opening.backer, opening.at) = (root, msg.sender, uint48(block.timestamp));
        ++state.standing;
        _vault.lock(_backLock(node, party), msg.sender, _seatLock);
        emit RootBacked(node, root, msg.sender);
    }

    /// @inheritdoc IGenerations
    function finalize(uint64 node, bytes32 party) external {
        if (!_isOpen(node) || !_followsFinal(node)) revert NotFinalizable(node);
        OpenedRoot storage opening = _standing(node, party);
        bytes32 root = _votes[node].root;
        if (opening.root != root || _isTakenElsewhere(opening)) revert NotStanding(node, party);
        uint48 until = opening.at + _challenge;
        _mustBeAfter(until);
        // Attack: an invented root that is opened when a run has stopped, or just before: no game opens any more.
        uint48 stopped = _gate.stoppedAt();
        if (stopped != 0 && stopped <= until) revert NotFinalizable(node);
        uint256 games = _nodes[node][root].state.games;
        if (games != 0) revert GamesOpen(games);
        _votes[node].isFinal = true;
        if (node == uint32(node)) finalAt = uint48(block.timestamp);
        _onFinal(node);
        emit Finalized(node);
    }

    /// @inheritdoc IGenerations
    function close(uint64 node, bytes32 party) external {
        OpenedRoot storage opening = _openings[node][party];
        if (opening.at == 0 || opening.closed) revert NotStanding(node, party);
        if (opening.games != 0) revert GamesOpen(opening.games);
        GenerationStatus status = statusOf(uint32(node));
        bool isOver = status == GenerationStatus.FINAL || status == GenerationStatus.CUT;
        isOver = isOver && block.timestamp > opening.at + _challenge;
        if (!isOver && !_gate.isStopped()) revert GenerationOpen(node);
        opening.closed = true;
        if (opening.opener != 0) _acquit(opening.opener);
        else if (!opening.fallen) _vault.release(_backLock(node, party));
        emit OpeningClosed(node, party);
    }

    /// @inheritdoc IGenerations
    function fall(uint64 node) external {
        if (!_isOpen(node)) revert NotFallen(node);
        NodeState storage state = _leading(node).state;
        bool isDead = state.standing == 0 && block.timestamp > state.rescueUntil;
        if (!isDead) revert NotFallen(node);
        _cut(uint32(node));
    }

    // ------------------------------------------------------------------------------------------------ levels

    /// @dev Do rounds build on the node, which is not final?
    function _isOpen(uint64 node) internal view virtual returns (bool) {
        return statusOf(node) == GenerationStatus.MERGED;
    }

    /// @dev Is all final that the node was merged from?
    function _followsFinal(uint64 node) internal view virtual returns (bool) {
        return statusOf(_parentOf(node - 1)) == GenerationStatus.FINAL;
    }

    function _onFinal(uint64 node) internal virtual;

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev Once a root has its majority the next round opens in the same block, if the run can carry it.
    function _merge(uint64 generation, bytes32 root, uint256 all) internal {
        bool isMajority = 2 * uint256(_nodes[generation][root].state.votes) > all;
        if (!isMajority || _votes[generation].root != 0) return;
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
        uint64 parent = _parentOf(round);
        if (block.timestamp > _commitments.commitUntil(round) && _commitments.isUnderHalf(round)) {
            // Attack: a majority of hidden or false roots that nobody can or will train from. Half of the seats away in the last
            // round would take the one before with it, and no round could make good for that.
            _cut(statusOf(parent) == GenerationStatus.FINAL || _commitments.isOver() ? round + 1 : parent);
        } else if (block.timestamp > _commitments.mergeUntil(round)) {
            // Attack: a root that is opened after its time, and forks a history that has gone on.
            _cut(round + 1);
        } else {
            revert RoundAlive(round);
        }
    }

    function _mustRun() private view {
        if (_gate.isStopped()) revert RunStopped();
    }

    function _standing(uint64 node, bytes32 party) private view returns (OpenedRoot storage opening) {
        opening = _openings[node][party];
        // Attack: close after a stop what stood its window, while a game goes on, so that nothing is final after it.
        if (opening.at == 0 || opening.fallen) revert NotStanding(node, party);
    }
}
