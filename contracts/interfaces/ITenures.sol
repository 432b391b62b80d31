// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice One holder's time in one seat.
struct Tenure {
    address holder;
    uint16 seat;
    uint32 from; // first round
    uint32 until; // first round no longer; type(uint32).max while it lasts
    bool feeGone; // lost to an eviction
    bool released;
    uint32 unsettled; // commitments and openings that its lock stands behind
    uint32 games; // open
    uint32 accusations; // recorded, and not yet judged
    uint32 suspensions; // open games of accusations
    uint48 convictedAt; // 0: never
    uint32 last; // last round it committed to, plus one; 0: none
}

/// @title ITenures: seats, who holds them, and the one lock behind all work of a holder
interface ITenures {
    /// @notice All seats are held.
    /// @custom:remedy Join when a holder leaves or is evicted.
    /// @param seats of the run
    error NoSeatFree(uint256 seats);

    /// @notice The run could not audit, or not pay, a round with one seat more.
    /// @dev No round opens while more seats are held than tickets answer for and the escrow pays: seats that nobody works in would shut
    /// the gate on all others.
    /// @custom:remedy Join once more tickets count, or more is funded.
    /// @param seated seats that the next round would have
    error NoRoomForSeat(uint256 seated);

    /// @notice The run opens no more rounds.
    /// @custom:remedy None: the run is over.
    error NoRoundsLeft();

    /// @notice There is no such tenure.
    /// @dev Tenures count from 1.
    /// @custom:remedy Check the number.
    /// @param tenure number of the tenure
    error TenureNotFound(uint32 tenure);

    /// @notice The tenure belongs to another account.
    /// @dev Whoever could leave or commit for another would cost it its seat.
    /// @custom:remedy Call from the account that joined.
    /// @param tenure number of the tenure
    /// @param holder whose tenure it is
    /// @param caller who called
    error NotTheHolder(uint32 tenure, address holder, address caller);

    /// @notice The tenure does not last in this round.
    /// @dev A seat counts from the next T0 on, and until the round in which its holder left.
    /// @custom:remedy Commit to rounds within the tenure.
    /// @param tenure number of the tenure
    /// @param round number of the round, from 0
    /// @param from first round of the tenure
    /// @param until first round that is no longer of it
    error NotInTenure(uint32 tenure, uint64 round, uint64 from, uint64 until);

    /// @notice The tenure is over.
    /// @custom:remedy None: what is left is to release its lock.
    /// @param tenure number of the tenure
    error TenureOver(uint32 tenure);

    /// @notice The tenure still lasts, or its last round is not over; or it held its seat and never committed, and `longestDispute`
    /// is not over since the last second to commit to its last round.
    /// @dev Whether the fee is lost hangs on the last round. Seats that are taken for one round each, and never worked in, leave
    /// fewer than half that commit, and cut what others merged: their locks must not do it again at once.
    /// @custom:remedy Leave first, then wait until nothing of the last round can change; without a commitment as long as a game
    /// can last.
    /// @param tenure number of the tenure
    error TenureLasts(uint32 tenure);

    /// @notice Work, games or accusations still hang on the tenure.
    /// @dev A lock that left before them would answer for nothing.
    /// @custom:remedy Settle and wait for verdicts.
    /// @param unsettled commitments and openings
    /// @param games open
    /// @param accusations not yet judged
    error TenureObliged(uint256 unsettled, uint256 games, uint256 accusations);

    /// @notice The lock was released already.
    /// @custom:remedy None.
    /// @param tenure number of the tenure
    error AlreadyReleased(uint32 tenure);

    /// @notice The seat was not absent often enough to be taken away.
    /// @dev Two rounds without a commitment in a row, but the first of those in which fewer than half of the seats
    /// committed; or three rounds in a row in whatever way. The newest round that is over counts, and no later commitment.
    /// @custom:remedy Wait for a further absence.
    /// @param tenure number of the tenure
    /// @param round newest round named
    error NotEvictable(uint32 tenure, uint64 round);

    /// @notice The run was cancelled or wound down: nobody is evicted any more.
    /// @dev No round opens after that, so that an absence keeps no seat from anybody.
    /// @custom:remedy None: take back what is staked.
    error RunStopped();

