// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Entry, IGenerations} from "./IGenerations.sol";

/// @title ISeatPositions: generations of at most 64 seats, whose positions are the seats that committed
/// @notice Every solver computes the merge itself. The lock behind an opening is its tenure's.
interface ISeatPositions is IGenerations {
    /// @notice More than 64 seats are merged in two levels.
    /// @custom:remedy Use at most 64 seats, or GroupedGenerations.
    /// @param seats of the terms
    error TooManySeats(uint256 seats);

    /// @notice A position sealed its root of a generation.
    /// @param generation its number
    /// @param seat number of the seat, from 0
    /// @param seal digest of seat, root, what it is over, salt and caller
    event RootSealed(uint64 indexed generation, uint32 indexed seat, bytes32 seal);

    /// @notice A position opened its root: it claims that the merge gives it.
    /// @param generation its number
    /// @param seat number of the seat, from 0
    /// @param root state root
    /// @param parameters list root
    /// @param momentum list root
    event RootOpened(
        uint64 indexed generation, uint32 indexed seat, bytes32 root, bytes32 parameters, bytes32 momentum
    );

    /// @notice A position binds itself to a root before anybody opens.
    /// @param seal K(round, seat, root, over, salt, caller)
    function seal(uint64 round, uint32 seat, bytes32 seal) external;

    /// @notice A position says that it cannot compute the root, while it could seal one.
    function abstain(uint64 round, uint32 seat) external;

    /// @notice Opens what was sealed, after sealing is over. The opening that gives its root more than half of the
    /// positions opens the next round.
    function open(uint64 round, uint32 seat, bytes32 parameters, bytes32 momentum, bytes32 salt) external;

    /// @notice Builds X of the round's merge; anybody who wants to challenge a root calls this first.
    function prepare(uint64 round, Entry[] calldata entries) external;
}
