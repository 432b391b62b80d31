// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {WorkStatus} from "./ICommitments.sol";

/// @title Payments: work, findings and openings of final roots, each paid once nothing can refute it
interface IPayments {
    /// @notice The run was cancelled or wound down: nothing is paid any more.
    /// @custom:remedy None: release what is staked.
    error RunStopped();

    /// @notice The work can still be audited.
    /// @dev A duty that was missed is drawn again two epochs after its own; work that was paid before would be paid unseen.
    /// @custom:remedy Name the round's epoch, and wait until all that follows from it is over.
    /// @param round number of the round, from 0
    /// @param epoch that was named
    error NotAudited(uint64 round, uint24 epoch);

    /// @notice There is no such finding.
    /// @custom:remedy Check the attestation's id.
    /// @param attestation its id
    error FindingNotFound(bytes32 attestation);

    /// @notice The finding can still be disputed, or its ticket is accused.
    /// @dev An auditor that is accused goes on lying for nothing while its wages are paid.
    /// @custom:remedy Wait until its window and all accusations of its ticket are over.
    /// @param attestation its id
    error FindingOpen(bytes32 attestation);

    /// @notice The opening is not closed, its generation is not final, or its tenure or ticket is accused; above 64 seats also while others may open.
    /// @custom:remedy Close the opening, and wait for verdicts.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    error OpeningOpen(uint64 node, bytes32 party);

    /// @notice The opening earns nothing: it is of another root, or a backer's.
    /// @dev Backers of a root are as many as like to be; what they earn is that the root stands.
    /// @custom:remedy None.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    error NotPayable(uint64 node, bytes32 party);

    /// @notice This was settled already.
    /// @custom:remedy None: it is paid once.
    /// @param id of what was settled
    error AlreadySettled(bytes32 id);

    /// @notice Work, openings or findings of the round can still be paid.
    /// @dev A reserve that is freed before them would leave them unpaid.
    /// @custom:remedy Settle them, and wait until five more epochs are over.
    /// @param round number of the round, from 0
    error RoundUnsettled(uint64 round);

    /// @notice A commitment was settled: pay and shares for final work, nothing for any other.
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param tenure whose work it is
    /// @param status how the commitment ended
    /// @param pay in wei
    /// @param shares in wei of shares
    event WorkPaid(
        uint64 indexed round, uint32 indexed seat, uint32 indexed tenure, WorkStatus status, uint256 pay, uint256 shares
    );

    /// @notice A finding was settled.
    /// @param attestation its id
    /// @param ticket whose finding it is
    /// @param pay in wei; zero where the ticket was convicted, or the base of the work was cut; less than the wage where the run ends with less
    /// @param shares in wei of shares
    event FindingPaid(bytes32 indexed attestation, uint32 indexed ticket, uint256 pay, uint256 shares);

    /// @notice An opening of a final root was settled.
    /// @param node generation, or partial sum of a group
    /// @param party name of the opening
    /// @param pay in wei; zero where its claim fell
    event OpeningPaid(uint64 indexed node, bytes32 indexed party, uint256 pay);

    /// @notice Ends a commitment; pays and credits final work. Anybody may call.
    /// @param epoch the first that began after the round took its last commitment; not asked for where nothing is paid
    function settleWork(uint64 round, uint32 seat, uint24 epoch) external;

    /// @notice Pays and credits a finding that stands. Anybody may call.
    function settleDuty(bytes32 attestation) external;

    /// @notice Pays an opening of a final root that is closed. Anybody may call.
    function settleOpening(uint64 node, bytes32 party) external;

    /// @notice Frees what a round did not earn, once all of it is settled. Anybody may call.
    function settleRound(uint64 round, uint24 epoch) external;

    /// @notice How many findings were settled, paid or not.
    function findingsSettled() external view returns (uint256);

    function workSettled(uint64 round) external view returns (uint256);
    function openingsSettled(uint64 node) external view returns (uint256);
    function isRoundSettled(uint64 round) external view returns (bool);
}
