// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";

/// @notice What became of a generation.
enum GenerationStatus {
    OPEN, // no root has a majority
    MERGED, // a root has one: rounds start from it
    FINAL,
    CUT // for good: no base, and no pay for work on it
}

/// @notice A generation: what the round before it was merged into.
struct GenerationState {
    GenerationStatus status;
    bytes32 root; // state root of the majority, zero: none
    bytes32 parameters; // list root
    bytes32 momentum; // list root
    uint32 segment;
    uint16 sealed_; // positions that sealed
    uint48 sealUntil; // last second to seal; zero: no more than half of the positions sealed
}

/// @notice A root that somebody opened.
struct NodeState {
    uint16 votes; // positions that opened it
    uint16 openings; // of seats or tickets, each for all its positions
    uint32 standing; // claims behind it that have not fallen
    uint32 games; // open
    uint48 rescueUntil; // last second to back it; zero: no claim behind it fell
}

/// @notice An opening: a claim of its own, with the lock of whoever opened.
struct OpenedRoot {
    bytes32 root;
    uint32 opener; // whose lock stands behind it, a tenure or above 64 seats a ticket; zero: a backer with a lock of its own
    address backer;
    uint48 at;
    bool fallen;
    bool closed;
    uint32 games; // open
}

/// @notice An update that was committed with weight, in the order of the commits.
struct Entry {
    uint32 seat;
    uint32 units;
    bytes32 update;
}

/// @title IGenerations: what rounds are merged into
/// @notice Round r is merged into generation r + 1; generation 0 is the genesis. A node is one merge: a generation, by its
/// number, or above 64 seats the partial sum of a group, by (group + 1) << 32 | generation. The opening of a position is
/// its claim, and the lock of whoever holds it stands behind the root.
interface IGenerations is IClaims {
    /// @notice Only the launch opens the first round.
    /// @dev Whoever opens it commits the escrow of the run.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotTheLauncher(address caller);

    /// @notice The first round is open.
    /// @custom:remedy None.
    error AlreadyBegun();

    /// @notice It is not time yet.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice The time to seal, to open, or to back is over.
    /// @custom:remedy None for this round.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error TooLate(uint256 now_, uint256 deadline);

    /// @notice The position sealed, opened, or said that it cannot compute, already.
    /// @dev One root per position: a second one could follow what others opened.
    /// @custom:remedy None: the first one stands.
    /// @param position number of the seat, above 64 seats of the ticket
    error AlreadySealed(uint32 position);

    /// @notice What is opened is not what was sealed, or the root is over something else by now.
    /// @dev A root that need not be sealed could be copied from whoever opens first; and a reorganization can change what a
    /// root is over, so that an honest one would be false.
    /// @custom:remedy Open with the root and the salt that were sealed, or sit this node out.
    /// @param got digest of what was opened
    /// @param sealed_ digest that was sealed; zero: none
    error SealMismatch(bytes32 got, bytes32 sealed_);

    /// @notice The generation is cut.
    /// @custom:remedy Take part in the newest round.
    /// @param generation its number
    error GenerationCut(uint64 generation);

    /// @notice The generation has no majority, the node is final already, or what it was merged from is not final.
    /// @custom:remedy Look up the status of its parent and of its partial sums.
    /// @param node generation, or partial sum of a group
    error NotFinalizable(uint64 node);

    /// @notice There is no such opening, or its claim fell, or what is to be closed is closed.
    /// @custom:remedy Name an opening whose claim stands.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    error NotStanding(uint64 node, bytes32 party);

    /// @notice The opener is not convicted.
    /// @dev A claim stands while its lock is there.
    /// @custom:remedy Challenge the claim, if it is false.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    error NotConvicted(uint64 node, bytes32 party);

    /// @notice The root cannot be backed: nobody opened it, no claim behind it has fallen, or the caller backs it.
    /// @custom:remedy Back a root of which a claim has fallen, once.
    /// @param node generation, or partial sum of a group
    /// @param root state root
    error NotBackable(uint64 node, bytes32 root);

    /// @notice A game on the root is still open.
    /// @custom:remedy Try again after the verdict.
    /// @param games open
    error GamesOpen(uint256 games);

    /// @notice The root has a claim that stands, or can still be backed.
    /// @dev A root falls when nobody answers for it any more.
    /// @custom:remedy Wait until the time to back it is over.
    /// @param node generation, or partial sum of a group
    error NotFallen(uint64 node);

    /// @notice The generation can still become final, or void.
    /// @dev A lock that left before it would answer for nothing.
    /// @custom:remedy Wait until the generation is final or cut, and the claim's window is over.
    /// @param node generation, or partial sum of a group
    error GenerationOpen(uint64 node);

    /// @notice The round under way can still be merged.
    /// @dev A restart gives up what was worked on.
    /// @custom:remedy Wait until its majority is late, too few have committed, or its base is cut.
    /// @param round number of the round, from 0
    error RoundAlive(uint64 round);

