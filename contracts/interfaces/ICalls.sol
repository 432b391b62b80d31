// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Calls: which epochs called which shift
/// @notice An epoch calls one shift. A shift's calls are counted from 1; the n-th call of a ticket's chain is the n-th that it owes.
interface ICalls {
    /// @notice Calls of a shift by epochs that began at a time or before.
    /// @param time a chain time, in seconds; of the newest epoch's beginning at the latest
    function callsAt(uint32 shift, uint48 time) external view returns (uint32);

    /// @notice The newest epoch and when it began; all epochs before it are closed.
    function newest() external view returns (uint24 epoch, uint48 start);

    /// @notice Since when nothing that belongs to an epoch can be drawn any more, as a chain time in seconds; 0: it can.
    /// @dev What was missed in it is shown in the next, or one later where that closed without fines, and drawn again in the one after.
    function overSince(uint24 epoch) external view returns (uint48);

    /// @notice The same of the first epoch that began after a time: the one that a round belongs to after its last commitment.
    /// @param time a chain time, in seconds
    function overAfter(uint48 time) external view returns (uint48);
}
