// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Fate} from "./IRounds.sol";

/// @title Escrow, pay, wages and shares. Prices per unit are fixed by the charter; what is not earned stays in escrow, and nothing slashed reaches it.
interface ISettlement {
    error NotTheSponsor(address caller);
    error NotRounds(address caller);
    error EscrowShort(uint256 escrow, uint256 needed);
    error RoundUnsettled(uint64 round, uint256 commitments, uint256 attesters);
    error RoundNotSettleable(uint64 round, uint256 notBefore);
    error AlreadySettled(uint64 round);
    error RunNotOver(uint256 liveRounds);

    event Funded(uint256 amount);
    event Reserved(uint64 indexed round, uint256 amount);
    event WorkSettled(
        uint64 indexed round, uint32 indexed seat, address indexed solver, Fate fate, uint256 pay, uint256 shares
    );
    event DutiesSettled(uint64 indexed round, address indexed attester, uint32 duties, uint256 wages, uint256 shares);
    event RoundSettled(uint64 indexed round, uint256 unearned);
    event Refunded(uint256 amount);

    /// @notice The sponsor adds to the escrow from its free balance.
    function fund(uint256 amount) external;

    /// @notice Rounds only: sets aside what a round can cost; reverts if the escrow cannot cover it.
    function onRoundOpened(uint64 round, uint256 seats) external;

    /// @notice Ends a commitment once its fate is known; pays and credits final work. Anyone may call.
    function settleWork(uint64 round, uint32 seat) external;

    /// @notice Pays and credits an attester's duties of a round once they are beyond challenge. Anyone may call.
    function settleDuties(uint64 round, address attester) external;

    /// @notice Returns a round's unearned reserve to the escrow once everything in it is settled. Anyone may call.
    function settleRound(uint64 round) external;

    /// @notice Returns the escrow to the sponsor, once the run is over and every round settled.
    function refund() external;

    function escrow() external view returns (uint256);
    function reservedTotal() external view returns (uint256);
    function reservedOf(uint64 round) external view returns (uint256);

    /// @notice When shares credited for a round vest: T7 + max(20 scheduled rounds, window + longest dispute).
    function vestsAt(uint64 round) external view returns (uint64);
}
