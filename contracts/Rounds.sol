// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Attester, Role, IAudit} from "./interfaces/IAudit.sol";
import {ICharter, Modules, Terms} from "./interfaces/ICharter.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "./interfaces/IClaims.sol";
import {Commitment, IRounds, Status, Times} from "./interfaces/IRounds.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {Scalars} from "./libraries/Scalars.sol";
import {StateRoots} from "./libraries/StateRoots.sol";
import {Seats} from "./Seats.sol";

/// @title Rounds: commitments of seated solvers, and who fetched them
contract Rounds is Seats {
    ICharter public immutable charter;
    IAudit private immutable _audit;
    address private immutable _game;
    uint256 private immutable _claimLock;
    uint32 private immutable _bountyPpm;

    bytes32 private immutable _run;
    bytes32 private immutable _stepProgram;
    bytes32 private immutable _updateProgram;
    bytes32 private immutable _zeroOptimizer;
    bytes32 private immutable _data;
    uint32 private immutable _intervals;
    uint32 private immutable _stepsPerInterval;
    uint32 private immutable _learningRate;
    uint32 private immutable _shards;
    uint32 private immutable _shardLength;

    mapping(uint64 round => mapping(uint32 seat => Commitment)) private _commitments;
    mapping(uint64 round => mapping(uint32 seat => bytes32[])) private _roots;
    mapping(uint64 round => mapping(uint32 seat => uint256)) public receiptStake;
    mapping(bytes32 key => bool) private _receipted;

    /// @dev What the optimizer list of a solver's next start hangs on: its latest commitment, and the first and the last round that a conviction
    /// since then starts zero-initialised (0: none). A conviction counts from the next T0, so that no start changes while it is worked on.
    struct Last {
        uint64 round;
        uint32 seat;
        bool exists;
        uint64 blankFrom;
        uint64 blankAgain;
    }

    mapping(address solver => Last) private _last;

    constructor(ICharter charter_) Seats(charter_.terms(), charter_.modules()) {
        Terms memory terms = charter_.terms();
        Modules memory modules = charter_.modules();
        charter = charter_;
        _audit = IAudit(modules.audit);
        _game = modules.game;
        _claimLock = terms.economics.claimLock;
        _bountyPpm = terms.economics.bountyPpm;
        _run = charter_.run();
        _stepProgram = terms.step.root;
        _updateProgram = terms.update.root;
        _zeroOptimizer = terms.training.zeroOptimizer;
        _data = terms.training.data;
        _intervals = terms.training.intervals;
        _stepsPerInterval = terms.training.stepsPerInterval;
        _learningRate = terms.training.learningRate;
        _shards = terms.training.shards;
        _shardLength = terms.training.shardLength;
    }

    // ------------------------------------------------------------------------------------------------ commit, receipt

    /// @inheritdoc IRounds
    function commit(
        uint64 round,
        uint32 seat,
        bytes32[] calldata roots,
        bytes32[3] calldata endLists,
        bytes32 update,
        bytes32 base
    ) external {
        uint64 t1 = timesOf(round).t1;
        if (block.timestamp > t1) revert TooLate(block.timestamp, t1);
        if (seat >= SEATS || _roster[round][seat] != msg.sender) revert NotSeated(round, seat, msg.sender);
        Commitment storage c = _commitments[round][seat];
        if (c.solver != address(0)) revert AlreadyCommitted(round, seat);
        // A base that falls just before T1 must not cost those who trained from it the round: it may be rescued.
        if (!_outers.isAlive(round, base)) revert BaseNotStanding(round, base);
        c.startOptimizer = _checkedStart(round, seat, base, roots, endLists);
        c.solver = msg.sender;
        c.digest = keccak256(abi.encode(round, seat, roots, endLists, update, base));
        c.base = base;
        c.parameters = endLists[0];
        c.optimizer = endLists[1];
        c.update = update;
        _roots[round][seat] = roots;
        _remember(round, seat);
        ++commitments[round];
        _vault.lock(ClaimIds.commitmentLock(round, seat), msg.sender, _claimLock);
        emit Committed(round, seat, msg.sender, c.digest, base, roots, endLists, update);
    }

    /// @dev A true claim about a convenient start is worthless: the contract builds the start itself. Every interval starts where the last one
    /// ended because both are one root of the list.
    function _checkedStart(
        uint64 round,
        uint32 seat,
        bytes32 base,
        bytes32[] calldata roots,
        bytes32[3] calldata endLists
    ) private view returns (bytes32 optimizer) {
        if (roots.length != uint256(_intervals) + 1) {
            revert WrongCount(roots.length, uint256(_intervals) + 1);
        }
        bytes32 start;
        (, optimizer,, start) = startOf(round, seat, base);
        // Attack: X of one's own choice: a stale start, other data.
        if (roots[0] != start) revert StartMismatch(roots[0], start);
        bytes32 end = StateRoots.state3(endLists[0], endLists[1], endLists[2]);
        if (roots[roots.length - 1] != end) revert EndMismatch(roots[roots.length - 1], end);
    }

    function _remember(uint64 round, uint32 seat) private {
        Last storage last = _last[msg.sender];
        (last.round, last.seat, last.exists) = (round, seat, true);
        last.blankFrom = last.blankAgain > round ? last.blankAgain : 0;
    }

    /// @inheritdoc IRounds
    function receipt(uint64 round, uint32 seat, bytes32 digest) external {
        uint64 until = timesOf(round).receiptsUntil;
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
        Commitment storage c = _existing(round, seat);
        // Attack: a reorganization that puts another commitment, which nobody fetched, under a receipt.
        if (c.digest != digest) revert CommitmentMismatch(digest, c.digest);
        Attester memory verifier = _audit.attesterOf(msg.sender);
        uint256 stake = _audit.stakeAt(msg.sender, round);
        if (verifier.role != Role.VERIFIER || verifier.convictedAt != 0 || stake == 0) {
            revert NotAVerifier(msg.sender, round);
        }
        bytes32 key = keccak256(abi.encode(round, seat, msg.sender));
        if (_receipted[key]) revert AlreadyReceipted(round, seat, msg.sender);
        _receipted[key] = true;
        bool before = isComplete(round, seat);
        receiptStake[round][seat] += stake;
        emit Receipted(round, seat, msg.sender, stake);
        if (!before && isComplete(round, seat)) emit Completed(round, seat);
    }

    /// @inheritdoc IRounds
    function onMismatch(uint64 round, uint32 seat, uint32 duty, address accuser) external {
        if (msg.sender != address(_audit)) revert NotAudit(msg.sender);
        _commitments[round][seat].excluded = true;
        emit Excluded(round, seat, duty, accuser);
    }

    /// @inheritdoc IRounds
    function close(uint64 round, uint32 seat) external returns (Status status, address solver) {
        if (msg.sender != address(_settlement)) revert NotSettlement(msg.sender);
        Commitment storage c = _existing(round, seat);
        if (c.closed) revert AlreadyClosed(round, seat);
        // Attack: conviction and settlement in one block, in either order.
        if (c.openGames != 0) revert GamesOpen(c.openGames);
        status = _statusOf(round, seat, c);
        solver = c.solver;
        c.closed = true;
        if (status != Status.CONVICTED) _vault.release(ClaimIds.commitmentLock(round, seat));
        emit Closed(round, seat, status);
    }

    /// @dev Reverts while the status is open.
    function _statusOf(uint64 round, uint32 seat, Commitment storage c) private view returns (Status) {
        if (c.convicted) return Status.CONVICTED;
        Times memory times = timesOf(round);
        if (!isComplete(round, seat)) {
            if (block.timestamp <= times.receiptsUntil) revert TooEarly(block.timestamp, times.receiptsUntil + 1);
            return Status.VOID;
        }
        if (block.timestamp <= times.challengeUntil) revert TooEarly(block.timestamp, times.challengeUntil + 1);
        Status base = _outers.statusOf(round, c.base);
        if (base == Status.OPEN) revert BaseNotFinal(round, c.base);
        return base;
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        Commitment storage c = _commitments[ref.round][ref.seat];
        if (!_isClaim(ref, c)) return view_;
        Times memory times = timesOf(ref.round);
        view_.claimant = c.solver;
        (view_.id, view_.x, view_.y) = _dutyOf(ref.round, ref.seat, ref.duty, c);
        (view_.program, view_.steps) =
            ref.kind == ClaimKind.UPDATE ? (_updateProgram, 1) : (_stepProgram, _stepsPerInterval);
        // An accusation is seen only after everybody who could copy it has committed.
        view_.challengeableFrom = times.t5 + 1;
        view_.challengeableUntil = times.challengeUntil;
        view_.lockId = ClaimIds.commitmentLock(ref.round, ref.seat);
        (view_.lockAmount, view_.bountyPpm) = (_claimLock, _bountyPpm);
        view_.fallen = c.convicted;
    }

    /// @inheritdoc IClaims
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        Commitment storage c = _commitments[ref.round][ref.seat];
        if (!_isClaim(ref, c)) return false;
        bytes32 seen = _audit.endRootOf(ref.round, ref.seat, ref.duty, who);
        (,, bytes32 y) = _dutyOf(ref.round, ref.seat, ref.duty, c);
        return seen != 0 && seen != y;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        Commitment storage c = _commitments[ref.round][ref.seat];
        if (!_isClaim(ref, c)) revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        if (c.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++c.openGames;
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        Commitment storage c = _commitments[ref.round][ref.seat];
        --c.openGames;
        if (!convicted || c.convicted) return false;
        c.convicted = true;
        Last storage last = _last[c.solver];
        last.blankAgain = opened;
        if (last.blankFrom == 0) last.blankFrom = opened;
        return true;
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IRounds
    function startOf(uint64 round, uint32 seat, bytes32 base)
        public
        view
        returns (bytes32 parameters, bytes32 optimizer, bytes32 scalars, bytes32 state)
    {
        parameters = _outers.rootOf(round, base).parameters;
        Commitment storage c = _commitments[round][seat];
        optimizer = c.solver != address(0) ? c.startOptimizer : _startOptimizer(round, _roster[round][seat]);
        scalars = Scalars.listRoot(
            Scalars.Start({
                run: _run,
                round: round,
                seat: seat,
                stepsPerRound: _intervals * _stepsPerInterval,
                learningRate: _learningRate,
                shards: _shards,
                shardLength: _shardLength,
                data: _data
            })
        );
        state = StateRoots.state3(parameters, optimizer, scalars);
    }

    /// @inheritdoc IRounds
    function dutyOf(uint64 round, uint32 seat, uint32 duty) external view returns (bytes32 id, bytes32 x, bytes32 y) {
        Commitment storage c = _commitments[round][seat];
        if (c.solver == address(0) || !isComplete(round, seat) || duty > _intervals) {
            revert ClaimNotFound(ClaimKind.NONE, round, seat, duty);
        }
        return _dutyOf(round, seat, duty, c);
    }

    /// @inheritdoc IRounds
    function isComplete(uint64 round, uint32 seat) public view returns (bool) {
        return 2 * receiptStake[round][seat] > _audit.totalAt(Role.VERIFIER, round);
    }

    /// @inheritdoc IRounds
    function commitmentOf(uint64 round, uint32 seat) external view returns (Commitment memory) {
        return _commitments[round][seat];
    }

    /// @inheritdoc IRounds
    function rootsOf(uint64 round, uint32 seat) external view returns (bytes32[] memory) {
        return _roots[round][seat];
    }

    /// @dev The end of the solver's last complete commitment, final or not; zero-initialised for newcomers and, from the next T0 on, after a conviction.
    function _startOptimizer(uint64 round, address solver) private view returns (bytes32) {
        Last memory last = _last[solver];
        if (!last.exists) return _zeroOptimizer;
        if (last.blankFrom != 0 && last.blankFrom <= round) return _zeroOptimizer;
        Commitment storage c = _commitments[last.round][last.seat];
        // An incomplete commitment does not exist: its solver starts where that one had started.
        return isComplete(last.round, last.seat) ? c.optimizer : c.startOptimizer;
    }

    function _existing(uint64 round, uint32 seat) private view returns (Commitment storage c) {
        c = _commitments[round][seat];
        if (c.solver == address(0)) revert CommitmentNotFound(round, seat);
    }

    /// @dev An incomplete commitment makes no claims.
    function _isClaim(ClaimRef calldata ref, Commitment storage c) private view returns (bool) {
        // Attack: withheld data, to look uncheckable.
        if (c.solver == address(0) || !isComplete(ref.round, ref.seat)) return false;
        if (ref.kind == ClaimKind.INTERVAL) return ref.duty < _intervals;
        return ref.kind == ClaimKind.UPDATE && ref.duty == _intervals;
    }

    function _dutyOf(uint64 round, uint32 seat, uint32 duty, Commitment storage c)
        private
        view
        returns (bytes32 id, bytes32 x, bytes32 y)
    {
        ClaimKind kind = ClaimKind.INTERVAL;
        if (duty < _intervals) {
            x = _roots[round][seat][duty];
            y = _roots[round][seat][duty + 1];
        } else {
            kind = ClaimKind.UPDATE;
            x = StateRoots.state2(_outers.rootOf(round, c.base).parameters, c.parameters);
            y = StateRoots.state1(c.update);
        }
        id = ClaimIds.claim(address(charter), _run, kind, c.solver, x, y);
    }

    /// @dev For Seats: a seated solver without a commitment has missed the round.
    function _hasCommitted(uint64 round, uint32 seat) internal view override returns (bool) {
        return _commitments[round][seat].solver != address(0);
    }
}
