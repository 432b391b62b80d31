// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IClaims} from "./IClaims.sol";

/// @notice Roles with a drawing key and a bond.
enum Role {
    NONE,
    VERIFIER,
    WHISTLEBLOWER
}

/// @notice A leaf as it is revealed; with the claim id of its duty and witness 0 it hashes to the committed leaf.
struct Leaf {
    uint32 seat;
    uint32 duty;
    bytes32 endRoot;
    bytes32 salt;
}

/// @notice What a verifier or whistleblower did in a round.
struct Attendance {
    bytes32 root; // of the hidden leaves
    bytes32 ticket; // keccak256(y), once the draw is revealed
    uint32 duties; // leaves revealed
    uint32 openGames; // on its attestations of this round
    bool revealed;
    bool closed; // settled
}

/// @notice A registered verifier or whistleblower.
struct Attester {
    Role role;
    uint128 stake;
    uint64 convictedAt; // 0: never
    uint64 retiresWith; // first round that it is not drawn in; 2^64-1 while it serves
    uint32 openGames; // over all rounds
}

/// @title Verifiers and whistleblowers: keys, stakes, draws, hidden and revealed leaves.
interface IAudit is IClaims {
    /// @notice The account is registered already.
    /// @dev An account has one role and one key.
    /// @custom:remedy Use another account for another role.
    /// @param who the account
    error AlreadyRegistered(address who);

    /// @notice The account is no verifier or whistleblower, or has taken its stake back.
    /// @custom:remedy Register first.
    /// @param who the account
    error NotRegistered(address who);

    /// @notice The account has another role.
    /// @dev Verifiers and whistleblowers are drawn by different seeds and attest at different times.
    /// @custom:remedy Use the account that is registered for the role.
    /// @param who the account
    /// @param role the account's role; NONE if it has none
    error WrongRole(address who, Role role);

    /// @notice The stake is below the run's bond.
    /// @dev The bond is what makes a false attestation a loss.
    /// @custom:remedy Register with at least the bond.
    /// @param stake in wei
    /// @param bond in wei
    error StakeBelowBond(uint256 stake, uint256 bond);

    /// @notice The proof of possession does not fit the public key and the account.
    /// @dev Without the proof a key could be copied from others or made from theirs.
    /// @custom:remedy Make the key and its proof together, for this account (`assay key new`).
    /// @param who the account
    error BadPossession(address who);

    /// @notice Another account registered this VRF key.
    /// @dev Two accounts with one key would be drawn together.
    /// @custom:remedy Make a key of your own (`assay key new`).
    /// @param keyHash keccak-256 of the public key
    error KeyTaken(bytes32 keyHash);

    /// @notice The account's stake does not count in this round.
    /// @dev A key that was chosen when a seed could be known draws nothing under that seed.
    /// @custom:remedy Wait: a stake counts from the second T0 after it was registered.
    /// @param who the account
    /// @param round number of the round, from 0
    error NoStake(address who, uint64 round);

    /// @notice The account was convicted of a false attestation.
    /// @dev Its bond is gone; it attests no more and is paid no more.
    /// @custom:remedy Register another account.
    /// @param who the account
    error AttesterConvicted(address who);

    /// @notice It is not time yet.
    /// @custom:remedy Try again from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error TooEarly(uint256 now_, uint256 notBefore);

    /// @notice The time for this is over.
    /// @dev Results that are bound after others are revealed could be copied.
    /// @custom:remedy None for this round; be in time for the next.
    /// @param now_ chain time of the call, in seconds
    /// @param deadline last second of chain time at which the call went through
    error TooLate(uint256 now_, uint256 deadline);

    /// @notice The seed has not been drawn.
    /// @dev Duties are drawn from the seed.
    /// @custom:remedy Draw it; anybody may, from its time on.
    /// @param round number of the round, from 0
    error SeedNotDrawn(uint64 round);

    /// @notice The seed was drawn already.
    /// @dev A seed that could be drawn again could be chosen.
    /// @custom:remedy None: the first call was enough.
    /// @param round number of the round, from 0
    error SeedAlreadyDrawn(uint64 round);

    /// @notice The results' duties were drawn from another seed: a reorganization of the chain drew the seed again.
    /// @dev A transaction outlives the blocks of a reorganization; without this check it would bind results of duties
    /// that nobody drew.
    /// @custom:remedy Draw the duties from the seed that stands, and bind their results.
    /// @param got seed that the caller drew from
    /// @param wanted seed of the round
    error SeedMismatch(bytes32 got, bytes32 wanted);

    /// @notice The account has bound its results for this round.
    /// @dev A second root could be chosen when other results are known.
    /// @custom:remedy None: one root per round, and it stands.
    /// @param round number of the round, from 0
    /// @param who the account
    error AlreadyAttested(uint64 round, address who);

