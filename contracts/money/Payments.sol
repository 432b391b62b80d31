// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Attestation} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {ICommitments, WorkState, WorkStatus} from "../interfaces/ICommitments.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {IEscrow} from "../interfaces/IEscrow.sol";
import {GenerationState, GenerationStatus, IGenerations, OpenedRoot} from "../interfaces/IGenerations.sol";
import {IGrants} from "../interfaces/IGrants.sol";
import {IPayments} from "../interfaces/IPayments.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunEconomics} from "../interfaces/RunTypes.sol";
import {ITenures, Tenure} from "../interfaces/ITenures.sol";
import {ITicketPositions} from "../interfaces/ITicketPositions.sol";
import {ITickets} from "../interfaces/ITickets.sol";

/// @title Payments: work, findings and openings of final roots, each paid once nothing can refute it
contract Payments is IPayments {
    /// @notice Epochs after a round's own that must be over before its reserve is free: findings of it are made in its own and the three that follow,
    /// the next one re-audits the last of them, and whoever earned wages has one more to settle.
    uint24 public constant EPOCHS_TO_CLAIM = 5;

    uint256 private constant ONE_LEVEL = 64;

    IRunCharter public immutable charter;
    IEscrow private immutable _escrow;
    ICommitments private immutable _commitments;
    IGenerations private immutable _generations;
    ITenures private immutable _tenures;
    ITickets private immutable _tickets;
    IDuties private immutable _duties;
    IAttestations private immutable _attestations;
    IGrants private immutable _grants;
    bool private immutable _bySeats;
    bool private immutable _isGoverned;
    uint256 private immutable _unitPay; // zero where shares alone are credited
    uint256 private immutable _wage;
    uint256 private immutable _mergePay;
    uint128 private immutable _unitShares;
    uint128 private immutable _dutyShares;

    /// @inheritdoc IPayments
    uint256 public findingsSettled;
    /// @inheritdoc IPayments
    mapping(uint64 round => uint256) public workSettled;
    /// @inheritdoc IPayments
    mapping(uint64 node => uint256) public openingsSettled;
    /// @inheritdoc IPayments
    mapping(uint64 round => bool) public isRoundSettled;
    mapping(uint64 round => uint256) private _nodesSettled; // nodes of which every opening was settled
    mapping(bytes32 id => bool) private _settled;

    modifier whileRunning() {
        if (_escrow.isStopped()) revert RunStopped();
        _;
    }

    constructor(IRunCharter charter_) {
        RunModules memory modules = charter_.roundModules();
        RunEconomics memory e = charter_.runTerms().economics;
        _isGoverned = modules.governor != address(0);
        (charter, _bySeats) = (charter_, charter_.runTerms().training.seats <= ONE_LEVEL);
        (_escrow, _grants) = (IEscrow(modules.escrow), IGrants(modules.grants));
        (_commitments, _generations) = (ICommitments(modules.commitments), IGenerations(modules.generations));
        (_tenures, _tickets) = (ITenures(modules.tenures), ITickets(modules.tickets));
        (_duties, _attestations) = (IDuties(modules.duties), IAttestations(modules.attestations));
        (_unitPay, _wage, _mergePay) = (e.pays ? e.unitPrice : 0, e.wage, e.mergePay);
        (_unitShares, _dutyShares) = (e.sharesPerUnit, e.sharesPerDuty);
    }

    /// @inheritdoc IPayments
    function settleWork(uint64 round, uint32 seat, uint24 epoch) external whileRunning {
        WorkStatus status = _commitments.settle(round, seat);
        WorkState memory work = _commitments.workOf(round, seat);
        ++workSettled[round];
        (uint256 pay, uint128 shares) = (0, 0);
        if (status == WorkStatus.FINAL) {
            // Attack: be paid before what nobody opened, or somebody missed, was drawn again.
            if (!_duties.isAudited(round, epoch)) revert NotAudited(round, epoch);
            (pay, shares) = (work.units * _unitPay, work.units * _unitShares);
            if (_isGoverned) pay = _escrow.workPayOf(round, pay);
        }
        emit WorkPaid(round, seat, work.tenure, status, pay, shares);
        address holder = _tenures.holderOf(work.tenure);
        if (pay != 0) _escrow.pay(round, holder, pay, false);
        if (shares != 0) {
            _grants.credit(keccak256(abi.encode("assay.work", round, seat)), holder, shares, work.tenure, 0);
        }
    }

    /// @inheritdoc IPayments
    function settleDuty(bytes32 id) external whileRunning {
        Attestation memory a = _attestations.attestationOf(id);
        if (a.ticket == 0) revert FindingNotFound(id);
        _once(id);
        ++findingsSettled;
        address payee = _tickets.payeeOf(a.ticket);
        GenerationStatus base = _generations.statusOf(_commitments.roundOf(a.round).parent);
        (uint256 pay, uint128 shares) = (0, 0);
        // Attack: invented findings about work on a hidden base, which nobody can replay, so that nobody refutes them.
        bool isVoid = base == GenerationStatus.CUT || payee == address(0);
        if (!isVoid) {
            // Attack: attest falsely for nothing while the game goes on that takes the stake.
            bool isOpen = _attestations.accusationsOf(a.ticket) != 0 || _attestations.windowOf(id) == 0;
            if (isOpen || base != GenerationStatus.FINAL) revert FindingOpen(id);
            (pay, shares) = (_wage, _dutyShares);
        }
        if (pay != 0) pay = _escrow.pay(a.round, payee, pay, true);
        emit FindingPaid(id, a.ticket, pay, shares);
        if (shares != 0) _grants.credit(id, payee, shares, 0, a.ticket);
    }

    /// @inheritdoc IPayments
    function settleOpening(uint64 node, bytes32 party) external whileRunning {
        GenerationState memory g = _generations.generationOf(node);
        OpenedRoot memory opening = _generations.openingOf(node, party);
        // A sum of a group that did not count is of no final generation.
        bool isFinal =
            g.status == GenerationStatus.FINAL && _generations.statusOf(uint32(node)) == GenerationStatus.FINAL;
        if (!isFinal || !opening.closed) revert OpeningOpen(node, party);
        // Attack: rescue one's own root by a thousand names, and be paid for each.
        if (opening.root != g.root || opening.opener == 0) revert NotPayable(node, party);
        uint64 round = uint32(node) - 1;
        // Above 64 seats nodes are counted whose openings are all settled: none may be opened any more.
        if (!_bySeats && block.timestamp <= _commitments.mergeUntil(round)) revert OpeningOpen(node, party);
        (address holder, uint256 accusations, uint256 convictedAt) = _openerOf(opening.opener);
        if (accusations != 0) revert OpeningOpen(node, party);
        _once(keccak256(abi.encode("assay.opening", node, party)));
        uint256 settled = ++openingsSettled[node];
        if (settled == _generations.nodeOf(node, g.root).openings) ++_nodesSettled[round];
        uint256 pay = opening.fallen || convictedAt != 0 || holder == address(0) ? 0 : _mergePay;
        emit OpeningPaid(node, party, pay);
        if (pay != 0) _escrow.pay(round, holder, pay, false);
    }

    /// @inheritdoc IPayments
    function settleRound(uint64 round, uint24 epoch) external whileRunning {
        if (isRoundSettled[round]) revert AlreadySettled(bytes32(uint256(round)));
        if (!_duties.isAudited(round, epoch)) revert NotAudited(round, epoch);
        bool isOver = _duties.overSince(epoch + EPOCHS_TO_CLAIM) != 0 && _areOpeningsOver(round);
        if (!isOver || workSettled[round] != _commitments.roundOf(round).committed) revert RoundUnsettled(round);
        isRoundSettled[round] = true;
        _escrow.free(round);
    }

    /// @dev Was every opening of the round's root paid that can be?
    function _areOpeningsOver(uint64 round) private view returns (bool) {
        GenerationState memory g = _generations.generationOf(round + 1);
        if (g.status == GenerationStatus.CUT) return true;
        if (g.status == GenerationStatus.OPEN) return block.timestamp > _commitments.mergeUntil(round);
        if (g.status != GenerationStatus.FINAL) return false;
        if (_bySeats) return openingsSettled[round + 1] == _generations.nodeOf(round + 1, g.root).openings;
        // Attack: a game about a true sum, kept open until the run is over, so that who opened it is never paid.
        return _nodesSettled[round] == uint256(ITicketPositions(address(_generations)).groupsOf(round).finals) + 1;
    }

    /// @dev Whose lock stands behind openings: tenures, above 64 seats tickets.
    function _openerOf(uint32 opener) private view returns (address holder, uint256 accusations, uint256 convictedAt) {
        if (_bySeats) {
            Tenure memory tenure = _tenures.tenureOf(opener);
            return (tenure.holder, tenure.accusations, tenure.convictedAt);
        }
        return (_tickets.payeeOf(opener), _attestations.accusationsOf(opener), 0);
    }

    function _once(bytes32 id) private {
        if (_settled[id]) revert AlreadySettled(id);
        _settled[id] = true;
    }
}
