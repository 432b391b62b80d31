// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice What the contracts of rounds are built with (docs/adr/0033-second-round.md). Times are in seconds of chain time,
/// amounts in wei of the settlement token.
struct RoundTerms {
    uint32 seats; // N, at most 1,024
    uint32 groupSize; // seats of a group, at most 64, in at most 64 groups; at 64 seats or fewer there is one group
    uint32 positions; // k of a group's committee, at most 63; unused at 64 seats or fewer
    uint32 topPositions; // of a generation's committee, at most 63; unused at 64 seats or fewer
    uint32 minUnits; // fewer are no commitment
    uint32 maxUnits;
    uint32 stepsPerUnit;
    uint32 learningRate; // bits of a binary32
    uint32 shards;
    uint32 shardLength;
    uint32 rounds; // no more than this many rounds open
    uint48 expiry; // last second in which a round opens
    uint48 commit; // C
    uint48 inclusion; // F: how long a transaction can be kept out of the chain
    uint48 grace; // g
    uint48 hold; // a: time to say which updates one holds
    uint48 groupMerge; // time to compute, seal and open the partial sums of groups; zero at 64 seats or fewer
    uint48 merge; // T_m = T0 + C + F + beacon's delay + a + groupMerge + merge
    uint48 beaconDelay; // from the mask's close to the beacon that draws
    uint48 challenge; // of an opening
    uint48 rescue; // after the first opener's loss
    uint48 longestDispute; // bound on one game; the lock of a seat in which nobody ever worked stays as long
    bytes32 run;
    bytes32 stepProgram;
    bytes32 updateProgram;
    bytes32 partialProgram; // updates of a group to their sum; zero at 64 seats or fewer
    bytes32 outerProgram; // the merge
    bytes32 witnessProgram; // the witnessed step
    bytes32 data; // tensor root
    bytes32 zeroOptimizer; // list root that every round starts from
    bytes32 zeroUpdate; // list root of an update slot that counts nothing
    bytes32 zeroPartial; // list root of a partial sum of nothing; zero at 64 seats or fewer
    bytes32 parameters; // list root of generation 0
    bytes32 momentum; // list root of generation 0
    uint256 seatLock; // S
    uint256 seatFee;
    uint32 drawnBountyPpm; // beta_d: of the lock of who is convicted under accusation
    uint32 thirdBountyPpm; // beta_f: of the lock of who is convicted by a third party alone
}

/// @notice What the contract of tickets is built with.
struct TicketTerms {
    uint128 bond; // B, in wei
    uint48 seasoning; // seconds from a change until it counts
    uint32 shifts;
}

/// @notice The contracts of a run: the charter, its modules in the order of their creation, and the beacon.
struct RunModules {
    address charter; // in claim ids
    address vault;
    address tickets;
    address tenures;
    address commitments;
    address generations;
    address duties;
    address attestations;
    address escrow; // IRoundGate
    address payments;
    address bounties;
    address game;
    address challenges;
    address shares;
    address grants;
    address revenue;
    address governor; // IGovernance; zero in a run whose charter names no governance
    address beacon;
}

/// @title IRoundGate: whether the run can carry one more round, and what is set aside for it
interface IRoundGate {
    /// @notice Generations only: sets aside what a round can cost; false if the run cannot pay or audit it. A generation that
    /// finds the gate shut still has its majority: the next round waits, and anybody opens it once the gate is open again.
    /// @param round that would open, from 0
    /// @param seated seats held in it
    function reserve(uint64 round, uint256 seated) external returns (bool);

    /// @notice Could a round of so many seats be audited, in an epoch without another, and paid beside what is reserved? Before the launch
    /// any can be, once the run has ended none.
    function carries(uint256 seated) external view returns (bool);

    /// @notice The run was cancelled or wound down: what no open game holds is free, and nothing is paid any more.
    function isStopped() external view returns (bool);

    /// @notice When that was, as a chain time in seconds; 0: it was not. Nothing is audited or paid any more.
    function stoppedAt() external view returns (uint48);
}

/// @title IAccusers: who accused work by an attestation of its own, and how the game of it goes
interface IAccusers {
    /// @notice Is this a recorded accusation by `challenger` of `against`, a commitment's digest or an attestation?
    function mayTry(bytes32 accusation, bytes32 against, address challenger) external view returns (bool);

    /// @notice What a conviction pays as things stand, in parts per million of the lock, and to whom; address zero: to the winner of the game. Where an
    /// accusation of the accused is not over, it is the accusers'.
    /// @param isWork whether the accused is a tenure, else a ticket
    function bountyOf(bool isWork, uint32 accused) external view returns (uint256 ppm, address beneficiary);

    /// @notice The book of commitments only: the accuser opened its game.
    function onTried(bytes32 accusation, bytes32 against, address challenger) external;

    /// @notice The book of commitments only: the game is over.
    /// @param right whether the accused was convicted
    function onJudged(bytes32 accusation, bool right) external;
}
