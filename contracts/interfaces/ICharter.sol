// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "./IClaims.sol";

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

/// @notice What is trained, by whom it is split, and where it starts.
struct Training {
    uint32 intervals; // n, per commitment
    uint32 stepsPerInterval; // J; a round has H = n J inner steps
    uint32 shards; // at least as many as seats
    uint32 shardLength; // elements of the data tensor
    uint32 learningRate; // bits of a binary32
    bytes32 parameters; // list root at genesis
    bytes32 momentum; // list root of the outer optimizer at genesis
    bytes32 zeroOptimizer; // list root of a newcomer's inner optimizer, zero-initialised
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
    uint64 rescue; // after the first loss of one of its posters: how long others may still back an outer root
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
    uint128 challengeDeposit; // of a committed third-party challenge
    uint32 auditPpm; // p: expected replays per duty, all verifiers together; may exceed 10^6
    uint32 whistlePpm; // q2
    uint32 trapPpm; // phi; 0 while there are no traps
    uint32 cartelPpm; // v: share of verifier stake that the charter claims to resist
    uint32 bountyPpm; // beta: share of a slash that goes to the winner; the rest burns
}

/// @notice Chess clocks of a game.
struct Clocks {
    uint64 budget; // seconds each side owns beyond extensions: all that the chain may keep it waiting in a game
    uint64 replay; // extension of moves that need a re-execution
    uint64 move; // extension of every other move
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
    /// @notice The charter names no price of a unit, or no units.
    /// @dev Every lock of the run is a multiple of the pay of a commitment, in a run that pays in shares alone too.
    /// @custom:remedy Name a price and a number of units above zero.
    error ReferencePriceZero();

    /// @notice A term of the charter is zero that must not be.
    /// @dev Without it nothing would be at stake, drawn or trained.
    /// @custom:remedy Name a value above zero.
    /// @param what the term's name in ASCII, zeros after it
    error ValueZero(bytes32 what);

    /// @notice A window or clock of the charter is too short for people to act.
    /// @dev A machine that is busy, or a transaction that the chain keeps out for its inclusion delay, must not cost an
    /// honest stake.
    /// @custom:remedy Lengthen it to the minimum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param length in seconds
    /// @param minimum in seconds
    error WindowTooShort(bytes32 what, uint256 length, uint256 minimum);

    /// @notice The charter's claim lock does not deter false work.
    /// @dev At the rate at which honest verifiers replay, a lie must cost more than the pay that it saves working for.
    /// @custom:remedy Raise the claim lock to the minimum.
    /// @param claimLock in wei
    /// @param minimum in wei
    error ClaimLockTooSmall(uint256 claimLock, uint256 minimum);

    /// @notice The charter's verifier bond does not deter a false attestation.
    /// @dev A verifier that attests without replaying, or for a bribe, must lose more than it gains.
    /// @custom:remedy Raise the bond to the minimum.
    /// @param bond in wei
    /// @param minimum in wei
    error BondTooSmall(uint256 bond, uint256 minimum);

    /// @notice The seat fee is above the pay of a round.
    /// @dev The fee is for staying away; no more than a round's pay may be lost by it.
    /// @custom:remedy Lower the fee to the maximum.
    /// @param fee in wei
    /// @param maximum in wei
    error SeatFeeTooHigh(uint256 fee, uint256 maximum);

    /// @notice The exit delay ends before the last verdict that the stake can answer for.
    /// @dev A cheat could leave with its stake in the middle of a dispute.
    /// @custom:remedy Lengthen it to the minimum.
    /// @param exit in seconds
    /// @param minimum in seconds
    error ExitDelayTooShort(uint256 exit, uint256 minimum);

    /// @notice The exit delay keeps stakes far longer than they answer for.
    /// @dev A sponsor could keep everybody's stake in for ever.
    /// @custom:remedy Shorten it to the maximum.
    /// @param exit in seconds
    /// @param maximum in seconds
    error ExitDelayTooLong(uint256 exit, uint256 maximum);

