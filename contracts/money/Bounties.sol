// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Accusation, AccusationStatus} from "../interfaces/AuditTypes.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {Pot, IBounties} from "../interfaces/IBounties.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {IEscrow} from "../interfaces/IEscrow.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunTiming} from "../interfaces/RunTypes.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title Bounties: what a conviction gives the drawn accusers, in equal parts
contract Bounties is IBounties {
    IRunCharter public immutable charter;
    address private immutable _game;
    IVault private immutable _vault;
    ITenures private immutable _tenures;
    ITickets private immutable _tickets;
    IDuties private immutable _duties;
    IAttestations private immutable _attestations;
    IEscrow private immutable _escrow;
    uint256 private immutable _time; // to enter, after the windows of all who accused before the conviction

    mapping(bytes32 lockId => Pot) private _pots;
    /// @inheritdoc IBounties
    mapping(bytes32 accusation => bool) public hasEntered;
    mapping(bytes32 accusation => bool) private _paid;

    constructor(IRunCharter charter_) {
        RunModules memory modules = charter_.roundModules();
        RunTiming memory timing = charter_.runTerms().timing;
        (charter, _game, _vault) = (charter_, modules.game, IVault(modules.vault));
        (_tenures, _tickets) = (ITenures(modules.tenures), ITickets(modules.tickets));
        (_duties, _attestations) = (IDuties(modules.duties), IAttestations(modules.attestations));
        _escrow = IEscrow(modules.escrow);
        // Attack: a game about a right accuser's attestation, lost on purpose, that lasts until the pot is closed.
        _time = uint256(timing.longestDispute) + timing.epoch;
    }

    /// @inheritdoc IBounties
    function onBounty(bytes32 lockId, uint256 amount) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        _vault.lock(_potLock(lockId), address(this), amount);
        emit PotFilled(lockId, amount);
    }

    /// @inheritdoc IBounties
    function enter(bytes32 id) external {
        Accusation memory a = _attestations.accusationOf(id);
        (bytes32 lockId, uint48 convictedAt) = _accused(a);
        Pot storage pot = _pots[lockId];
        if (pot.closed || _left(lockId) == 0) revert PotClosed(lockId);
        bool isRight = a.status == AccusationStatus.UPHELD || a.status == AccusationStatus.EXCUSED;
        // Attack: see a conviction, and accuse.
        if (!isRight || a.at >= convictedAt) revert NotRight(id);
        // Attack: accuse everybody with results of one's own invention; some are right by chance.
        // A stop tests nothing.
        bool isTested = a.status == AccusationStatus.UPHELD || _duties.overSince(a.epoch + 1) != 0;
        bool stands = _attestations.windowOf(a.by) != 0 && _tickets.payeeOf(a.ticket) != address(0);
        if (!isTested || !stands) revert AttestationOpen(a.by);
        if (hasEntered[id]) revert AlreadyEntered(id);
        // Attack: a liar that sees itself caught accuses itself, and shares what it loses.
        if (pot.entered != 0 && a.epoch > pot.epoch) revert LaterAccusation(a.epoch, pot.epoch);
        if (pot.entered == 0 || a.epoch < pot.epoch) (pot.epoch, pot.entered) = (a.epoch, 0);
        ++pot.entered;
        hasEntered[id] = true;
        emit Entered(lockId, id, a.epoch);
    }

    /// @inheritdoc IBounties
    function close(bytes32 id, uint24 epoch) external {
        (bytes32 lockId, uint48 convictedAt) = _accused(_attestations.accusationOf(id));
        Pot storage pot = _pots[lockId];
        uint256 left = _left(lockId);
        if (pot.closed || left == 0) revert PotClosed(lockId);
        bool isLater = _duties.epochOf(epoch).start > convictedAt;
        // No accusation that was recorded before the conviction is of a later epoch than this one; what was accused in the last epoch that its
        // accuser's attestation is drawn in has the next one to open its game.
        uint256 over = isLater ? _duties.overSince(epoch + 2) : 0;
        // No epoch ends after a stop, and no game opens.
        if (over == 0) over = _escrow.stoppedAt();
        if (over == 0) revert PotOpen(lockId, 0);
        if (block.timestamp <= over + _time) revert PotOpen(lockId, over + _time + 1);
        pot.closed = true;
        if (pot.entered == 0) _vault.burn(_potLock(lockId), left);
        emit Closed(lockId, pot.entered);
    }

    /// @inheritdoc IBounties
    function take(bytes32 id) external {
        Accusation memory a = _attestations.accusationOf(id);
        (bytes32 lockId,) = _accused(a);
        Pot storage pot = _pots[lockId];
        if (!hasEntered[id] || _paid[id] || a.epoch != pot.epoch) revert NoPart(id);
        if (!pot.closed) revert PotOpen(lockId, 0);
        _paid[id] = true;
        // Equal parts of what is left: the last one gets the rest to the wei.
        uint256 amount = _left(lockId) / (pot.entered - pot.taken++);
        // Attack: be convicted of another lie after one has entered, and be paid all the same.
        address owner = _tickets.payeeOf(a.ticket);
        if (amount != 0 && owner == address(0)) _vault.burn(_potLock(lockId), amount);
        else if (amount != 0) _vault.seize(_potLock(lockId), owner, amount);
        emit PartPaid(id, owner, amount);
    }

    /// @inheritdoc IBounties
    function potOf(bytes32 lockId) external view returns (Pot memory pot, uint256 amount) {
        return (_pots[lockId], _left(lockId));
    }

    /// @dev The lock of the accused, and when it was convicted.
    function _accused(Accusation memory a) private view returns (bytes32 lockId, uint48 convictedAt) {
        if (a.isWork) return (_tenures.lockOf(a.accused), _tenures.tenureOf(a.accused).convictedAt);
        return (_tickets.lockOf(a.accused), _tickets.ticketOf(a.accused).convictedAt);
    }

    function _left(bytes32 lockId) private view returns (uint256 amount) {
        (, amount) = _vault.lockOf(_potLock(lockId));
    }

    function _potLock(bytes32 lockId) private pure returns (bytes32) {
        return keccak256(abi.encode("assay.pot", lockId));
    }
}
