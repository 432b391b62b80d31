// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";

/// @title PrevrandaoSeed: the chain's own randomness, the RANDAO mix of a block (EIP-4399)
/// @notice For Ethereum itself and for local nodes. Its bias, which docs/beacon.md prints: who proposes n blocks in a
/// row around a round's time chooses among 2^n mixes, one bit a block, at the price of the blocks that it withholds; and
/// among one more for each of its blocks from that time on at no price, by leaving the recording call out of it.
/// @dev Not for chains of another kind: on some the mix is a constant, which is refused, on some it is that of a block of
/// Ethereum which the sequencer picks, which cannot be seen from here.
contract PrevrandaoSeed is IBeacon {
    /// @notice The chain has no randomness of its own.
    /// @dev Some chains answer a constant; a mix of Ethereum is below 2^64 once in 2^192 blocks.
    /// @custom:remedy Take no part in a run with this seed on this chain; post runs with a drand beacon here.
    /// @param mix what the chain says
    error PrevrandaoConstant(uint256 mix);

    mapping(uint64 beaconRound => bytes32) private _randomness;

    /// @inheritdoc IBeacon
    /// @dev A round is a second.
    function roundAfter(uint64 time) external pure returns (uint64 beaconRound) {
        return time + 1;
    }

    /// @inheritdoc IBeacon
    function timeOf(uint64 beaconRound) public pure returns (uint256 due) {
        if (beaconRound == 0) revert BeaconRoundZero();
        return beaconRound;
    }

    /// @inheritdoc IBeacon
    /// @dev The first block that carries this call decides. Rounds that one block decides differ all the same.
    function submit(uint64 beaconRound, bytes calldata proof) external returns (bytes32 randomness) {
        if (_randomness[beaconRound] != 0) revert BeaconAlreadySubmitted(beaconRound);
        uint256 due = timeOf(beaconRound);
        if (block.timestamp < due) revert BeaconTooEarly(beaconRound, block.timestamp, due);
        if (proof.length != 0) revert ProofLength(proof.length, 0);
        randomness = keccak256(abi.encode(_mix(), beaconRound));
        _randomness[beaconRound] = randomness;
        emit BeaconSubmitted(beaconRound, randomness);
    }

    /// @inheritdoc IBeacon
    function randomnessOf(uint64 beaconRound) external view returns (bytes32 randomness) {
        randomness = _randomness[beaconRound];
        if (randomness == 0) revert BeaconNotSubmitted(beaconRound, timeOf(beaconRound));
    }

    /// @inheritdoc IBeacon
    function isKnown(uint64 beaconRound) external view returns (bool known) {
        return _randomness[beaconRound] != 0;
    }

    function _mix() private view returns (bytes32 mix) {
        // Attack: a chain whose mix everybody knows beforehand (EIP-4399 itself tells one by this bound).
        if (block.prevrandao <= type(uint64).max) revert PrevrandaoConstant(block.prevrandao);
        return bytes32(block.prevrandao);
    }
}
