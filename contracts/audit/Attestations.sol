// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Accusation, Attestation, Drawn, Finding, Result} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {ICommitments, WorkState} from "../interfaces/ICommitments.sol";
import {RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Ticket} from "../interfaces/ITickets.sol";
import {IVault} from "../interfaces/IVault.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";
import {DutyDraws} from "../libraries/DutyDraws.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {Accusations} from "./Accusations.sol";

/// @title Attestations: what replays ended in, whom they accuse, and the claims that they are
contract Attestations is Accusations {
    /// @notice Keys of attestations that a re-audit answers for beside its own; deeper ones start afresh.
    uint256 public constant MAX_AUDITED = 6;

    ICommitments private immutable _commitments;
    IVault private immutable _vault;
    address private immutable _game;
    address private immutable _charter;
    bytes32 private immutable _run;
    bytes32 private immutable _witnessProgram;
    bytes32 private immutable _updateProgram;
    uint32 private immutable _stepsPerUnit;

    /// @dev What `prepare` built.
    struct PreparedClaim {
        bytes32 x;
        bytes32 y;
        uint32 steps;
    }

    /// @inheritdoc IAttestations
    uint256 public findings;
    mapping(bytes32 id => mapping(uint32 part => PreparedClaim)) private _claims;

    constructor(IRunCharter charter) Accusations(charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        (_commitments, _vault) = (ICommitments(modules.commitments), IVault(modules.vault));
        (_game, _charter) = (modules.game, modules.charter);
        (_run, _witnessProgram, _updateProgram) = (terms.run, terms.witnessProgram, terms.updateProgram);
        _stepsPerUnit = terms.stepsPerUnit;
    }

    // ------------------------------------------------------------------------------------------------ results

    /// @inheritdoc IAttestations
    function record(Drawn calldata drawn, Result calldata result) external {
        if (msg.sender != address(_duties)) revert NotDuties(msg.sender);
        bytes32[] memory keys = _keys(drawn.key, result);
        if (result.accumulators.length != keys.length) {
            revert AccumulatorsMissing(result.accumulators.length, keys.length);
        }
        WorkState memory work = _commitments.workOf(drawn.round, drawn.seat);
        bytes32 digest = _commitments.digestOf(drawn.round, drawn.seat, work.tenure, result.work);
        if (digest != work.digest) revert ICommitments.WorkMismatch(digest, work.digest);
        bool differs = _differ(result.ends, result.update, result.work.ends, result.work.update);
        ++findings;
        // Attack: a puppet's accusation of oneself, kept in its game so that the stake comes back, and lies for others meanwhile.
        if (accusationsOf[drawn.ticket] != 0) isDoubted[drawn.epoch][drawn.ticket] = true;
        Attestation storage a = _attestations[drawn.id];
        Finding memory found = Finding(result.ends, result.update, keys, result.accumulators);
        a.finding = _digest(drawn.round, drawn.seat, found);
        (a.epoch, a.ticket, a.round, a.seat) = (drawn.epoch, drawn.ticket, drawn.round, drawn.seat);
        (a.keys, a.differs) = (uint8(keys.length), differs);
        emit Attested(drawn.epoch, drawn.ticket, drawn.id, drawn.target, drawn.round, drawn.seat, found);
        // Attack: let an honest auditor accuse work of which no game can open any more, and take its fine.
        if (differs && _commitments.isDisputable(drawn.round, drawn.seat)) {
            _accuse(drawn.id, work.digest, drawn.epoch, drawn.ticket, true, work.tenure);
        }
        bytes32 audited = result.duty.attestation;
        if (audited != 0 && _contradicts(result)) {
            _accuse(drawn.id, audited, drawn.epoch, drawn.ticket, false, _attestations[audited].ticket);
        }
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IAttestations
    function prepare(bytes32 id, Finding calldata finding, uint32 part) external {
        Attestation storage a = _attestations[id];
        // Attack: X or Y of the challenger's own choice.
        _mustMatch(a, finding);
        if (part > a.keys) revert ClaimNotFound(ClaimKind.ATTESTATION, a.round, a.seat, part);
        PreparedClaim storage claim = _claims[id][part];
        bytes32[3] memory start;
        (start[0], start[1], start[2],) = _commitments.startOf(a.round, a.seat);
        if (part < a.keys) {
            claim.x = DutyDraws.stateOf(start, finding.keys[part], 0);
            claim.y = DutyDraws.stateOf(finding.ends, finding.keys[part], finding.accumulators[part]);
            claim.steps = _commitments.workOf(a.round, a.seat).units * _stepsPerUnit;
        } else {
            claim.x = StateRoots.state2(start[0], finding.ends[0]);
            (claim.y, claim.steps) = (StateRoots.state1(finding.update), 1);
        }
        emit FindingPrepared(id, part, claim.x, claim.y);
    }

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        (bytes32 id, Attestation storage a, PreparedClaim storage claim) = _claimed(ref);
        if (claim.steps == 0) return view_;
        Ticket memory ticket = _tickets.ticketOf(a.ticket);
        // A ticket that was reclaimed answers for nothing any more.
        if (ticket.owner == address(0)) return view_;
        (view_.x, view_.y, view_.steps, view_.claimant) = (claim.x, claim.y, claim.steps, ticket.owner);
        view_.id = ClaimIds.claim(_charter, _run, ref.kind, ticket.owner, claim.x, claim.y);
        view_.program = ref.duty < a.keys ? _witnessProgram : _updateProgram;
        view_.challengeableUntil = _mayOpen(ref, id, a) ? type(uint64).max : 0;
        view_.lockId = _tickets.lockOf(a.ticket);
        (, view_.lockAmount) = _vault.lockOf(view_.lockId);
        view_.fallen = ticket.convictedAt != 0;
        (view_.bountyPpm, view_.beneficiary) = bountyOf(false, a.ticket);
    }

    /// @inheritdoc IClaims
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        (bytes32 id,, PreparedClaim storage claim) = _claimed(ref);
        return claim.steps != 0 && mayTry(ref.outerRoot, id, who);
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address challenger) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (bytes32 id, Attestation storage a, PreparedClaim storage claim) = _claimed(ref);
        if (claim.steps == 0) revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        if (!_mayOpen(ref, id, a)) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++a.disputes;
        _tickets.dispute(a.ticket);
        if (ref.outerRoot != id) _try(ref.outerRoot, id, challenger);
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (bytes32 id, Attestation storage a,) = _claimed(ref);
        _quiet(id);
        first = _tickets.undispute(a.ticket, convicted);
        if (ref.outerRoot != id) _judge(ref.outerRoot, convicted);
    }

    /// @inheritdoc IAttestations
    function windowOf(bytes32 id) public view returns (uint48) {
        Attestation storage a = _attestations[id];
        if (a.ticket == 0 || a.disputes != 0) return 0;
        uint48 since = _duties.overSince(a.epoch + 1);
        if (since == 0) since = _escrow.stoppedAt();
        return since != 0 && since < a.quietAt ? a.quietAt : since;
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev The attestation that a reference names, itself or by an accusation of it.
    function _claimed(ClaimRef calldata ref)
        private
        view
        returns (bytes32 id, Attestation storage a, PreparedClaim storage claim)
    {
        id = ref.outerRoot;
        if (_attestations[id].ticket == 0) id = _accusations[id].against;
        a = _attestations[id];
        bool named = a.round == ref.round && a.seat == ref.seat;
        claim = _claims[named ? id : bytes32(0)][ref.duty];
    }

    /// @dev Whoever accused in time has as long as its accusation is recorded.
    function _mayOpen(ClaimRef calldata ref, bytes32 id, Attestation storage a) private view returns (bool) {
        // Attack: puppets' games on a right accuser's attestation, each opened before the last one ends, until a puppet has the
        // bounty. Time alone decides, never a game.
        return ref.outerRoot != id || _duties.overSince(a.epoch + 1) == 0;
    }

    /// @dev A result's own key, then the keys of the attestation that it audits.
    /// Attack: find a blind attestation, keep silent about its accumulator, and sell the silence. Who audits it answers for it.
    function _keys(bytes32 own, Result calldata result) private view returns (bytes32[] memory keys) {
        bytes32 audited = result.duty.attestation;
        uint256 count = 0;
        if (audited != 0) {
            _mustMatch(_attestations[audited], result.audited);
            if (result.audited.keys.length <= MAX_AUDITED) count = result.audited.keys.length;
        }
        keys = new bytes32[](count + 1);
        keys[0] = own;
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
