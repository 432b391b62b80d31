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
enum Status {
    OPEN,
    VOID, // incomplete, or stands on an outer root that nobody upheld: unpaid, never slashed
    CONVICTED,
    FINAL
}

/// @title Seats, rounds and the commitments of solvers.
interface IRounds is IClaims {
    /// @notice The run opens no more rounds.
    /// @dev The charter fixes how many rounds a run has and when it ends.
    /// @custom:remedy None: settle, and claim what is due.
    /// @param rounds most rounds of the run
    /// @param expiry last second of chain time at which a round opened
    error RunOver(uint256 rounds, uint256 expiry);

    /// @notice No solver that could train holds a seat.
    /// @dev A round without solvers would only use up the run's rounds.
    /// @custom:remedy Wait for a solver to join.
    error NoSeats();

    /// @notice All seats are taken.
    /// @custom:remedy Join when a solver gives up its seat (`assay run show`).
    /// @param seats seats of the run
    error SeatsFull(uint256 seats);

    /// @notice The account holds a seat already.
    /// @dev An account has one seat, and one commitment a round.
    /// @custom:remedy Use another account for another seat.
    /// @param solver the account
    /// @param seat number of the seat, from 0
    error AlreadySeated(address solver, uint32 seat);

    /// @notice The account does not hold this seat in this round.
    /// @dev A seat counts from the next T0 on.
    /// @custom:remedy Commit from the account that holds the seat, from its first round on.
    /// @param round number of the round, from 0
    /// @param seat number of the seat; the count of seats where the account has none
    /// @param caller who called
    error NotSeated(uint64 round, uint32 seat, address caller);

    /// @notice The round has not been opened.
    /// @custom:remedy Wait for its T0; anybody may open it then.
    /// @param round number of the round, from 0
    error RoundNotOpen(uint64 round);

    /// @notice It is not time yet: the round before is not over, or a commitment's challenge window still runs.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice The time to commit, or to sign a receipt, is over.
    /// @dev Seeds are drawn over what was there in time.
    /// @custom:remedy None for this round; commit in the next.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error TooLate(uint256 now_, uint256 deadline);

    /// @notice No outer root of the last round stands.
    /// @dev The next round has nothing to start from.
    /// @custom:remedy Post the outer step; every seated solver and verifier may.
    /// @param round number of the round that would open
    error NoOuterRoot(uint64 round);

    /// @notice The seat has its commitment for this round.
    /// @dev With a second one a solver could choose after others have committed.
    /// @custom:remedy None: one commitment per seat and round.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    error AlreadyCommitted(uint64 round, uint32 seat);

    /// @notice The seat has no commitment in this round.
    /// @custom:remedy Check round and seat.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    error CommitmentNotFound(uint64 round, uint32 seat);

    /// @notice The receipt names another commitment than the one on chain.
    /// @dev After a reorganization another commitment may stand, which the verifier never fetched.
    /// @custom:remedy Fetch the commitment that stands there now, and sign for that.
    /// @param got digest that the receipt names
    /// @param wanted digest of the commitment on chain
    error CommitmentMismatch(bytes32 got, bytes32 wanted);

    /// @notice The commitment has not exactly one root per interval and the start.
    /// @dev A missing root would leave an interval without a claim.
    /// @custom:remedy Give the start's root and the root after each interval.
    /// @param got roots given
    /// @param wanted roots that belong there
    error WrongCount(uint256 got, uint256 wanted);

    /// @notice The commitment starts from another state than the one that the contract builds.
    /// @dev Work from a start of the solver's own choice would be true and worthless.
    /// @custom:remedy Start from the base's parameters, your last complete optimizer, and the round's scalars.
    /// @param got state root that the commitment starts from
    /// @param wanted state root that the contract builds
    error StartMismatch(bytes32 got, bytes32 wanted);

    /// @notice The list roots of the last state do not hash to its root.
    /// @dev The next rounds build on these lists.
    /// @custom:remedy Commit the last state's own lists.
    /// @param got last state root of the commitment
    /// @param wanted state root that its lists hash to
    error EndMismatch(bytes32 got, bytes32 wanted);

