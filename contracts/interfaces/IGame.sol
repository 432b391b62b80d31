// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Opening, Outcome, Side, Stage} from "./GameTypes.sol";
import {ClaimRef} from "./IClaims.sol";

/// @title The dispute game: the defender opens, the challenger bisects and selects, the contract computes one element.
/// @notice Moves and checks: docs/protocol.md, section 5; who moves when: docs/game.md. Every move reverts with a named error when it does not
/// belong to the stage, is not the caller's turn, comes late, or is malformed, in this order; a well-formed move that refutes its maker ends
/// the game. Money: a challenger locks a bond; each reply of the defender is refunded from it at once as long as the claim's lock answers
/// for it; assay.protocol.game.book is the executable model.
interface IGame {
    /// @notice The other side is to move, or the account is no party to the game.
    /// @dev A stranger that could move for a party could lose the game for it.
    /// @custom:remedy Wait for the other side's move, or for its deadline.
    /// @param gameId number of the game, from 1
    /// @param caller who called
    error NotYourTurn(uint256 gameId, address caller);

    /// @notice The move does not belong to the stage of the game.
    /// @custom:remedy Read the game again and make the move that its stage asks for.
    /// @param gameId number of the game, from 1
    /// @param actual stage that the game is in; NONE if there is no such game
    error WrongStage(uint256 gameId, Stage actual);

    /// @notice The turn's deadline has passed.
    /// @dev A clock that did not end a game would let a cheat keep it open for ever.
    /// @custom:remedy None: anybody may end the game by `timeout` now.
    /// @param gameId number of the game, from 1
    /// @param deadline last second of the turn, in chain time
    error TooLate(uint256 gameId, uint256 deadline);

    /// @notice The turn's deadline has not passed, so there is no timeout.
    /// @custom:remedy Call again after the deadline.
    /// @param gameId number of the game, from 1
    /// @param deadline last second of the turn, in chain time
    error TooEarly(uint256 gameId, uint256 deadline);

    /// @notice A list or path has not exactly the length that belongs there.
    /// @dev With any other length one digest could be proved at two places.
    /// @custom:remedy Give it whole and no longer.
    /// @param got entries or bytes given
    /// @param wanted entries or bytes that belong there
    error WrongCount(uint256 got, uint256 wanted);

    /// @notice An opening does not hash to what it opens, or a challenge is about the very root that is claimed.
    /// @dev Only what was committed to may decide a game.
    /// @custom:remedy Open exactly what was committed to; challenge a root that differs.
    /// @param got digest of what was given
    /// @param wanted digest that stands
    error WrongDigest(bytes32 got, bytes32 wanted);

    /// @notice The list given again is not the one posted.
    /// @dev A claimant that could answer two challengers differently could tell each what suits.
    /// @custom:remedy Give the list that was posted at this position, unchanged.
    /// @param got digest of the list given
    /// @param wanted digest of the list posted
    error ListMismatch(bytes32 got, bytes32 wanted);

    /// @notice The parts do not stand for the element, or the part, in dispute.
    /// @dev A claimant could go on about another element than the one it claimed.
    /// @custom:remedy Give parts of what is in dispute now: after a reorganization it may be another element.
    /// @param expected what the parts stand for
    /// @param claimed what they should stand for
    error PartsMismatch(int256 expected, int256 claimed);

    /// @notice The claim does not exist, its window is not open, or it has fallen already.
    /// @dev A claim answers once, in its window.
    /// @custom:remedy Look the claim up (`assay explain ID`): its window and its games are named there.
    /// @param claimId id of the claim
    error NotChallengeable(bytes32 claimId);

    /// @notice Only a party whose own revealed result differs may challenge at once.
    /// @dev Others could copy its challenge from the pool and take the bounty.
    /// @custom:remedy Commit to the challenge first and reveal it two blocks later; the agents do so themselves.
    /// @param caller who called
    error MayNotChallenge(address caller);

    /// @notice The claim is about a program that the game does not know.
    /// @dev A game needs the program's header, which the charter names.
    /// @custom:remedy Report it: in a run of this release it cannot happen.
    /// @param program program root
    error UnknownProgram(bytes32 program);

    /// @notice The move selects something that is not there.
    /// @custom:remedy Select an entry of the list, leaf or tensor that was opened.
    /// @param index what was selected, from 0
    /// @param count how many there are
    error IndexOutOfRange(uint256 index, uint256 count);

