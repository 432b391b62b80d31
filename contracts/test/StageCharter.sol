// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "../interfaces/IClaims.sol";
import {DutyTerms} from "../interfaces/AuditTypes.sol";
import {RunModules, RoundTerms, TicketTerms} from "../interfaces/IRoundTerms.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";

/// @notice What a stage says of money.
struct StageMoney {
    address token;
    uint48 exit;
    uint128 challengeBond;
    uint32 bountyPpm;
}

/// @title StageCharter: a charter whose views a test writes, unchecked, for the contracts of a run
contract StageCharter {
    StageMoney private _money;
    address[] private _lockers;
    RoundTerms private _rounds;
    TicketTerms private _tickets;
    DutyTerms private _duties;
    RunModules private _modules;

    constructor(
        StageMoney memory money,
        address[] memory lockers_,
        RoundTerms memory rounds,
        TicketTerms memory tickets,
        DutyTerms memory duties,
        RunModules memory modules_
    ) {
        (_money, _lockers, _rounds, _tickets, _duties, _modules) = (money, lockers_, rounds, tickets, duties, modules_);
    }

    function run() external view returns (bytes32) {
        return _rounds.run;
    }

    function roundTerms() external view returns (RoundTerms memory) {
        return _rounds;
    }

    function ticketTerms() external view returns (TicketTerms memory) {
        return _tickets;
    }

    function dutyTerms() external view returns (DutyTerms memory) {
        return _duties;
    }

    function roundModules() external view returns (RunModules memory) {
        return _modules;
    }

    function lockers() external view returns (address[] memory) {
        return _lockers;
    }

    function runTerms() external view returns (RunTerms memory t) {
        (t.token, t.timing.exit) = (_money.token, _money.exit);
        (t.economics.challengeBond, t.economics.thirdBountyPpm) = (_money.challengeBond, _money.bountyPpm);
    }

    function bookOf(ClaimKind kind) external view returns (IClaims) {
        if (kind == ClaimKind.OUTER) return IClaims(_modules.generations);
        return IClaims(kind == ClaimKind.ATTESTATION ? _modules.attestations : _modules.commitments);
    }
}
