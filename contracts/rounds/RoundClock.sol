// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";
import {ICommitments, RoundState} from "../interfaces/ICommitments.sol";
import {IGovernance} from "../interfaces/IGovernance.sol";
import {RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";

/// @title RoundClock: when rounds begin, when their masks close, and who may speak then
/// @notice The mask closes when all seats committed, `grace` after nearly all of them did or after two thirds have and C is
/// over, and at T0 + C + F at the latest. Every deadline is the last second in which a call goes through.
abstract contract RoundClock is ICommitments {
    uint32 internal constant ONE_LEVEL = 64;
    uint32 private constant MOST_SEATS = 1024;
    uint32 private constant MOST_POSITIONS = 63;
    uint32 private constant MOST_GROUPS = 64;
    uint256 private constant NEARLY_ALL_FROM = 20; // seats from which 95 % are nearly all; below, all but one

    /// @notice The seats that committed are the positions; else tickets are drawn.
    bool public immutable bySeats;
    uint32 public immutable groupSize;
    IBeacon private immutable _beacon;
    IGovernance private immutable _governor; // zero: none
    /// @inheritdoc ICommitments
    uint48 public immutable grace;
    uint48 internal immutable _hold;
    uint48 private immutable _commit;
    uint48 private immutable _inclusion;
    uint48 private immutable _groupMerge;
    uint48 private immutable _merge;
    uint48 private immutable _beaconDelay;
    uint48 private immutable _expiry;
    uint64 private immutable _mostRounds;

    /// @inheritdoc ICommitments
    uint64 public opened;
    mapping(uint64 round => RoundState) internal _rounds;

    constructor(IRunCharter charter) {
        RoundTerms memory terms = charter.roundTerms();
        _checkAtMost("seats", terms.seats, MOST_SEATS);
        bySeats = terms.seats <= ONE_LEVEL;
        groupSize = bySeats ? ONE_LEVEL : terms.groupSize;
        _checkAtMost("group size", groupSize, ONE_LEVEL);
        _checkAtMost("positions", terms.positions, MOST_POSITIONS);
        _checkAtLeast("seats", terms.seats, 1);
        _checkAtLeast("group size", groupSize, 1);
        _checkAtLeast("positions", terms.positions, bySeats ? 0 : 1);
        _checkAtMost("top positions", terms.topPositions, MOST_POSITIONS);
        _checkAtLeast("top positions", terms.topPositions, bySeats ? 0 : 1);
        _checkAtMost("groups", (terms.seats + groupSize - 1) / groupSize, MOST_GROUPS);
        _checkAtLeast("least units", terms.minUnits, 1);
        _checkAtMost("least units", terms.minUnits, terms.maxUnits);
        _checkAtLeast("steps per unit", terms.stepsPerUnit, 1);
        _checkAtMost("steps", uint256(terms.maxUnits) * terms.stepsPerUnit, type(uint32).max);
        _checkAtLeast("shards", terms.shards, terms.seats);
        _checkAtMost("rounds", terms.rounds, type(uint24).max);
        _checkAtMost("grace", terms.grace, terms.inclusion);
        _checkAtMost("grace", terms.grace, terms.hold);
        _beacon = IBeacon(charter.roundModules().beacon);
        _governor = IGovernance(charter.roundModules().governor);
        (_commit, _inclusion, grace, _hold) = (terms.commit, terms.inclusion, terms.grace, terms.hold);
        (_groupMerge, _merge, _beaconDelay) = (terms.groupMerge, terms.merge, terms.beaconDelay);
        (_mostRounds, _expiry) = (terms.rounds, terms.expiry);
    }

    /// @inheritdoc ICommitments
    function isOver() external view returns (bool) {
        if (opened == _mostRounds || block.timestamp > _expiry) return true;
        return address(_governor) != address(0) && _governor.isSunset();
    }

    /// @inheritdoc ICommitments
    function parentOf(uint64 round) external view returns (uint64) {
        return _rounds[round].parent;
    }

    /// @inheritdoc ICommitments
    function groupsIn(uint64 round) external view returns (uint256) {
        return _rounds[round].groups;
    }

    /// @inheritdoc ICommitments
    function roundOf(uint64 round) external view returns (RoundState memory) {
        return _rounds[round];
    }

    /// @inheritdoc ICommitments
    function commitUntil(uint64 round) public view returns (uint48) {
        if (round >= opened) revert RoundNotOpen(round);
        return _rounds[round].t0 + _commit + _inclusion;
    }

    /// @inheritdoc ICommitments
    function mergeUntil(uint64 round) external view returns (uint48) {
        return partialUntil(round) + _merge;
    }

    /// @inheritdoc ICommitments
    function partialUntil(uint64 round) public view returns (uint48) {
        return commitUntil(round) + _beaconDelay + _hold + _groupMerge;
    }

    /// @inheritdoc ICommitments
    function maskClosedAt(uint64 round) external view returns (uint48) {
        commitUntil(round);
        return _rounds[round].maskAt;
    }

    /// @inheritdoc ICommitments
    function isUnderHalf(uint64 round) public view returns (bool) {
        return 2 * _rounds[round].committed < _rounds[round].seated;
    }

    function _begin(uint64 parent, bytes32 base, uint32 seated) internal returns (uint64 round) {
        round = opened++;
        uint48 t0 = uint48(block.timestamp);
        _rounds[round] = RoundState(t0, t0 + _commit + _inclusion, seated, 0, 0, parent, base);
        emit RoundBegan(round, parent, t0, seated);
    }

    /// @dev One more seat has committed: moves the mask's close forward, never before this block.
    function _onCommitted(uint64 round, RoundState storage r) internal {
        uint256 committed = ++r.committed;
        if (block.timestamp > r.maskAt) return;
        uint256 seated = r.seated;
        uint256 twoThirds = (2 * seated + 2) / 3;
        uint256 nearlyAll = seated < NEARLY_ALL_FROM ? seated - 1 : (95 * seated + 99) / 100;
        // Attack: of two seats one commits at once, and the other's work has no weight.
        if (nearlyAll < twoThirds) nearlyAll = twoThirds;
        uint48 maskAt = r.maskAt;
        if (committed == seated) maskAt = uint48(block.timestamp);
        else if (committed == nearlyAll) maskAt = _sooner(maskAt, grace);
        if (committed == twoThirds) {
            // Attack: few who commit in the last second of F, round for round, and let everybody wait.
            uint48 full = r.t0 + _commit;
            // Where all are late, seconds must not decide whose work has weight.
            full = (full < block.timestamp ? uint48(block.timestamp) : full) + grace;
            if (full < maskAt) maskAt = full;
        }
        if (maskAt == r.maskAt) return;
        r.maskAt = maskAt;
        emit MaskClosing(round, maskAt);
    }

    /// @dev `wait` seconds from now, but not after `until`.
    function _sooner(uint48 until, uint48 wait) internal view returns (uint48) {
        uint48 then = uint48(block.timestamp) + wait;
        return then < until ? then : until;
    }

    /// @dev Positions may speak after this second: the mask's close, or what comes before the beacon that draws them.
    function _holdAfter(uint64 round) internal view returns (uint48) {
        commitUntil(round);
        if (bySeats) return _rounds[round].maskAt;
        return uint48(_beacon.timeOf(_beaconRoundOf(round))) - 1;
    }

    /// @inheritdoc ICommitments
    function seedOf(uint64 round) public view returns (bytes32) {
        return _beacon.randomnessOf(_beaconRoundOf(round));
    }

    /// @dev Attack: a beacon that is known, or a block that can be moved, before the mask is closed for good.
    function _beaconRoundOf(uint64 round) private view returns (uint64) {
        return _beacon.roundAfter(_rounds[round].maskAt + _beaconDelay);
    }

    function _checkAtMost(bytes32 what, uint256 value, uint256 most) private pure {
        if (value > most) revert RoundTermOutOfRange(what, value, most);
    }

    function _checkAtLeast(bytes32 what, uint256 value, uint256 least) private pure {
        if (value < least) revert RoundTermOutOfRange(what, value, least);
    }
}