    /// @notice The account bound or revealed no results for this round.
    /// @custom:remedy None: without them there is nothing to reveal or settle.
    /// @param round number of the round, from 0
    /// @param who the account
    error NotAttested(uint64 round, address who);

    /// @notice This was revealed already.
    /// @dev Duties are paid once.
    /// @custom:remedy None.
    /// @param round number of the round, from 0
    /// @param who the account
    error AlreadyRevealed(uint64 round, address who);

    /// @notice The VRF output was not revealed in time.
    /// @dev Without it nobody can tell which duties the account had.
    /// @custom:remedy None for this round: its duties are not paid; reveal in the window of the next.
    /// @param round number of the round, from 0
    /// @param who the account
    error DrawNotRevealed(uint64 round, address who);

    /// @notice The VRF output is not the registered key's signature on the round's seed.
    /// @dev A signature that could be chosen would choose its duties.
    /// @custom:remedy Sign the round's seed with the registered key.
    /// @param who the account
    error BadDraw(address who);

    /// @notice The VRF output given again is not the one revealed.
    /// @custom:remedy Give the same signature.
    /// @param got keccak-256 of what was given
    /// @param wanted keccak-256 of what was revealed
    error TicketMismatch(bytes32 got, bytes32 wanted);

    /// @notice The result is for a duty that the account did not draw.
    /// @dev An auditor that answers for duties of its own choice looks where it likes, and is paid for it.
    /// @custom:remedy Reveal the results of the drawn duties, as they were bound.
    /// @param seat number of the seat, from 0
    /// @param duty number of the interval, or the count of intervals for the update
    error NotDrawn(uint32 seat, uint32 duty);

    /// @notice The results are not in the order of claim id and duty, each once.
    /// @dev In this order a duty that is named twice is seen, and paid once.
    /// @custom:remedy Reveal them in the order of the root.
    /// @param seat number of the seat, from 0
    /// @param duty number of the interval, or the count of intervals for the update
    error NotSorted(uint32 seat, uint32 duty);

    /// @notice A result names no end root.
    /// @dev A zero would read as if nothing had been revealed.
    /// @custom:remedy Reveal the result that was bound.
    /// @param seat number of the seat, from 0
    /// @param duty number of the interval, or the count of intervals for the update
    error EndRootZero(uint32 seat, uint32 duty);

    /// @notice Only the settlement contract ends an attester's round.
    /// @dev A round that ended without being settled would never be paid.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotSettlement(address caller);

    /// @notice The account is leaving already.
    /// @custom:remedy Wait for the round named, then reclaim the stake.
    /// @param retiresWith first round in which it is not drawn
    error AlreadyRetired(uint64 retiresWith);

    /// @notice The results do not hash to the root that was bound.
    /// @dev Results that could be exchanged after others are revealed could be copied.
    /// @custom:remedy Reveal exactly the results that were bound; the journal in the data folder holds them.
    /// @param got root of the results revealed
    /// @param wanted root that was bound
    error RootMismatch(bytes32 got, bytes32 wanted);

    /// @notice A game on an attestation of the account is still open.
    /// @dev The stake answers for it.
    /// @custom:remedy Try again after the verdict.
    /// @param count games that are open
    error GamesOpen(uint256 count);

    /// @notice The account can still be drawn, so its stake is still needed.
    /// @custom:remedy Retire, and reclaim the stake once the last round that could draw it is beyond challenge.
    /// @param round first round in which it is not drawn; 2^64 - 1 while it serves
    error NotRetired(uint64 round);

    /// @notice The attester's round was settled already.
    /// @dev Duties are paid once.
    /// @custom:remedy None: what was due is booked.
    /// @param round number of the round, from 0
    /// @param who the account
    error AlreadyClosed(uint64 round, address who);

    /// @notice A verifier or whistleblower registered its key and its stake.
    /// @param who the account
    /// @param role its role
    /// @param stake in wei
    /// @param countsFrom first round in which the stake counts
    /// @param publicKey its VRF key, 128 bytes
    event Registered(address indexed who, Role role, uint256 stake, uint64 countsFrom, bytes publicKey);

    /// @notice A verifier or whistleblower stops being drawn.
    /// @param who the account
    /// @param retiresWith first round in which it is not drawn
    event Retired(address indexed who, uint64 retiresWith);

    /// @notice A verifier or whistleblower took back what was left of its stake.
    /// @param who the account
    /// @param amount in wei
    event Reclaimed(address indexed who, uint256 amount);

