// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";
import {Status} from "./IRounds.sol";

/// @notice An outer root of a generation. Generation 0 holds the genesis root alone; what is posted after round r is of generation r+1; round r starts
/// from generation r.
struct OuterRoot {
    bytes32 parameters; // list root
    bytes32 momentum; // list root
    uint32 standing; // posters whose claim has not fallen
    bool isFinal;
    uint64 rescueUntil; // until when anybody may still put a lock behind it; 0 while no poster has lost its standing
}

/// @notice One poster's claim behind a root.
struct OuterClaim {
    bytes32 base; // root of the generation before
    uint64 postedAt;
    uint32 openGames;
    bool convicted;
    bool closed; // finalized or void
}

/// @title Outer steps: content-addressed roots with co-posters, each with a claim and a game of its own.
interface IOuters is IClaims {
    /// @notice It is not time yet: the round is not over, or the claim's challenge window still runs.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice Only seated solvers and verifiers post an outer root that is new.
    /// @dev Strangers could fill a round with false roots.
    /// @custom:remedy Join a seat, or register as verifier, first.
    /// @param caller who called
    error NotAMember(address caller);

    /// @notice A later round builds on another root of this round.
    /// @dev A new root for a round that is passed would change nothing.
    /// @custom:remedy None: post for the last round.
    /// @param round number of the round, from 0
    error RoundPassed(uint64 round);

    /// @notice The outer root named as start fell and was not rescued in time, or was never posted.
    /// @dev What starts from nothing anybody backs can never become final.
    /// @custom:remedy Compute the step from a root that stands or can still be rescued.
    /// @param round number of the round, from 0
    /// @param base outer root named as start
    error BaseNotStanding(uint64 round, bytes32 base);

    /// @notice The outer root that the step started from is not final yet.
    /// @dev If it falls for good, this claim is void.
    /// @custom:remedy Finalize that one first.
    /// @param round number of the round, from 0
    /// @param base outer root that the step started from
    error BaseNotFinal(uint64 round, bytes32 base);

    /// @notice The outer root that the step started from has not fallen for good.
    /// @dev While others can still rescue it, the claim may yet become final.
    /// @custom:remedy Wait: it becomes final or void.
    /// @param round number of the round, from 0
    /// @param base outer root that the step started from
    error BaseNotVoid(uint64 round, bytes32 base);

    /// @notice Another set of seats is included in this outer step by now; nothing was locked.
    /// @dev Without this check an honest poster would claim a step that it did not compute, and lose its lock.
    /// @custom:remedy Compute the step from the present inclusion and post that.
    /// @param got root of X that the poster computed from
    /// @param wanted root of X now
    error InclusionMoved(bytes32 got, bytes32 wanted);

    /// @notice The time in which others could back this outer root is over.
    /// @dev It runs once, so that no root is kept in doubt for ever.
    /// @custom:remedy Post within the rescue window that the root's first lost claim begins.
    /// @param round number of the round, from 0
    /// @param root the outer root
    /// @param until last second of chain time at which the call went through
    error RescueOver(uint64 round, bytes32 root, uint64 until);

    /// @notice This account backs this outer root already.
    /// @dev One lock per account and root.
    /// @custom:remedy None: the claim stands.
    /// @param round number of the round, from 0
    /// @param root the outer root
    /// @param poster the account
    error AlreadyPosted(uint64 round, bytes32 root, address poster);

    /// @notice A game on the claim is still open.
    /// @dev What is disputed does not become final.
    /// @custom:remedy Finalize after the verdict.
    /// @param count games that are open
    error GamesOpen(uint256 count);

    /// @notice The outer claim is settled, or it was convicted.
    /// @dev Its lock is gone or given back.
    /// @custom:remedy None.
    /// @param round number of the round, from 0
    /// @param root the outer root
    /// @param poster whose claim it is
    error OuterClosed(uint64 round, bytes32 root, address poster);

    /// @notice The first post of an outer step fixed which seats it includes.
    /// @param round number of the round, from 0
    /// @param base outer root that the step starts from
    /// @param mask bit k: seat k is included
    /// @param x state root of the step's input
    event InclusionFixed(uint64 indexed round, bytes32 indexed base, uint8 mask, bytes32 x);

    /// @notice An account put a lock behind the result of an outer step.
    /// @dev Everybody who can recompute the step should, and challenge a root that differs.
    /// @param round number of the round, from 0
    /// @param root state root of the result
    /// @param poster whose lock it is
    /// @param base outer root that the step starts from
    /// @param parameters list root
    /// @param momentum list root
    event OuterPosted(
        uint64 indexed round,
        bytes32 indexed root,
        address indexed poster,
        bytes32 base,
        bytes32 parameters,
        bytes32 momentum
    );

    /// @notice A claim on an outer step ended without a conviction, and its lock is free.
    /// @param round number of the round, from 0
    /// @param root the outer root
    /// @param poster whose claim it was
    /// @param status FINAL or VOID
    event OuterClosedAs(uint64 indexed round, bytes32 indexed root, address indexed poster, Status status);

    /// @notice An outer root lost a claim for the first time: others may back it, for one window.
    /// @dev If the root is right, back it.
    /// @param round number of the round, from 0
    /// @param root the outer root
    /// @param until last second of chain time to back it
    event RescueBegan(uint64 indexed round, bytes32 indexed root, uint64 until);

    /// @notice No account backs this outer root any more.
    /// @param round number of the round, from 0
    /// @param root the outer root
    event RootFell(uint64 indexed round, bytes32 indexed root);

    /// @notice Claims that the outer step of `round` from `base` ends in these lists; from T7 on; locks W. A solver or verifier posts a new root; anybody
    /// posts behind one that was posted before, until a rescue window after the first of its posters lost its standing.
    /// @dev The first post for (round, base) fixes the inclusion mask and X for all later ones.
    /// @param x the X root that the poster computed from; reverts if the inclusion is another by now, so that nobody claims what it did not compute
    function postOuter(uint64 round, bytes32 base, bytes32 x, bytes32 parameters, bytes32 momentum) external;

    /// @notice Ends a claim whose window and games are over and whose base is final: the root is final, the lock returns. Anyone may call.
    function finalizeOuter(uint64 round, bytes32 root, address poster) external;

    /// @notice Ends a claim whose base nobody upheld: the lock returns, the root loses this poster. Anyone may call.
    function voidOuter(uint64 round, bytes32 root, address poster) external;

    function rootOf(uint64 generation, bytes32 root) external view returns (OuterRoot memory);
    function outerClaimOf(uint64 round, bytes32 root, address poster) external view returns (OuterClaim memory);

    /// @notice Roots of a generation that stand now.
    function standingCount(uint64 generation) external view returns (uint256);
    function isStanding(uint64 generation, bytes32 root) external view returns (bool);

    /// @notice Stands, or can still be rescued: what may be built upon.
    function isAlive(uint64 generation, bytes32 root) external view returns (bool);

    /// @notice OPEN, FINAL, or VOID: fallen and not rescued in time.
    function statusOf(uint64 generation, bytes32 root) external view returns (Status);

    /// @notice Mask (bit k = seat k included) and X root for the outer step of a round from a base: the fixed ones, or what a post now would fix.
    function inclusionOf(uint64 round, bytes32 base) external view returns (uint8 mask, bytes32 x, bool isFixed);

    function genesis() external view returns (bytes32 root);
}
