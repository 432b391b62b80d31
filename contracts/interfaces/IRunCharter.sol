// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {DutyTerms} from "./AuditTypes.sol";
import {ClaimKind, IClaims} from "./IClaims.sol";
import {RunModules, RoundTerms, TicketTerms} from "./IRoundTerms.sol";
import {Admitted, RunTerms} from "./RunTypes.sol";

/// @title The charter of a run: its terms, checked by the constructor, and the addresses of its contracts. Nothing in it can change.
/// @notice Its address names the run: it is `contract` in claim ids. Every other contract is built with it alone, and reads its part of the terms here.
interface IRunCharter {
    /// @notice The charter names no price of a unit, or no units.
    /// @dev Every lock of the run is a multiple of the pay of a commitment, in a run that pays in shares alone too.
    /// @custom:remedy Name a price and a number of units above zero.
    error ReferencePriceZero();

    /// @notice A term of the charter is zero that must not be.
    /// @dev Without it nothing would be at stake, drawn or trained.
    /// @custom:remedy Name a value above zero.
    /// @param what the term's name in ASCII, zeros after it
    error ValueZero(bytes32 what);

    /// @notice A window or clock of the charter is too short for people to act.
    /// @dev A machine that is busy, or a transaction that the chain keeps out for its inclusion delay, must not cost an
    /// honest stake.
    /// @custom:remedy Lengthen it to the minimum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param length in seconds
    /// @param minimum in seconds
    error WindowTooShort(bytes32 what, uint256 length, uint256 minimum);

    /// @notice The charter's lock of a seat does not deter false work.
    /// @dev At the rate at which honest auditors replay, a lie must cost more than the pay that it saves working for.
    /// @custom:remedy Raise the lock to the minimum.
    /// @param claimLock in wei
    /// @param minimum in wei
    error ClaimLockTooSmall(uint256 claimLock, uint256 minimum);

    /// @notice The charter's stake of a ticket does not deter a false attestation.
    /// @dev An auditor that attests without replaying, or for a bribe, must lose more than it gains.
    /// @custom:remedy Raise the stake to the minimum.
    /// @param bond in wei
    /// @param minimum in wei
    error BondTooSmall(uint256 bond, uint256 minimum);

    /// @notice The seat fee is above the pay of a round.
    /// @dev The fee is for staying away; no more than a round's pay may be lost by it.
    /// @custom:remedy Lower the fee to the maximum.
    /// @param fee in wei
    /// @param maximum in wei
    error SeatFeeTooHigh(uint256 fee, uint256 maximum);

    /// @notice An amount of the charter is too large.
    /// @dev Sums and products of it could overflow and stop all pay, or a challenge would cost more than a ticket
    /// stakes.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param amount in wei
    /// @param maximum in wei
    error AmountTooLarge(bytes32 what, uint256 amount, uint256 maximum);

    /// @notice A rate of the charter is above its maximum.
    /// @dev Beyond it wages could not be set aside, or nothing of a lock would burn.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param ppm in parts per million
    /// @param maximum in parts per million
    error RateTooHigh(bytes32 what, uint256 ppm, uint256 maximum);

    /// @notice The charter's quorum is too small a part of the vested shares.
    /// @dev Few owners would decide while the others do not look.
    /// @custom:remedy Raise it to the minimum, or name no governance.
    /// @param ppm in parts per million
    /// @param minimum in parts per million
    error QuorumTooLow(uint256 ppm, uint256 minimum);

    /// @notice The data has fewer shards than the run has seats.
    /// @dev Two seats would train on the same data and do the same work.
    /// @custom:remedy Cut the data into at least as many shards as seats.
    /// @param shards shards of the data
    /// @param seats seats of the run
    error ShardsFewerThanSeats(uint256 shards, uint256 seats);

    /// @notice A window, clock or number of the charter is too large.
    /// @dev Times and counters could wrap, or honest money would wait without need.
    /// @custom:remedy Lower it to the maximum.
    /// @param what the term's name in ASCII, zeros after it
    /// @param value in seconds where it is a time, else a number
    /// @param maximum in the same unit
    error ScheduleTooLong(bytes32 what, uint256 value, uint256 maximum);

