// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice Kinds of claims, equal to assay.protocol.run.claims.ClaimKind.
enum ClaimKind {
    NONE,
    INTERVAL,
    UPDATE,
    OUTER,
    ATTESTATION,
    ANSWER
}

/// @notice Names a claim by where it stands, so that a game can look it up.
/// @dev INTERVAL, UPDATE: round, seat. OUTER: round, seat = of the opener (above 64 seats its ticket), duty = group of a partial sum plus one,
/// party = who backs, outerRoot. ATTESTATION: round, seat, duty = part. outerRoot of all but OUTER names the accusation whose game it is, or the
/// attestation. ANSWER: outerRoot = the claim of a signed statement's token. Fields that a kind does not use are zero.
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
    uint64 challengeableFrom; // chain time, inclusive
    uint64 challengeableUntil; // chain time, inclusive; 0 = does not exist
    bytes32 lockId; // what a conviction costs, once
    uint256 lockAmount;
    bool fallen; // a conviction has taken the lock already (of the tenure, of who opened or backs the root, of the ticket)
    uint256 bountyPpm; // share of the lock that a conviction pays, in parts per million; the rest burns
    address beneficiary; // an IBeneficiary whose the bounty is; address zero: the winner of the game
}

/// @title IBeneficiary: an account that bounties are paid to which belong to several
interface IBeneficiary {
    /// @notice Game only: a conviction paid `amount` of a lock to this account's free balance.
    /// @param lockId name of the lock, which is the convict's own
    /// @param amount in wei
    function onBounty(bytes32 lockId, uint256 amount) external;
}

/// @title The books that claims stand in: Commitments (INTERVAL, UPDATE), Generations (OUTER) and Attestations (ATTESTATION), and beside a run Gateways (ANSWER);
/// IRunCharter.bookOf names the one of a kind.
/// @dev A game calls onOpened once and onClosed once. On a conviction that returns `first`, the game itself seizes and burns `lockAmount` of `lockId`
/// in the vault, wholly, in the same transaction.
interface IClaims {
    /// @notice Only the game opens and closes disputes.
    /// @dev A stranger that could close a dispute would convict or acquit as it liked.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotTheGame(address caller);

    /// @notice There is no such claim.
    /// @dev A claim exists once somebody prepared it from what was committed, found or opened.
    /// @custom:remedy Check round, seat and part, and call `prepare` first.
    /// @param kind of the claim; NONE where any is meant
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param duty part of an attestation, or group of a partial sum plus one; else 0
    error ClaimNotFound(ClaimKind kind, uint64 round, uint32 seat, uint32 duty);

    /// @notice The claim is settled or its time is over: no game can open on it any more.
    /// @dev Its lock goes back to its owner. Games that are open do not prolong the time: one after the other would for ever.
    /// @custom:remedy None: its challenge window is over.
    /// @param kind of the claim
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param duty part of an attestation, or group of a partial sum plus one; else 0
    error ClaimSettled(ClaimKind kind, uint64 round, uint32 seat, uint32 duty);

    /// @notice Resolves a reference; a claim that does not exist, or that nobody prepared, has challengeableUntil = 0.
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory);

    /// @notice May `who` open a game without commit-reveal? The accuser whose accusation the reference names; for OUTER, whoever has a tenure.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool);

    /// @notice Game only: `challenger` opened a game on the claim (delays finality).
    function onOpened(ClaimRef calldata ref, address challenger) external;

    /// @notice Game only: a game ended. `convicted` = the claimant lost. Returns true if this conviction is the first to take the lock.
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first);
}
