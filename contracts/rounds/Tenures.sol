// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {ICommitments, Presence} from "../interfaces/ICommitments.sol";
import {IRoundGate, RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures, Tenure} from "../interfaces/ITenures.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title Tenures: seats by a free list, and one lock per holder's time in a seat
/// @dev Nothing is counted in a loop: seats come from a stack of those that were left, and how many are held is a
/// checkpoint per round.
contract Tenures is ITenures {
    using Checkpoints for Checkpoints.Trace208;

    uint32 private constant NEVER = type(uint32).max;

    uint256 public immutable seats;
    /// @inheritdoc ITenures
    uint256 public immutable seatLock;
    uint256 public immutable seatFee;
    uint48 private immutable _longestDispute;
    IVault private immutable _vault;
    IRoundGate private immutable _gate;
    ICommitments private immutable _commitments;
    address private immutable _generations;
    address private immutable _attestations;

    /// @inheritdoc ITenures
    uint32 public tenures;
    /// @inheritdoc ITenures
    mapping(address holder => uint256) public tenuresOf;
    mapping(uint32 tenure => Tenure) private _tenures;
    Checkpoints.Trace208 private _seated;
    uint16[] private _left; // seats that were held and are free
    uint16 private _fresh; // seats that were never held begin here

    modifier only(address peer) {
        if (msg.sender != peer) revert NotAPeer(msg.sender);
        _;
    }

    modifier onlyBooks() {
        if (msg.sender != address(_commitments) && msg.sender != _generations) revert NotAPeer(msg.sender);
        _;
    }

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        (seats, seatLock, seatFee) = (terms.seats, terms.seatLock, terms.seatFee);
        _longestDispute = terms.longestDispute;
        (_vault, _gate) = (IVault(modules.vault), IRoundGate(modules.escrow));
        _commitments = ICommitments(modules.commitments);
        (_generations, _attestations) = (modules.generations, modules.attestations);
    }

    // ------------------------------------------------------------------------------------------------ holders

    /// @inheritdoc ITenures
    function join() external returns (uint32 tenure) {
        if (_commitments.isOver()) revert NoRoundsLeft();
        uint16 seat;
        uint256 free = _left.length;
        if (free != 0) {
            seat = _left[free - 1];
            _left.pop();
        } else {
            if (_fresh == seats) revert NoSeatFree(seats);
            seat = _fresh++;
        }
        uint256 seated = uint256(_seated.latest()) + 1;
        // Attack: seats that nobody works in, held until no round can open any more, so that the run is wound down.
        if (!_gate.carries(seated)) revert NoRoomForSeat(seated);
        tenure = ++tenures;
        Tenure storage t = _tenures[tenure];
        uint64 from = _commitments.opened();
        (t.holder, t.seat, t.from, t.until) = (msg.sender, seat, uint32(from), NEVER);
        ++tenuresOf[msg.sender];
        _count(from, true);
        _vault.lock(lockOf(tenure), msg.sender, seatLock);
        if (seatFee != 0) _vault.lock(_feeOf(tenure), msg.sender, seatFee);
        emit TenureBegan(tenure, msg.sender, seat, from);
    }

    /// @inheritdoc ITenures
    function leave(uint32 tenure) external {
        Tenure storage t = _existing(tenure);
        if (t.holder != msg.sender) revert NotTheHolder(tenure, t.holder, msg.sender);
        if (t.until != NEVER) revert TenureOver(tenure);
        _end(tenure, t, false);
    }

    /// @inheritdoc ITenures
    function evict(uint32 tenure, uint64 round) external {
        Tenure storage t = _existing(tenure);
        if (t.until != NEVER) revert TenureOver(tenure);
        // Attack: half of the fee of who was away before a stop, for a seat that nobody waits for any more.
        if (_gate.isStopped()) revert RunStopped();
        if (!_isEvictable(t, round)) revert NotEvictable(tenure, round);
        t.feeGone = true;
        _end(tenure, t, false);
        if (seatFee != 0) {
            _vault.seize(_feeOf(tenure), msg.sender, seatFee / 2);
            // Attack: a holder that evicts itself gets no more than half of its fee back.
            _vault.burn(_feeOf(tenure), seatFee - seatFee / 2);
        }
        emit Evicted(tenure, msg.sender);
    }

    /// @inheritdoc ITenures
    function release(uint32 tenure) external {
        Tenure storage t = _existing(tenure);
        if (t.released) revert AlreadyReleased(tenure);
        if (t.until == NEVER) revert TenureLasts(tenure);
        bool stopped = _gate.isStopped();
        // Attack: a lock that leaves while a lie is stalled in a game, or recorded and not yet played. A run that stands still for
        // good holds only what a game does.
        if (t.games != 0 || !stopped && (t.unsettled != 0 || t.accusations != 0)) {
            revert TenureObliged(t.unsettled, t.games, t.accusations);
        }
        // Attack: take the free seats before a round opens and leave in it, so that fewer than half commit and what was merged is
        // cut; and do it again with the same locks in the next.
        if (!stopped && _neverWorked(t) && block.timestamp <= _commitments.commitUntil(t.until - 1) + _longestDispute) {
            revert TenureLasts(tenure);
        }
        bool feeLost = !stopped && !t.feeGone && _missedItsLast(tenure, t);
        t.released = true;
        if (t.convictedAt == 0) _vault.release(lockOf(tenure));
        if (seatFee != 0 && !t.feeGone) {
            if (feeLost) _vault.burn(_feeOf(tenure), seatFee);
            else _vault.release(_feeOf(tenure));
        }
        emit TenureReleased(tenure, feeLost);
    }

    // ------------------------------------------------------------------------------------------------ peers

    /// @inheritdoc ITenures
    function charge(uint32 tenure, uint64 round, address who)
        external
        only(address(_commitments))
        returns (uint32 seat, bool weighs)
    {
        Tenure storage t = _existing(tenure);
        if (t.holder != who) revert NotTheHolder(tenure, t.holder, who);
        // Attack: evict oneself, take the lock back, and commit to the round under way with nothing behind it.
        if (round < t.from || round >= t.until || t.convictedAt != 0 || t.released) {
            revert NotInTenure(tenure, round, t.from, t.convictedAt != 0 ? t.from : t.until);
        }
        ++t.unsettled;
        if (round >= t.last) t.last = uint32(round) + 1;
        // Attack: a puppet's accusation of oneself, kept in its game so that the lock comes back, and poison for as long.
        weighs = t.suspensions == 0;
        seat = t.seat;
    }

    /// @inheritdoc ITenures
    function oblige(uint32 tenure) external only(_generations) {
        ++_existing(tenure).unsettled;
    }

    /// @inheritdoc ITenures
    function acquit(uint32 tenure) external onlyBooks {
        --_existing(tenure).unsettled;
    }

    /// @inheritdoc ITenures
    function onGameOpened(uint32 tenure) external onlyBooks {
        ++_existing(tenure).games;
    }

    /// @inheritdoc ITenures
    function onGameClosed(uint32 tenure, bool convicted) external onlyBooks returns (bool first) {
        Tenure storage t = _existing(tenure);
        --t.games;
        if (!convicted || t.convictedAt != 0) return false;
        t.convictedAt = uint48(block.timestamp);
        if (t.until == NEVER) _end(tenure, t, true);
        else emit TenureEnded(tenure, t.until, true);
        return true;
    }

    /// @inheritdoc ITenures
    function accuse(uint32 tenure) external only(_attestations) {
        ++_existing(tenure).accusations;
    }

    /// @inheritdoc ITenures
    function unaccuse(uint32 tenure) external only(_attestations) {
        --_existing(tenure).accusations;
    }

    /// @inheritdoc ITenures
    function suspend(uint32 tenure) external only(_attestations) {
        ++_existing(tenure).suspensions;
    }

    /// @inheritdoc ITenures
    function resume(uint32 tenure) external only(_attestations) {
        --_existing(tenure).suspensions;
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc ITenures
    function tenureOf(uint32 tenure) external view returns (Tenure memory) {
        return _tenures[tenure];
    }

    /// @inheritdoc ITenures
    function holderOf(uint32 tenure) external view returns (address) {
        return _tenures[tenure].holder;
    }

    /// @inheritdoc ITenures
    function isConvicted(uint32 tenure) external view returns (bool) {
        return _tenures[tenure].convictedAt != 0;
    }

    /// @inheritdoc ITenures
    function canAnswer(uint32 tenure) external view returns (bool) {
        Tenure storage t = _tenures[tenure];
        return t.convictedAt == 0 && !t.released;
    }

    /// @inheritdoc ITenures
    function seatedAt(uint64 round) external view returns (uint256) {
        return _seated.upperLookupRecent(uint48(round));
    }

    /// @inheritdoc ITenures
    function lockOf(uint32 tenure) public pure returns (bytes32 id) {
        return keccak256(abi.encode("assay.tenure", tenure));
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev A tenure that ends holds the round under way; the seat is free for whoever joins from the next on.
    function _end(uint32 tenure, Tenure storage t, bool convicted) private {
        uint64 until = _commitments.opened();
        t.until = uint32(until);
        --tenuresOf[t.holder];
        _left.push(t.seat);
        _count(until, false);
        emit TenureEnded(tenure, until, convicted);
    }

    function _count(uint64 round, bool more) private {
        uint208 now_ = _seated.latest();
        _seated.push(uint48(round), more ? now_ + 1 : now_ - 1);
    }

    function _isEvictable(Tenure storage t, uint64 round) private view returns (bool) {
        // Attack: a seat that came back is put off for what it missed long ago.
        if (t.last > round + 1 || !_isNewestOver(t.seat, round)) return false;
        if (round < uint64(t.from) + 1) return false;
        (Presence last, Presence before) = (_presence(t, round), _presence(t, round - 1));
        if (!_isAbsence(last) || !_isAbsence(before)) return false;
        bool missedBoth = last == Presence.MISSED && before == Presence.MISSED;
        // Attack: an outage that costs everybody the seat; and one that is staged to squat for ever.
        if (missedBoth && !_isWaived(round) && !_isWaived(round - 1)) return true;
        return round >= uint64(t.from) + 2 && _isAbsence(_presence(t, round - 2));
    }

    /// @dev An update that a third or more hold, and fewer than two thirds, is none: who is right is not known.
    function _isAbsence(Presence presence) private pure returns (bool) {
        return presence == Presence.MISSED || presence == Presence.UNHELD;
    }

    function _presence(Tenure storage t, uint64 round) private view returns (Presence) {
        return _commitments.presenceOf(round, t.seat);
    }

    /// @dev Is everything about the seat known in this round, and not yet in the next?
    function _isNewestOver(uint32 seat, uint64 round) private view returns (bool) {
        uint64 count = _commitments.opened();
        if (round >= count || _commitments.presenceOf(round, seat) == Presence.UNKNOWN) return false;
        return round + 1 == count || _commitments.presenceOf(round + 1, seat) == Presence.UNKNOWN;
    }

    /// @dev The first of rounds in a row in which fewer than half of the seats committed.
    function _isWaived(uint64 round) private view returns (bool) {
        return _commitments.isUnderHalf(round) && (round == 0 || !_commitments.isUnderHalf(round - 1));
    }

    /// @dev Attack: staying away until just before an eviction, leaving, and joining again for nothing.
    function _missedItsLast(uint32 tenure, Tenure storage t) private view returns (bool) {
        if (t.until <= t.from || t.convictedAt != 0) return false;
        Presence last = _commitments.presenceOf(t.until - 1, t.seat);
        if (last == Presence.UNKNOWN) revert TenureLasts(tenure);
        return last == Presence.MISSED && (_neverWorked(t) || !_isWaived(t.until - 1));
    }

    /// @dev Did the tenure, which is over, hold its seat in a round and never commit to one?
    function _neverWorked(Tenure storage t) private view returns (bool) {
        return t.last == 0 && t.until > t.from;
    }

    function _existing(uint32 tenure) private view returns (Tenure storage t) {
        t = _tenures[tenure];
        if (t.holder == address(0)) revert TenureNotFound(tenure);
    }

    function _feeOf(uint32 tenure) private pure returns (bytes32) {
        return keccak256(abi.encode("assay.tenure.fee", tenure));
    }
}
