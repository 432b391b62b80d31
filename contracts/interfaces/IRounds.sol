// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";

/// @notice The deadlines of a round in chain time (docs/protocol.md, section 6). "Until" and t1, t3, t4, t5 are inclusive ends; t2 and t7 are
/// inclusive beginnings.
struct Times {
    uint64 t0;
    uint64 t1; // last second to commit
    uint64 receiptsUntil; // T1+a
    uint64 t2; // first second to draw the audit seed
    uint64 t3; // last second to attest; draws are revealed after it
    uint64 t4; // last second of a verifier's draw; first second to draw the whistle seed
    uint64 t5; // last second of a whistleblower's root and draw; leaves are revealed after it
    uint64 leavesUntil; // T5+r, verifiers
    uint64 t7; // first second after T5+2r: outer claims, next round
    uint64 challengeUntil; // of the claims of this round
}

/// @dev Seats of a run, and update slots of its outer program.
uint32 constant SEAT_COUNT = 8;

/// @notice What a seated solver committed to.
struct Commitment {
    address solver;
    uint32 openGames;
    bool convicted; // a game was lost: the lock S is gone
    bool excluded; // a drawn party revealed another end root
    bool closed; // settled
    bytes32 digest; // K(round, seat, roots, endLists, update, base): what receipts name
    bytes32 base; // outer root it starts from
    bytes32 startOptimizer; // list root
    bytes32 parameters; // list root in r_n
    bytes32 optimizer; // list root in r_n
    bytes32 update; // list root
}

/// @notice How a commitment or an outer root ended.
enum Fate {
    OPEN,
    VOID, // incomplete, or stands on an outer root that nobody upheld: unpaid, never slashed
    CONVICTED,
    FINAL
}

/// @title Seats, rounds and the commitments of solvers.
interface IRounds is IClaims {
    error RunOver(uint256 rounds, uint256 expiry);
    error NoSeats();
    error SeatsFull(uint256 seats);
    error AlreadySeated(address solver, uint32 seat);
    error NotSeated(uint64 round, uint32 seat, address caller);
    error RoundNotOpen(uint64 round);
    error TooEarly(uint256 now_, uint256 notBefore);
    error TooLate(uint256 now_, uint256 deadline);
    error NoOuterRoot(uint64 round);
    error AlreadyCommitted(uint64 round, uint32 seat);
    error CommitmentNotFound(uint64 round, uint32 seat);
    error CommitmentMismatch(bytes32 got, bytes32 wanted);
    error WrongCount(uint256 got, uint256 wanted);
    error StartMismatch(bytes32 got, bytes32 wanted);
    error EndMismatch(bytes32 got, bytes32 wanted);
    error BaseNotStanding(uint64 round, bytes32 base);
    error BaseNotFinal(uint64 round, bytes32 base);
    error NotAudit(address caller);
    error NotSettlement(address caller);
    error NotAVerifier(address caller, uint64 round);
    error AlreadyReceipted(uint64 round, uint32 seat, address verifier);
    error GamesOpen(uint256 count);
    error AlreadyClosed(uint64 round, uint32 seat);

    event Joined(address indexed solver, uint32 indexed seat);
    event Left(address indexed solver, uint32 indexed seat, bool feeLost);
    event RoundOpened(uint64 indexed round, uint64 t0, address[SEAT_COUNT] roster);
    event Committed(
        uint64 indexed round,
        uint32 indexed seat,
        address indexed solver,
        bytes32 digest,
        bytes32 base,
        bytes32[] roots,
        bytes32[3] endLists,
        bytes32 update
    );
    event Receipted(uint64 indexed round, uint32 indexed seat, address indexed verifier, uint256 stake);
    event Completed(uint64 indexed round, uint32 indexed seat);
    event Excluded(uint64 indexed round, uint32 indexed seat, uint32 duty, address accuser);
    event Closed(uint64 indexed round, uint32 indexed seat, Fate fate);

    /// @notice Takes a free seat from the next T0 on; locks the seat fee.
    function join() external;

    /// @notice Gives up the seat. Whoever owes a commitment for the round under way leaves at its end, or after T1 at the price of the fee.
    function leaveSeat() external;

    /// @notice Opens the next round: not before the last one's T7, with an outer root of it standing. Anyone may call.
    function openRound() external;

    /// @notice A seated solver's only commitment of the round, until T1; locks S.
    /// @param roots n+1 state roots, the first equal to what `startOf` gives
    /// @param endLists list roots of the last state: parameters, optimizer, scalars
    /// @param update list root of the update
    /// @param base outer root of the round before that stands or can still be rescued (the genesis root in round 0)
    function commit(
        uint64 round,
        uint32 seat,
        bytes32[] calldata roots,
        bytes32[3] calldata endLists,
        bytes32 update,
        bytes32 base
    ) external;

    /// @notice A verifier has fetched and hashed every object of the commitment with this digest; until T1+a.
    function receipt(uint64 round, uint32 seat, bytes32 digest) external;

    /// @notice Audit only: a drawn party's revealed leaf differs from the commitment; the seat is left out of the outer step.
    function onMismatch(uint64 round, uint32 seat, uint32 duty, address accuser) external;

    /// @notice Settlement only: ends a commitment once its fate is known, releasing what is left of its lock.
    function close(uint64 round, uint32 seat) external returns (Fate fate, address solver);

    /// @notice How many rounds were opened; the latest is one less.
    function opened() external view returns (uint64);

    /// @notice How many commitments a round has.
    function commitments(uint64 round) external view returns (uint256);

    /// @notice No round will open any more.
    function isOver() external view returns (bool);

    function timesOf(uint64 round) external view returns (Times memory);
    function rosterOf(uint64 round) external view returns (address[SEAT_COUNT] memory);

    /// @notice Current holder of a seat (on the roster from the next T0), zero if free.
    function holderOf(uint32 seat) external view returns (address);

    /// @notice Does this address hold a seat now, on the roster or from the next T0?
    function holdsSeat(address who) external view returns (bool);

    /// @notice Was this address seated in that round?
    function isSeated(uint64 round, address who) external view returns (bool);

    function commitmentOf(uint64 round, uint32 seat) external view returns (Commitment memory);
    function rootsOf(uint64 round, uint32 seat) external view returns (bytes32[] memory);
    function isComplete(uint64 round, uint32 seat) external view returns (bool);

    /// @notice The start of a seat's work in a round: list roots and state root of s_0. Fixed from T0 on.
    function startOf(uint64 round, uint32 seat, bytes32 base)
        external
        view
        returns (bytes32 parameters, bytes32 optimizer, bytes32 scalars, bytes32 state);

    /// @notice The claim behind a duty of a complete commitment: claim id, X root, Y root; reverts otherwise.
    function dutyOf(uint64 round, uint32 seat, uint32 duty) external view returns (bytes32 id, bytes32 x, bytes32 y);
}
