// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, IClaims} from "./IClaims.sol";

/// @notice What a seat did in a round.
struct Work {
    uint32 units;
    bytes32 marks; // keccak-256 of the state roots along the way: marks of progress
    bytes32[3] ends; // list roots of the last state: parameters, optimizer, scalars
    bytes32 update; // list root
}

/// @notice What the contract keeps of a commitment.
struct WorkState {
    bytes32 digest; // K(round, seat, tenure, work); zero: none
    uint32 tenure;
    uint32 units;
    uint32 games; // open
    bool late; // after the mask had closed, or while the seat was suspended: paid, without weight
    bool settled;
}

/// @notice How a commitment ended.
enum WorkStatus {
    OPEN,
    VOID, // the generation that it started from was cut: unpaid, never slashed
    CONVICTED,
    FINAL
}

/// @notice Whether a seat was there in a round.
enum Presence {
    UNKNOWN, // the round still takes commitments, or words about who holds what
    PRESENT,
    MISSED, // no commitment
    UNCOUNTED, // fewer than two thirds of the positions that spoke hold its update, and a third or more do: no absence
    UNHELD // fewer than one third of the positions that spoke hold its update
}

/// @notice A round that was opened.
struct RoundState {
    uint48 t0;
    uint48 maskAt; // last second in which a commitment gets weight
    uint32 seated; // seats held at T0
    uint32 committed;
    uint16 groups; // groups of which somebody committed with weight
    uint64 parent; // generation that it starts from
    bytes32 base; // state root of that generation
}

/// @notice The seats of a group in a round, bit i for its i-th seat.
struct GroupState {
    bytes32 acc; // over what was committed with weight, in the order of the commits
    uint64 committed;
    uint64 maskable; // committed with weight
    uint64 spoke; // positions that said what they hold
    uint48 closeAt; // last second to speak; zero: no more than half of the positions spoke
}

/// @title ICommitments: rounds' times, commitments, and who holds which update
interface ICommitments is IClaims {
    /// @notice The terms of rounds contradict each other.
    /// @dev A group has at most 64 seats and 63 positions, a run 1,024 seats, the grace fits into the inclusion delay, and
    /// a commitment has at least one unit.
    /// @custom:remedy Change the term.
    /// @param what the term's name in ASCII, zeros after it
    /// @param value of the term
    /// @param limit that it breaks
    error RoundTermOutOfRange(bytes32 what, uint256 value, uint256 limit);

    /// @notice Only the contract of generations opens rounds.
    /// @dev A round opens in the block in which a generation has its majority, or at a restart.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotGenerations(address caller);

    /// @notice Only the contract of payments ends a commitment.
    /// @dev A commitment that ended without being settled would never be paid.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotPayments(address caller);

    /// @notice The round has not been opened.
    /// @custom:remedy Wait for its T0.
    /// @param round number of the round, from 0
    error RoundNotOpen(uint64 round);

    /// @notice It is not time yet.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice The time to commit, or to say what one holds, is over.
    /// @custom:remedy None for this round; take part in the next.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error TooLate(uint256 now_, uint256 deadline);

    /// @notice The round starts from another generation than the one named.
    /// @dev A reorganization can put another base under a round; work from the one that is gone would be false.
    /// @custom:remedy Train again from the round's base, or sit this round out.
    /// @param got state root that the work starts from
    /// @param wanted state root of the round's base
    error BaseMismatch(bytes32 got, bytes32 wanted);

    /// @notice The tenure has another seat than the one named.
    /// @dev A reorganization can seat a tenure elsewhere, and the work of each seat starts from scalars of its own.
    /// @custom:remedy Train again for the seat that the tenure has, or sit this round out.
    /// @param got seat that the work was done for
    /// @param wanted seat of the tenure
    error SeatMismatch(uint32 got, uint32 wanted);

    /// @notice A commitment has fewer units than the least, or more than a round has.
    /// @dev One unit a round would hold a seat, and a full voice, for a fraction of the work.
    /// @custom:remedy Commit to a number of units within the limits, or to none.
    /// @param units of the commitment
    /// @param least of a commitment
    /// @param most of a commitment
    error UnitsOutOfRange(uint32 units, uint32 least, uint32 most);

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

    /// @notice The work given is not the one that was committed.
    /// @dev The contract keeps a digest; whoever refers to the work shows all of it.
    /// @custom:remedy Take the work from the commitment's event.
    /// @param got digest of the work given
    /// @param wanted digest of the commitment
    error WorkMismatch(bytes32 got, bytes32 wanted);

    /// @notice The word is about other commitments than those on chain.
    /// @dev A reorganization can put another commitment under a bit; nobody vouches for what it never fetched.
    /// @custom:remedy Fetch what is committed now, and speak again.
    /// @param got accumulator that was named
    /// @param wanted accumulator of the group
    error AccumulatorMismatch(bytes32 got, bytes32 wanted);