    /// @notice Only the run's own contracts count what hangs on a tenure.
    /// @dev A stranger that could would convict or free whom it liked.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotAPeer(address caller);

    /// @notice An account took a seat, from the next T0 on.
    /// @param tenure its number
    /// @param holder who joined
    /// @param seat number of the seat, from 0
    /// @param from first round
    event TenureBegan(uint32 indexed tenure, address indexed holder, uint32 seat, uint64 from);

    /// @notice A tenure ends.
    /// @param tenure its number
    /// @param until first round that is no longer of it
    /// @param convicted whether its lock is lost
    event TenureEnded(uint32 indexed tenure, uint64 until, bool convicted);

    /// @notice A seat was taken from a holder that stayed away: half of the fee burned.
    /// @param tenure its number
    /// @param by who called, and got the other half
    event Evicted(uint32 indexed tenure, address indexed by);

    /// @notice What was left of a tenure's lock is free.
    /// @param tenure its number
    /// @param feeLost whether the fee burned: it stayed away in its last round, or in all of them
    event TenureReleased(uint32 indexed tenure, bool feeLost);

    /// @notice Takes a free seat from the next T0 on, if the run carries one more; locks S and the fee.
    function join() external returns (uint32 tenure);

    /// @notice Ends the caller's tenure with the round under way; to stay away in that round costs the fee. Who never committed
    /// to a round it held loses it even in the first round of an outage, and waits for its lock.
    function leave(uint32 tenure) external;

    /// @notice Ends the tenure of a holder that stayed away. Anybody may call, while the run is not stopped.
    /// @param round newest round that is over
    function evict(uint32 tenure, uint64 round) external;

    /// @notice Gives back the lock of a tenure that is over, once nothing hangs on it; of one that held its seat and never
    /// committed not before `longestDispute` is over since the last second to commit to its last round. Anybody may call.
    function release(uint32 tenure) external;

    /// @notice Commitments only: the holder commits to a round.
    /// @return seat of the tenure
    /// @return weighs false while a game of an accusation is open
    function charge(uint32 tenure, uint64 round, address who) external returns (uint32 seat, bool weighs);

    /// @notice Generations only: one more opening hangs on the tenure.
    function oblige(uint32 tenure) external;

    /// @notice Commitments and Generations only: one thing fewer hangs on the tenure.
    function acquit(uint32 tenure) external;

    /// @notice Commitments and Generations only: a game was opened on a claim of the tenure.
    function onGameOpened(uint32 tenure) external;

    /// @notice Commitments and Generations only: a game ended. Returns whether it is the first conviction.
    function onGameClosed(uint32 tenure, bool convicted) external returns (bool first);

    /// @notice Attestations only: an accusation is recorded. Nothing of the tenure settles before it is judged.
    function accuse(uint32 tenure) external;

    /// @notice Attestations only: an accusation was judged, or lapsed.
    function unaccuse(uint32 tenure) external;

    /// @notice Attestations only: the game of an accusation is open; the tenure's next commitments have no weight. A holder that
    /// wants its weight back leaves and joins again, with another lock.
    function suspend(uint32 tenure) external;

    /// @notice Attestations only: such a game ended.
    function resume(uint32 tenure) external;

    /// @notice How many tenures there were; the latest has this number.
    function tenures() external view returns (uint32);

    function tenureOf(uint32 tenure) external view returns (Tenure memory);
    function holderOf(uint32 tenure) external view returns (address);
    function isConvicted(uint32 tenure) external view returns (bool);

    /// @notice Does a lock stand behind what it says: it was neither lost nor taken back?
    function canAnswer(uint32 tenure) external view returns (bool);

    /// @notice Tenures that an account has and that last.
    function tenuresOf(address holder) external view returns (uint256);

    /// @notice Seats held in a round; of the next round, as things stand.
    function seatedAt(uint64 round) external view returns (uint256);

    /// @notice The name of a tenure's lock S in the vault.
    function lockOf(uint32 tenure) external pure returns (bytes32 id);

    /// @notice S, in wei.
    function seatLock() external view returns (uint256);
}