    /// @notice The run cannot open a round now, and has none to give up: it is over, no seat is held, or the gate is shut.
    /// @dev At a majority, or when a round is given up, the same is no error: the next round waits.
    /// @custom:remedy Try again when seats are held and the run can pay and audit a round.
    error Paused();

    /// @notice The run was cancelled or wound down: no round is given up, and no root backed, any more.
    /// @dev A backer would lock S for nothing; and what was merged before a stop can still become final.
    /// @custom:remedy None: take back what is staked.
    error RunStopped();

    /// @notice The updates given are not those that were committed.
    /// @custom:remedy Take them from the commitments' events, in their order, those without weight left out.
    /// @param got accumulator of what was given
    /// @param wanted accumulator of the round
    error EntriesMismatch(bytes32 got, bytes32 wanted);

    /// @notice A root was opened by more than half of the positions: rounds start from it.
    /// @param generation its number
    /// @param root state root
    event Merged(uint64 indexed generation, bytes32 root);

    /// @notice An account locked S behind a root of which a claim fell.
    /// @param node generation, or partial sum of a group
    /// @param root state root
    /// @param backer the account
    event RootBacked(uint64 indexed node, bytes32 root, address indexed backer);

    /// @notice A position says that it cannot compute the root: it holds not all that goes into it.
    /// @dev Silence and incapacity differ: nobody waits for who spoke, and no root has its voice.
    /// @param node generation, or partial sum of a group
    /// @param position number of the seat, above 64 seats of the ticket
    event Abstained(uint64 indexed node, uint32 indexed position);

    /// @notice A claim behind a root fell.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    /// @param rescueUntil last second to back the root
    event ClaimFell(uint64 indexed node, bytes32 party, uint48 rescueUntil);

    /// @notice What stands behind an opening is free: its generation is final or cut.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    event OpeningClosed(uint64 indexed node, bytes32 party);

    /// @notice A node is final.
    /// @param node generation, or partial sum of a group
    event Finalized(uint64 indexed node);

    /// @notice A generation, and every later one that builds on it, is cut.
    /// @param generation its number
    event Cut(uint64 indexed generation);

    /// @notice A majority found the run unable to open a round: the next one waits.
    /// @param generation that has the majority
    event RoundWaits(uint64 indexed generation);

    /// @notice X of a merge was built: roots of its node can be challenged now.
    /// @param node generation, or partial sum of a group
    /// @param x state root
    event MergePrepared(uint64 indexed node, bytes32 x);

    /// @notice Launcher only: opens round 0 from the genesis.
    function begin() external;

    /// @notice Drops a claim whose opener was convicted elsewhere. Anybody may call.
    function drop(uint64 node, bytes32 party) external;

    /// @notice Locks S of the caller behind a root of which a claim fell, while it can be rescued.
    function back(uint64 node, bytes32 root) external;

    /// @notice Makes a node final by one opening whose window is over, a generation after its parent and its sums. Anybody
    /// may call.
    function finalize(uint64 node, bytes32 party) external;

    /// @notice Frees what stands behind an opening at a node whose generation is final or cut. Anybody may call.
    function close(uint64 node, bytes32 party) external;

    /// @notice Cuts the generation of a node that nobody answers for any more, and what builds on it. Anybody may call.
    function fall(uint64 node) external;

    /// @notice Cuts what the round under way cannot finish, and opens a round from the newest generation that is not cut if the
    /// run can. Anybody may call.
    function restart() external;

    /// @notice The name of the opening of a seat, above 64 seats of a ticket.
    function partyOf(uint32 position) external pure returns (bytes32);

    /// @notice The name of a backer's opening.
    function backerOf(bytes32 root, address who) external pure returns (bytes32);

    /// @notice The digest that binds a position to a root and to what the root is over.
    /// @param at round, above 64 seats the node
    /// @param position number of the seat, above 64 seats of the ticket
    /// @param over what the root is over, as whoever computed it knows: of updates ICommitments.overOf, of sums the base and,
    /// for each group that counts, its number plus one, leading root and weight (SealOver)
    function sealOf(uint64 at, uint32 position, bytes32 root, bytes32 over, bytes32 salt, address who)
        external
        pure
        returns (bytes32);

    function statusOf(uint64 generation) external view returns (GenerationStatus);
    function generationOf(uint64 generation) external view returns (GenerationState memory);
    function nodeOf(uint64 node, bytes32 root) external view returns (NodeState memory);
    function openingOf(uint64 node, bytes32 party) external view returns (OpenedRoot memory);

    /// @notice List root of a generation's parameters.
    function parametersOf(uint64 generation) external view returns (bytes32);

    /// @notice Chain time at which a generation became final for the last time; 0: none did.
    function finalAt() external view returns (uint48);

    /// @notice The newest generation that has a majority and is not cut.
    function newest() external view returns (uint64);
}