    /// @notice The arity of games is no power of two from 2 to 64.
    /// @dev Trees are opened by whole levels, and a list must fit into a transaction.
    /// @custom:remedy Choose one, such as 64.
    /// @param arity digests per move that the charter names
    error WrongArity(uint256 arity);

    /// @notice The header of a program cannot be read.
    /// @dev On such a program no game could come to an end.
    /// @custom:remedy Capture the program again.
    /// @param program program root
    error MalformedProgram(bytes32 program);

    /// @notice A turn is deferred only while the base fee is above the charter's cap.
    /// @dev Bonds pay for gas up to the cap; below it a deferral would only drag the game on.
    /// @custom:remedy Make the move now.
    /// @param baseFee of this block, in wei per gas
    /// @param cap of the charter, in wei per gas
    error FeeNotAboveCap(uint256 baseFee, uint256 cap);

    /// @notice This side has used its three deferrals of the game.
    /// @dev Deferrals without end would keep the game open.
    /// @custom:remedy Move before the deadline, at any fee: a missed clock loses the game.
    /// @param gameId number of the game, from 1
    /// @param caller who called
    error NoDeferralLeft(uint256 gameId, address caller);

    /// @notice With these clocks a dispute may outlast what the charter allows.
    /// @dev Windows and exits are computed with that bound; a cheat could leave before the verdict.
    /// @custom:remedy Shorten the clocks, or raise the bound.
    /// @param longest longest game, in seconds
    /// @param allowed in seconds
    error DisputeTooLong(uint256 longest, uint256 allowed);

    /// @notice Only the contract of challenges opens games for others.
    /// @dev Whoever could would open a game in which another's bond is at stake.
    /// @custom:remedy None: people do not make this call. Commit to a challenge, or challenge yourself.
    /// @param caller who called
    error NotChallenges(address caller);

    /// @notice The run was cancelled or wound down: no game opens any more.
    /// @dev Its locks are released, and what has left could still be convicted.
    /// @custom:remedy None: take back what is staked.
    error RunStopped();

    /// @notice A claim is challenged: a game began.
    /// @dev The defender is to move, or the challenger where the defender's list is known already.
    /// @param gameId number of the game, from 1
    /// @param claimId id of the claim
    /// @param challenger who locked the bond
    /// @param defender whose claim it is
    /// @param ref where the claim stands
    event GameOpened(
        uint256 indexed gameId, bytes32 indexed claimId, address indexed challenger, address defender, ClaimRef ref
    );

    /// @notice A move was made or a turn deferred, and the next turn began.
    /// @param gameId number of the game, from 1
    /// @param mover who moved
    /// @param stage of the next turn
    /// @param turn side that is to move next
    /// @param deadline last second of the next turn, in chain time
    event Moved(uint256 indexed gameId, address indexed mover, Stage stage, Side turn, uint64 deadline);

    /// @notice The side to move took an hour more, because the base fee is above the cap.
    /// @param gameId number of the game, from 1
    /// @param mover who deferred
    /// @param left how often it may again in this game
    event Deferred(uint256 indexed gameId, address indexed mover, uint256 left);

    /// @notice The defender opened a list of digests.
    /// @dev The challenger gives the list again when it selects from it.
    /// @param gameId number of the game, from 1
    /// @param list keccak-256 of the digests
    /// @param digests the list
    event DigestsPosted(uint256 indexed gameId, bytes32 indexed list, bytes32[] digests);

    /// @notice A list that the claimant posted at the same position of another game counts as posted in this one.
    /// @param gameId number of the game, from 1
    /// @param list keccak-256 of the digests
    event DigestsReused(uint256 indexed gameId, bytes32 indexed list);

    /// @notice The defender opened the bytes of the disputed leaf.
    /// @param gameId number of the game, from 1
    /// @param leaf its bytes, 1024 or fewer
    event LeafPosted(uint256 indexed gameId, bytes leaf);

    /// @notice The defender opened partial results of the disputed element.
    /// @param gameId number of the game, from 1
    /// @param parts one per chunk of terms
    event PartsPosted(uint256 indexed gameId, int256[] parts);

