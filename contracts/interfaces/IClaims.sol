// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Kinds of claims, equal to protocol.claims.ClaimKind.
enum ClaimKind {
    NONE,
    INTERVAL,
    UPDATE,
    OUTER,
    ATTESTATION
}

/// @notice Names a claim by where it stands, so that a game can look it up.
/// @dev INTERVAL, UPDATE: round, seat, duty. OUTER: round, poster, outerRoot. ATTESTATION: round, seat, duty, attester.
struct ClaimRef {
    ClaimKind kind;
    uint64 round;
    uint32 seat;
    uint32 duty;
    address party;
    bytes32 outerRoot;
}

/// @notice What a game needs to know of a claim.
struct ClaimView {
    bytes32 id;
    address claimant;
    bytes32 x; // state root that the contract built
    bytes32 y; // state root claimed
    bytes32 program;
    uint32 steps;
    uint64 challengeableUntil; // chain time, inclusive; 0 = does not exist
    bytes32 lockId; // what a conviction costs, once
    uint256 lockAmount;
    bool fallen; // the lock has been taken already
}

/// @title The books that claims stand in: rounds (solvers, outer steps) and audits (attestations).
interface IClaims {
    /// @notice Resolves a reference; an unknown claim has challengeableUntil = 0.
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory);

    /// @notice Game only: a game was opened on the claim (delays finality).
    function onOpened(ClaimRef calldata ref) external;

    /// @notice Game only: a game ended. `convicted` = the claimant lost. Returns true if this conviction is the first to take the lock.
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first);
}
