// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Work} from "./ICommitments.sol";

/// @notice One turn of the audits.
struct Epoch {
    bytes32 seed; // 0 until the beacon is known
    uint48 start; // who counts then may be called
    uint48 deadline; // last second to open
    uint32 shift; // that is called
    uint32 call; // its number among the shift's calls
    uint32 onCall; // tickets of the shift
    uint32 opened; // of them
    uint8 repeats;
    bool closed;
    bool fines; // closed, and half of the tickets on call had opened
    bool idle; // nothing is drawn in it: the run's duties are over
}

/// @notice What a ticket did at a call.
struct Answer {
    bytes32 secret;
    uint128 topRank; // of the highest draw answered or named
    uint8 answered; // duties, with those that it named and left out
    uint32 skipped; // calls just before this one that this secret shows too
    uint24 shownIn; // the newest epoch when the secret was shown
    bool inTime;
}

/// @notice Kinds of duties.
enum DutyKind {
    NONE,
    WORK, // a commitment of the epoch, at rate p
    REAUDIT, // an attestation of the epoch before, at rate q
    WORK_AGAIN, // a commitment of the epoch before, at p times the share that did not open
    REAUDIT_AGAIN, // an attestation of the epoch before that, at q times that share
    MISSED // a claim that somebody missed, at rate 3, or 1 without fines: once a claim and epoch, however many missed it
}

/// @notice A duty that somebody missed, and where the secret that drew it was shown.
struct Missed {
    DutyKind kind;
    uint24 epoch;
    uint32 ticket;
    uint24 via; // the epoch whose secret shows it: its own, or of a later call that skipped it
}

/// @notice Names a duty. Fields that a kind does not use are zero.
struct Duty {
    DutyKind kind;
    uint64 round; // of the commitment
    uint32 seat;
    bytes32 attestation; // that is audited
    Missed missed; // MISSED alone; the commitment or attestation is the missed duty's
}

/// @notice What a replay ends in.
struct Finding {
    bytes32[3] ends; // list roots of the end
    bytes32 update; // its list root
    bytes32[] keys; // witness keys: the ticket's own, then those of the attestations that it audits
    bytes32[] accumulators; // eight words each, under these keys
}

/// @notice A duty's result; without accumulators it names a duty that is left out, and only `duty` counts.
struct Result {
    Duty duty;
    Work work; // the commitment, as it was committed
    bytes32[3] ends; // as found
    bytes32 update;
    bytes32[] accumulators; // as found, under the ticket's own key, then under those of the attestation audited
    Finding audited; // the attestation audited, as it was made; empty for a commitment
}

/// @notice A result whose draw was checked.
struct Drawn {
    bytes32 id; // of the attestation that it becomes
    bytes32 key; // the ticket's own witness key
    bytes32 target; // what is audited
    uint64 round; // of the commitment underneath
    uint32 seat;
    uint24 epoch;
    uint32 ticket;
}

/// @notice What the contract keeps of a result.
struct Attestation {
    bytes32 finding; // K(round, seat, finding)
    uint24 epoch;
    uint32 ticket; // 0: there is none
    uint64 round;
    uint32 seat;
    uint8 keys; // in the finding
    bool differs; // from the commitment
    uint32 disputes; // accusations of it and games on it that are not over
    uint48 quietAt; // when the last of them ended; 0: there was none
}

/// @notice How far an accusation is.
enum AccusationStatus {
    NONE,
    RECORDED,
    TRIED, // its game is open
    UPHELD,
    REJECTED,
    LAPSED, // its game was never opened
    EXCUSED // its accused was convicted elsewhere, so that no game could open
}

/// @notice A result that differs from a commitment or from another attestation.
struct Accusation {
    AccusationStatus status;
    bool isWork; // against a tenure, else against a ticket
    uint32 accused;
    uint32 ticket; // of the accuser
    uint24 epoch;
    uint48 at; // chain time, in seconds, at which it was recorded
    bytes32 by; // the accuser's own attestation
    bytes32 against; // the commitment's digest, or the attestation accused
}

/// @notice The terms of audits.
struct DutyTerms {
    uint48 start; // of epoch 0
    uint48 length; // A: seconds to open, from the seed on
    uint48 delay; // from an epoch's beginning to the beacon round that is its seed
    uint8 capacity; // c: duties that a ticket answers at a call
    uint32 auditPpm; // p
    uint32 reauditPpm; // q
    uint128 wage; // w, in wei
}