    /// @notice The seed of a round's audit was drawn.
    /// @dev Verifiers find their duties by it.
    /// @param round number of the round, from 0
    /// @param seed 32 bytes
    event SeedDrawn(uint64 indexed round, bytes32 seed);

    /// @notice The seed of a round's re-audit was drawn.
    /// @dev Whistleblowers find their duties by it.
    /// @param round number of the round, from 0
    /// @param seed 32 bytes
    event WhistleSeedDrawn(uint64 indexed round, bytes32 seed);

    /// @notice A verifier or whistleblower bound its results of a round, still hidden.
    /// @param round number of the round, from 0
    /// @param who the account
    /// @param role its role
    /// @param root of the hidden results; zero for none
    event Attested(uint64 indexed round, address indexed who, Role role, bytes32 root);

    /// @notice A verifier or whistleblower revealed which duties it had drawn.
    /// @param round number of the round, from 0
    /// @param who the account
    /// @param y VRF output: the signature on the round's seed, 256 bytes
    event DrawRevealed(uint64 indexed round, address indexed who, bytes y);

    /// @notice A verifier or whistleblower revealed its result for a duty.
    /// @dev Where the result differs from the claim, one of the two is wrong and may be challenged.
    /// @param round number of the round, from 0
    /// @param who the account
    /// @param seat number of the seat, from 0
    /// @param duty number of the interval, or the count of intervals for the update
    /// @param claimId the claim it replayed
    /// @param endRoot state root that the replay ended in
    /// @param agrees whether the claim says the same
    event LeafRevealed(
        uint64 indexed round,
        address indexed who,
        uint32 seat,
        uint32 duty,
        bytes32 claimId,
        bytes32 endRoot,
        bool agrees
    );

    /// @notice A verifier or whistleblower lost a game about its attestation: its bond is gone.
    /// @param who the account
    /// @param round of the attestation
    event AttesterConvictedAt(address indexed who, uint64 round);

    /// @notice Registers a drawing key with proof of possession and locks a stake of at least B. Counts from the second T0 from now; before the run's
    /// first round, when no seed can be known, from round 0.
    function register(Role role, bytes calldata publicKey, bytes calldata proof, uint128 stake) external;

    /// @notice Stops being drawn from the second T0 from now.
    function retire() external;

    /// @notice Releases what is left of the stake, once the last round it was drawn in is beyond challenge and no game is open.
    function reclaim() external;

    /// @notice Draws the audit seed, at or after T2. Anyone may call, once.
    function drawSeed(uint64 round) external;

    /// @notice Draws the whistle seed, at or after T4. Anyone may call, once.
    function drawWhistleSeed(uint64 round) external;

    /// @notice A verifier's root of hidden leaves (zero for none), after the seed and until T3.
    /// @param seed the audit seed that the leaves' duties were drawn from; another one is refused, so that a transaction which a reorganization
    /// has carried over to another seed binds nothing
    function attest(uint64 round, bytes32 seed, bytes32 root) external;

    /// @notice A whistleblower's root of hidden leaves, after the whistle seed and until T5.
    /// @param seed the whistle seed, as with `attest`
    function whistle(uint64 round, bytes32 seed, bytes32 root) external;

    /// @notice Reveals the signature y that draws the caller's duties. Verifiers: after T3, until T4. Whistleblowers: after their root, until T5.
    function revealDraw(uint64 round, bytes calldata y) external;

    /// @notice Reveals every leaf under the caller's root, sorted by (claim id, duty). After T5; verifiers until T5+r, whistleblowers until T5+2r.
    /// @param y the caller's revealed signature again
    function revealLeaves(uint64 round, Leaf[] calldata leaves, bytes calldata y) external;

    /// @notice Settlement only: ends an attester's round.
    /// @return duties how many duties are due a wage (0 for the convicted)
    function close(uint64 round, address who) external returns (uint32 duties);

    /// @notice Stake that counts in a round.
    function stakeAt(address who, uint64 round) external view returns (uint256);

    /// @notice Total stake of a role that counts in a round.
    function totalAt(Role role, uint64 round) external view returns (uint256);

    /// @notice Registered members of a role now.
    function members(Role role) external view returns (uint256);

    /// @notice Attesters who revealed leaves in a round.
    function revealers(uint64 round) external view returns (uint256);
    function attesterOf(address who) external view returns (Attester memory);
    function keyOf(address who) external view returns (bytes memory);
    function attendanceOf(uint64 round, address who) external view returns (Attendance memory);

    /// @notice The end root that an attester revealed for a duty; zero if none.
    function endRootOf(uint64 round, uint32 seat, uint32 duty, address who) external view returns (bytes32);
    function seedOf(uint64 round) external view returns (bytes32 seed, bytes32 whistleSeed);
}
