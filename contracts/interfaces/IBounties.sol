// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice What a conviction left for the drawn accusers of one lock.
struct Pot {
    uint24 epoch; // the lowest of an accusation that entered
    uint32 entered; // accusations of that epoch
    uint32 taken; // of them
    bool closed;
}

/// @title Bounties: what a conviction gives the drawn accusers, in equal parts
/// @notice A pot is named after the lock that was taken. An accusation that was recorded before the conviction, and neither lapsed nor was rejected,
/// enters once its own attestation stands. The pot belongs to the lowest epoch of an accusation that entered.
interface IBounties {
    /// @notice Only the game pays in.
    /// @dev A pot that anybody could make would pay for nothing.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotTheGame(address caller);

    /// @notice The accusation earns nothing of this.
    /// @dev It is not upheld or excused, or was recorded when the accused was convicted already.
    /// @custom:remedy None, unless its game is still open.
    /// @param accusation its id
    error NotRight(bytes32 accusation);

    /// @notice The accuser's own attestation can still be refuted, or was.
    /// @dev Who accuses with a result of its own invention is right by chance, at nobody's cost. After a stop nobody can refute it any more, so that
    /// what no game upheld must have stood before.
    /// @custom:remedy Wait until its window is over; none in a run that was stopped before.
    /// @param attestation its id
    error AttestationOpen(bytes32 attestation);

    /// @notice An accusation of an earlier epoch has entered.
    /// @dev A liar that is caught would accuse itself, and share what it lost.
    /// @custom:remedy None: the pot is theirs.
    /// @param epoch of the accusation
    /// @param lowest epoch that entered
    error LaterAccusation(uint24 epoch, uint24 lowest);

    /// @notice The accusation entered already, or took its part.
    /// @custom:remedy None: one part for each.
    /// @param accusation its id
    error AlreadyEntered(bytes32 accusation);

    /// @notice The pot is closed, or there is none.
    /// @custom:remedy Take a part, if the accusation has one.
    /// @param lockId the lock that was taken
    error PotClosed(bytes32 lockId);

    /// @notice Accusations can still enter.
    /// @dev Who accused rightly may have to win a game about its own attestation first.
    /// @custom:remedy Name the first epoch that began after the conviction; close the pot from the time named on.
    /// @param lockId the lock that was taken
    /// @param notBefore first second of chain time at which the pot can be closed; zero: not known yet
    error PotOpen(bytes32 lockId, uint256 notBefore);

    /// @notice The accusation has no part.
    /// @custom:remedy None: an earlier epoch's accusations share the pot, or it was paid.
    /// @param accusation its id
    error NoPart(bytes32 accusation);

    /// @notice A conviction paid in.
    /// @param lockId the lock that was taken
    /// @param amount in wei
    event PotFilled(bytes32 indexed lockId, uint256 amount);

    /// @notice An accusation entered.
    /// @param lockId the lock that was taken
    /// @param accusation its id
    /// @param epoch in which it was recorded
    event Entered(bytes32 indexed lockId, bytes32 indexed accusation, uint24 epoch);

    /// @notice No accusation enters any more; where none has, the pot burned.
    /// @param lockId the lock that was taken
    /// @param entered accusations that share it
    event Closed(bytes32 indexed lockId, uint32 entered);

    /// @notice A part was paid; it burned where the accuser was convicted in the meantime.
    /// @param accusation its id
    /// @param to the accuser; zero: burned
    /// @param amount in wei
    event PartPaid(bytes32 indexed accusation, address indexed to, uint256 amount);

    /// @notice Game only: a conviction's bounty, which is in this contract's free balance.
    function onBounty(bytes32 lockId, uint256 amount) external;

    /// @notice Enters an accusation that was right. Anybody may call.
    function enter(bytes32 accusation) external;

    /// @notice Closes a pot. Anybody may call.
    /// @param epoch that began after the conviction
    function close(bytes32 accusation, uint24 epoch) external;

    /// @notice Pays the part of an accusation that entered. Anybody may call.
    function take(bytes32 accusation) external;

    function potOf(bytes32 lockId) external view returns (Pot memory pot, uint256 amount);
    function hasEntered(bytes32 accusation) external view returns (bool);
}
