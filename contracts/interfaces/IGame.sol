// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ClaimRef} from "./IClaims.sol";

/// @notice Equal to protocol.game.Stage.
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

/// @notice Equal to protocol.game.Outcome.
enum Outcome {
    NONE,
    LEAF, // an opening or a pointing was refuted
    DEFAULT // a clock ran out
}

/// @notice An element of an earlier node opened under an agreed prefix root.
struct Opening {
    uint8 dtype;
    uint64[] dims;
    bytes leaf;
    bytes32[] path;
    bytes32[] prefixPath;
}

/// @title The dispute game: the defender opens, the challenger points, the contract computes one element.
/// @notice Moves and checks: docs/protocol.md, section 5. Every move reverts with a named error when it is not the caller's turn, comes late, or is malformed;
/// a well-formed move that refutes its maker ends the game.
interface IGame {
    error NotYourTurn(uint256 gameId, address caller);
    error WrongStage(uint256 gameId, Stage actual);
    error TooLate(uint256 gameId, uint256 deadline);
    error TooEarly(uint256 gameId, uint256 deadline);
    error WrongCount(uint256 got, uint256 wanted);
    error WrongDigest(bytes32 got, bytes32 wanted);
    error ListMismatch(bytes32 got, bytes32 wanted);
    error NotChallengeable(bytes32 claimId);
    error UnknownProgram(bytes32 program);
    error CommitmentNotFound(bytes32 commitment);
    error RevealTooEarly(uint256 block_, uint256 notBefore);
    error IndexOutOfRange(uint256 index, uint256 count);

    event GameOpened(uint256 indexed gameId, bytes32 indexed claimId, address indexed challenger, address defender, ClaimRef ref);
    event Moved(uint256 indexed gameId, address indexed mover, Stage stage, uint64 deadline);
    event Verdict(
        uint256 indexed gameId,
        bytes32 indexed claimId,
        address indexed loser,
        Outcome outcome,
        uint8 family,
        uint32 node,
        uint64 element,
        uint64 term,
        int256 expected,
        int256 claimed
    );

    /// @notice Binds a free-lance challenge: commitment = K(claim ref, own end root, salt, sender). Takes the commit deposit.
    function commitChallenge(bytes32 commitment) external;

    /// @notice Opens a game after at least two blocks from a bound challenge.
    function revealChallenge(ClaimRef calldata ref, bytes32 ownRoot, bytes32 salt) external returns (uint256 gameId);

    /// @notice Opens a game as a party whose own revealed leaf differs from the claim (drawn verifier, whistleblower).
    function challenge(ClaimRef calldata ref) external returns (uint256 gameId);

    function postDigests(uint256 gameId, bytes32[] calldata digests) external;
    function pointDigest(uint256 gameId, uint256 index, bytes32[] calldata digests) external;
    function openNode(
        uint256 gameId,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external;
    function pointSubtree(uint256 gameId, uint256 index, bytes32[] calldata digests) external;
    function openSubtree(uint256 gameId, bytes32[] calldata digests) external;
    function openLeaf(uint256 gameId, bytes calldata leaf) external;
    function pointElement(uint256 gameId, uint256 offset, bytes calldata leaf, bytes calldata node, Opening[] calldata heads)
        external;
    function postParts(uint256 gameId, bytes calldata node, int256[] calldata parts) external;
    function pointPart(uint256 gameId, uint256 index, int256[] calldata parts) external;
    function proveTerm(uint256 gameId, bytes calldata node, Opening[] calldata reads) external;
    function proveRoot(uint256 gameId, bytes calldata node, bytes32[] calldata path, bytes calldata opening) external;
    function openState(uint256 gameId, bytes32[] calldata listRoots) external;
    function pointList(uint256 gameId, uint256 index, bytes32[] calldata listRoots) external;

    /// @notice Ends the game against whoever's clock ran out; anyone may call, strictly after the deadline.
    function timeout(uint256 gameId) external;
}
