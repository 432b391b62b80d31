// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Answer, Duty, DutyKind, Epoch, Result} from "./AuditTypes.sol";
import {ICalls} from "./ICalls.sol";

/// @title Duties: epochs of audits, what tickets are drawn for, what they found, what they missed
/// @notice A ticket on call opens one secret with all its results. Whether a duty was its own follows from that secret, so a duty missed is proven by
/// anybody without a list. What the results say and whom they accuse is kept by IAttestations.
/// @dev Chain times are in seconds. Draw: K("assay.draw", secret, seed, target, ticket, kind); witness key: the same under "assay.witness".
interface IDuties is ICalls {
    /// @notice The terms of audits are out of their bounds.
    /// @dev Without capacity, rates, wage or time nobody would audit; a ticket must season through two epochs, or a chain is chosen for a known seed.
    /// @custom:remedy Name a capacity of 1 to 16, rates above zero, and a length of at most half of the tickets' seasoning.
    error BadDutyTerms();

    /// @notice The run was cancelled or wound down: nothing is audited, and nobody fined, any more.
    /// @dev No game opens after that, so that nothing could be tried either.
    /// @custom:remedy None: take back what is staked.
    error RunStopped();

    /// @notice The epoch has its seed.
    /// @custom:remedy None: open your secret.
    /// @param epoch number of the epoch, from 0
    error EpochSeeded(uint24 epoch);

    /// @notice The epoch has no seed yet.
    /// @dev Without one nobody is called.
    /// @custom:remedy Submit the beacon's round and call `seedEpoch`.
    /// @param epoch number of the epoch, from 0
    error EpochNotSeeded(uint24 epoch);

    /// @notice The call was answered under another seed than the epoch's.
    /// @dev After a reorganization an answer could be mined again under a seed by which its accumulators are false.
    /// @custom:remedy Answer again by the seed that stands; the agents do so themselves.
    /// @param got the seed that was answered
    /// @param wanted the epoch's seed
    error SeedMismatch(bytes32 got, bytes32 wanted);

    /// @notice It is not time yet.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice The time to open is over.
    /// @custom:remedy Show the secret, at the latest until the next epoch closes.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error TooLate(uint256 now_, uint256 deadline);

    /// @notice The epoch is not closed yet.
    /// @dev Until then a ticket may still open.
    /// @custom:remedy Wait until it is closed.
    /// @param epoch number of the epoch, from 0
    error EpochOpen(uint24 epoch);

    /// @notice The epoch closed without fines.
    /// @dev Fewer than half of the tickets on call opened: that may be the network's fault.
    /// @custom:remedy None.
    /// @param epoch number of the epoch, from 0
    error EpochWithoutFines(uint24 epoch);

    /// @notice The epoch does not call this ticket.
    /// @dev It calls another shift, or the ticket did not count when the epoch began.
    /// @custom:remedy Wait for the ticket's next call.
    /// @param ticket id of the ticket
    /// @param epoch number of the epoch, from 0
    error NotCalled(uint32 ticket, uint24 epoch);

    /// @notice More results than a ticket may answer at a call.
    /// @custom:remedy Answer the lowest draws.
    /// @param count of results
    /// @param most that are answered
    error TooManyResults(uint256 count, uint256 most);

    /// @notice There is no such duty in the epoch.
    /// @dev There is no commitment or attestation, it belongs to another epoch, it is the ticket's own, nobody missed it, or the run's duties are over.
    /// @custom:remedy Check what the duty names.
    /// @param kind of the duty
    /// @param epoch number of the epoch, from 0
    error NotADuty(DutyKind kind, uint24 epoch);

    /// @notice The ticket is not drawn for the duty.
    /// @dev Who may answer for other duties answers where it likes.
    /// @custom:remedy Answer for duties drawn by the call's secret.
    /// @param target what is audited
    /// @param ticket id of the ticket
    error NotDrawn(bytes32 target, uint32 ticket);

    /// @notice Results are not in the order of their draws.
    /// @dev Ascending draws show the highest one answered, and no duty twice.
    /// @custom:remedy Sort results by rank.
    /// @param rank of the result
    /// @param before rank of the one before it
    error NotAscending(uint256 rank, uint256 before);

    /// @notice The duty was answered.
    /// @custom:remedy None: there is nothing to fine.
    /// @param attestation id of the answer
    error DutyAnswered(bytes32 attestation);

    /// @notice The duty is beyond what the ticket had to answer.
    /// @dev It answered or named as many as it must, and this one's draw is higher than all of them.
    /// @custom:remedy None: there is nothing to fine.
    /// @param rank of the duty
    /// @param topRank of the highest draw answered or named
    error DutyBeyondCapacity(uint256 rank, uint256 topRank);

    /// @notice The base of the round is not final.
    /// @dev Nobody replays from a base that may be hidden or cut; nobody is fined before that is known.
    /// @custom:remedy Prove it once the base is final.
    /// @param round number of the round, from 0
    error BaseNotFinal(uint64 round);

