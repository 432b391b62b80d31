// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Answer, Drawn, Duty, DutyKind, DutyTerms, Epoch, Missed, Result} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {GenerationStatus, IGenerations} from "../interfaces/IGenerations.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITickets, Ticket} from "../interfaces/ITickets.sol";
import {DutyDraws} from "../libraries/DutyDraws.sol";
import {DutyTargets} from "./DutyTargets.sol";
import {Epochs} from "./Epochs.sol";

/// @title Duties: what tickets are drawn for, and what they missed
contract Duties is DutyTargets {
    /// @notice Duties that a charter may ask of a ticket at a call.
    uint8 public constant MAX_CAPACITY = 16;

    IGenerations private immutable _generations;
    uint256 private immutable _fine; // 3 w, in wei
    mapping(bytes32 id => bool) private _fined;

    constructor(IRunCharter charter) Epochs(charter) DutyTargets(charter) {
        DutyTerms memory terms = charter.dutyTerms();
        bool empty = terms.auditPpm == 0 || terms.reauditPpm == 0 || terms.wage == 0;
        if (empty || terms.capacity == 0 || terms.capacity > MAX_CAPACITY) revert BadDutyTerms();
        (_generations, _fine) = (IGenerations(charter.roundModules().generations), 3 * uint256(terms.wage));
    }

    // ------------------------------------------------------------------------------------------------ tickets

    /// @inheritdoc IDuties
    /// @dev Attack: accuse falsely when no game can open any more, and share what an older one takes.
    function open(uint32 ticket, bytes32 seed, bytes32 secret, Result[] calldata results) external whileRunning {
        uint24 epoch = _newest;
        Epoch storage e = _epochs[epoch];
        Ticket memory t = _tickets.ticketOf(ticket);
        if (t.owner != msg.sender) revert ITickets.NotTheTicketsOwner(ticket, t.owner, msg.sender);
        // Attack: accuse with a ticket that has nothing left to lose.
        if (t.convictedAt != 0) revert ITickets.TicketConvicted(ticket);
        if (!_tickets.canAnswer(ticket)) revert ITickets.TicketDrained(ticket);
        if (e.seed == 0) revert EpochNotSeeded(epoch);
        // Attack: an honest answer that is mined again after a reorganization, under a seed that makes its accumulators false.
        if (seed != e.seed) revert SeedMismatch(seed, e.seed);
        if (block.timestamp > e.deadline) revert TooLate(block.timestamp, e.deadline);
        if (!_isCalled(ticket, e)) revert NotCalled(ticket, epoch);
        if (results.length > _capacity) revert TooManyResults(results.length, _capacity);
        uint32 skipped = _tickets.advance(ticket, epoch, e.call, e.start, secret);
        ++e.opened;
        uint256 top = 0;
        for (uint256 i = 0; i < results.length; ++i) {
            uint256 rank = _answer(epoch, ticket, secret, results[i]);
            // Attack: answer one duty twice, or hide the highest draw answered.
            if (i != 0 && rank <= top) revert NotAscending(rank, top);
            top = rank;
        }
        _answers[epoch][ticket] = Answer(secret, uint128(top), uint8(results.length), skipped, epoch, true);
    }

    /// @inheritdoc IDuties
    function show(uint32 ticket, uint24 epoch, bytes32 secret) external whileRunning {
        _mustBeClosed(epoch);
        Epoch storage e = _epochs[epoch];
        if (!_isCalled(ticket, e)) revert NotCalled(ticket, epoch);
        uint32 skipped = _tickets.advance(ticket, epoch, e.call, e.start, secret);
        _answers[epoch][ticket] = Answer(secret, 0, 0, skipped, _newest, false);
    }

    // ------------------------------------------------------------------------------------------------ anybody

    /// @inheritdoc IDuties
    function miss(uint32 ticket, uint24 epoch, uint24 via, Duty calldata duty) external whileRunning {
        _mustFine(epoch);
        Target memory target = _targetOf(epoch, ticket, duty);
        _mustBeMissed(Missed(duty.kind, epoch, ticket, via), target, false);
        // Attack: work on a base that nobody honest holds. Nobody is fined before the base is final.
        if (_generations.statusOf(_commitments.roundOf(target.round).parent) != GenerationStatus.FINAL) {
            revert BaseNotFinal(target.round);
        }
        bytes32 id = DutyDraws.missed(epoch, ticket, duty.kind, target.id);
        _once(id);
        _charge(epoch, ticket, id, _fine);
    }

    /// @inheritdoc IDuties
    function absent(uint32 ticket, uint24 epoch) external whileRunning {
        _mustFine(epoch);
        if (!_isCalled(ticket, _epochs[epoch])) revert NotCalled(ticket, epoch);
        if (_answers[epoch][ticket].inTime) revert CallAnswered(ticket, epoch);
        bytes32 id = keccak256(abi.encode("assay.absent", epoch, ticket));
        _once(id);
        // Rounds open only while c per ticket is twice what is expected, so c / 2 is no fewer than its expected duties.
        _charge(epoch, ticket, id, _fine + _fine * _capacity / 2);
    }

    /// @inheritdoc IDuties
    function forfeit(uint32 ticket, uint24 epoch, uint24 later) external whileRunning {
        _mustFine(epoch);
        _mustFine(later);
        if (later <= epoch) revert EpochOpen(later);
        Epoch storage e = _epochs[epoch];
        if (!_isCalled(ticket, e)) revert NotCalled(ticket, epoch);
        // Attack: be drawn on a lie, be paid, and never show it.
        if (_tickets.ticketOf(ticket).shown >= e.call) revert SecretKnown(ticket, epoch);
        _once(keccak256(abi.encode("assay.forfeit", ticket)));
        _tickets.forfeit(ticket);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IDuties
    function answerOf(uint24 epoch, uint32 ticket) external view returns (Answer memory) {
        return _answers[epoch][ticket];
    }

    /// @inheritdoc IDuties
    function isAudited(uint64 round, uint24 epoch) external view returns (bool) {
        return overSince(epoch) != 0 && _belongs(round, epoch);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev Checks a result's draw, and has it kept; returns its rank.
    function _answer(uint24 epoch, uint32 ticket, bytes32 secret, Result calldata result)
        private
        returns (uint256 rank)
    {
        Target memory target = _targetOf(epoch, ticket, result.duty);
        DutyKind kind = result.duty.kind;
        bytes32 seed = _epochs[epoch].seed;
        uint256 drawn = DutyDraws.draw(secret, seed, target.id, ticket, kind);
        if (drawn >= target.threshold) revert NotDrawn(target.id, ticket);
        rank = DutyDraws.rank(drawn, target.scale);
        // Bad luck: no time for one duty of many. Who names what it leaves out owes that, and nothing that it drew beyond c.
        if (result.accumulators.length == 0) {
            emit DutyLeftOut(epoch, ticket, kind, target.id);
            return rank;
        }
        _attestations.record(
            Drawn({
                id: DutyDraws.attestation(epoch, ticket, kind, target.id),
                key: DutyDraws.key(secret, seed, target.id, ticket, kind),
                target: target.id,
                round: target.round,
                seat: target.seat,
                epoch: epoch,
                ticket: ticket
            }),
            result
        );
    }

    /// @dev Takes a fine; who proved it gets its half.
    function _charge(uint24 epoch, uint32 ticket, bytes32 id, uint256 fine) private {
        emit DutyFined(epoch, ticket, id, _tickets.fine(ticket, fine, msg.sender));
    }

    function _mustFine(uint24 epoch) private view {
        _mustBeClosed(epoch);
        if (!_epochs[epoch].fines) revert EpochWithoutFines(epoch);
    }

    function _once(bytes32 id) private {
        if (_fined[id]) revert AlreadyFined(id);
        _fined[id] = true;
    }
}
