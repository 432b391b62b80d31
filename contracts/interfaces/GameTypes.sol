// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef} from "./IClaims.sol";

/// @notice Where a game stands; equal to assay.protocol.game.table.Stage.
enum Stage {
    NONE,
    STEPS,
    NODES,
    NODE,
    ROOT,
    TENSOR,
    LEAF,
    PARTS,
    TERM,
    STATE,
    LIST,
    SLOT,
    OVER
}

/// @notice The two sides; equal to assay.protocol.game.table.Side.
enum Side {
    NONE,
    DEFENDER,
    CHALLENGER
}

/// @notice Equal to assay.protocol.game.state.Outcome.
enum Outcome {
    NONE,
    LEAF, // an opening or a selection was refuted
    DEFAULT // a clock ran out
}

/// @notice An element of an earlier node opened under an agreed prefix root.
/// @dev For an address outside the source the leaf is empty and the path is the root of the source's tree alone.
struct Opening {
    uint8 dtype;
    uint64[] dims;
    bytes leaf;
    bytes32[] path;
    bytes32[] prefixPath;
}

/// @notice One game; assay.protocol.game.state.GameState says what the fields mean in which stage. Times in seconds, amounts in wei.
struct GameState {
    address challenger;
    Stage stage;
    Side turn;
    uint8 family; // 255 until a node was opened
    bool whole;
    uint32 step;
    uint16 last; // bytes of the last leaf
    uint8 defenderDeferrals;
    uint8 challengerDeferrals;
    address defender;
    uint64 deadline; // the last second of the turn
    uint32 node;
    uint64 turnStarted; // a deferral moves it on with the deadline
    uint64 defenderBudget;
    uint64 challengerBudget;
    uint64 element;
    uint64 lo;
    uint64 hi;
    uint64 index;
    uint64 count;
    uint8 level;
    uint32 listIndex;
    uint128 advanced; // refunds paid from the bond
    uint128 held; // refunds that wait in the bond
    uint128 backing; // the claim's lock answers for so much in advances
    bytes32 agreed;
    bytes32 disputed;
    bytes32 posted;
    bytes32 before;
    bytes32 after_;
    bytes32 nodeHash;
    bytes32 value;
    int256 claimed;
    uint256[] heads;
    bytes32 claimId;
    bytes32 program;
    bytes32 lockId;
    bytes32 account; // of advances under the claim's lock
    ClaimRef ref;
}
