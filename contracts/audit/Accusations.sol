// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "../interfaces/IClaims.sol";
import {Accusation, AccusationStatus, IDuties} from "../interfaces/IDuties.sol";
import {RoundModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {Epochs} from "./Epochs.sol";

/// @title Accusations: results that differ from what they audit
/// @notice An accusation freezes the accused at once and needs no stake of its own; a game decides it, and one without a game lapses.
abstract contract Accusations is Epochs {
    ITenures private immutable _tenures;
    address private immutable _game;
    uint256 internal immutable _fine; // 3 w, in wei

    mapping(bytes32 id => Accusation) private _accusations;
    /// @inheritdoc IDuties
    mapping(uint32 tenure => uint24) public firstAccused;

    constructor(IRunCharter charter) {
        RoundModules memory modules = charter.roundModules();
        (_tenures, _game) = (ITenures(modules.tenures), modules.game);
        _fine = 3 * uint256(charter.dutyTerms().wage);
    }

    /// @inheritdoc IDuties
    function lapse(bytes32 id) external {
        Accusation storage a = _at(id, AccusationStatus.RECORDED);
        _mustBeClosed(a.epoch + 1);
        a.status = AccusationStatus.LAPSED;
        emit AccusationMoved(id, AccusationStatus.LAPSED);
        _charge(a.epoch, a.ticket, id, _fine);
        _free(a);
    }

    /// @inheritdoc IDuties
    function onTried(bytes32 id) external {
        _onlyGame();
        Accusation storage a = _at(id, AccusationStatus.RECORDED);
        a.status = AccusationStatus.TRIED;
        if (a.isWork) _tenures.suspend(a.accused);
        emit AccusationMoved(id, AccusationStatus.TRIED);
    }

    /// @inheritdoc IDuties
    function onJudged(bytes32 id, bool right) external {
        _onlyGame();
        Accusation storage a = _at(id, AccusationStatus.TRIED);
        a.status = right ? AccusationStatus.UPHELD : AccusationStatus.REJECTED;
        if (a.isWork) _tenures.resume(a.accused);
        _free(a);
        emit AccusationMoved(id, a.status);
    }

    /// @inheritdoc IDuties
    function accusationOf(bytes32 id) external view returns (Accusation memory) {
        return _accusations[id];
    }

    /// @dev Records an accusation and freezes the accused: nothing of it settles before the verdict.
    function _accuse(bytes32 by, bytes32 against, uint24 epoch, uint32 ticket, bool isWork, uint32 accused) internal {
        bytes32 id = keccak256(abi.encode("assay.accusation", by, against));
        _accusations[id] = Accusation(AccusationStatus.RECORDED, isWork, accused, ticket, epoch);
        // Attack: accuse and leave, so that nothing ends the accusation.
        _tickets.oblige(ticket);
        if (isWork) {
            if (firstAccused[accused] == 0) firstAccused[accused] = epoch + 1;
            _tenures.accuse(accused);
        } else {
            _tickets.oblige(accused);
        }
        emit Accused(id, by, against, isWork);
    }

    /// @dev Takes a fine; who proved it gets its half.
    function _charge(uint24 epoch, uint32 ticket, bytes32 id, uint256 fine) internal {
        emit DutyFined(epoch, ticket, id, _tickets.fine(ticket, fine, msg.sender));
    }

    function _free(Accusation storage a) private {
        _tickets.acquit(a.ticket);
        if (a.isWork) _tenures.unaccuse(a.accused);
        else _tickets.acquit(a.accused);
    }

    function _at(bytes32 id, AccusationStatus wanted) private view returns (Accusation storage a) {
        a = _accusations[id];
        if (a.status != wanted) revert WrongAccusation(id, a.status);
    }

    function _onlyGame() private view {
        if (msg.sender != _game) revert IClaims.NotTheGame(msg.sender);
    }
}
