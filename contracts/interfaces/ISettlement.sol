// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Status} from "./IRounds.sol";

/// @title Escrow, pay, wages and shares. Prices per unit are fixed by the charter; what is not earned stays in escrow, and nothing slashed reaches it.
interface ISettlement {
    /// @notice Only the run's sponsor pays into the escrow.
    /// @dev What is left of the escrow goes back to the sponsor, so no other account's money may be in it.
    /// @custom:remedy Use the sponsor's key.
    /// @param caller who called
    error NotTheSponsor(address caller);

    /// @notice Only the rounds contract sets money aside for a round.
    /// @dev A reserve that anybody could raise would stop all pay.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotRounds(address caller);

    /// @notice The escrow does not cover what it has to pay or set aside.
    /// @dev A round opens only with its pay in the escrow; a shortage delays pay and never cuts it.
    /// @custom:remedy The sponsor pays into the escrow; then call again: no work is lost.
    /// @param escrow what the escrow holds, in wei
    /// @param needed what it must hold, in wei
    error EscrowShort(uint256 escrow, uint256 needed);

    /// @notice Work or attestations of the round are not settled yet.
    /// @dev What the round did not earn is known only when everything in it is settled.
    /// @custom:remedy Settle these first.
    /// @param round number of the round, from 0
    /// @param commitments commitments left to settle
    /// @param attesters attesters left to settle
    error RoundUnsettled(uint64 round, uint256 commitments, uint256 attesters);

    /// @notice The round is not over.
    /// @custom:remedy Settle it from the time named on.
    /// @param round number of the round, from 0
    /// @param notBefore first second of chain time at which the call goes through
    error RoundNotSettleable(uint64 round, uint256 notBefore);

    /// @notice The round was settled already.
    /// @dev A reserve returns to the escrow once.
    /// @custom:remedy None: its reserve is back in the escrow.
    /// @param round number of the round, from 0
    error AlreadySettled(uint64 round);

    /// @notice The run is not over, or a round of it is not settled.
    /// @dev Until then the escrow still owes pay.
    /// @custom:remedy Settle the rounds that are left, then ask for the refund again.
    /// @param liveRounds rounds that were opened and are not settled
    error RunNotOver(uint256 liveRounds);

    /// @notice The sponsor paid into the escrow.
    /// @param amount in wei
    event Funded(uint256 amount);

    /// @notice Pay and wages of a round that opened were set aside in the escrow.
    /// @param round number of the round, from 0
    /// @param amount in wei
    event Reserved(uint64 indexed round, uint256 amount);

    /// @notice A commitment was settled: pay and shares for final work, nothing for any other.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param solver who committed
    /// @param status how the commitment ended
    /// @param pay in wei
    /// @param shares in wei of shares
    event WorkSettled(
        uint64 indexed round, uint32 indexed seat, address indexed solver, Status status, uint256 pay, uint256 shares
    );

    /// @notice An attester's duties of a round were settled.
    /// @param round number of the round, from 0
    /// @param attester who revealed them
    /// @param duties how many count; none of a convicted attester
    /// @param wages in wei
    /// @param shares in wei of shares
    event DutiesSettled(uint64 indexed round, address indexed attester, uint32 duties, uint256 wages, uint256 shares);

    /// @notice A round is settled; what it did not earn is free in the escrow again.
    /// @param round number of the round, from 0
    /// @param unearned in wei
    event RoundSettled(uint64 indexed round, uint256 unearned);

    /// @notice The sponsor got back what was left of the escrow.
    /// @param amount in wei
    event Refunded(uint256 amount);

    /// @notice The sponsor adds to the escrow from its free balance.
    function fund(uint256 amount) external;

    /// @notice Rounds only: sets aside what a round can cost; reverts if the escrow cannot cover it.
    function onRoundOpened(uint64 round, uint256 seats) external;

    /// @notice Ends a commitment once its status is known; pays and credits final work. Anyone may call.
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
