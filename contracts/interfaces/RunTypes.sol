// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice A program as the game meets it: root = H(PROGRAM, header, tree) (docs/protocol.md, section 2).
struct Program {
    bytes32 root;
    bytes32 tree; // over the descriptors' leaf digests
    bytes header; // version, nodes, inputs, outputs
}

/// @notice A program of a run's claims, with the steps of the longest of them.
struct Admitted {
    Program program;
    uint256 steps;
}

/// @notice Chess clocks of a game.
struct Clocks {
    uint64 budget; // seconds each side owns beyond extensions: all that the chain may keep it waiting in a game
    uint64 replay; // extension of moves that need a re-execution
    uint64 move; // extension of every other move
    uint32 arity; // digests per move
}

/// @notice What is trained, by how many, how it is split, and where it starts.
struct RunTraining {
    uint32 seats; // N, at most 1,024
    uint32 groupSize; // seats of a group, at most 64; unused at 64 seats or fewer
    uint32 positions; // k of a group's committee, at most 63; unused at 64 seats or fewer
    uint32 topPositions; // of a generation's committee, at most 63; unused at 64 seats or fewer
    uint32 minUnits; // fewer are no commitment
    uint32 maxUnits; // what a fast machine trains in C
    uint32 stepsPerUnit;
    uint32 shards; // at least as many as seats
    uint32 shardLength; // elements of the data tensor
    uint32 learningRate; // bits of a binary32
    bytes32 parameters; // list root at genesis
    bytes32 momentum; // list root of the merge at genesis
    bytes32 zeroOptimizer; // list root of the inner optimizer, zero-initialised: every round starts from it
    bytes32 zeroUpdate; // list root of the all-zero update
    bytes32 zeroPartial; // list root of a partial sum that counts nothing; zero at 64 seats or fewer
    bytes32 data; // tensor root
}

/// @notice Lengths in seconds of chain time.
struct RunTiming {
    uint48 commit; // C: time to train
    uint48 grace; // g: how long a stage still takes once enough have taken part
    uint48 hold; // a: time to say which updates one holds
    uint48 groupMerge; // to seal and open the partial sums of groups; zero at 64 seats or fewer
    uint48 merge; // to seal and open a generation's root
    uint48 beaconDelay; // from the mask's close to the beacon that draws positions
    uint48 challenge; // of an opening
    uint48 rescue; // of a root of which a claim fell
    uint48 auditsFrom; // chain time at which epoch 0 begins
    uint48 epoch; // A: from a seed to the last opening
    uint48 seedDelay; // from an epoch's beginning to its seed
    uint48 seasoning; // of a ticket
    uint48 vesting; // of shares
    uint48 longestDispute; // bound on one game; the game's constructor checks it
    uint48 stall; // without a final generation or a closed epoch, after which the run is wound down
    uint48 exit; // delay of withdrawals
}

/// @notice Money: amounts in wei of the settlement token per the unit named, rates in parts per million (ppm).
struct RunEconomics {
    uint128 unitPrice; // of a unit of work, above zero in every run; W = maxUnits * unitPrice
    bool pays; // whether final work is paid (else shares alone)
    uint128 sharesPerUnit; // wei of shares for a unit of final work
    uint128 sharesPerDuty; // wei of shares for a finding
    uint128 seatLock; // S
    uint128 seatFee;
    uint128 ticketBond; // B
    uint128 wage; // w, of a finding
    uint128 mergePay; // of an opening of a final root
    uint128 challengeBond; // of a challenger, per game
    uint128 challengeDeposit; // of a committed third-party challenge
    uint32 auditPpm; // p: expected replays of a commitment
    uint32 reauditPpm; // q: expected replays of an attestation
    uint32 cartelPpm; // v: share of tickets that the charter claims to resist
    uint32 drawnBountyPpm; // beta_d: share of a slash that goes to drawn accusers
    uint32 thirdBountyPpm; // beta_f: share that goes to a third party if there is no drawn one
    uint32 capacity; // c: duties that a ticket answers at a call
    uint32 shifts; // of tickets
}

/// @notice When the run opens without its sponsor, and what every round needs.
struct RunLaunch {
    uint48 openFrom; // chain time from which anybody may open the run
    uint32 tickets; // that count, at least; below it no round opens
    uint32 seats; // that are held, at least
}

/// @notice What the run's chain is like, and up to which fee gas costs an honest party nothing.
struct RunChain {
    uint48 reorgDepth; // seconds of chain time that a reorganization can undo
    uint48 inclusionDelay; // F: seconds for which a transaction can be kept out of the chain
    uint48 leastBudget; // seconds of censorship that a side survives in a game
    uint128 feeCap; // wei of the chain's coin per gas; while the base fee is above it, whoever is to move in a game may defer
    uint128 gasPrice; // wei of the settlement token that a unit of gas is worth at the cap, as the sponsor reckons; 0: no promise
    uint128 dataPrice; // the same of a byte of data, where the chain charges it apart
}

/// @notice What the owners of shares may decide, and how; all zero: nobody can ever pause, end or change the run.
struct RunGovernance {
    address guardian; // may pause without a vote; zero: nobody
    uint48 votingDelay; // seconds from a proposal to its snapshot, and between the two at which votes must be held
    uint48 votingPeriod; // seconds; zero: no governance
    uint48 timelock; // seconds from a decision's queue to its execution
    uint48 longestPause; // seconds of one pause by a vote
    uint48 guardianPause; // seconds of each pause by the guardian
    uint32 guardianPauses; // that the guardian has in all
    uint32 quorumPpm; // of the vested shares
    uint32 leastRounds; // that are final before anybody proposes
    uint32 leastPricePpm; // of `unitPrice`, which is the most
}

/// @notice Everything that a run promises; run = keccak256(abi.encode(terms)).
struct RunTerms {
    bytes32 name; // free; makes runs with equal terms differ
    address sponsor;
    address token; // settlement token
    address beacon; // IBeacon
    uint64 rounds; // no more than this many rounds open
    uint64 expiry; // last second of chain time in which a round opens
    RunTraining training;
    RunTiming timing;
    RunEconomics economics;
    RunLaunch launch;
    Clocks clocks;
    RunChain chain;
    Program step;
    Program update;
    Program merge;
    Program witness; // the witnessed step
    Program partialSum; // of a group; empty at 64 seats or fewer
    address[] revenueTokens; // at most 4
    RunGovernance governance;
}
