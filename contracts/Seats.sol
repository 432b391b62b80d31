// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Modules, Terms, Windows} from "./interfaces/ICharter.sol";
import {IOuters} from "./interfaces/IOuters.sol";
import {IRounds, SEAT_COUNT, Times} from "./interfaces/IRounds.sol";
import {ISettlement} from "./interfaces/ISettlement.sol";
import {IVault} from "./interfaces/IVault.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {Schedule} from "./libraries/Schedule.sol";

/// @title Seats: who trains, and when rounds open
abstract contract Seats is IRounds {
    uint32 public constant SEATS = SEAT_COUNT;

    IVault internal immutable _vault;
    IOuters internal immutable _outers;
    ISettlement internal immutable _settlement;
    uint256 private immutable _seatFee;
    uint64 private immutable _rounds;
    uint64 private immutable _expiry;
    // Windows of the schedule, immutable one by one because a struct cannot be.
    uint64 private immutable _commitWindow;
    uint64 private immutable _receiptWindow;
    uint64 private immutable _seedDelay;
    uint64 private immutable _attestWindow;
    uint64 private immutable _drawWindow;
    uint64 private immutable _whistleWindow;
    uint64 private immutable _revealWindow;
    uint64 private immutable _challengeWindow;

    /// @inheritdoc IRounds
    uint64 public opened;
    mapping(uint64 round => uint64) internal _openedAt;
    mapping(uint64 round => address[SEAT_COUNT]) internal _roster;
    /// @inheritdoc IRounds
    mapping(uint64 round => uint256) public commitments;

    address[SEAT_COUNT] private _holders;
    mapping(address solver => uint256) private _seatPlusOne;
    mapping(address solver => bool) public isLeaving;

    constructor(Terms memory terms, Modules memory modules) {
        _vault = IVault(modules.vault);
        _outers = IOuters(modules.outers);
        _settlement = ISettlement(modules.settlement);
        _seatFee = terms.economics.seatFee;
        _rounds = terms.rounds;
        _expiry = terms.expiry;
        Windows memory w = terms.windows;
        _commitWindow = w.commit;
        _receiptWindow = w.receipt;
        _seedDelay = w.seedDelay;
        _attestWindow = w.attest;
        _drawWindow = w.draw;
        _whistleWindow = w.whistle;
        _revealWindow = w.reveal;
        _challengeWindow = w.challenge;
    }

    /// @inheritdoc IRounds
    function join() external {
        if (_seatPlusOne[msg.sender] != 0) revert AlreadySeated(msg.sender, uint32(_seatPlusOne[msg.sender] - 1));
        if (isOver()) revert RunOver(_rounds, _expiry);
        for (uint32 seat = 0; seat < SEATS; ++seat) {
            if (_holders[seat] != address(0)) continue;
            _holders[seat] = msg.sender;
            _seatPlusOne[msg.sender] = seat + 1;
            if (_seatFee != 0) _vault.lock(ClaimIds.seatLock(msg.sender), msg.sender, _seatFee);
            emit Joined(msg.sender, seat);
            return;
        }
        revert SeatsFull(SEATS);
    }

    /// @inheritdoc IRounds
    function leaveSeat() external {
        uint256 plusOne = _seatPlusOne[msg.sender];
        if (plusOne == 0) revert NotSeated(opened, SEATS, msg.sender);
        uint32 seat = uint32(plusOne - 1);
        if (!_owes(seat, msg.sender)) _vacate(seat, msg.sender, false);
        else if (block.timestamp > timesOf(opened - 1).t1) _vacate(seat, msg.sender, true);
        else isLeaving[msg.sender] = true;
    }

    /// @inheritdoc IRounds
    function openRound() external {
        if (isOver()) revert RunOver(_rounds, _expiry);
        uint64 round = opened;
        if (round != 0) {
            uint64 t7 = timesOf(round - 1).t7;
            if (block.timestamp < t7) revert TooEarly(block.timestamp, t7);
        }
        if (_outers.standingCount(round) == 0) revert NoOuterRoot(round);
        uint256 seated = 0;
        address[SEAT_COUNT] memory roster;
        for (uint32 seat = 0; seat < SEATS; ++seat) {
            address holder = _holders[seat];
            if (holder == address(0)) continue;
            bool owes = _owes(seat, holder);
            if (owes || isLeaving[holder]) {
                _vacate(seat, holder, owes);
                continue;
            }
            roster[seat] = holder;
            ++seated;
        }
        // A round without solvers would only use up the schedule.
        if (seated == 0) revert NoSeats();
        _roster[round] = roster;
        _openedAt[round] = uint64(block.timestamp);
        opened = round + 1;
        _settlement.onRoundOpened(round, seated);
        emit RoundOpened(round, uint64(block.timestamp), roster);
    }

    /// @inheritdoc IRounds
    function isOver() public view returns (bool) {
        return opened == _rounds || block.timestamp > _expiry;
    }

    /// @inheritdoc IRounds
    function timesOf(uint64 round) public view returns (Times memory) {
        if (round >= opened) revert RoundNotOpen(round);
        Windows memory w;
        w.commit = _commitWindow;
        w.receipt = _receiptWindow;
        w.seedDelay = _seedDelay;
        w.attest = _attestWindow;
        w.draw = _drawWindow;
        w.whistle = _whistleWindow;
        w.reveal = _revealWindow;
        w.challenge = _challengeWindow;
        return Schedule.timesOf(w, _openedAt[round]);
    }

    /// @inheritdoc IRounds
    function rosterOf(uint64 round) external view returns (address[SEAT_COUNT] memory) {
        return _roster[round];
    }

    /// @inheritdoc IRounds
    function holderOf(uint32 seat) external view returns (address) {
        return _holders[seat];
    }

    /// @inheritdoc IRounds
    function holdsSeat(address who) external view returns (bool) {
        return _seatPlusOne[who] != 0;
    }

    /// @inheritdoc IRounds
    function isSeated(uint64 round, address who) external view returns (bool) {
        if (who == address(0)) return false;
        for (uint32 seat = 0; seat < SEATS; ++seat) {
            if (_roster[round][seat] == who) return true;
        }
        return false;
    }

    function _hasCommitted(uint64 round, uint32 seat) internal view virtual returns (bool);

    /// @dev Was this holder seated in the latest round, and is its commitment missing?
    function _owes(uint32 seat, address holder) private view returns (bool) {
        if (opened == 0) return false;
        return _roster[opened - 1][seat] == holder && !_hasCommitted(opened - 1, seat);
    }

    function _vacate(uint32 seat, address holder, bool feeLost) private {
        _holders[seat] = address(0);
        delete _seatPlusOne[holder];
        delete isLeaving[holder];
        bytes32 id = ClaimIds.seatLock(holder);
        if (_seatFee != 0) {
            if (feeLost) _vault.burn(id, _seatFee);
            else _vault.release(id);
        }
        emit Left(holder, seat, feeLost);
    }
}
