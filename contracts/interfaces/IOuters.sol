// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";
import {Fate} from "./IRounds.sol";

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
    error TooEarly(uint256 now_, uint256 notBefore);
    error NotAMember(address caller);
    error RoundPassed(uint64 round);
    error BaseNotStanding(uint64 round, bytes32 base);
    error BaseNotFinal(uint64 round, bytes32 base);
    error BaseNotVoid(uint64 round, bytes32 base);
    error InclusionMoved(bytes32 got, bytes32 wanted);
    error RescueOver(uint64 round, bytes32 root, uint64 until);
    error AlreadyPosted(uint64 round, bytes32 root, address poster);
    error GamesOpen(uint256 count);
    error OuterClosed(uint64 round, bytes32 root, address poster);

    event InclusionFixed(uint64 indexed round, bytes32 indexed base, uint8 mask, bytes32 x);
    event OuterPosted(
        uint64 indexed round,
        bytes32 indexed root,
        address indexed poster,
        bytes32 base,
        bytes32 parameters,
        bytes32 momentum
    );
    event OuterClosedAs(uint64 indexed round, bytes32 indexed root, address indexed poster, Fate fate);
    event RescueBegan(uint64 indexed round, bytes32 indexed root, uint64 until);
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
    function fateOf(uint64 generation, bytes32 root) external view returns (Fate);

    /// @notice Mask (bit k = seat k included) and X root for the outer step of a round from a base: the fixed ones, or what a post now would fix.
    function inclusionOf(uint64 round, bytes32 base) external view returns (uint8 mask, bytes32 x, bool isFixed);

    function genesis() external view returns (bytes32 root);
}
