// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ICommitments, WorkState} from "../interfaces/ICommitments.sol";
import {
    Answer,
    Attestation,
    Duty,
    DutyKind,
    DutyTerms,
    Epoch,
    Finding,
    IDuties,
    Missed,
    Result
} from "../interfaces/IDuties.sol";
import {GenerationStatus, IGenerations} from "../interfaces/IGenerations.sol";
import {IAccusers} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITickets, Ticket} from "../interfaces/ITickets.sol";
import {DutyDraws} from "../libraries/DutyDraws.sol";
import {Accusations} from "./Accusations.sol";
import {DutyTargets} from "./DutyTargets.sol";
import {Epochs} from "./Epochs.sol";

/// @title Duties: what tickets are drawn for, what they found, what they missed
contract Duties is DutyTargets {
    /// @notice Duties that a charter may ask of a ticket at a call.
    uint8 public constant MAX_CAPACITY = 16;

    /// @notice Keys of attestations that a re-audit answers for beside its own; deeper ones start afresh.
    uint256 public constant MAX_AUDITED = 6;

    IGenerations private immutable _generations;
    mapping(bytes32 id => bool) private _fined;
    /// @inheritdoc IAccusers
    mapping(uint64 round => mapping(uint32 seat => mapping(address who => bool))) public hasAccused;

    constructor(IRunCharter charter) Epochs(charter) Accusations(charter) DutyTargets(charter) {
        DutyTerms memory terms = charter.dutyTerms();
        bool empty = terms.auditPpm == 0 || terms.reauditPpm == 0 || terms.wage == 0;
        if (empty || terms.capacity == 0 || terms.capacity > MAX_CAPACITY) revert BadDutyTerms();
        _generations = IGenerations(charter.roundModules().generations);
    }

    // ------------------------------------------------------------------------------------------------ tickets

    /// @inheritdoc IDuties
    function open(uint32 ticket, bytes32 secret, Result[] calldata results) external {
        uint24 epoch = _newest;
        Epoch storage e = _epochs[epoch];
        Ticket memory t = _tickets.ticketOf(ticket);
        if (t.owner != msg.sender) revert ITickets.NotTheTicketsOwner(ticket, t.owner, msg.sender);
        // Attack: accuse with a ticket that has nothing left to lose.
        if (t.convictedAt != 0) revert ITickets.TicketConvicted(ticket);
        if (e.seed == 0) revert EpochNotSeeded(epoch);
        if (block.timestamp > e.deadline) revert TooLate(block.timestamp, e.deadline);
        if (!_isCalled(ticket, e)) revert NotCalled(ticket, epoch);
        if (results.length > _capacity) revert TooManyResults(results.length, _capacity);
        uint32 skipped = _tickets.advance(ticket, epoch, e.call, e.start, secret);
        ++e.opened;
        uint256 top = 0;
        for (uint256 i = 0; i < results.length; ++i) {
            uint256 rank = _attest(epoch, ticket, secret, results[i]);
            // Attack: answer one duty twice, or hide the highest draw answered.
            if (i != 0 && rank <= top) revert NotAscending(rank, top);
            top = rank;
        }
        _answers[epoch][ticket] = Answer(secret, uint128(top), uint8(results.length), skipped, epoch, true);
    }

    /// @inheritdoc IDuties
    function show(uint32 ticket, uint24 epoch, bytes32 secret) external {
        _mustBeClosed(epoch);
        Epoch storage e = _epochs[epoch];
        if (!_isCalled(ticket, e)) revert NotCalled(ticket, epoch);
        uint32 skipped = _tickets.advance(ticket, epoch, e.call, e.start, secret);
        _answers[epoch][ticket] = Answer(secret, 0, 0, skipped, _newest, false);
    }

    // ------------------------------------------------------------------------------------------------ anybody

    /// @inheritdoc IDuties
    function miss(uint32 ticket, uint24 epoch, uint24 via, Duty calldata duty) external {
        _mustFine(epoch);
        Target memory target = _targetOf(epoch, ticket, duty);
        _mustBeMissed(Missed(duty.kind, epoch, ticket, via), target);
        // Attack: work on a base that nobody honest holds. Nobody is fined before the base is final.
        if (_generations.statusOf(_commitments.roundOf(target.round).parent) != GenerationStatus.FINAL) {
            revert BaseNotFinal(target.round);
        }
        bytes32 id = DutyDraws.missed(epoch, ticket, duty.kind, target.id);
        _once(id);
        _charge(epoch, ticket, id, _fine);
    }

    /// @inheritdoc IDuties
    function absent(uint32 ticket, uint24 epoch) external {
        _mustFine(epoch);
        if (!_isCalled(ticket, _epochs[epoch])) revert NotCalled(ticket, epoch);
        if (_answers[epoch][ticket].inTime) revert CallAnswered(ticket, epoch);
        bytes32 id = keccak256(abi.encode("assay.absent", epoch, ticket));
        _once(id);
        // Rounds open only while c per ticket is twice what is expected, so c / 2 is no fewer than its expected duties.
        _charge(epoch, ticket, id, _fine + _fine * _capacity / 2);
    }

    /// @inheritdoc IDuties
    function forfeit(uint32 ticket, uint24 epoch, uint24 later) external {
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
    function attestationOf(bytes32 id) external view returns (Attestation memory) {
        return _attestations[id];
    }

    /// @inheritdoc IDuties
    function isAudited(uint64 round, uint24 epoch) external view returns (bool) {
        // What was missed in its epoch may be shown in the next, and is then drawn again in the one after.
        return _newest > uint256(epoch) + 2 && _belongs(round, epoch);
    }

    /// @inheritdoc IDuties
    function statesOf(bytes32 id, Finding calldata finding) external view returns (bytes32 x, bytes32 y) {
        Attestation storage a = _attestations[id];
        _mustMatch(a, finding);
        bytes32[3] memory start;
        (start[0], start[1], start[2],) = _commitments.startOf(a.round, a.seat);
        x = DutyDraws.stateOf(start, finding, false);
        y = DutyDraws.stateOf(finding.ends, finding, true);
    }

    // ------------------------------------------------------------------------------------------------ results

    /// @dev Checks and records one result; returns its rank.
    function _attest(uint24 epoch, uint32 ticket, bytes32 secret, Result calldata result)
        private
        returns (uint256 rank)
    {
        Target memory target = _targetOf(epoch, ticket, result.duty);
        uint256 drawn = DutyDraws.draw(secret, _epochs[epoch].seed, target.id, ticket, result.duty.kind);
        if (drawn >= target.threshold) revert NotDrawn(target.id, ticket);
        rank = DutyDraws.rank(drawn, target.threshold);
        bytes32 id = DutyDraws.attestation(epoch, ticket, result.duty.kind, target.id);

        Finding memory found;
        (found.ends, found.update, found.accumulators) = (result.ends, result.update, result.accumulators);
        found.keys = _keys(result);
        found.keys[0] = DutyDraws.key(secret, _epochs[epoch].seed, target.id, ticket, result.duty.kind);
        if (found.accumulators.length != found.keys.length) {
            revert AccumulatorsMissing(found.accumulators.length, found.keys.length);
        }
        _record(epoch, ticket, id, target, result, found);
    }

    /// @dev Keeps a result, and records what it accuses.
    function _record(
        uint24 epoch,
        uint32 ticket,
        bytes32 id,
        Target memory target,
        Result calldata result,
        Finding memory found
    ) private {
        WorkState memory work = _commitments.workOf(target.round, target.seat);
        bytes32 digest = _commitments.digestOf(target.round, target.seat, work.tenure, result.work);
        if (digest != work.digest) revert ICommitments.WorkMismatch(digest, work.digest);
        bool differs = _differ(result.ends, result.update, result.work.ends, result.work.update);
        _attestations[id] = Attestation({
            finding: _digest(target.round, target.seat, found),
            epoch: epoch,
            ticket: ticket,
            round: target.round,
            seat: target.seat,
            keys: uint8(found.keys.length),
            differs: differs
        });
        emit Attested(epoch, ticket, id, target.id, target.round, target.seat, found);
        if (differs) {
            hasAccused[target.round][target.seat][msg.sender] = true;
            _accuse(id, work.digest, epoch, ticket, true, work.tenure);
        }
        bytes32 audited = result.duty.attestation;
        if (audited != 0 && _contradicts(result)) {
            _accuse(id, audited, epoch, ticket, false, _attestations[audited].ticket);
        }
    }

    /// @dev Room for a result's own key, then the keys of the attestation that it audits.
    /// Attack: find a blind attestation, keep silent about its accumulator, and sell the silence. Who audits it answers for it.
    function _keys(Result calldata result) private view returns (bytes32[] memory keys) {
        bytes32 audited = result.duty.attestation;
        if (audited == 0) return new bytes32[](1);
        _mustMatch(_attestations[audited], result.audited);
        uint256 count = result.audited.keys.length;
        if (count > MAX_AUDITED) return new bytes32[](1);
        keys = new bytes32[](count + 1);
        for (uint256 k = 0; k < count; ++k) {
            keys[k + 1] = result.audited.keys[k];
        }
    }

    /// @dev Does a re-audit find anything else than the attestation that it audits?
    function _contradicts(Result calldata result) private pure returns (bool) {
        Finding calldata audited = result.audited;
        if (_differ(result.ends, result.update, audited.ends, audited.update)) return true;
        if (audited.keys.length > MAX_AUDITED) return false;
        for (uint256 k = 0; k < audited.accumulators.length; ++k) {
            if (result.accumulators[k + 1] != audited.accumulators[k]) return true;
        }
        return false;
    }

    // ------------------------------------------------------------------------------------------------ inside

    function _mustFine(uint24 epoch) private view {
        _mustBeClosed(epoch);
        if (!_epochs[epoch].fines) revert EpochWithoutFines(epoch);
    }

    function _once(bytes32 id) private {
        if (_fined[id]) revert AlreadyFined(id);
        _fined[id] = true;
    }

    function _mustMatch(Attestation storage a, Finding calldata finding) private view {
        bytes32 digest = _digest(a.round, a.seat, finding);
        if (digest != a.finding) revert FindingMismatch(digest, a.finding);
    }

    function _digest(uint64 round, uint32 seat, Finding memory finding) private pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, finding));
    }

    function _differ(bytes32[3] calldata ends, bytes32 update, bytes32[3] calldata others, bytes32 other)
        private
        pure
        returns (bool)
    {
        return keccak256(abi.encode(ends, update)) != keccak256(abi.encode(others, other));
    }
}
