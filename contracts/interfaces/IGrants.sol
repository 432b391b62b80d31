// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice Shares credited for final work or a finding; not tokens yet: without votes, not transferable.
struct Grant {
    address owner;
    uint48 vestsAt;
    uint32 tenure; // whose conviction before vestsAt cancels it; 0: a ticket's
    uint32 ticket;
    uint128 amount;
    bool done; // released or cancelled
}

/// @title Grants: shares that are credited and not yet anybody's tokens
interface IGrants {
    /// @notice Only the contract of payments credits shares.
    /// @dev Shares are credited for settled work alone.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotPayments(address caller);

    /// @notice No shares were credited under this name, or they were released or cancelled.
    /// @dev A grant is released once.
    /// @custom:remedy Check the name.
    /// @param id name of the grant
    error GrantNotFound(bytes32 id);

    /// @notice The shares have not vested.
    /// @dev Until then a conviction of the tenure or ticket that earned them cancels them.
    /// @custom:remedy Release them from the time named on.
    /// @param id name of the grant
    /// @param vestsAt first second of chain time at which they can be released
    error NotVested(bytes32 id, uint256 vestsAt);

    /// @notice Shares were credited; they are not tokens yet.
    /// @param id name of the grant
    /// @param owner who earned them
    /// @param amount in wei of shares
    /// @param vestsAt chain time, in seconds, from which they can be released
    event Credited(bytes32 indexed id, address indexed owner, uint256 amount, uint48 vestsAt);

    /// @notice Credited shares became tokens.
    /// @param id name of the grant
    /// @param owner who earned them
    /// @param to whose tokens they are: the owner's payee in the vault
    /// @param amount in wei of shares
    event Vested(bytes32 indexed id, address indexed owner, address indexed to, uint256 amount);

    /// @notice Credited shares were cancelled: what earned them was convicted before they vested.
    /// @param id name of the grant
    /// @param owner who had earned them
    /// @param amount in wei of shares
    event Cancelled(bytes32 indexed id, address indexed owner, uint256 amount);

    /// @notice Payments only, once per name.
    function credit(bytes32 id, address owner, uint128 amount, uint32 tenure, uint32 ticket) external;

    /// @notice Mints a vested grant to its owner's payee, or strikes out one that a conviction cancelled. Anybody may call.
    function release(bytes32 id) external;

    function grantOf(bytes32 id) external view returns (Grant memory);

    /// @notice Shares credited to an owner and neither vested nor cancelled.
    function pendingOf(address owner) external view returns (uint256);
}
