// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Every token of a run: free balances and locks, one exit path per lock.
/// @notice Amounts are in wei of the run's settlement token. Only the run's own contracts, fixed at deployment, may lock, release and seize; nobody
/// administers it. Conservation: sum of free balances + sum of locks + exiting = token balance of the vault.
interface IVault {
    error InsufficientFree(address owner, uint256 free, uint256 wanted);
    error LockExists(bytes32 id);
    error LockTooSmall(bytes32 id, uint256 locked, uint256 wanted);
    error NotAModule(address caller);

    event Deposited(address indexed owner, uint256 amount);
    event Locked(bytes32 indexed id, address indexed owner, uint256 amount);
    event Released(bytes32 indexed id, address indexed owner, uint256 amount);
    event Seized(bytes32 indexed id, address indexed to, uint256 amount);
    event Burned(bytes32 indexed id, uint256 amount);

    /// @notice Takes `amount` tokens from the caller into its free balance (stake).
    function deposit(uint256 amount) external;

    /// @notice Free balance of an owner, in wei.
    function free(address owner) external view returns (uint256);

    /// @notice Owner and amount of a lock.
    function lockOf(bytes32 id) external view returns (address owner, uint256 amount);

    /// @notice Module: moves free balance into a new lock, or adds to a lock of the same owner.
    function lock(bytes32 id, address owner, uint256 amount) external;

    /// @notice Module: gives the rest of a lock back to its owner's free balance and closes it.
    function release(bytes32 id) external;

    /// @notice Module: moves part of a lock to another party's free balance.
    function seize(bytes32 id, address to, uint256 amount) external;

    /// @notice Module: moves part of a lock to the sink without a key.
    function burn(bytes32 id, uint256 amount) external;
}
