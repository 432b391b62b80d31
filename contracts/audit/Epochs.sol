// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {ICalls} from "../interfaces/ICalls.sol";
import {DutyTerms, Epoch} from "../interfaces/AuditTypes.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {IRoundGate, RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITickets} from "../interfaces/ITickets.sol";

/// @title Epochs: turns of the audits, their seeds, and the shift that each calls
abstract contract Epochs is IDuties {
    using Checkpoints for Checkpoints.Trace208;

    uint8 public constant MAX_REPEATS = 2;

    bytes32 private constant SHIFT = "assay.shift";

    ITickets internal immutable _tickets;
    IBeacon private immutable _beacon;
    IRoundGate private immutable _gate;
    uint48 private immutable _length;
    uint48 private immutable _delay;

    uint24 internal _newest;
    mapping(uint24 epoch => Epoch) internal _epochs;
    mapping(uint32 shift => Checkpoints.Trace208) private _calls;
    Checkpoints.Trace208 private _begun; // numbers of epochs plus one, by the time at which they began

    constructor(IRunCharter charter) {
        (DutyTerms memory terms, RunModules memory modules) = (charter.dutyTerms(), charter.roundModules());
        // Attack: chains chosen for a seed that is known.
        if (terms.length == 0 || 2 * uint256(terms.length) > charter.ticketTerms().seasoning) revert BadDutyTerms();
        (_tickets, _beacon) = (ITickets(modules.tickets), IBeacon(modules.beacon));
        _gate = IRoundGate(modules.escrow);
        (_length, _delay) = (terms.length, terms.delay);
        _begin(0, terms.start);
    }

    /// @dev Attack: a puppet's game that holds its victim through a wind-down, and fines it for calls that nobody pays.
    modifier whileRunning() {
        _mustRun();
        _;
    }

    /// @inheritdoc IDuties
    function seedEpoch() external whileRunning {
        Epoch storage e = _epochs[_newest];
        if (e.seed != 0) revert EpochSeeded(_newest);
        // Attack: know the seed while what it draws over can still change. Reverts until the round is submitted.
        bytes32 seed = _beacon.randomnessOf(_beacon.roundAfter(uint64(e.start) + _delay));
        e.seed = seed;
        e.deadline = uint48(block.timestamp) + _length;
        // Once duties are over an epoch only passes time: the call after the last duties shows what was hidden of them.
        bool calls = !e.idle || !_epochs[_newest - 1].idle;
        if (calls && _tickets.countAt(e.start) != 0) {
            // Attack: gather one's tickets in a shift and have its epochs to oneself. A shift is called as often as it is large.
            e.shift = _tickets.positionOf(seed, SHIFT, 0, e.start) % _tickets.shifts();
            e.onCall = uint32(_tickets.onCallAt(e.shift, e.start));
            e.call = uint32(_calls[e.shift].latest()) + 1;
            _calls[e.shift].push(e.start, e.call);
        }
        emit EpochBegan(_newest, seed, e.shift, e.onCall, e.deadline);
    }

    /// @inheritdoc IDuties
    function closeEpoch() external whileRunning {
        uint24 epoch = _newest;
        Epoch storage e = _epochs[epoch];
        if (e.seed == 0) revert EpochNotSeeded(epoch);
        if (block.timestamp <= e.deadline) revert TooEarly(block.timestamp, uint256(e.deadline) + 1);
        bool attended = e.onCall != 0 && 2 * uint256(e.opened) >= e.onCall;
        // Attack: withhold openings so that an epoch never ends. It repeats with its seed, and no more than twice.
        if (!attended && e.onCall != 0 && e.repeats < MAX_REPEATS) {
            ++e.repeats;
            e.deadline = uint48(block.timestamp) + _length;
            emit EpochRepeated(epoch, e.deadline);
            return;
        }
        (e.closed, e.fines) = (true, attended);
        _newest = epoch + 1;
        _begin(epoch + 1, uint48(block.timestamp));
        _onBegan(epoch + 1);
        emit EpochClosed(epoch, attended);
    }

    /// @inheritdoc ICalls
    function callsAt(uint32 shift, uint48 time) external view returns (uint32) {
        return uint32(_calls[shift].upperLookupRecent(time));
    }

    /// @inheritdoc ICalls
    function newest() external view returns (uint24 epoch, uint48 start) {
        return (_newest, _epochs[_newest].start);
    }

    /// @inheritdoc ICalls
    function overSince(uint24 epoch) public view returns (uint48) {
        return _epochs[_lastOf(epoch) + 1].start;
    }

    /// @inheritdoc ICalls
    function overAfter(uint48 time) external view returns (uint48) {
        uint24 next = uint24(_begun.lowerLookup(time + 1));
        return next == 0 ? 0 : overSince(next - 1);
    }

    /// @inheritdoc IDuties
    function epochOf(uint24 epoch) external view returns (Epoch memory) {
        return _epochs[epoch];
    }

    function _begin(uint24 epoch, uint48 start) private {
        _epochs[epoch].start = start;
        _begun.push(start, uint208(epoch) + 1);
    }

    /// @dev An epoch has begun, and nobody is called yet.
    function _onBegan(uint24 epoch) internal virtual;

    /// @dev The last epoch in which what belongs to an epoch is drawn.
    function _lastOf(uint24 epoch) internal view returns (uint24) {
        // Attack: keep an epoch from fining, so that what was missed before it is shown when nothing draws it again.
        return epoch + (_epochs[epoch + 1].fines ? 2 : 3);
    }

    /// @dev Does the epoch call the ticket?
    function _isCalled(uint32 ticket, Epoch storage e) internal view returns (bool) {
        return e.onCall != 0 && ticket % _tickets.shifts() == e.shift && _tickets.isServing(ticket, e.start);
    }

    /// @dev Share of the tickets on call that did not open, in ppm of `ppm`, rounded down.
    function _unopened(Epoch storage e, uint256 ppm) internal view returns (uint256) {
        return e.onCall == 0 ? 0 : ppm * (e.onCall - e.opened) / e.onCall;
    }

    function _mustRun() private view {
        if (_gate.isStopped()) revert RunStopped();
    }

    function _mustBeClosed(uint24 epoch) internal view {
        if (!_epochs[epoch].closed) revert EpochOpen(epoch);
    }
}
