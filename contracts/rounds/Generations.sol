// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {GroupState, ICommitments} from "../interfaces/ICommitments.sol";
import {
    Entry,
    GenerationState,
    GenerationStatus,
    IGenerations,
    NodeState,
    Opening
} from "../interfaces/IGenerations.sol";
import {IRoundGate, RoundModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {IVault} from "../interfaces/IVault.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";
import {Lanes} from "../libraries/Lanes.sol";
import {MergeInput} from "../libraries/MergeInput.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {Segments} from "./Segments.sol";

/// @title Generations: seals, openings, cut and restart, at one level
contract Generations is Segments {
    uint32 private constant MOST_SEATS = 64;

    ICommitments private immutable _commitments;
    ITenures private immutable _tenures;
    IVault private immutable _vault;
    IRoundGate private immutable _gate;
    address private immutable _game;
    address private immutable _charter;
    address private immutable _launcher;
    uint32 private immutable _seats;
    uint48 private immutable _challenge;
    uint48 private immutable _rescue;
    uint256 private immutable _seatLock;
    bytes32 private immutable _run;
    bytes32 private immutable _program;
    bytes32 private immutable _zeroUpdate;

    /// @dev A root that somebody opened: its lists, and what stands behind it.
    struct Node {
        bytes32 parameters;
        bytes32 momentum;
        NodeState state;
    }

    /// @dev Seals of a generation, and the root that has the majority.
    struct Votes {
        bytes32 root;
        uint16 sealed_;
        uint48 sealUntil;
        bool isFinal;
    }

    mapping(uint64 generation => Votes) private _votes;
    mapping(uint64 generation => mapping(bytes32 root => Node)) private _nodes;
    mapping(uint64 generation => mapping(uint32 seat => bytes32)) private _seals;
    mapping(uint64 generation => mapping(bytes32 party => Opening)) private _openings;
    mapping(uint64 generation => bytes32 x) private _inputs;

    constructor(RoundTerms memory terms, RoundModules memory modules) {
        if (terms.seats > MOST_SEATS) revert TooManySeats(terms.seats);
        _commitments = ICommitments(modules.commitments);
        _tenures = ITenures(modules.tenures);
        _vault = IVault(modules.vault);
        _gate = IRoundGate(modules.gate);
        (_game, _charter, _launcher) = (modules.game, modules.charter, modules.settlement);
        (_seats, _challenge, _rescue, _seatLock) = (terms.seats, terms.challenge, terms.rescue, terms.seatLock);
        (_run, _program, _zeroUpdate) = (terms.run, terms.outerProgram, terms.zeroUpdate);
        bytes32 genesis = StateRoots.state2(terms.parameters, terms.momentum);
        (_votes[0].root, _votes[0].isFinal) = (genesis, true);
        (_nodes[0][genesis].parameters, _nodes[0][genesis].momentum) = (terms.parameters, terms.momentum);
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
        Opening storage opening = _openings[generation][partyOf(seat)];
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
        Opening storage opening = _standing(generation, party);
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
        Opening storage opening = _openings[generation][party];
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
        Opening storage opening = _standing(generation, party);
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
        Opening storage opening = _openings[generation][party];
        if (opening.at == 0 || opening.closed) revert NotStanding(generation, party);
        if (opening.games != 0) revert GamesOpen(opening.games);
        GenerationStatus status = statusOf(generation);
        bool isOver = status == GenerationStatus.FINAL || status == GenerationStatus.CUT;
        if (!isOver || block.timestamp <= opening.at + _challenge) revert GenerationOpen(generation);
        opening.closed = true;
        if (opening.tenure != 0) _tenures.acquit(opening.tenure);
        else if (!opening.fallen) _vault.release(_backLock(generation, party));
    }

    /// @inheritdoc IGenerations
    function fall(uint64 generation) external {
        if (generation == 0 || statusOf(generation) != GenerationStatus.MERGED) revert NotFallen(generation);
        NodeState storage state = _nodes[generation][_votes[generation].root].state;
        bool isDead = state.standing == 0 && block.timestamp > state.rescueUntil;
        if (!isDead) revert NotFallen(generation);
        _cut(generation);
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IGenerations
    function prepare(uint64 round, Entry[] calldata entries) external {
        (uint64 counted, bool closed) = _commitments.countedOf(round, 0);
        if (!closed) revert MaskOpen(round);
        bytes32[] memory updates = new bytes32[](_seats);
        for (uint256 i = 0; i < _seats; ++i) {
            updates[i] = _zeroUpdate;
        }
        bytes32 acc;
        for (uint256 i = 0; i < entries.length; ++i) {
            Entry calldata e = entries[i];
            acc = keccak256(abi.encode(acc, e.seat, e.update, e.units));
            if (e.seat < _seats && counted >> e.seat & 1 == 1) updates[e.seat] = e.update;
        }
        // Attack: X of the challenger's own choice.
        bytes32 wanted = _commitments.groupOf(round, 0).acc;
        if (acc != wanted) revert EntriesMismatch(acc, wanted);
        uint64 parent = _commitments.roundOf(round).parent;
        Node storage base = _nodes[parent][_votes[parent].root];
        bytes32 x = MergeInput.root(base.parameters, base.momentum, updates, counted);
        _inputs[round + 1] = x;
        emit MergePrepared(round + 1, x);
    }

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        (uint64 generation, bytes32 party, Opening storage opening) = _claimed(ref);
        bytes32 x = _inputs[generation];
        if (x == 0 || !_isClaim(ref, opening)) return view_;
        (view_.x, view_.y, view_.program, view_.steps) = (x, opening.root, _program, 1);
        view_.claimant = opening.tenure != 0 ? _tenures.holderOf(opening.tenure) : opening.backer;
        view_.id = ClaimIds.claim(_charter, _run, ClaimKind.OUTER, view_.claimant, x, opening.root);
        view_.challengeableFrom = opening.at;
        view_.challengeableUntil = opening.closed ? 0 : opening.at + _challenge;
        view_.lockId = opening.tenure != 0 ? _tenures.lockOf(opening.tenure) : _backLock(generation, party);
        view_.lockAmount = _seatLock;
        view_.fallen = opening.fallen || _isTakenElsewhere(opening);
    }

    /// @inheritdoc IClaims
    /// @dev A merge needs no draw: everybody who trains computes it.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        (uint64 generation,, Opening storage opening) = _claimed(ref);
        return _inputs[generation] != 0 && _isClaim(ref, opening) && _tenures.tenuresOf(who) != 0;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 generation,, Opening storage opening) = _claimed(ref);
        if (_inputs[generation] == 0 || !_isClaim(ref, opening)) {
            revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        }
        if (opening.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++opening.games;
        ++_nodes[generation][opening.root].state.games;
        if (opening.tenure != 0) _tenures.onGameOpened(opening.tenure);
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 generation, bytes32 party, Opening storage opening) = _claimed(ref);
        --opening.games;
        --_nodes[generation][opening.root].state.games;
        first = convicted && !opening.fallen;
        if (opening.tenure != 0) first = _tenures.onGameClosed(opening.tenure, convicted);
        if (convicted && !opening.fallen) _lose(generation, party, opening);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IGenerations
    function partyOf(uint32 seat) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.position", seat));
    }

    /// @inheritdoc IGenerations
    function backerOf(bytes32 root, address who) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.backer", root, who));
    }

    /// @inheritdoc IGenerations
    function sealOf(uint64 round, uint32 seat, bytes32 root, bytes32 salt, address who) public pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, root, salt, who));
    }

    /// @inheritdoc IGenerations
    function statusOf(uint64 generation) public view returns (GenerationStatus) {
        Votes storage votes = _votes[generation];
        if (votes.isFinal) return GenerationStatus.FINAL;
        if (_segmentOf[generation] == 0) return GenerationStatus.OPEN;
        if (_isCut(generation)) return GenerationStatus.CUT;
        return votes.root != 0 ? GenerationStatus.MERGED : GenerationStatus.OPEN;
    }

    /// @inheritdoc IGenerations
    function generationOf(uint64 generation) external view returns (GenerationState memory) {
        Votes storage votes = _votes[generation];
        Node storage node = _nodes[generation][votes.root];
        return GenerationState({
            status: statusOf(generation),
            root: votes.root,
            parameters: node.parameters,
            momentum: node.momentum,
            segment: _segmentOf[generation],
            sealed_: votes.sealed_,
            sealUntil: votes.sealUntil
        });
    }

    /// @inheritdoc IGenerations
    function nodeOf(uint64 generation, bytes32 root) external view returns (NodeState memory) {
        return _nodes[generation][root].state;
    }

    /// @inheritdoc IGenerations
    function openingOf(uint64 generation, bytes32 party) external view returns (Opening memory) {
        return _openings[generation][party];
    }

    /// @inheritdoc IGenerations
    function parametersOf(uint64 generation) external view returns (bytes32) {
        return _nodes[generation][_votes[generation].root].parameters;
    }

    /// @inheritdoc IGenerations
    function newest() external view returns (uint64 generation) {
        uint64 count = _commitments.opened();
        if (count == 0) return 0;
        (generation,) = _newest(_votes[count].root != 0 ? count : count - 1);
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
        if (_commitments.isOver() || seated == 0 || !_gate.mayOpen(round, seated)) return false;
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

    function _lose(uint64 generation, bytes32 party, Opening storage opening) private {
        opening.fallen = true;
        NodeState storage state = _nodes[generation][opening.root].state;
        --state.standing;
        if (state.rescueUntil == 0) state.rescueUntil = uint48(block.timestamp) + _rescue;
        emit ClaimFell(generation, party, state.rescueUntil);
    }

    function _standing(uint64 generation, bytes32 party) private view returns (Opening storage opening) {
        opening = _openings[generation][party];
        if (opening.at == 0 || opening.fallen || opening.closed) revert NotStanding(generation, party);
    }

    function _isTakenElsewhere(Opening storage opening) private view returns (bool) {
        return opening.tenure != 0 && _tenures.isConvicted(opening.tenure);
    }

    function _claimed(ClaimRef calldata ref)
        private
        view
        returns (uint64 generation, bytes32 party, Opening storage opening)
    {
        generation = ref.round + 1;
        party = ref.party == address(0) ? partyOf(ref.seat) : backerOf(ref.outerRoot, ref.party);
        opening = _openings[generation][party];
    }

    function _isClaim(ClaimRef calldata ref, Opening storage opening) private view returns (bool) {
        return ref.kind == ClaimKind.OUTER && opening.at != 0 && opening.root == ref.outerRoot;
    }

    function _backLock(uint64 generation, bytes32 party) private pure returns (bytes32) {
        return keccak256(abi.encode("assay.back", generation, party));
    }
}
