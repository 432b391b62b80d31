// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice Shares credited for final work; not tokens yet: without votes, not transferable.
struct Grant {
    address owner;
    uint128 amount;
    uint64 vestsAt;
    bool forDuties; // cancelled by a conviction of the attester before vestsAt
    bool done; // released or cancelled
}

/// @title Pending shares.
interface IVesting {
    error NotSettlement(address caller);
    error GrantExists(bytes32 id);
    error GrantNotFound(bytes32 id);
    error NotVested(bytes32 id, uint256 vestsAt);

    event Credited(bytes32 indexed id, address indexed owner, uint256 amount, uint64 vestsAt);
    event Vested(bytes32 indexed id, address indexed owner, uint256 amount);
    event Cancelled(bytes32 indexed id, address indexed owner, uint256 amount);

    /// @notice Settlement only.
    function credit(bytes32 id, address owner, uint128 amount, uint64 vestsAt, bool forDuties) external;

    /// @notice Mints a vested grant to its owner, or strikes out one that a conviction cancelled. Anyone may call.
    function release(bytes32 id) external;

    function grantOf(bytes32 id) external view returns (Grant memory);

    /// @notice Shares credited to an owner and neither vested nor cancelled.
    function pendingOf(address owner) external view returns (uint256);
    function workId(uint64 round, uint32 seat) external view returns (bytes32);
    function dutiesId(uint64 round, address attester) external view returns (bytes32);
}

/// @title Revenue of a model: deposits stream to the owners of its shares.
interface IRevenue {
    error NotShares(address caller);
    error TokenNotListed(address token);
    error DepositTooSmall(uint256 amount, uint256 minimum);
    error DepositTooLarge(uint256 amount, uint256 room);
    error FeeOnTransfer(uint256 received, uint256 wanted);
    error NothingToClaim(address token, address owner);

    event Deposited(address indexed token, address indexed from, uint256 amount, uint256 week);
    event StreamsAnew(address indexed token, uint256 amount, uint256 week);
    event Claimed(address indexed token, address indexed owner, uint256 amount);

    /// @notice Adds revenue: it joins the next weekly bucket and streams linearly over the four weeks after that bucket begins.
    /// @dev DepositTooLarge: of each token a run takes MAX_TOTAL wei in all; pay less, or in another listed token.
    function deposit(address token, uint256 amount) external;

    /// @notice Pays the caller what its shares have earned in a token.
    function claim(address token) external returns (uint256 amount);

    /// @notice Shares only: settles both sides before balances change.
    function onTransfer(address from, address to) external;

    function claimable(address token, address owner) external view returns (uint256);
}
