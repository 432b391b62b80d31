// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title IBeacon: randomness that a time names before anybody can know it
/// @notice A beacon has rounds, counted from 1, each with a time. Whoever needs randomness names the round after a
/// deadline; once that round is due anybody submits its proof, and it is kept for ever. Nobody chooses the round, and a
/// round that is not submitted is waited for: there is nothing else to fall back on.
/// @dev What comes after the deadline must lie beyond what a reorganization, or a block that is stamped earlier than it
/// is built, could still carry into it: name the round after deadline + that delay, not after the deadline itself.
interface IBeacon {
    /// @notice There is no round 0.
    /// @dev Rounds of a beacon are counted from 1; the first one is signed at the beacon's genesis.
    /// @custom:remedy Ask for a round that `roundAfter` names.
    error BeaconRoundZero();

    /// @notice The round's time has not come.
    /// @dev Whoever could know a round early, because enough signers told it, must not fix it on chain while others can
    /// still be surprised by it.
    /// @custom:remedy Submit it when it is due.
    /// @param beaconRound number of the round
    /// @param now_ time of this block, in seconds
    /// @param due time of the round, in seconds
    error BeaconTooEarly(uint64 beaconRound, uint256 now_, uint256 due);

    /// @notice The round was submitted before.
    /// @dev Its randomness is kept and cannot change; somebody else was faster.
    /// @custom:remedy Nothing is left to do: read it with `randomnessOf`.
    /// @param beaconRound number of the round
    error BeaconAlreadySubmitted(uint64 beaconRound);

    /// @notice Nobody has submitted the round yet.
    /// @dev What draws from it waits: no other round may take its place.
    /// @custom:remedy Submit the round yourself once it is due, or wait for somebody who does.
    /// @param beaconRound number of the round
    /// @param due time from which it can be submitted, in seconds
    error BeaconNotSubmitted(uint64 beaconRound, uint256 due);

    /// @notice The proof of a round has another length.
    /// @dev A drand round is proven by 64 bytes of signature, the chain's own randomness by none.
    /// @custom:remedy Send the signature as the beacon publishes it: 64 bytes, x before y, not compressed.
    /// @param length of the proof, in bytes
    /// @param wanted length, in bytes
    error ProofLength(uint256 length, uint256 wanted);

    /// @notice A round's randomness is known.
    /// @dev It never changes again.
    /// @param beaconRound number of the round
    /// @param randomness 32 bytes
    event BeaconSubmitted(uint64 indexed beaconRound, bytes32 randomness);

    /// @notice The first round whose time is later than `time`.
    /// @param time in seconds
    function roundAfter(uint64 time) external view returns (uint64 beaconRound);

    /// @notice The time from which a round can be known and submitted, in seconds.
    function timeOf(uint64 beaconRound) external view returns (uint256 due);

    /// @notice Proves a round that is due and keeps its randomness. Anybody may call, once per round.
    /// @param beaconRound number of the round
    /// @param proof what proves it: a signature of 64 bytes, or nothing where the chain itself is the beacon
    function submit(uint64 beaconRound, bytes calldata proof) external returns (bytes32 randomness);

    /// @notice The randomness of a round that was submitted.
    function randomnessOf(uint64 beaconRound) external view returns (bytes32 randomness);

    /// @notice Was the round submitted?
    function isKnown(uint64 beaconRound) external view returns (bool known);
}