    /// @notice The word names seats of the group that have no commitment with weight.
    /// @custom:remedy Name seats out of the group's mask.
    /// @param named seats, bit i for the i-th of the group
    /// @param maskable seats that can be named
    error NotMaskable(uint64 named, uint64 maskable);

    /// @notice A position was named that the caller does not hold, or none.
    /// @dev At 64 seats or fewer each seat that committed with weight is one position; above that tickets are drawn.
    /// @custom:remedy Name your own positions of this round and group.
    /// @param position number of the position, from 0; 64 where none was named
    /// @param caller who called
    error NotMyPosition(uint256 position, address caller);

    /// @notice The caller does not hold this position.
    /// @dev Positions are the seats that committed with weight, above 64 seats the tickets drawn, unless their lock is gone.
    /// @custom:remedy Call from the account that holds the seat or ticket, for its own positions.
    /// @param position number of the seat, above 64 seats of the ticket
    /// @param caller who called
    error NotThePosition(uint32 position, address caller);

    /// @notice Which updates count can still change.
    /// @dev A root over updates that do not count in the end would be false.
    /// @custom:remedy Wait until the positions have spoken.
    /// @param round number of the round, from 0
    error MaskOpen(uint64 round);

    /// @notice Fewer than half of the seats committed to the round.
    /// @dev A generation on which so few work is cut: its history would be that of a minority.
    /// @custom:remedy Wait for the restart.
    /// @param round number of the round, from 0
    error TooFewCommitted(uint64 round);

    /// @notice Nobody of the group committed with weight.
    /// @custom:remedy None: there is nothing to merge.
    /// @param round number of the round, from 0
    /// @param group number of the group, from 0
    error NobodyCommitted(uint64 round, uint32 group);

    /// @notice A position spoke already.
    /// @dev One word per position: a second one could follow what others said.
    /// @custom:remedy None: the first word stands.
    /// @param positions that were named, bit by bit
    /// @param spoke positions that have spoken
    error AlreadySpoke(uint64 positions, uint64 spoke);

    /// @notice A game on the commitment, or an accusation of its tenure, is still open.
    /// @dev Lies could hide behind a stalled game if other rounds of the seat were paid meanwhile.
    /// @custom:remedy Settle after the verdict.
    /// @param games open on the commitment
    /// @param accusations open against the tenure
    error StillDisputed(uint256 games, uint256 accusations);

    /// @notice The commitment was settled already.
    /// @custom:remedy None: what was due is booked.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    error AlreadySettled(uint64 round, uint32 seat);

    /// @notice The generation that the work started from is neither final nor cut.
    /// @dev If it is cut, the work is void.
    /// @custom:remedy Settle again once it is one or the other.
    /// @param generation that the work started from
    error ParentOpen(uint64 generation);

    /// @notice A round opened.
    /// @param round number of the round, from 0
    /// @param parent generation that it starts from
    /// @param t0 chain time, in seconds, that its deadlines count from
    /// @param seated seats held
    event RoundBegan(uint64 indexed round, uint64 parent, uint48 t0, uint32 seated);

    /// @notice A tenure committed to its work of a round.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param tenure whose lock stands behind it
    /// @param work what was committed
    /// @param acc accumulator of the group after it
    /// @param late whether it has no weight
    event WorkCommitted(
        uint64 indexed round, uint32 indexed seat, uint32 indexed tenure, Work work, bytes32 acc, bool late
    );

    /// @notice The last second of the round's mask was moved forward.
    /// @param round number of the round, from 0
    /// @param maskAt last second, in chain time, in which a commitment gets weight
    event MaskClosing(uint64 indexed round, uint48 maskAt);

    /// @notice Positions said which updates they hold.
    /// @param round number of the round, from 0
    /// @param group number of the group, from 0
    /// @param positions that spoke, bit by bit
    /// @param held seats whose update they hold, bit i for the group's i-th seat
    event Held(uint64 indexed round, uint32 indexed group, uint64 positions, uint64 held);

    /// @notice X of a claim was built: it can be challenged now.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param kind of the claim
    /// @param x state root that the contract built
    /// @param y state root claimed
    event ClaimPrepared(uint64 indexed round, uint32 indexed seat, ClaimKind kind, bytes32 x, bytes32 y);

    /// @notice A commitment ended.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param status how it ended
    event WorkSettled(uint64 indexed round, uint32 indexed seat, WorkStatus status);

    /// @notice Generations only: opens the next round.
    function openRound(uint64 parent, bytes32 base) external returns (uint64 round);

    /// @notice A tenure's only commitment of the round, until T0 + C + F.
    /// @param seat of the tenure, for which the work was done
    /// @param base state root of the generation that the round starts from
    function commit(uint64 round, uint32 seat, uint32 tenure, bytes32 base, Work calldata work) external;

