// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRoundGate} from "./IRoundTerms.sol";

/// @notice How far a run is.
enum RunPhase {
    FUNDING, // nothing is opened yet
    RUNNING,
    CANCELLED, // by the sponsor, before it opened
    WOUND_DOWN, // it stood still for too long
    OVER // every round and finding is settled
}

/// @title Escrow: what a run pays from, when it opens, and what becomes of the rest
/// @notice Anybody funds. A round opens only against a reserve of all that it can cost. Money is spent in the order in which it came: first what was
/// there at the launch, which is one pool, then each later payment. What is left at the end, however the run ends, goes back to who paid it in.
interface IEscrow is IRoundGate {
    /// @notice The run is at another point.
    /// @custom:remedy Look up the run's phase.
    /// @param phase that it is in
    error WrongPhase(RunPhase phase);

    /// @notice Only the run's sponsor cancels it before its expiry.
    /// @dev Who could cancel another's run would stop it before it begins.
    /// @custom:remedy Use the sponsor's key, or wait for the launch or the expiry.
    /// @param caller who called
    error NotTheSponsor(address caller);

    /// @notice Only the sponsor opens the run before its time, and nobody before its audits begin.
    /// @dev Auditors and solvers need time to come; who opens alone would train, audit and be paid alone.
    /// @custom:remedy Wait until the time named.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the caller may open the run
    error LaunchTooEarly(uint256 now_, uint256 notBefore);

    /// @notice Too few tickets count, or too few seats are held, for a launch without the sponsor.
    /// @custom:remedy Wait until more have come.
    /// @param tickets that count
    /// @param leastTickets of the charter
    /// @param seats that are held
    /// @param leastSeats of the charter
    error TooFewToLaunch(uint256 tickets, uint256 leastTickets, uint256 seats, uint256 leastSeats);

    /// @notice What tickets and seats stake is worth less than the escrow.
    /// @dev Least numbers alone are bought for their stakes, which come back, and the escrow is gone.
    /// @custom:remedy Stake more tickets or seats, or leave the launch to the sponsor.
    /// @param staked in wei
    /// @param escrow in wei
    error StakesBelowEscrow(uint256 staked, uint256 escrow);

    /// @notice The run is not over, its duties are not, or a round or finding of it is not settled.
    /// @dev Until then the escrow still owes pay.
    /// @custom:remedy Close the epochs of its last duties, then settle the rounds and findings that are left.
    /// @param liveRounds rounds that were opened and are not settled
    /// @param findings that were made and are not settled
    error RunNotOver(uint256 liveRounds, uint256 findings);

    /// @notice The run goes on: a generation became final, an epoch closed, or a round opened after a halt, not long ago.
    /// @dev A wind-down voids what is not settled; nobody may force it on a run that moves. Once no round opens and the last generation is final only
    /// epochs count, until every dispute must be over.
    /// @custom:remedy Try again from the time named on, if it still stands then.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through, if nothing moves until then
    error RunMoves(uint256 now_, uint256 notBefore);

    /// @notice Nothing is left for this account.
    /// @custom:remedy None: it funded nothing, or has been paid back.
    /// @param funder the account
    error NothingToRefund(address funder);

    /// @notice Only the contract of payments pays from the escrow.
    /// @dev Whoever could pay would empty it.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotPayments(address caller);

    /// @notice Only the contract of generations sets money aside for a round.
    /// @dev A reserve that anybody could raise would stop all rounds.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotGenerations(address caller);

    /// @notice The escrow does not cover a payment beside what is set aside for rounds.
    /// @dev A shortage delays pay. It cuts wages alone, beyond what rounds had reserved for them, when the run's last round is settled.
    /// @custom:remedy Fund the run, or wait until a round is settled; then call again: no work is lost.
    /// @param escrow what the escrow holds, in wei
    /// @param needed what it must hold, in wei
    error EscrowShort(uint256 escrow, uint256 needed);

    /// @notice Somebody funded the run.
    /// @param funder who paid in
    /// @param amount in wei
    event Funded(address indexed funder, uint256 amount);

    /// @notice The run came to its next point.
    /// @param phase that it is in now
    /// @param by who called
    event PhaseChanged(RunPhase phase, address indexed by);

    /// @notice Everything that a round can cost was set aside.
    /// @param round number of the round, from 0
    /// @param amount in wei
    /// @param wages what of it is for findings alone, in wei
    event Reserved(uint64 indexed round, uint256 amount, uint256 wages);

    /// @notice What a round did not earn is free again.
    /// @param round number of the round, from 0
    /// @param unearned in wei
    event Freed(uint64 indexed round, uint256 unearned);

    /// @notice A funder got what was left of its newest payment.
    /// @param funder the account
    /// @param funded what it had paid in, in wei
    /// @param amount what it got of it, in wei
    event Refunded(address indexed funder, uint256 funded, uint256 amount);

    /// @notice Adds to the escrow from the caller's free balance, before the run is over.
    function fund(uint256 amount) external;

    /// @notice Opens round 0: by the sponsor, or by anybody once the charter's time has come and enough is staked.
    function launch() external;

    /// @notice Before the launch, by the sponsor, after the run's expiry by anybody: stakes are free, and funders get everything back.
    function cancel() external;

    /// @notice Ends a run that has had no final generation, or closed no epoch, for longer than the charter's stall. A round that opened within it has the
    /// stall once more. What is not settled is void. A run that is over can be wound down too, so that stakes come back which only epochs could free.
    function windDown() external;

    /// @notice Ends a run that opens no more rounds and has settled all. Anybody may call.
    function finish() external;

    /// @notice Pays a funder what was left when the run ended of its newest payment that has not been called back. Anybody may call.
    /// @dev What one paid in before the launch is one payment; who paid later more than once calls as often.
    function refund(address funder) external;

    /// @notice Payments only: pays from what a round has reserved for wages, or for work and openings, beyond it from what no round has reserved. Once no
    /// round is left to settle, and no duty can be drawn, it pays what is there.
    /// @param isWage whether it is the wage of a finding
    /// @return paid in wei
    function pay(uint64 round, address to, uint256 amount, bool isWage) external returns (uint256 paid);

    /// @notice Payments only: a round is settled.
    function free(uint64 round) external;

    function phase() external view returns (RunPhase);

    function balance() external view returns (uint256);
    function reservedTotal() external view returns (uint256);
    function reservedOf(uint64 round) external view returns (uint256);
    function fundedOf(address funder) external view returns (uint256);

    /// @notice U, as many rounds of pay as B outweighs: a round opens once what so many before it earned is due.
    function mostUnsettled() external view returns (uint256);

    /// @notice What a round pays for work that is worth an amount at the charter's price, in wei, rounded down.
    function workPayOf(uint64 round, uint256 amount) external view returns (uint256);

    /// @notice What a round of so many seats sets aside if it opens now, in wei.
    function costOf(uint256 seated) external view returns (uint256);
}
