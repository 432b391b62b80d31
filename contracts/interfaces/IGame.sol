// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef} from "./IClaims.sol";

/// @notice Where a game stands; equal to protocol.game_table.Stage.
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

/// @notice The two sides; equal to protocol.game_table.Side.
enum Side {
    NONE,
    DEFENDER,
    CHALLENGER
}

/// @notice Equal to protocol.game_state.Outcome.
enum Outcome {
    NONE,
    LEAF, // an opening or a pointing was refuted
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

/// @notice One game; protocol.game_state.GameState says what the fields mean in which stage. Times in seconds, amounts in wei.
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

/// @title The dispute game: the defender opens, the challenger points, the contract computes one element.
/// @notice Moves and checks: docs/protocol.md, section 5; who moves when: docs/game.md. Every move reverts with a named error when it does not
/// belong to the stage, is not the caller's turn, comes late, or is malformed, in this order; a well-formed move that refutes its maker ends
/// the game. Money: a challenger locks a bond; each reply of the defender is refunded from it at once as long as the claim's lock answers
/// for it; protocol.game_book is the executable model.
interface IGame {
    error NotYourTurn(uint256 gameId, address caller);
    error WrongStage(uint256 gameId, Stage actual);
    error TooLate(uint256 gameId, uint256 deadline);
    error TooEarly(uint256 gameId, uint256 deadline);
    error WrongCount(uint256 got, uint256 wanted);
    error WrongDigest(bytes32 got, bytes32 wanted);
    error ListMismatch(bytes32 got, bytes32 wanted);
    error NotChallengeable(bytes32 claimId);
    error MayNotChallenge(address caller);
    error UnknownProgram(bytes32 program);
    error CommitmentExists(bytes32 commitment);
    error CommitmentNotFound(bytes32 commitment);
    error RevealTooEarly(uint256 now_, uint256 notBefore);
    error RevealTooLate(uint256 now_, uint256 deadline);
    error IndexOutOfRange(uint256 index, uint256 count);
    error WrongArity(uint256 arity);
    error MalformedProgram(bytes32 program);
    error FeeNotAboveCap(uint256 baseFee, uint256 cap);
    error NoDeferralLeft(uint256 gameId, address caller);
    error DisputeTooLong(uint256 longest, uint256 allowed);

    event ChallengeBound(bytes32 indexed commitment, address indexed challenger);
    /// @notice A bound challenge is gone: revealed (`gameId`, 0 if the claim had fallen or closed meanwhile) or expired and burned.
    event ChallengeUnbound(bytes32 indexed commitment, uint256 gameId, bool burned);
    event GameOpened(
        uint256 indexed gameId, bytes32 indexed claimId, address indexed challenger, address defender, ClaimRef ref
    );
    /// @notice A move was made, or a turn deferred; `stage`, `turn` and `deadline` are those of the next turn.
    event Moved(uint256 indexed gameId, address indexed mover, Stage stage, Side turn, uint64 deadline);
    /// @notice The side to move took an hour more because of the base fee; `left` times more it may.
    event Deferred(uint256 indexed gameId, address indexed mover, uint256 left);
    /// @notice What the defender's move showed: the challenger gives it again when it points into it. `list` = K(digests).
    event DigestsPosted(uint256 indexed gameId, bytes32 indexed list, bytes32[] digests);
    /// @notice A list that the claimant posted at the same position of another game counts as posted in this one.
    event DigestsReused(uint256 indexed gameId, bytes32 indexed list);
    event LeafPosted(uint256 indexed gameId, bytes leaf);
    event PartsPosted(uint256 indexed gameId, int256[] parts);
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
    /// @notice The first conviction took a claim's lock.
    event LockTaken(uint256 indexed gameId, bytes32 indexed lockId, uint256 bounty, uint256 burned, uint256 reserved);

    /// @notice Binds a free-lance challenge: commitment = K(claim ref, own end root, salt, sender). Takes the commit deposit.
    function commitChallenge(bytes32 commitment) external;

    /// @notice Opens a game from a bound challenge, at least two blocks and at most an hour after it was bound; returns the deposit.
    /// @return gameId 0 when the claim fell, or its window closed, after the challenge was bound
    function revealChallenge(ClaimRef calldata ref, bytes32 ownRoot, bytes32 salt) external returns (uint256 gameId);

