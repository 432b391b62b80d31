// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Attendance, Attester, IAudit, Leaf, Role} from "./interfaces/IAudit.sol";
import {ICharter, Terms} from "./interfaces/ICharter.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "./interfaces/IClaims.sol";
import {Times} from "./interfaces/IRounds.sol";
import {ISeed} from "./interfaces/ISeed.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {Draws} from "./libraries/Draws.sol";
import {StateRoots} from "./libraries/StateRoots.sol";
import {Registry} from "./Registry.sol";

/// @title Audit: private draws, hidden leaves, attestations
contract Audit is Registry {
    ICharter public immutable charter;
    ISeed private immutable _seed;
    address private immutable _game;
    address private immutable _settlement;
    bytes32 private immutable _run;
    bytes32 private immutable _stepProgram;
    bytes32 private immutable _updateProgram;
    uint32 private immutable _intervals;
    uint32 private immutable _stepsPerInterval;
    uint32 private immutable _auditPpm;
    uint32 private immutable _whistlePpm;
    uint32 private immutable _bountyPpm;

    mapping(uint64 round => bytes32) private _seeds;
    mapping(uint64 round => bytes32) private _whistleSeeds;
    mapping(uint64 round => bool) private _isSeeded;
    mapping(uint64 round => bool) private _isWhistleSeeded;
    mapping(uint64 round => mapping(address who => Attendance)) private _attendances;
    mapping(uint64 round => mapping(address who => bool)) private _hasRoot;
    mapping(bytes32 key => bytes32 endRoot) private _endRoots;
    /// @inheritdoc IAudit
    mapping(uint64 round => uint256) public revealers;

    constructor(ICharter charter_) Registry(charter_.terms(), charter_.modules()) {
        Terms memory terms = charter_.terms();
        charter = charter_;
        _seed = ISeed(terms.seed);
        _game = charter_.modules().game;
        _settlement = charter_.modules().settlement;
        _run = charter_.run();
        _stepProgram = terms.step.root;
        _updateProgram = terms.update.root;
        _intervals = terms.training.intervals;
        _stepsPerInterval = terms.training.stepsPerInterval;
        _auditPpm = terms.economics.auditPpm;
        _whistlePpm = terms.economics.whistlePpm;
        _bountyPpm = terms.economics.bountyPpm;
    }

    // ------------------------------------------------------------------------------------------------ draws

    /// @inheritdoc IAudit
    function drawSeed(uint64 round) external {
        _notBefore(_rounds.timesOf(round).t2);
        if (_isSeeded[round]) revert SeedAlreadyDrawn(round);
        _isSeeded[round] = true;
        _seeds[round] = _seed.draw();
        emit SeedDrawn(round, _seeds[round]);
    }

    /// @inheritdoc IAudit
    function drawWhistleSeed(uint64 round) external {
        _notBefore(_rounds.timesOf(round).t4);
        if (_isWhistleSeeded[round]) revert SeedAlreadyDrawn(round);
        _isWhistleSeeded[round] = true;
        _whistleSeeds[round] = _seed.draw();
        emit WhistleSeedDrawn(round, _whistleSeeds[round]);
    }

    /// @inheritdoc IAudit
    function attest(uint64 round, bytes32 seed, bytes32 root) external {
        _notAfter(_rounds.timesOf(round).t3);
        if (!_isSeeded[round]) revert SeedNotDrawn(round);
        _commitRoot(round, Role.VERIFIER, seed, _seeds[round], root);
    }

    /// @inheritdoc IAudit
    function whistle(uint64 round, bytes32 seed, bytes32 root) external {
        _notAfter(_rounds.timesOf(round).t5);
        if (!_isWhistleSeeded[round]) revert SeedNotDrawn(round);
        _commitRoot(round, Role.WHISTLEBLOWER, seed, _whistleSeeds[round], root);
    }

    /// @inheritdoc IAudit
    function revealDraw(uint64 round, bytes calldata y) external {
        if (!_hasRoot[round][msg.sender]) revert NotAttested(round, msg.sender);
        Times memory times = _rounds.timesOf(round);
        bool verifies = _attesters[msg.sender].role == Role.VERIFIER;
        // A verifier's duties stay hidden until every verifier is bound to its results.
        if (verifies) _notBefore(times.t3 + 1);
        _notAfter(verifies ? times.t4 : times.t5);
        Attendance storage a = _attendances[round][msg.sender];
        if (a.ticket != 0) revert AlreadyRevealed(round, msg.sender);
        bytes memory message = Draws.message(
            _run,
            round,
            verifies ? Draws.Purpose.AUDIT : Draws.Purpose.WHISTLE,
            verifies ? _seeds[round] : _whistleSeeds[round]
        );
        if (!Draws.verify(keyOf(msg.sender), y, message)) revert BadDraw(msg.sender);
        a.ticket = keccak256(y);
        emit DrawRevealed(round, msg.sender, y);
    }

    // ------------------------------------------------------------------------------------------------ leaves

    /// @inheritdoc IAudit
    function revealLeaves(uint64 round, Leaf[] calldata leaves, bytes calldata y) external {
        Attester storage attester = _attesters[msg.sender];
        Times memory times = _rounds.timesOf(round);
        _notBefore(times.t5 + 1);
        _notAfter(attester.role == Role.VERIFIER ? times.leavesUntil : times.t7 - 1);
        if (attester.convictedAt != 0) revert AttesterConvicted(msg.sender);
        Attendance storage a = _attendances[round][msg.sender];
        if (a.ticket == 0) revert DrawNotRevealed(round, msg.sender);
        if (a.ticket != keccak256(y)) revert TicketMismatch(keccak256(y), a.ticket);
        if (a.revealed) revert AlreadyRevealed(round, msg.sender);
        a.revealed = true;
        a.duties = uint32(leaves.length);
        ++revealers[round];

        bytes32[] memory digests = new bytes32[](leaves.length);
        Cursor memory cursor = Cursor(_threshold(round, attester.role), 0, 0);
        for (uint256 i = 0; i < leaves.length; ++i) {
            digests[i] = _reveal(round, leaves[i], y, cursor);
        }
        bytes32 root = StateRoots.treeRoot(digests);
        if (root != a.root) revert RootMismatch(root, a.root);
    }

    /// @dev What one leaf needs to know of those before it: the threshold of their owner, and the last (claim id, duty + 1).
    struct Cursor {
        uint256 threshold;
        bytes32 id;
        uint256 next;
    }

    /// @dev Checks and records one leaf; returns its digest.
    function _reveal(uint64 round, Leaf calldata leaf, bytes memory y, Cursor memory cursor) private returns (bytes32) {
        (bytes32 id,, bytes32 claimed) = _rounds.dutyOf(round, leaf.seat, leaf.duty);
        // Sorted without repetition: no duty is paid twice.
        if (id < cursor.id || (id == cursor.id && leaf.duty < cursor.next)) revert NotSorted(leaf.seat, leaf.duty);
        (cursor.id, cursor.next) = (id, uint256(leaf.duty) + 1);
        // An attester that may answer for other duties answers where it likes.
        if (!Draws.isDrawn(y, id, leaf.duty, cursor.threshold)) revert NotDrawn(leaf.seat, leaf.duty);
        if (leaf.endRoot == 0) revert EndRootZero(leaf.seat, leaf.duty);
        _endRoots[_key(round, leaf.seat, leaf.duty, msg.sender)] = leaf.endRoot;
        if (leaf.endRoot != claimed) _rounds.onMismatch(round, leaf.seat, leaf.duty, msg.sender);
        emit LeafRevealed(round, msg.sender, leaf.seat, leaf.duty, id, leaf.endRoot, leaf.endRoot == claimed);
        return keccak256(abi.encode(id, leaf.duty, leaf.endRoot, bytes32(0), leaf.salt));
    }

    /// @inheritdoc IAudit
    function close(uint64 round, address who) external returns (uint32 duties) {
        if (msg.sender != _settlement) revert NotSettlement(msg.sender);
        Attendance storage a = _attendances[round][who];
        if (!a.revealed) revert NotAttested(round, who);
        if (a.closed) revert AlreadyClosed(round, who);
        if (a.openGames != 0) revert GamesOpen(a.openGames);
        a.closed = true;
        if (_attesters[who].convictedAt != 0) return 0;
        _notBefore(_rounds.timesOf(round).challengeUntil + 1);
        return a.duties;
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        bytes32 endRoot = _endRoots[_key(ref.round, ref.seat, ref.duty, ref.party)];
        if (ref.kind != ClaimKind.ATTESTATION || endRoot == 0) return view_;
        (, bytes32 x,) = _rounds.dutyOf(ref.round, ref.seat, ref.duty);
        Times memory times = _rounds.timesOf(ref.round);
        view_.id = ClaimIds.claim(address(charter), _run, ClaimKind.ATTESTATION, ref.party, x, endRoot);
        view_.claimant = ref.party;
        view_.x = x;
        view_.y = endRoot;
        bool updates = ref.duty == _intervals;
        view_.program = updates ? _updateProgram : _stepProgram;
        view_.steps = updates ? 1 : _stepsPerInterval;
        view_.challengeableFrom = times.t5 + 1;
        view_.challengeableUntil = times.challengeUntil;
        view_.lockId = ClaimIds.attesterLock(ref.party);
        (view_.lockAmount, view_.bountyPpm) = (_bond, _bountyPpm);
        view_.fallen = _attesters[ref.party].convictedAt != 0;
    }

    /// @inheritdoc IClaims
    /// @dev The solver whose work is denied, and every party that revealed another result for the same duty.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        bytes32 endRoot = _endRoots[_key(ref.round, ref.seat, ref.duty, ref.party)];
        if (ref.kind != ClaimKind.ATTESTATION || endRoot == 0) return false;
        bytes32 own = _endRoots[_key(ref.round, ref.seat, ref.duty, who)];
        if (own != 0 && own != endRoot) return true;
        (,, bytes32 y) = _rounds.dutyOf(ref.round, ref.seat, ref.duty);
        return y != endRoot && _rounds.commitmentOf(ref.round, ref.seat).solver == who;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        Attendance storage a = _attendances[ref.round][ref.party];
        if (ref.kind != ClaimKind.ATTESTATION || _endRoots[_key(ref.round, ref.seat, ref.duty, ref.party)] == 0) {
            revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        }
        if (a.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++a.openGames;
        ++_attesters[ref.party].openGames;
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        --_attendances[ref.round][ref.party].openGames;
        Attester storage attester = _attesters[ref.party];
        --attester.openGames;
        if (!convicted || attester.convictedAt != 0) return false;
        _convict(ref.party, ref.round);
        return true;
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IAudit
    function attendanceOf(uint64 round, address who) external view returns (Attendance memory) {
        return _attendances[round][who];
    }

    /// @inheritdoc IAudit
    function endRootOf(uint64 round, uint32 seat, uint32 duty, address who) external view returns (bytes32) {
        return _endRoots[_key(round, seat, duty, who)];
    }

    /// @inheritdoc IAudit
    function seedOf(uint64 round) external view returns (bytes32 seed, bytes32 whistleSeed) {
        return (_seeds[round], _whistleSeeds[round]);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev A transaction outlives the blocks of a reorganization; the seed that its leaves were drawn from may not.
    function _commitRoot(uint64 round, Role role, bytes32 seed, bytes32 drawn, bytes32 root) private {
        // Attack: an attestation that is mined again after a reorganization that drew another seed.
        if (seed != drawn) revert SeedMismatch(seed, drawn);
        Attester storage attester = _attesters[msg.sender];
        if (attester.role != role) revert WrongRole(msg.sender, attester.role);
        if (attester.convictedAt != 0) revert AttesterConvicted(msg.sender);
        if (stakeAt(msg.sender, round) == 0) revert NoStake(msg.sender, round);
        if (_hasRoot[round][msg.sender]) revert AlreadyAttested(round, msg.sender);
        _hasRoot[round][msg.sender] = true;
        _attendances[round][msg.sender].root = root;
        emit Attested(round, msg.sender, role, root);
    }

    function _threshold(uint64 round, Role role) private view returns (uint256) {
        uint32 ppm = role == Role.VERIFIER ? _auditPpm : _whistlePpm;
        return Draws.threshold(ppm, stakeAt(msg.sender, round), totalAt(role, round));
    }

    function _key(uint64 round, uint32 seat, uint32 duty, address who) private pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, duty, who));
    }

    function _notBefore(uint64 time) private view {
        if (block.timestamp < time) revert TooEarly(block.timestamp, time);
    }

    function _notAfter(uint64 time) private view {
        if (block.timestamp > time) revert TooLate(block.timestamp, time);
    }
}