    /// @notice A game is over: one side lost.
    /// @dev After LEAF `expected` is what the contract computed, and the side that it refutes lost; after DEFAULT a
    /// clock ran out.
    /// @param gameId number of the game, from 1
    /// @param claimId id of the claim
    /// @param loser who lost
    /// @param outcome LEAF or DEFAULT
    /// @param family code of the disputed node's family; 255 if no node was opened
    /// @param node number of the disputed node
    /// @param element row-major index of the disputed element
    /// @param term number of the disputed term
    /// @param expected what the contract computed; 0 after DEFAULT
    /// @param claimed what was claimed; 0 after DEFAULT
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
    /// @param gameId number of the game, from 1
    /// @param lockId name of the lock
    /// @param bounty to the winner, in wei
    /// @param burned in wei
    /// @param reserved kept for what other open games have advanced, in wei
    event LockTaken(uint256 indexed gameId, bytes32 indexed lockId, uint256 bounty, uint256 burned, uint256 reserved);

    /// @notice Opens a game as a party for whom IClaims.mayChallengeDirectly holds.
    function challenge(ClaimRef calldata ref) external returns (uint256 gameId);

    /// @notice Challenges only: opens a game for a third party that had committed to it.
    /// @param ownRoot the root that it named in place of the claim's
    /// @return gameId 0 when the claim fell, or its window closed, after the commitment
    function openFor(ClaimRef calldata ref, address challenger, bytes32 ownRoot) external returns (uint256 gameId);

    /// @notice STEPS, NODES: the digests at min(arity, hi - lo) positions of (lo, hi], the last equal to the disputed one; where the claimant's
    /// list is known already, the same ones or none. A game that comes to a position whose list is known does not wait for this move.
    function postDigests(uint256 gameId, bytes32[] calldata digests) external;

    /// @notice STEPS, NODES: names the first digest that is wrong; the one before it is thereby agreed.
    function bisectDigests(uint256 gameId, uint256 index, bytes32[] calldata digests) external;

    /// @notice NODE: the node's descriptor under the program root, its append path, and the upper levels of its value's tree.
    function openNode(
        uint256 gameId,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external;

    /// @notice TENSOR, LIST: names a wrong digest of the list posted.
    function selectSubtree(uint256 gameId, uint256 index, bytes32[] calldata digests) external;

    /// @notice TENSOR, LIST: the digests, log2(arity) levels lower, that the disputed entry covers.
    function openSubtree(uint256 gameId, bytes32[] calldata digests) external;

    /// @notice LEAF: the bytes of the disputed leaf.
    function openLeaf(uint256 gameId, bytes calldata leaf) external;

    /// @notice LEAF: names a wrong element, counted in elements from the start of the leaf, and opens what its computation reads first.
    function selectElement(
        uint256 gameId,
        uint256 offset,
        bytes calldata leaf,
        bytes calldata node,
        Opening[] calldata heads
    ) external;

    /// @notice PARTS: partial results of the disputed terms, in chunks.
    function postParts(uint256 gameId, bytes calldata node, int256[] calldata parts) external;

    /// @notice PARTS: names a wrong part.
    function selectPart(uint256 gameId, uint256 index, int256[] calldata parts) external;

    /// @notice TERM: opens what the disputed term reads.
    function proveTerm(uint256 gameId, bytes calldata node, Opening[] calldata reads) external;

    /// @notice ROOT: what an input, const or output node must equal; SLOT: what a slot of Y must equal (`node` empty).
    /// @param path input: of the slot in its list; output, SLOT: the source's 20 siblings; const: empty
    /// @param opening input: the list roots of s_(t-1) and the slot's tensor root; output, SLOT: the source's tensor root
    function proveRoot(uint256 gameId, bytes calldata node, bytes32[] calldata path, bytes calldata opening) external;

    /// @notice STATE: the list roots of s_t.
    function openState(uint256 gameId, bytes32[] calldata listRoots) external;

    /// @notice STATE: names a wrong list root.
    function selectList(uint256 gameId, uint256 index, bytes32[] calldata listRoots) external;

    /// @notice Any turn, by whoever is to move, in time, while the base fee is above the charter's cap: the turn ends an hour later and the hour
    /// costs no budget. At most 3 times per side and game.
    function defer(uint256 gameId) external;

    /// @notice Ends the game against whoever's clock ran out; anyone may call, strictly after the deadline.
    function timeout(uint256 gameId) external;

    /// @notice Everything about a game; stage NONE when there is none of this number.
    function gameOf(uint256 gameId) external view returns (GameState memory);

    /// @notice K(list) of what was posted at a position = K(claim id, program, stage, step, lo, hi, agreed, disputed); zero if nothing was.
    function positionCache(bytes32 position) external view returns (bytes32);

    /// @notice Number of games so far; they are numbered from 1.
    function games() external view returns (uint256);

    /// @notice What a reply of the defender is paid from the challenger's bond, in wei.
    function moveRefund() external view returns (uint256);
}