    /// @notice Burns the deposit of a challenge that was not revealed in time. Anyone may call.
    function expireChallenge(bytes32 commitment) external;

    /// @notice Opens a game as a party for whom IClaims.mayChallengeDirectly holds.
    function challenge(ClaimRef calldata ref) external returns (uint256 gameId);

    /// @notice STEPS, NODES: the digests at min(arity, hi - lo) positions of (lo, hi], the last equal to the disputed one; where the claimant's
    /// list is known already, the same ones or none. A game that comes to a position whose list is known does not wait for this move.
    function postDigests(uint256 gameId, bytes32[] calldata digests) external;

    /// @notice STEPS, NODES: names the first digest that is wrong; the one before it is thereby agreed.
    function pointDigest(uint256 gameId, uint256 index, bytes32[] calldata digests) external;

    /// @notice NODE: the node's descriptor under the program root, its append path, and the upper levels of its value's tree.
    function openNode(
        uint256 gameId,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external;

    /// @notice TENSOR, LIST: names a wrong digest of the list posted.
    function pointSubtree(uint256 gameId, uint256 index, bytes32[] calldata digests) external;

    /// @notice TENSOR, LIST: the digests, log2(arity) levels lower, that the disputed entry covers.
    function openSubtree(uint256 gameId, bytes32[] calldata digests) external;

    /// @notice LEAF: the bytes of the disputed leaf.
    function openLeaf(uint256 gameId, bytes calldata leaf) external;

    /// @notice LEAF: names a wrong element, counted in elements from the start of the leaf, and opens what its computation reads first.
    function pointElement(
        uint256 gameId,
        uint256 offset,
        bytes calldata leaf,
        bytes calldata node,
        Opening[] calldata heads
    ) external;

    /// @notice PARTS: partial results of the disputed terms, in chunks.
    function postParts(uint256 gameId, bytes calldata node, int256[] calldata parts) external;

    /// @notice PARTS: names a wrong part.
    function pointPart(uint256 gameId, uint256 index, int256[] calldata parts) external;

    /// @notice TERM: opens what the disputed term reads.
    function proveTerm(uint256 gameId, bytes calldata node, Opening[] calldata reads) external;

    /// @notice ROOT: what an input, const or output node must equal; SLOT: what a slot of Y must equal (`node` empty).
    /// @param path input: of the slot in its list; output, SLOT: the source's 20 siblings; const: empty
    /// @param opening input: the list roots of s_(t-1) and the slot's tensor root; output, SLOT: the source's tensor root
    function proveRoot(uint256 gameId, bytes calldata node, bytes32[] calldata path, bytes calldata opening) external;

    /// @notice STATE: the list roots of s_t.
    function openState(uint256 gameId, bytes32[] calldata listRoots) external;

    /// @notice STATE: names a wrong list root.
    function pointList(uint256 gameId, uint256 index, bytes32[] calldata listRoots) external;

    /// @notice Any turn, by whoever is to move, in time, while the base fee is above the charter's cap: the turn ends an hour later and the hour
    /// costs no budget. At most 3 times per side and game.
    function defer(uint256 gameId) external;

    /// @notice Ends the game against whoever's clock ran out; anyone may call, strictly after the deadline.
    function timeout(uint256 gameId) external;

    /// @notice Everything about a game; stage NONE when there is none of this number.
    function gameOf(uint256 gameId) external view returns (GameState memory);

    /// @notice K(list) of what was posted at a position = K(claim id, program, stage, step, lo, hi, agreed, disputed); zero if nothing was.
    function listAt(bytes32 position) external view returns (bytes32);

    /// @notice Number of games so far; they are numbered from 1.
    function games() external view returns (uint256);

    /// @notice What a reply of the defender is paid from the challenger's bond, in wei.
    function moveRefund() external view returns (uint256);

    /// @notice Bound challenges: by whom, in which block and at what chain time; zero when there is none.
    function boundChallenge(bytes32 commitment) external view returns (address owner, uint64 block_, uint64 time);
}
