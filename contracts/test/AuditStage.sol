// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";
import {ICommitments, RoundState, Work, WorkState} from "../interfaces/ICommitments.sol";
import {GenerationStatus} from "../interfaces/IGenerations.sol";

/// @title AuditStage: what audits ask of a beacon and of the contracts of rounds, as the test writes it, and a peer in whose name it calls
contract AuditStage {
    struct Frozen {
        uint256 accusations;
        uint256 suspensions;
        bool convicted;
    }

    mapping(uint64 beaconRound => bytes32) private _randomness;
    mapping(uint64 round => uint48) private _commitUntil;
    mapping(uint64 round => bool) private _isFinal;
    mapping(uint64 round => mapping(uint32 seat => WorkState)) private _works;
    mapping(uint32 tenure => Frozen) public frozen;
    uint64 public opened;
    bool public isOver;

    uint48 public stoppedAt;

    function isStopped() external view returns (bool) {
        return stoppedAt != 0;
    }

    function act(address target, bytes calldata call) external returns (bytes memory answer) {
        bool done;
        (done, answer) = target.call(call);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    // --- what the test writes

    function setRandomness(uint64 beaconRound, bytes32 randomness) external {
        _randomness[beaconRound] = randomness;
    }

    function setRound(uint64 round, uint48 until, bool isFinal) external {
        (_commitUntil[round], _isFinal[round]) = (until, isFinal);
    }

    function setStopped(uint48 at) external {
        stoppedAt = at;
    }

    function setOver(uint64 rounds) external {
        (opened, isOver) = (rounds, true);
    }

    function setWork(uint64 round, uint32 seat, uint32 tenure, Work calldata work) external {
        WorkState storage w = _works[round][seat];
        (w.digest, w.tenure, w.units) = (digestOf(round, seat, tenure, work), tenure, work.units);
    }

    function setSettled(uint64 round, uint32 seat) external {
        _works[round][seat].settled = true;
    }

    function setConvicted(uint32 tenure) external {
        frozen[tenure].convicted = true;
    }

    // --- beacon

    function roundAfter(uint64 time) external pure returns (uint64) {
        return time / 30 + 1;
    }

    function randomnessOf(uint64 beaconRound) external view returns (bytes32 randomness) {
        randomness = _randomness[beaconRound];
        if (randomness == 0) revert IBeacon.BeaconNotSubmitted(beaconRound, uint256(beaconRound) * 30);
    }

    // --- commitments and generations

    function commitUntil(uint64 round) external view returns (uint48) {
        if (_commitUntil[round] == 0) revert ICommitments.RoundNotOpen(round);
        return _commitUntil[round];
    }

    function roundOf(uint64 round) external pure returns (RoundState memory state) {
        state.parent = round;
    }

    function statusOf(uint64 generation) external view returns (GenerationStatus) {
        return _isFinal[generation] ? GenerationStatus.FINAL : GenerationStatus.MERGED;
    }

    function workOf(uint64 round, uint32 seat) external view returns (WorkState memory) {
        return _works[round][seat];
    }

    function isDisputable(uint64 round, uint32 seat) external view returns (bool) {
        return !_works[round][seat].settled;
    }

    function startOf(uint64 round, uint32 seat) external pure returns (bytes32, bytes32, bytes32, bytes32) {
        return (keccak256(abi.encode(round)), bytes32(0), keccak256(abi.encode(round, seat)), bytes32(0));
    }

    function digestOf(uint64 round, uint32 seat, uint32 tenure, Work calldata work) public pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, tenure, work));
    }

    // --- tenures

    function isConvicted(uint32 tenure) external view returns (bool) {
        return frozen[tenure].convicted;
    }

    function accuse(uint32 tenure) external {
        ++frozen[tenure].accusations;
    }

    function unaccuse(uint32 tenure) external {
        --frozen[tenure].accusations;
    }

    function suspend(uint32 tenure) external {
        ++frozen[tenure].suspensions;
    }

    function resume(uint32 tenure) external {
        --frozen[tenure].suspensions;
    }
}
