// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Accusation, AccusationStatus, Attestation, Drawn, Finding, Result} from "./AuditTypes.sol";
import {IClaims} from "./IClaims.sol";
import {IAccusers} from "./IRoundTerms.sol";

/// @title Attestations: what replays ended in, whom they accuse, and the claims that they are
/// @notice A finding with k witness keys is k + 1 claims: part j < k says that from the commitment's start, key j and an accumulator of zero, all its
/// steps of the witnessed program end in the lists named and accumulator j; the last part is its update. Whoever answers for six keys is refuted at
/// the one that is false. A result that differs from what it audits is an accusation: it freezes the accused at once and needs no stake of its own.
/// @dev A claim's reference names round and seat, its part as `duty`, and as `outerRoot` the attestation, or the accusation whose game it is.
interface IAttestations is IClaims, IAccusers {
    /// @notice Only the contract of duties records what was drawn.
    /// @dev A result that nobody was drawn for could be made where it pays.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotDuties(address caller);

    /// @notice Only the book of commitments moves accusations of work.
    /// @dev A stranger that could end an accusation would let the accused be paid.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotTheBook(address caller);

    /// @notice The attestation given is not the one that was made.
    /// @dev The contract keeps a digest; whoever audits shows all of it.
    /// @custom:remedy Take it from the attestation's event.
    /// @param got digest of the finding given
    /// @param wanted digest of the attestation
    error FindingMismatch(bytes32 got, bytes32 wanted);

    /// @notice Another number of accumulators than of keys.
    /// @dev Who audits an attestation answers for its accumulators too.
    /// @custom:remedy Give one for your own key, then one for each key of the attestation audited while these are six at most.
    /// @param count of accumulators
    /// @param wanted count
    error AccumulatorsMissing(uint256 count, uint256 wanted);

    /// @notice The accusation is not at that point.
    /// @custom:remedy None.
    /// @param id of the accusation
    /// @param status that it has
    error WrongAccusation(bytes32 id, AccusationStatus status);

    /// @notice The accusation is another's, or accuses somebody else.
    /// @dev Whoever could open the game of another's accusation would lose it on purpose, and free the accused.
    /// @custom:remedy Name your own accusation of this claim, or challenge as a third party.
    /// @param id of the accusation
    /// @param caller who challenges
    error NotYourAccusation(bytes32 id, address caller);

    /// @notice A ticket found something.
    /// @param epoch number of the epoch
    /// @param ticket its id
    /// @param attestation id of the attestation
    /// @param target what was audited
    /// @param round number of the round, from 0
    /// @param seat number of the seat, from 0
    /// @param finding what was found
    event Attested(
        uint24 indexed epoch,
        uint32 indexed ticket,
        bytes32 indexed attestation,
        bytes32 target,
        uint64 round,
        uint32 seat,
        Finding finding
    );

    /// @notice A ticket accuses.
    /// @param id of the accusation
    /// @param attestation of the accuser
    /// @param against the commitment's digest, or the attestation accused
    /// @param isWork whether it is a commitment
    event Accused(bytes32 indexed id, bytes32 indexed attestation, bytes32 indexed against, bool isWork);

    /// @notice An accusation came to its next point.
    /// @param id of the accusation
    /// @param status that it has now
    event AccusationMoved(bytes32 indexed id, AccusationStatus status);

    /// @notice A part of a finding can be challenged.
    /// @param attestation its id
    /// @param part of it, from 0
    /// @param x state root that the part starts from
    /// @param y state root that it claims
    event FindingPrepared(bytes32 indexed attestation, uint32 indexed part, bytes32 x, bytes32 y);

    /// @notice Duties only: keeps a result whose draw was checked, and records what it accuses.
    function record(Drawn calldata drawn, Result calldata result) external;

    /// @notice Ends an accusation without a game, by anybody. Where the accused was convicted elsewhere it is excused, at any time. Else it has lapsed
    /// once the epoch after its own is closed, and its accuser is fined 3 w, half of which goes to the caller. In a run that was stopped it lapses at
    /// once, without a fine: no game can open any more.
    function lapse(bytes32 accusation) external;

    /// @notice Builds X and Y of one part of a finding, by anybody: a challenge needs it.
    /// @param part k: what it says under its k-th key, from 0; after the keys: its update
    function prepare(bytes32 attestation, Finding calldata finding, uint32 part) external;

    /// @notice How many findings were made.
    function findings() external view returns (uint256);

    /// @notice Was the ticket accused when it opened in the epoch, or before the epoch's end? What it answered there is drawn again, as if it had missed it.
    function isDoubted(uint24 epoch, uint32 ticket) external view returns (bool);

    /// @notice The attestation of an id; without a ticket where there is none.
    function attestationOf(bytes32 id) external view returns (Attestation memory);

    /// @notice The accusation of an id; NONE where there is none.
    function accusationOf(bytes32 id) external view returns (Accusation memory);

    /// @notice Accusations against a ticket that are recorded or tried.
    function accusationsOf(uint32 ticket) external view returns (uint256);

    /// @notice Since when nothing can accuse or challenge an attestation any more, as a chain time in seconds; 0: something can.
    /// @dev What re-audits it is drawn in the next epoch, what was not opened then in the one after, what was missed in the third. A stop ends
    /// what epochs would have.
    function windowOf(bytes32 attestation) external view returns (uint48);
}