    /// @notice The caller's positions say which of the group's updates they hold, after the mask closed. Holding none is a
    /// word too.
    /// @param positions of the caller, bit by bit
    /// @param acc the group's accumulator
    /// @param held seats whose update was fetched and hashed, bit i for the group's i-th seat
    function hold(uint64 round, uint32 group, uint64 positions, bytes32 acc, uint64 held) external;

    /// @notice Builds X and Y of a claim from the work that was committed; anybody who wants to challenge it calls this first.
    /// @param kind INTERVAL: the whole work as one interval; UPDATE: its update
    function prepare(ClaimKind kind, uint64 round, uint32 seat, Work calldata work) external;

    /// @notice Payments only: ends a commitment.
    function settle(uint64 round, uint32 seat) external returns (WorkStatus status);

    /// @notice How many rounds were opened; the latest is one less.
    function opened() external view returns (uint64);

    /// @notice No round will open any more.
    function isOver() external view returns (bool);

    function roundOf(uint64 round) external view returns (RoundState memory);

    /// @notice Generation that the round starts from.
    function parentOf(uint64 round) external view returns (uint64);

    /// @notice Groups of which somebody committed with weight.
    function groupsIn(uint64 round) external view returns (uint256);

    /// @notice Seconds that a stage still takes once enough have taken part: g.
    function grace() external view returns (uint48);

    /// @notice Last second to commit: T0 + C + F.
    function commitUntil(uint64 round) external view returns (uint48);

    /// @notice Last second in which a group's partial sum can be opened.
    function partialUntil(uint64 round) external view returns (uint48);

    /// @notice Last second in which the round's generation can have its majority: T_m.
    function mergeUntil(uint64 round) external view returns (uint48);

    /// @notice Chain time after which the mask of the round cannot change; it moves forward only, while commitments come.
    function maskClosedAt(uint64 round) external view returns (uint48);

    /// @notice Randomness of the beacon after the mask's close, which draws the positions of the round's nodes. Reverts with
    /// BeaconNotSubmitted.
    function seedOf(uint64 round) external view returns (bytes32);

    function groupOf(uint64 round, uint32 group) external view returns (GroupState memory);

    /// @notice Last second to say what one holds.
    function holdUntil(uint64 round, uint32 group) external view returns (uint48);

    /// @notice Seats of the group whose update counts, and whether that can still change.
    function countedOf(uint64 round, uint32 group) external view returns (uint64 counted, bool closed);

    /// @notice Seats of the group whose update counts, for good, and the accumulator over all that it committed with weight.
    /// Reverts with MaskOpen before.
    function mergedOf(uint64 round, uint32 group) external view returns (uint64 counted, bytes32 acc);

    /// @notice What a merge of the group's updates is over, for good (SealOver): the round's base, which of them count, and the
    /// accumulator. Reverts with MaskOpen before.
    /// @dev Whoever seals a root computes it from what it computed the root of. A node's answer, which may be of another
    /// history, would bind the root to what it is not over.
    function overOf(uint64 round, uint32 group) external view returns (bytes32);

    /// @notice Whether an account may speak at a node, and for whom: reverts unless it holds all positions named, what is to be
    /// merged there is known for good, and enough was committed.
    /// @param node generation, or partial sum of a group
    /// @param position number of the seat, above 64 seats of the ticket
    /// @param positions that the ticket holds at the node, one bit each; unused at 64 seats or fewer
    /// @return opener tenure or ticket whose lock answers
    /// @return voices that it has
    /// @return all voices of the node
    /// @return weight updates that count there; of no account for a generation above 64 seats
    function speakerOf(uint64 node, uint32 position, uint64 positions, address who)
        external
        view
        returns (uint32 opener, uint256 voices, uint256 all, uint256 weight);

    function workOf(uint64 round, uint32 seat) external view returns (WorkState memory);

    /// @notice The digest that a commitment to this work has.
    function digestOf(uint64 round, uint32 seat, uint32 tenure, Work calldata work) external pure returns (bytes32);

    /// @notice Can the work of a seat still be accused, or challenged by a third party? Until it was audited and its base is final
    /// or cut, or it is settled.
    function isDisputable(uint64 round, uint32 seat) external view returns (bool);

    /// @notice Was the seat there in this round?
    function presenceOf(uint64 round, uint32 seat) external view returns (Presence);

    /// @notice Did fewer than half of the seats commit in time?
    function isUnderHalf(uint64 round) external view returns (bool);

    /// @notice List roots and state root that a seat's work starts from.
    function startOf(uint64 round, uint32 seat)
        external
        view
        returns (bytes32 parameters, bytes32 optimizer, bytes32 scalars, bytes32 state);
}
