// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "./IClaims.sol";

/// @notice A program as the game meets it: root = H(PROGRAM, header, tree) (docs/protocol.md, section 2).
struct Program {
    bytes32 root;
    bytes32 tree; // over the descriptors' leaf digests
    bytes header; // version, nodes, inputs, outputs
}

/// @notice What is trained, by whom it is split, and where it starts.
struct Training {
    uint32 intervals; // n, per commitment
    uint32 stepsPerInterval; // J; a round has H = n J inner steps
    uint32 shards; // at least as many as seats
    uint32 shardLength; // elements of the data tensor
    uint32 learningRate; // bits of a binary32
    bytes32 parameters; // list root at genesis
    bytes32 momentum; // list root of the outer optimizer at genesis
    bytes32 blankOptimizer; // list root of a newcomer's inner optimizer
    bytes32 zeroUpdate; // list root of the all-zero update
    bytes32 data; // tensor root
}

/// @notice Lengths in seconds of chain time; those of a round are laid end to end from T0.
struct Windows {
    uint64 commit; // T0 .. T1
    uint64 receipt; // T1 .. T1+a
    uint64 seedDelay; // T1+a .. T2, beyond the chain's reorg depth
    uint64 attest; // T2 .. T3
    uint64 draw; // T3 .. T4
    uint64 whistle; // T4 .. T5
    uint64 reveal; // T5 .. T5+r .. T5+2r = T7
    uint64 challenge; // after T7; for an outer claim after it was posted
    uint64 rescue; // after the first loss of one of its posters: how long others may still stand up for an outer root
    uint64 longestDispute; // bound on one game; the game's constructor checks it
    uint64 exit; // delay of withdrawals
}

/// @notice Money: amounts in wei of the settlement token per the unit named, rates in parts per million (ppm).
struct Economics {
    uint128 unitPrice; // reference price of a unit of work, above zero in every run
    uint64 units; // units of one commitment; W = units * unitPrice
    bool pays; // whether a final commitment is paid W (else shares alone)
    uint128 sharesPerUnit; // wei of shares for a unit of final work
    uint128 sharesPerDuty; // wei of shares for a revealed duty
    uint128 claimLock; // S
    uint128 verifierBond; // B
    uint128 wage; // per drawn and revealed duty
    uint128 seatFee; // lost by a seated solver without a commitment at T1
    uint128 challengeBond; // of a challenger, per game
    uint128 challengeDeposit; // of a bound free-lance challenge
    uint32 auditPpm; // p: expected replays per duty, all verifiers together; may exceed 10^6
    uint32 whistlePpm; // q2
    uint32 trapPpm; // phi; 0 while there are no traps
    uint32 cartelPpm; // v: share of verifier stake that the charter claims to resist
    uint32 bountyPpm; // beta: share of a slash that goes to the winner; the rest burns
}

/// @notice Chess clocks of a game.
struct Clocks {
    uint64 budget; // seconds each side owns beyond extensions
    uint64 replay; // extension of moves that need a re-execution, beyond the chain's inclusion delay
    uint64 move; // extension of every other move, beyond the chain's inclusion delay
    uint32 arity; // digests per move
}

/// @notice What the run's chain is like, and up to which fee gas costs an honest party nothing.
struct ChainProfile {
    uint64 reorgDepth; // seconds of chain time that a reorganization can undo
    uint64 inclusionDelay; // F: seconds for which a transaction can be kept out of the chain
    uint128 feeCap; // wei of the chain's coin per gas; while the base fee is above it, whoever is to move in a game may defer
    uint128 gasPrice; // wei of the settlement token that a unit of gas is worth at the cap, as the sponsor reckons; 0: no promise
}

/// @notice Everything that a run promises; run = keccak256(abi.encode(terms)).
struct Terms {
    bytes32 name; // free; makes runs with equal terms differ
    address sponsor;
    address token; // settlement token
    address seed; // ISeed
    uint64 rounds; // no more than this many rounds open
    uint64 expiry; // chain time after which no round opens
    Training training;
    Windows windows;
    Economics economics;
    Clocks clocks;
    ChainProfile chain;
    Program step;
    Program update;
    Program outer;
    address[] revenueTokens; // at most 4
}

/// @notice The contracts of a run; they take the charter's address alone and read the rest from it.
struct Modules {
    address vault;
    address rounds;
    address outers;
    address audit;
    address settlement;
    address game;
    address shares;
    address vesting;
    address revenue;
}

/// @title The charter of a run: its terms, checked by the constructor, and the addresses of its contracts. Nothing in it can change.
/// @notice Its address names the run: it is `contract` in claim ids, and all other contracts are found from it.
interface ICharter {
    error ReferencePriceZero();
    error ValueZero(bytes32 what);
    error WindowTooShort(bytes32 what, uint256 length, uint256 minimum);
    error ClaimLockTooSmall(uint256 claimLock, uint256 minimum);
    error BondTooSmall(uint256 bond, uint256 minimum);
    error SeatFeeTooHigh(uint256 fee, uint256 maximum);
    error ExitDelayTooShort(uint256 exit, uint256 minimum);
    /// @notice Thrown when a deposit would stay locked in for longer than anything that it answers for, and a window more.
    error ExitDelayTooLong(uint256 exit, uint256 maximum);
    /// @notice Thrown when an amount is so large that a sum or product of it could overflow somewhere in the run, or that challenges cost more than
    /// a verifier's stake.
    error AmountTooLarge(bytes32 what, uint256 amount, uint256 maximum);
    error RateTooHigh(bytes32 what, uint256 ppm, uint256 maximum);
    error ShardsFewerThanSeats(uint256 shards, uint256 seats);
    error ScheduleTooLong(bytes32 what, uint256 value, uint256 maximum);
    error ChallengeBondTooSmall(uint256 bond, uint256 minimum);
    error BountyTooSmall(uint256 bounty, uint256 minimum);
    error NotFinite(bytes32 what, uint32 bits);
    error ProgramMismatch(bytes32 root, bytes32 computed);
    error TooManyRevenueTokens(uint256 count, uint256 maximum);
    error ProgramNotFound(bytes32 root);
    error BookNotFound(ClaimKind kind);

    /// @notice The identity of the run: keccak256(abi.encode(terms)).
    function run() external view returns (bytes32);

    function terms() external view returns (Terms memory);

    function modules() external view returns (Modules memory);

    /// @notice Header and descriptor tree of one of the run's three programs.
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree);

    /// @notice The book in which claims of a kind stand.
    function bookOf(ClaimKind kind) external view returns (IClaims);
}