    /// @notice An amount of the charter is too large.
    /// @dev Sums and products of it could overflow and stop all pay, or a challenge would cost more than a verifier
    /// stakes.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param amount in wei
    /// @param maximum in wei
    error AmountTooLarge(bytes32 what, uint256 amount, uint256 maximum);

    /// @notice A rate of the charter is above its maximum.
    /// @dev Beyond it wages could not be set aside, or nothing of a lock would burn.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param ppm in parts per million
    /// @param maximum in parts per million
    error RateTooHigh(bytes32 what, uint256 ppm, uint256 maximum);

    /// @notice The data has fewer shards than the run has seats.
    /// @dev Two seats would train on the same data and do the same work.
    /// @custom:remedy Cut the data into at least as many shards as seats.
    /// @param shards shards of the data
    /// @param seats seats of the run
    error ShardsFewerThanSeats(uint256 shards, uint256 seats);

    /// @notice A window, clock or number of the charter is too large.
    /// @dev Times and counters could wrap, or honest money would wait without need.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param value in seconds where it is a time, else a number
    /// @param maximum in the same unit
    error ScheduleTooLong(bytes32 what, uint256 value, uint256 maximum);

    /// @notice The charter's challenge bond does not pay for a defender's gas at the fee cap.
    /// @dev Every reply is paid from the bond; else false challenges would wear honest solvers down.
    /// @custom:remedy Raise the bond to the minimum.
    /// @param bond in wei
    /// @param minimum in wei
    error ChallengeBondTooSmall(uint256 bond, uint256 minimum);

    /// @notice With these terms gas at the fee cap costs a challenger more than its bounty.
    /// @dev A lie that is more expensive to challenge than to leave alone would stand.
    /// @custom:remedy Raise claim lock, price or bounty share.
    /// @param bounty least bounty that a winner keeps, in wei
    /// @param minimum gas of a whole game at the cap, in wei
    error BountyTooSmall(uint256 bounty, uint256 minimum);

    /// @notice A number of the charter is infinite or not a number.
    /// @dev A NaN has many bit patterns, of which tensors know one: no step would end in this start.
    /// @custom:remedy Name a finite learning rate.
    /// @param what the term's name in ASCII, zeros after it
    /// @param bits the binary32
    error NotFinite(bytes32 what, uint32 bits);

    /// @notice Header and tree of a program do not hash to its root.
    /// @dev Games are played on header and tree, and claims name the root.
    /// @custom:remedy Capture the program again.
    /// @param root program root that the charter names
    /// @param computed hash of header and tree
    error ProgramMismatch(bytes32 root, bytes32 computed);

    /// @notice The charter lists too many revenue tokens.
    /// @dev Every transfer of shares books them all, and must stay cheap.
    /// @custom:remedy Name no more than the maximum.
    /// @param count tokens listed
    /// @param maximum most tokens of a run
    error TooManyRevenueTokens(uint256 count, uint256 maximum);

    /// @notice The run has no such program.
    /// @custom:remedy Use one of the three programs that `assay run show` lists.
    /// @param root program root asked for
    error ProgramNotFound(bytes32 root);

    /// @notice No contract of the run keeps claims of this kind.
    /// @custom:remedy Name the claim's kind correctly.
    /// @param kind of the claim
    error BookNotFound(ClaimKind kind);

    /// @notice The identity of the run: keccak256(abi.encode(terms)).
    function run() external view returns (bytes32);

    function terms() external view returns (Terms memory);

    function modules() external view returns (Modules memory);

    /// @notice The contracts that move locks of the vault; at most eight.
    function lockers() external view returns (address[] memory);

    /// @notice The programs that games are played on.
    function programs() external view returns (Admitted[] memory);

    /// @notice Header and descriptor tree of one of the run's three programs.
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree);

    /// @notice The book in which claims of a kind stand.
    function bookOf(ClaimKind kind) external view returns (IClaims);
}