    /// @notice The outer root named as start fell and was not rescued in time, or was never posted.
    /// @dev Work that starts from nothing anybody backs can never become final.
    /// @custom:remedy Recompute the outer step and start from a root that stands or can still be rescued.
    /// @param round number of the round, from 0
    /// @param base outer root named as start
    error BaseNotStanding(uint64 round, bytes32 base);

    /// @notice The outer root that the work started from is not final yet.
    /// @dev If it falls for good, the work is void.
    /// @custom:remedy Settle again once it is final or void.
    /// @param round number of the round, from 0
    /// @param base outer root that the work started from
    error BaseNotFinal(uint64 round, bytes32 base);

    /// @notice Only the audit contract reports another result.
    /// @dev A stranger that could would keep true work out of the outer step.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotAudit(address caller);

    /// @notice Only the settlement contract ends a commitment.
    /// @dev A commitment that ended without being settled would never be paid.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotSettlement(address caller);

    /// @notice The account is no verifier whose stake counts in this round.
    /// @dev Receipts count by stake.
    /// @custom:remedy Register as verifier; the stake counts from the second T0 on.
    /// @param caller who called
    /// @param round number of the round, from 0
    error NotAVerifier(address caller, uint64 round);

    /// @notice This verifier signed for this commitment already.
    /// @dev A stake counts once.
    /// @custom:remedy None: the receipt stands.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param verifier who signed
    error AlreadyReceipted(uint64 round, uint32 seat, address verifier);

    /// @notice A game on the commitment is still open.
    /// @dev What is disputed is not paid.
    /// @custom:remedy Settle after the verdict.
    /// @param count games that are open
    error GamesOpen(uint256 count);

    /// @notice The commitment was settled already.
    /// @dev Work is paid once.
    /// @custom:remedy None: what was due is booked.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    error AlreadyClosed(uint64 round, uint32 seat);

    /// @notice A solver took a seat, from the next T0 on.
    /// @param solver who joined
    /// @param seat number of the seat, from 0
    event Joined(address indexed solver, uint32 indexed seat);

    /// @notice A solver gave up its seat, or was put off it.
    /// @param solver who left
    /// @param seat number of the seat, from 0
    /// @param feeLost whether the seat fee burned, for a commitment that never came
    event Left(address indexed solver, uint32 indexed seat, bool feeLost);

    /// @notice A round opened.
    /// @param round number of the round, from 0
    /// @param t0 chain time, in seconds, that all its deadlines count from
    /// @param roster solver per seat; zero where a seat is free
    event RoundOpened(uint64 indexed round, uint64 t0, address[SEAT_COUNT] roster);

    /// @notice A solver committed to its work of a round.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param solver who committed
    /// @param digest what receipts name
    /// @param base outer root that the work starts from
    /// @param roots state roots, of the start and after each interval
    /// @param endLists list roots of the last state
    /// @param update list root of the update
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

    /// @notice A verifier signed that it fetched and hashed every object of a commitment.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param verifier who signed
    /// @param stake that counts for it, in wei
    event Receipted(uint64 indexed round, uint32 indexed seat, address indexed verifier, uint256 stake);

    /// @notice More than half of the verifiers' stake signed for a commitment: it makes claims now.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    event Completed(uint64 indexed round, uint32 indexed seat);

    /// @notice A drawn party revealed another result: the commitment is left out of the outer step.
    /// @dev The accuser may challenge; work that turns out true is paid all the same.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param duty number of the interval, or the count of intervals for the update
    /// @param accuser who revealed another result
    event Excluded(uint64 indexed round, uint32 indexed seat, uint32 duty, address accuser);

    /// @notice A commitment ended, and what was left of its lock is free.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param status how it ended
    event Closed(uint64 indexed round, uint32 indexed seat, Status status);

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

    /// @notice Settlement only: ends a commitment once its status is known, releasing what is left of its lock.
    function close(uint64 round, uint32 seat) external returns (Status status, address solver);

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
