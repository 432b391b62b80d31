// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";

/// @notice Roles with a drawing key and a bond.
enum Role {
    NONE,
    VERIFIER,
    WHISTLEBLOWER
}

/// @notice A leaf as it is revealed; with the claim id of its duty and witness 0 it hashes to the committed leaf.
struct Leaf {
    uint32 seat;
    uint32 duty;
    bytes32 endRoot;
    bytes32 salt;
}

/// @notice What a verifier or whistleblower did in a round.
struct Attendance {
    bytes32 root; // of the hidden leaves
    bytes32 ticket; // keccak256(y), once the draw is revealed
    uint32 duties; // leaves revealed
    uint32 openGames; // on its attestations of this round
    bool revealed;
    bool closed; // settled
}

/// @notice A registered verifier or whistleblower.
struct Attester {
    Role role;
    uint128 stake;
    uint64 convictedAt; // 0: never
    uint64 retiresWith; // first round that it is not drawn in; 2^64-1 while it serves
    uint32 openGames; // over all rounds
}

/// @title Verifiers and whistleblowers: keys, stakes, draws, hidden and revealed leaves.
interface IAudit is IClaims {
    error AlreadyRegistered(address who);
    error NotRegistered(address who);
    error WrongRole(address who, Role role);
    error StakeBelowBond(uint256 stake, uint256 bond);
    error BadPossession(address who);
    error KeyTaken(bytes32 keyHash);
    error NoStake(address who, uint64 round);
    error AttesterConvicted(address who);
    error TooEarly(uint256 now_, uint256 notBefore);
    error TooLate(uint256 now_, uint256 deadline);
    error SeedNotDrawn(uint64 round);
    error SeedAlreadyDrawn(uint64 round);
    error SeedMismatch(bytes32 got, bytes32 wanted);
    error AlreadyAttested(uint64 round, address who);
    error NotAttested(uint64 round, address who);
    error AlreadyRevealed(uint64 round, address who);
    error DrawNotRevealed(uint64 round, address who);
    error BadDraw(address who);
    error TicketMismatch(bytes32 got, bytes32 wanted);
    error NotDrawn(uint32 seat, uint32 duty);
    error NotSorted(uint32 seat, uint32 duty);
    error EndRootZero(uint32 seat, uint32 duty);
    error NotSettlement(address caller);
    error AlreadyRetired(uint64 retiresWith);
    error RootMismatch(bytes32 got, bytes32 wanted);
    error GamesOpen(uint256 count);
    error NotRetired(uint64 round);
    error AlreadyClosed(uint64 round, address who);

    event Registered(address indexed who, Role role, uint256 stake, uint64 countsFrom, bytes publicKey);
    event Retired(address indexed who, uint64 retiresWith);
    event Reclaimed(address indexed who, uint256 amount);
    event SeedDrawn(uint64 indexed round, bytes32 seed);
    event WhistleSeedDrawn(uint64 indexed round, bytes32 seed);
    event Attested(uint64 indexed round, address indexed who, Role role, bytes32 root);
    event DrawRevealed(uint64 indexed round, address indexed who, bytes y);
    event LeafRevealed(
        uint64 indexed round,
        address indexed who,
        uint32 seat,
        uint32 duty,
        bytes32 claimId,
        bytes32 endRoot,
        bool agrees
    );
    event AttesterConvictedAt(address indexed who, uint64 round);

    /// @notice Registers a drawing key with proof of possession and locks a stake of at least B. Counts from the second T0 from now; before the run's
    /// first round, when no seed can be known, from round 0.
    function register(Role role, bytes calldata publicKey, bytes calldata proof, uint128 stake) external;

    /// @notice Stops being drawn from the second T0 from now.
    function retire() external;

    /// @notice Releases what is left of the stake, once the last round it was drawn in is beyond challenge and no game is open.
    function reclaim() external;

    /// @notice Draws the audit seed, at or after T2. Anyone may call, once.
    function drawSeed(uint64 round) external;

    /// @notice Draws the whistle seed, at or after T4. Anyone may call, once.
    function drawWhistleSeed(uint64 round) external;

    /// @notice A verifier's root of hidden leaves (zero for none), after the seed and until T3.
    /// @param seed the audit seed that the leaves' duties were drawn from; another one is refused, so that a transaction which a reorganization
    /// has carried over to another seed binds nothing
    function attest(uint64 round, bytes32 seed, bytes32 root) external;

    /// @notice A whistleblower's root of hidden leaves, after the whistle seed and until T5.
    /// @param seed the whistle seed, as with `attest`
    function whistle(uint64 round, bytes32 seed, bytes32 root) external;

    /// @notice Reveals the signature y that draws the caller's duties. Verifiers: after T3, until T4. Whistleblowers: after their root, until T5.
    function revealDraw(uint64 round, bytes calldata y) external;

    /// @notice Reveals every leaf under the caller's root, sorted by (claim id, duty). After T5; verifiers until T5+r, whistleblowers until T5+2r.
    /// @param y the caller's revealed signature again
    function revealLeaves(uint64 round, Leaf[] calldata leaves, bytes calldata y) external;

    /// @notice Settlement only: ends an attester's round.
    /// @return duties how many duties are due a wage (0 for the convicted)
    function close(uint64 round, address who) external returns (uint32 duties);

    /// @notice Stake that counts in a round.
    function stakeAt(address who, uint64 round) external view returns (uint256);

    /// @notice Total stake of a role that counts in a round.
    function totalAt(Role role, uint64 round) external view returns (uint256);

    /// @notice Registered members of a role now.
    function members(Role role) external view returns (uint256);

    /// @notice Attesters who revealed leaves in a round.
    function revealers(uint64 round) external view returns (uint256);
    function attesterOf(address who) external view returns (Attester memory);
    function keyOf(address who) external view returns (bytes memory);
    function attendanceOf(uint64 round, address who) external view returns (Attendance memory);

    /// @notice The end root that an attester revealed for a duty; zero if none.
    function endRootOf(uint64 round, uint32 seat, uint32 duty, address who) external view returns (bytes32);
    function seedOf(uint64 round) external view returns (bytes32 seed, bytes32 whistleSeed);
}
