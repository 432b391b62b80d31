// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GroupState, ICommitments, RoundState, WorkState} from "../interfaces/ICommitments.sol";
import {RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";
import {Lanes} from "../libraries/Lanes.sol";
import {SealOver} from "../libraries/SealOver.sol";
import {RoundClock} from "./RoundClock.sol";

/// @title Committees: who sits in the committee of a node, and which updates a group's committee holds
/// @notice 64 counters of a group, one for each of its seats, are added to at once.
abstract contract Committees is RoundClock {
    ITenures internal immutable _tenures;
    ITickets private immutable _tickets;
    uint32 private immutable _positions;
    uint32 private immutable _topPositions;

    mapping(uint64 round => mapping(uint32 group => GroupState)) internal _groups;
    mapping(uint64 round => mapping(uint32 group => uint256[2])) private _lanes;
    mapping(uint64 round => mapping(uint32 seat => WorkState)) internal _works;

    constructor(IRunCharter charter) RoundClock(charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        _tenures = ITenures(modules.tenures);
        _tickets = ITickets(modules.tickets);
        (_positions, _topPositions) = (terms.positions, terms.topPositions);
    }

    /// @inheritdoc ICommitments
    function hold(uint64 round, uint32 group, uint64 positions, bytes32 acc, uint64 held) external {
        uint48 from = _holdAfter(round);
        if (block.timestamp <= from) revert TooEarly(block.timestamp, uint256(from) + 1);
        uint48 until = holdUntil(round, group);
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
        GroupState storage g = _groups[round][group];
        // Attack: a reorganization that puts another commitment under a bit, which nobody fetched.
        if (acc != g.acc) revert AccumulatorMismatch(acc, g.acc);
        if (g.maskable == 0 || held & ~g.maskable != 0) revert NotMaskable(held, g.maskable);
        if (positions & g.spoke != 0) revert AlreadySpoke(positions, g.spoke);
        _checkPositions(round, group, positions, g.maskable);
        g.spoke |= positions;
        _add(_lanes[round][group], held, Lanes.count(positions));
        uint256 spoke = Lanes.count(g.spoke);
        uint256 all = bySeats ? Lanes.count(g.maskable) : _positions;
        if (spoke == all) g.closeAt = uint48(block.timestamp);
        else if (g.closeAt == 0 && 2 * spoke > all) g.closeAt = _sooner(until, grace);
        emit Held(round, group, positions, held);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICommitments
    function groupOf(uint64 round, uint32 group) external view returns (GroupState memory) {
        return _groups[round][group];
    }

    /// @inheritdoc ICommitments
    function holdUntil(uint64 round, uint32 group) public view returns (uint48) {
        uint48 closeAt = _groups[round][group].closeAt;
        return closeAt != 0 ? closeAt : _holdAfter(round) + _hold;
    }

    /// @inheritdoc ICommitments
    function countedOf(uint64 round, uint32 group) public view returns (uint64 counted, bool closed) {
        closed = block.timestamp > _rounds[round].maskAt && block.timestamp > holdUntil(round, group);
        uint256 spoke = Lanes.count(_groups[round][group].spoke);
        if (spoke == 0) return (0, closed);
        // Attack: one more than half of a committee completes an update that nobody else can fetch, or denies it to those
        // who hold it. Two thirds of those that spoke: silence counts for neither.
        counted = _heldBy(round, group, (2 * spoke + 2) / 3);
    }

    /// @inheritdoc ICommitments
    function workOf(uint64 round, uint32 seat) external view returns (WorkState memory) {
        return _works[round][seat];
    }

    /// @inheritdoc ICommitments
    function mergedOf(uint64 round, uint32 group) public view returns (uint64 counted, bytes32 acc) {
        bool closed;
        (counted, closed) = countedOf(round, group);
        // Attack: updates that begin or cease to count while roots are computed; no root would have its votes.
        if (!closed) revert MaskOpen(round);
        acc = _groups[round][group].acc;
    }

    /// @inheritdoc ICommitments
    /// @dev Nothing of it changes once it is known: no word goes through after the last second to hold, no commitment has
    /// weight after the mask closed, and the base had its majority before the round.
    function overOf(uint64 round, uint32 group) external view returns (bytes32) {
        (uint64 counted, bytes32 acc) = mergedOf(round, group);
        return SealOver.updates(_rounds[round].base, counted, acc);
    }

    /// @inheritdoc ICommitments
    function speakerOf(uint64 node, uint32 position, uint64 positions, address who)
        external
        view
        returns (uint32 opener, uint256 voices, uint256 all, uint256 weight)
    {
        uint64 round;
        unchecked {
            round = uint64(uint32(node)) - 1; // generation 0 is of no round
        }
        uint64 maskable;
        if (bySeats || node >> 32 != 0) {
            uint32 group = bySeats ? 0 : uint32(node >> 32) - 1;
            (uint64 counted,) = mergedOf(round, group);
            (weight, maskable) = (Lanes.count(counted), _groups[round][group].maskable);
            if (maskable == 0) revert NobodyCommitted(round, group);
        }
        // Attack: a history that a minority goes on with.
        if (isUnderHalf(round)) revert TooFewCommitted(round);
        bool isMine;
        if (bySeats) {
            (opener, voices, all) = (_works[round][position].tenure, 1, Lanes.count(maskable));
            isMine = position < ONE_LEVEL && maskable >> position & 1 == 1 && _tenures.holderOf(opener) == who;
            isMine = isMine && _tenures.canAnswer(opener);
        } else {
            (opener, voices, all) = (position, Lanes.count(positions), node >> 32 != 0 ? _positions : _topPositions);
            isMine = _tickets.ownerOf(position) == who && _tickets.canAnswer(position)
                && _holds(round, _committeeOf(round, uint32(node >> 32)), position, positions, all);
        }
        // Attack: a position that somebody else holds, or that has no lock any more to answer with.
        if (!isMine) revert NotThePosition(position, who);
    }

    // ------------------------------------------------------------------------------------------------ inside

    function _place(uint32 seat) internal view returns (uint32 group, uint64 bit) {
        return (seat / groupSize, uint64(1) << (seat % groupSize));
    }

    /// @dev Goes through the positions that the caller names, which are its own: at most 64.
    function _checkPositions(uint64 round, uint32 group, uint64 positions, uint64 maskable) private view {
        if (positions == 0) revert NotMyPosition(64, msg.sender);
        bytes32 seed = bySeats ? bytes32(0) : seedOf(round);
        bytes32 committee = _committeeOf(round, group + 1);
        for (uint32 j = 0; positions >> j != 0; ++j) {
            if (positions >> j & 1 == 0) continue;
            address holder;
            // Attack: a liar whose lock is gone, or came back after a long merge, still says whose work counts.
            if (bySeats) {
                uint32 tenure = _works[round][j].tenure;
                if (maskable >> j & 1 == 1 && _tenures.canAnswer(tenure)) holder = _tenures.holderOf(tenure);
            } else if (j < _positions) {
                uint32 ticket = _tickets.positionOf(seed, committee, j, _rounds[round].t0);
                if (_tickets.canAnswer(ticket)) holder = _tickets.ownerOf(ticket);
            }
            // Attack: a word for a position that somebody else holds.
            if (holder != msg.sender) revert NotMyPosition(j, msg.sender);
        }
    }

    /// @dev Is the ticket at all of these positions? Goes through those that are named: at most 63.
    function _holds(uint64 round, bytes32 committee, uint32 ticket, uint64 positions, uint256 all)
        private
        view
        returns (bool)
    {
        if (positions == 0 || positions >> all != 0) return false;
        bytes32 seed = seedOf(round);
        for (uint256 j = 0; positions >> j != 0; ++j) {
            if (positions >> j & 1 == 0) continue;
            if (_tickets.positionOf(seed, committee, j, _rounds[round].t0) != ticket) return false;
        }
        return true;
    }

    /// @dev What a committee is drawn for.
    /// @param part of the round: the generation, 0, or a group's number plus one
    function _committeeOf(uint64 round, uint32 part) private pure returns (bytes32) {
        if (part == 0) return keccak256(abi.encode("assay.generation", round));
        return keccak256(abi.encode("assay.group", round, part - 1));
    }

    /// @dev Seats of the group whose update at least so many positions hold.
    function _heldBy(uint64 round, uint32 group, uint256 least) internal view returns (uint64) {
        uint256[2] storage lanes = _lanes[round][group];
        return uint64(Lanes.atLeast(lanes[0], least) | Lanes.atLeast(lanes[1], least) << 32);
    }

    function _add(uint256[2] storage lanes, uint64 held, uint256 voices) private {
        if (uint32(held) != 0) lanes[0] += Lanes.spread(held) * voices;
        if (held >> 32 != 0) lanes[1] += Lanes.spread(held >> 32) * voices;
    }
}
