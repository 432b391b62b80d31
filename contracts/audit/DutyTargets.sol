// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Answer, Attestation, Duty, DutyKind, DutyTerms, Epoch, Missed} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {DutyDraws} from "../libraries/DutyDraws.sol";
import {Epochs} from "./Epochs.sol";

/// @title DutyTargets: which duties an epoch has, and which of them a ticket missed
abstract contract DutyTargets is Epochs {
    /// @notice Epochs after the last round's own in which duties are drawn: in all of them work of it may be.
    uint24 public constant LAST_EPOCHS = 3;
    /// @notice At which a missed claim is drawn again, and relative to which it ranks.
    uint256 public constant AGAIN_PPM = 3_000_000;
    /// @notice The same of a claim that was missed in an epoch without fines.
    uint256 public constant UNFINED_PPM = 1_000_000;

    ICommitments internal immutable _commitments;
    IAttestations internal immutable _attestations;
    uint8 internal immutable _capacity;
    uint32 private immutable _auditPpm;
    uint32 private immutable _reauditPpm;

    /// @inheritdoc IDuties
    uint24 public lastEpoch;
    mapping(uint24 epoch => mapping(uint32 ticket => Answer)) internal _answers;

    /// @dev A duty in an epoch: what is audited, below what its draw is one and relative to what it ranks, and the commitment underneath.
    struct Target {
        bytes32 id;
        uint256 threshold;
        uint256 scale;
        uint64 round;
        uint32 seat;
    }

    constructor(IRunCharter charter) {
        (DutyTerms memory terms, RunModules memory modules) = (charter.dutyTerms(), charter.roundModules());
        (_commitments, _attestations) = (ICommitments(modules.commitments), IAttestations(modules.attestations));
        (_capacity, _auditPpm, _reauditPpm) = (terms.capacity, terms.auditPpm, terms.reauditPpm);
    }

    /// @inheritdoc IDuties
    function secretOf(uint32 ticket, uint24 epoch, uint24 via) public view returns (bytes32 secret) {
        Answer storage answer = _answers[via][ticket];
        secret = answer.secret;
        uint256 call = _epochs[epoch].call;
        // Attack: a chain that ends in zero, which is a secret as any other.
        bool known = answer.inTime || answer.shownIn != 0;
        bool shown = known && via >= epoch && _epochs[via].shift == _epochs[epoch].shift;
        // Attack: read the secret of one chain as a link of another. Skipped calls are of the chain that skipped them.
        if (!shown || _epochs[via].call > call + answer.skipped) revert SecretNotShown(ticket, epoch, via);
        for (uint256 k = _epochs[via].call; k > call; --k) {
            secret = keccak256(abi.encode(secret));
        }
    }

    /// @dev What a duty of an epoch is drawn over; reverts where there is no such duty.
    function _targetOf(uint24 epoch, uint32 ticket, Duty calldata duty) internal view returns (Target memory target) {
        // Attack: re-audits of re-audits for as long as epochs go on, with fines for whom nobody pays any more.
        if (_epochs[epoch].idle) revert NotADuty(duty.kind, epoch);
        if (duty.kind != DutyKind.MISSED) return _plain(epoch, duty.kind, ticket, duty);
        Missed calldata m = duty.missed;
        if (m.kind == DutyKind.MISSED) revert NotADuty(duty.kind, epoch);
        target = _plain(m.epoch, m.kind, m.ticket, duty);
        // Drawn again in the epoch after the one in which it was shown, by that epoch's secrets: once, whoever else missed it too.
        bool own = duty.attestation != 0 && _attestations.attestationOf(duty.attestation).ticket == ticket;
        uint24 home = _isAgain(m.kind) ? m.epoch - 1 : m.epoch;
        // Attack: show a miss when its claim is settled, and let who answers accuse what no game can be opened on.
        bool late = epoch > _lastOf(home) || _answers[m.via][m.ticket].shownIn + 1 != epoch;
        if (own || late) revert NotADuty(duty.kind, epoch);
        bool doubted = _attestations.isDoubted(m.epoch, m.ticket);
        _mustBeMissed(m, target, doubted);
        uint256 ppm = AGAIN_PPM;
        if (!doubted && !_epochs[m.epoch].fines) {
            // Attack: keep an epoch from fining, and be paid for what it left undone several times over. What was not opened is drawn
            // again by its share; all else once.
            if (!_answers[m.epoch][m.ticket].inTime && !_isAgain(m.kind)) revert NotADuty(duty.kind, epoch);
            ppm = UNFINED_PPM;
        }
        target.threshold = DutyDraws.threshold(ppm, _epochs[epoch].onCall);
        target.scale = DutyDraws.threshold(AGAIN_PPM, _epochs[epoch].onCall);
    }

    /// @dev Duties end with the work: their last epoch is known once one began after the last commitment of all.
    function _onBegan(uint24 epoch) internal override {
        if (lastEpoch != 0) {
            _epochs[epoch].idle = epoch > lastEpoch;
            return;
        }
        uint64 rounds = _commitments.opened();
        if (rounds == 0 || !_commitments.isOver() || _commitments.commitUntil(rounds - 1) >= _epochs[epoch].start) {
            return;
        }
        lastEpoch = epoch + LAST_EPOCHS;
        emit DutiesEnd(lastEpoch);
    }

    /// @dev A duty that is not a redraw of a miss.
    function _plain(uint24 epoch, DutyKind kind, uint32 ticket, Duty calldata duty)
        private
        view
        returns (Target memory target)
    {
        bool again = _isAgain(kind);
        if (again && epoch == 0) revert NotADuty(kind, epoch);
        uint24 home = again ? epoch - 1 : epoch; // the epoch whose duty it is, or was
        uint256 ppm;
        bool exists;
        if (kind == DutyKind.WORK || kind == DutyKind.WORK_AGAIN) {
            (target.round, target.seat, ppm) = (duty.round, duty.seat, _auditPpm);
            target.id = _commitments.workOf(duty.round, duty.seat).digest;
            exists = duty.attestation == 0 && target.id != 0 && _belongs(duty.round, home);
        } else if (kind == DutyKind.REAUDIT || kind == DutyKind.REAUDIT_AGAIN) {
            Attestation memory a = _attestations.attestationOf(duty.attestation);
            (target.id, target.round, target.seat, ppm) = (duty.attestation, a.round, a.seat, _reauditPpm);
            // Attack: a ticket that has left makes the openings fail that would accuse it.
            exists = a.ticket != 0 && a.ticket != ticket && a.epoch + 1 == home
                && _tickets.ticketOf(a.ticket).owner != address(0);
        }
        if (!exists) revert NotADuty(kind, epoch);
        if (again) ppm = _unopened(_epochs[home], ppm);
        target.threshold = target.scale = DutyDraws.threshold(ppm, _epochs[epoch].onCall);
    }

    /// @dev Is this the first epoch that began after the round took its last commitment?
    /// Attack: commit after the seed, once the secrets that could draw it are shown.
    function _belongs(uint64 round, uint24 epoch) internal view returns (bool) {
        uint48 last = _commitments.commitUntil(round);
        return last < _epochs[epoch].start && (epoch == 0 || last >= _epochs[epoch - 1].start);
    }

    function _isAgain(DutyKind kind) private pure returns (bool) {
        return kind == DutyKind.WORK_AGAIN || kind == DutyKind.REAUDIT_AGAIN;
    }

    /// @dev Was the ticket called and drawn, had room, and did not answer, or answered what is drawn again?
    function _mustBeMissed(Missed memory m, Target memory target, bool doubted) internal view {
        Epoch storage e = _epochs[m.epoch];
        if (!_isCalled(m.ticket, e)) revert NotCalled(m.ticket, m.epoch);
        bytes32 secret = secretOf(m.ticket, m.epoch, m.via);
        uint256 drawn = DutyDraws.draw(secret, e.seed, target.id, m.ticket, m.kind);
        if (drawn >= target.threshold) revert NotDrawn(target.id, m.ticket);
        bytes32 id = DutyDraws.attestation(m.epoch, m.ticket, m.kind, target.id);
        if (!doubted && _attestations.attestationOf(id).ticket != 0) revert DutyAnswered(id);
        Answer storage answer = _answers[m.epoch][m.ticket];
        uint256 rank = DutyDraws.rank(drawn, target.scale);
        // Attack: drop the duty that one is paid to drop, as one too many. The lowest draws are the duties.
        if (answer.answered == _capacity && rank > answer.topRank) revert DutyBeyondCapacity(rank, answer.topRank);
    }
}