    /// @notice The fine was taken.
    /// @custom:remedy None.
    /// @param id of the miss or absence
    error AlreadyFined(bytes32 id);

    /// @notice The ticket opened in time.
    /// @custom:remedy None: there is nothing to fine.
    /// @param ticket id of the ticket
    /// @param epoch number of the epoch, from 0
    error CallAnswered(uint32 ticket, uint24 epoch);

    /// @notice The secret of the call is not shown there.
    /// @custom:remedy Name the epoch in which the ticket showed it: of the call itself, or of the next one that it opened.
    /// @param ticket id of the ticket
    /// @param epoch number of the call's epoch
    /// @param via epoch named
    error SecretNotShown(uint32 ticket, uint24 epoch, uint24 via);

    /// @notice The secret of the call is shown.
    /// @custom:remedy None: the ticket keeps its stake.
    /// @param ticket id of the ticket
    /// @param epoch number of the call's epoch
    error SecretKnown(uint32 ticket, uint24 epoch);

    /// @notice An epoch began to call.
    /// @param epoch number of the epoch, from 0
    /// @param seed its randomness
    /// @param shift that is called
    /// @param onCall tickets of it
    /// @param deadline last second to open
    event EpochBegan(uint24 indexed epoch, bytes32 seed, uint32 shift, uint32 onCall, uint48 deadline);

    /// @notice Too few opened: the same call waits once more.
    /// @param epoch number of the epoch, from 0
    /// @param deadline last second to open
    event EpochRepeated(uint24 indexed epoch, uint48 deadline);

    /// @notice No round opens any more, and an epoch began after the last commitment: the last duties are known.
    /// @param last epoch in which duties are drawn; the next one calls without any, later ones call nobody
    event DutiesEnd(uint24 last);

    /// @notice An epoch closed and the next began.
    /// @param epoch number of the epoch that closed
    /// @param fines whether its absences and misses are fined
    event EpochClosed(uint24 indexed epoch, bool fines);

    /// @notice A ticket named a duty that it leaves out of its answer, without a result: a miss that counts among its `capacity` duties.
    /// @param epoch number of the epoch
    /// @param ticket its id
    /// @param kind of the duty
    /// @param target what it would audit
    event DutyLeftOut(uint24 indexed epoch, uint32 indexed ticket, DutyKind kind, bytes32 target);

    /// @notice A miss or absence was proven.
    /// @param epoch number of the epoch
    /// @param ticket its id
    /// @param id of the miss or absence
    /// @param fine taken, in wei
    event DutyFined(uint24 indexed epoch, uint32 indexed ticket, bytes32 id, uint256 fine);

    // ------------------------------------------------------------------------------------------------ epochs

    /// @notice Takes the newest epoch's seed from the beacon and calls a shift: that of the ticket at one position that the seed draws.
    function seedEpoch() external;

    /// @notice After the deadline: closes the newest epoch, or repeats it where too few opened, at most twice.
    function closeEpoch() external;

    // ------------------------------------------------------------------------------------------------ tickets

    /// @notice Answers a call of the newest epoch, by its seed: the secret, and results in the order of their draws. One without accumulators
    /// names a duty that is left out.
    function open(uint32 ticket, bytes32 seed, bytes32 secret, Result[] calldata results) external;

    /// @notice Shows the secret of a call that a ticket did not answer, after the epoch closed.
    function show(uint32 ticket, uint24 epoch, bytes32 secret) external;

    // ------------------------------------------------------------------------------------------------ anybody

    /// @notice Fines a ticket 3 w for a duty that it was drawn for and did not answer; half goes to the caller.
    /// @param via the epoch whose secret shows the call's
    function miss(uint32 ticket, uint24 epoch, uint24 via, Duty calldata duty) external;

    /// @notice Fines a ticket that did not open 3 w (1 + c / 2); half goes to the caller.
    function absent(uint32 ticket, uint24 epoch) external;

    /// @notice Burns the stake of a ticket whose secret is not shown when a later epoch with fines has closed too.
    /// @param later the later epoch
    function forfeit(uint32 ticket, uint24 epoch, uint24 later) external;

    // ------------------------------------------------------------------------------------------------ views

    function epochOf(uint24 epoch) external view returns (Epoch memory);

    function answerOf(uint24 epoch, uint32 ticket) external view returns (Answer memory);

    /// @notice The last epoch in which duties are drawn; 0 until it is known.
    function lastEpoch() external view returns (uint24);

    /// @notice Can nothing about the round's work be drawn any more?
    /// @param epoch the round's own: the first that began after its last commitment
    function isAudited(uint64 round, uint24 epoch) external view returns (bool);

    /// @notice The secret of a call, as the secret of `via` shows it.
    function secretOf(uint32 ticket, uint24 epoch, uint24 via) external view returns (bytes32);
}
