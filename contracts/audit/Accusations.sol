// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Accusation, AccusationStatus, Attestation} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {ICalls} from "../interfaces/ICalls.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {IEscrow} from "../interfaces/IEscrow.sol";
import {IAccusers, RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";

/// @title Accusations: results that differ from what they audit
/// @notice An accusation freezes the accused at once and needs no stake of its own; a game decides it, and one without a game lapses.
abstract contract Accusations is IAttestations {
    ITickets internal immutable _tickets;
    ITenures private immutable _tenures;
    IEscrow internal immutable _escrow;
    ICalls internal immutable _duties;
    address private immutable _book;
    address private immutable _bounties;
    uint256 private immutable _drawnPpm;
    uint256 private immutable _thirdPpm;
    uint256 private immutable _fine; // 3 w, in wei

    mapping(bytes32 id => Attestation) internal _attestations;
    mapping(bytes32 id => Accusation) internal _accusations;
    /// @inheritdoc IAttestations
    mapping(uint32 ticket => uint256) public accusationsOf;
    /// @inheritdoc IAttestations
    mapping(uint24 epoch => mapping(uint32 ticket => bool)) public isDoubted;

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        (_tickets, _tenures) = (ITickets(modules.tickets), ITenures(modules.tenures));
        (_duties, _book) = (ICalls(modules.duties), modules.commitments);
        _escrow = IEscrow(modules.escrow);
        _bounties = modules.bounties;
        (_drawnPpm, _thirdPpm) = (terms.drawnBountyPpm, terms.thirdBountyPpm);
        _fine = 3 * uint256(charter.dutyTerms().wage);
    }

    modifier onlyBook() {
        if (msg.sender != _book) revert NotTheBook(msg.sender);
        _;
    }

    /// @inheritdoc IAttestations
    function lapse(bytes32 id) external {
        Accusation storage a = _at(id, AccusationStatus.RECORDED);
        bool excused = a.isWork ? _tenures.isConvicted(a.accused) : _tickets.ticketOf(a.accused).convictedAt != 0;
        // Attack: let the accused lose everything in a puppet's game, and take the fine of who accused it rightly.
        if (excused) return _end(id, a, AccusationStatus.EXCUSED);
        // Attack: accuse falsely just before a stop, after which nothing is tried, and share what an older game takes.
        if (_escrow.isStopped()) return _end(id, a, AccusationStatus.LAPSED);
        (uint24 newest,) = _duties.newest();
        if (newest <= a.epoch + 1) revert IDuties.EpochOpen(a.epoch + 1);
        _end(id, a, AccusationStatus.LAPSED);
        _tickets.fine(a.ticket, _fine, msg.sender);
    }

    /// @inheritdoc IAccusers
    function onTried(bytes32 id, bytes32 against, address challenger) external onlyBook {
        _try(id, against, challenger);
    }

    /// @inheritdoc IAccusers
    function onJudged(bytes32 id, bool right) external onlyBook {
        _judge(id, right);
    }

    /// @inheritdoc IAccusers
    function mayTry(bytes32 id, bytes32 against, address challenger) public view returns (bool) {
        Accusation storage a = _accusations[id];
        return a.status == AccusationStatus.RECORDED && _isOwn(a, against, challenger);
    }

    /// @inheritdoc IAccusers
    function bountyOf(bool isWork, uint32 accused) public view returns (uint256 ppm, address beneficiary) {
        uint256 alive = isWork ? _tenures.tenureOf(accused).accusations : accusationsOf[accused];
        // Attack: convict oneself by a puppet when a drawn auditor has found the lie, and take its bounty.
        return alive != 0 ? (_drawnPpm, _bounties) : (_thirdPpm, address(0));
    }

    /// @inheritdoc IAttestations
    function attestationOf(bytes32 id) external view returns (Attestation memory) {
        return _attestations[id];
    }

    /// @inheritdoc IAttestations
    function accusationOf(bytes32 id) external view returns (Accusation memory) {
        return _accusations[id];
    }

    /// @dev Records an accusation and freezes the accused: nothing of it settles before the verdict.
    function _accuse(bytes32 by, bytes32 against, uint24 epoch, uint32 ticket, bool isWork, uint32 accused) internal {
        bytes32 id = keccak256(abi.encode("assay.accusation", by, against));
        _accusations[id] = Accusation({
            status: AccusationStatus.RECORDED,
            isWork: isWork,
            accused: accused,
            ticket: ticket,
            epoch: epoch,
            at: uint48(block.timestamp),
            by: by,
            against: against
        });
        // Attack: accuse and leave, so that nothing ends the accusation.
        _tickets.oblige(ticket);
        if (isWork) {
            _tenures.accuse(accused);
        } else {
            _tickets.dispute(accused);
            ++accusationsOf[accused];
            isDoubted[epoch][accused] = true;
            ++_attestations[against].disputes;
        }
        emit Accused(id, by, against, isWork);
    }

    /// @dev The accusation's game is open: the seat's next commitments have no weight.
    function _try(bytes32 id, bytes32 against, address challenger) internal {
        Accusation storage a = _at(id, AccusationStatus.RECORDED);
        // Attack: a puppet of the accused opens the accuser's game and loses it.
        if (!_isOwn(a, against, challenger)) revert NotYourAccusation(id, challenger);
        a.status = AccusationStatus.TRIED;
        if (a.isWork) _tenures.suspend(a.accused);
        emit AccusationMoved(id, AccusationStatus.TRIED);
    }

    /// @dev The accusation's game is over.
    function _judge(bytes32 id, bool right) internal {
        Accusation storage a = _at(id, AccusationStatus.TRIED);
        if (a.isWork) _tenures.resume(a.accused);
        _end(id, a, right ? AccusationStatus.UPHELD : AccusationStatus.REJECTED);
    }

    /// @dev One accusation of an attestation, or one game on it, is over.
    function _quiet(bytes32 attestation) internal {
        Attestation storage a = _attestations[attestation];
        --a.disputes;
        a.quietAt = uint48(block.timestamp);
    }

    function _end(bytes32 id, Accusation storage a, AccusationStatus status) private {
        a.status = status;
        _tickets.acquit(a.ticket);
        if (a.isWork) {
            _tenures.unaccuse(a.accused);
        } else {
            _tickets.undispute(a.accused, false);
            --accusationsOf[a.accused];
            _quiet(a.against);
        }
        emit AccusationMoved(id, status);
    }

    function _isOwn(Accusation storage a, bytes32 against, address who) private view returns (bool) {
        return a.against == against && _tickets.ticketOf(a.ticket).owner == who;
    }

    function _at(bytes32 id, AccusationStatus wanted) private view returns (Accusation storage a) {
        a = _accusations[id];
        if (a.status != wanted) revert WrongAccusation(id, a.status);
    }
}
