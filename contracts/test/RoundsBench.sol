// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {IGenerations} from "../interfaces/IGenerations.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";

/// @title RoundsBench: neighbours of the contracts of rounds, as the test writes them: gate, payments, attestations and beacon
contract RoundsBench {
    uint256 private constant PERIOD = 30; // seconds of a beacon round

    bool public isOpen = true;
    mapping(uint64 beaconRound => bytes32) private _randomness;

    RunModules private _peers;

    constructor(RunModules memory peers) {
        _peers = peers;
    }

    // --- gate, payments, attestations

    function reserve(uint64, uint256) external view returns (bool) {
        return isOpen;
    }

    function carries(uint256) external pure returns (bool) {
        return true;
    }

    function isStopped() external pure returns (bool) {
        return false;
    }

    function stoppedAt() external pure returns (uint48) {
        return 0;
    }

    function setOpen(bool open) external {
        isOpen = open;
    }

    function begin() external {
        IGenerations(_peers.generations).begin();
    }

    function settle(uint64 round, uint32 seat) external returns (uint8) {
        return uint8(ICommitments(_peers.commitments).settle(round, seat));
    }

    function accuse(uint32 tenure) external {
        ITenures(_peers.tenures).accuse(tenure);
    }

    function unaccuse(uint32 tenure) external {
        ITenures(_peers.tenures).unaccuse(tenure);
    }

    function suspend(uint32 tenure) external {
        ITenures(_peers.tenures).suspend(tenure);
    }

    function resume(uint32 tenure) external {
        ITenures(_peers.tenures).resume(tenure);
    }

    function convict(uint32 ticket) external {
        ITickets(_peers.tickets).dispute(ticket);
        ITickets(_peers.tickets).undispute(ticket, true);
    }

    function fine(uint32 ticket, uint256 amount, address to) external {
        ITickets(_peers.tickets).fine(ticket, amount, to);
    }

    // --- audits: no epoch has begun, and nobody has accused

    function overAfter(uint48) external pure returns (uint48) {
        return 0;
    }

    function bountyOf(bool, uint32) external pure returns (uint256 ppm, address beneficiary) {
        return (500_000, address(0));
    }

    function mayTry(bytes32, bytes32, address) external pure returns (bool) {
        return false;
    }

    /// @notice What drawn accusers would share stays here.
    function onBounty(bytes32, uint256) external {}

    // --- beacon

    function roundAfter(uint64 time) external pure returns (uint64) {
        return uint64(time / PERIOD + 1);
    }

    function timeOf(uint64 beaconRound) external pure returns (uint256) {
        return beaconRound * PERIOD;
    }

    function submit(uint64 beaconRound, bytes32 randomness) external {
        _randomness[beaconRound] = randomness;
    }

    function randomnessOf(uint64 beaconRound) external view returns (bytes32 randomness) {
        randomness = _randomness[beaconRound];
        if (randomness == 0) revert IBeacon.BeaconNotSubmitted(beaconRound, beaconRound * PERIOD);
    }
}
