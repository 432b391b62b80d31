// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Entry, IGenerations} from "./IGenerations.sol";

/// @notice The partial sums of a round, one bit per group.
struct GroupsState {
    uint64 counted; // groups whose leading root has two thirds of those that spoke
    uint16 closing; // groups of which more than half of the positions spoke
    uint16 full; // groups in which everybody who sealed spoke
    uint16 finals; // groups whose sum is final
    uint48 latest; // last second to open, where all groups are closing
}

/// @title ITicketPositions: generations of more than 64 seats, whose positions are tickets that a beacon draws
/// @notice First the positions of each group merge its updates to a partial sum. Which sums count is chain state before
/// any root of the generation is sealed. A ticket seals and opens once for all its positions at a node, and its B stands
/// behind its opening.
interface ITicketPositions is IGenerations {
    /// @notice At most 64 seats are merged in one level.
    /// @custom:remedy Use more than 64 seats, or Generations.
    /// @param seats of the terms
    error TooFewSeats(uint256 seats);

    /// @notice Which partial sums count can still change.
    /// @dev A root over sums that do not count in the end would be nobody's.
    /// @custom:remedy Wait until the groups have spoken.
    /// @param round number of the round, from 0
    error GroupsOpen(uint64 round);

    /// @notice A ticket sealed its root at a node, or said that it cannot compute one.
    /// @param node generation, or partial sum of a group
    /// @param ticket its id
    /// @param positions that it holds there
    /// @param seal digest of node, ticket, root, what it is over, salt and caller; zero: it cannot compute the root
    event NodeSealed(uint64 indexed node, uint32 indexed ticket, uint64 positions, bytes32 seal);

    /// @notice A ticket opened its root: it claims that the merge gives it.
    /// @param node generation, or partial sum of a group
    /// @param ticket its id
    /// @param root state root
    /// @param first list root: parameters, or the sum
    /// @param second list root: momentum, or zero for a sum
    event NodeOpened(uint64 indexed node, uint32 indexed ticket, bytes32 root, bytes32 first, bytes32 second);

    /// @notice Binds the positions of a ticket to a root before anybody opens, or says that it cannot compute one: a voice
    /// against every root, for which nobody waits.
    /// @param positions of the node's committee that the ticket holds, one bit each
    /// @param seal K(node, ticket, root, over, salt, caller); zero says that the root cannot be computed
    function seal(uint64 node, uint32 ticket, uint64 positions, bytes32 seal) external;

    /// @notice Opens what was sealed, after sealing is over. The opening that gives a generation's root more than half of
    /// its positions opens the next round.
    /// @param first list root: parameters, or the sum
    /// @param second list root: momentum; of no account for a sum
    function open(uint64 node, uint32 ticket, bytes32 first, bytes32 second, bytes32 salt) external;

    /// @notice Builds X of a group's partial sum; anybody who wants to challenge one calls this first.
    function preparePartial(uint64 round, uint32 group, Entry[] calldata entries) external;

    /// @notice Builds X of the generation; anybody who wants to challenge a root of it calls this first.
    function prepareMerge(uint64 round) external;

    /// @notice The partial sums of a round.
    function groupsOf(uint64 round) external view returns (GroupsState memory);

    /// @notice Last second in which it can change which groups of the round count.
    function groupsUntil(uint64 round) external view returns (uint48);

    /// @notice Last second to open at a node.
    function openUntil(uint64 node) external view returns (uint48);
}