    /// @notice The charter's challenge bond does not pay for a defender's gas at the fee cap.
    /// @dev Every reply is paid from the bond; else false challenges would wear honest solvers down.
    /// @custom:remedy Raise the stake to the minimum.
    /// @param bond in wei
    /// @param minimum in wei
    error ChallengeBondTooSmall(uint256 bond, uint256 minimum);

    /// @notice With these terms gas at the fee cap costs a challenger more than its bounty.
    /// @dev A lie that is more expensive to challenge than to leave alone would stand.
    /// @custom:remedy Raise claim lock, price or bounty share.
    /// @param bounty least bounty that a winner keeps, in wei
    /// @param minimum gas of a whole game at the cap, in wei
    error BountyTooSmall(uint256 bounty, uint256 minimum);

    /// @notice A number of the charter is infinite or not a number.
    /// @dev A NaN has many bit patterns, of which tensors know one: no step would end in this start.
    /// @custom:remedy Name a finite learning rate.
    /// @param what the term's name in ASCII, zeros after it
    /// @param bits the binary32
    error NotFinite(bytes32 what, uint32 bits);

    /// @notice Header and tree of a program do not hash to its root.
    /// @dev Games are played on header and tree, and claims name the root.
    /// @custom:remedy Capture the program again.
    /// @param root program root that the charter names
    /// @param computed hash of header and tree
    error ProgramMismatch(bytes32 root, bytes32 computed);

    /// @notice The charter lists too many revenue tokens.
    /// @dev Every transfer of shares books them all, and must stay cheap.
    /// @custom:remedy Name no more than the maximum.
    /// @param count tokens listed
    /// @param maximum most tokens of a run
    error TooManyRevenueTokens(uint256 count, uint256 maximum);

    /// @notice The run has no such program.
    /// @custom:remedy Use one of the programs that `assay run show` lists.
    /// @param root program root asked for
    error ProgramNotFound(bytes32 root);

    /// @notice No contract of the run keeps claims of this kind.
    /// @custom:remedy Name the claim's kind correctly.
    /// @param kind of the claim
    error BookNotFound(ClaimKind kind);

    /// @notice With so many duties open at once a ticket is cheaper to bribe than to lose, whatever it stakes.
    /// @dev A bribed re-auditor saves the first liar's stake too, so the prize grows with B as fast as the risk.
    /// @custom:remedy Lower the capacity, or raise the re-audit rate.
    /// @param openDuties of a ticket: three epochs' capacity
    error NoStakeSuffices(uint256 openDuties);

    /// @notice The charter lets rounds open with too few tickets.
    /// @dev After two bribes of three auditors nobody is left who looks, and of four one.
    /// @custom:remedy Ask for the minimum at least.
    /// @param tickets of the terms
    /// @param minimum least number
    error TooFewTickets(uint256 tickets, uint256 minimum);

    /// @notice The identity of the run: keccak256(abi.encode(terms)).
    function run() external view returns (bytes32);

    function runTerms() external view returns (RunTerms memory);

    /// @notice The terms of tenures, commitments and generations.
    function roundTerms() external view returns (RoundTerms memory);

    /// @notice The terms of epochs and duties.
    function dutyTerms() external view returns (DutyTerms memory);

    /// @notice The terms of tickets.
    function ticketTerms() external view returns (TicketTerms memory);

    /// @notice The contracts of the run.
    function roundModules() external view returns (RunModules memory);

    /// @notice The contracts that move locks of the vault; at most eight.
    function lockers() external view returns (address[] memory);

    /// @notice The programs that games are played on.
    function programs() external view returns (Admitted[] memory);

    /// @notice Header and descriptor tree of one of the run's programs.
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree);

    /// @notice The book in which claims of a kind stand.
    function bookOf(ClaimKind kind) external view returns (IClaims);
}
