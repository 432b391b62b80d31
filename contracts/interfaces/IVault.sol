// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Every token of a run: free balances and locks, one exit path per lock.
/// @notice Amounts are in wei of the run's settlement token. Only the run's own contracts, fixed at deployment, may lock, release and seize; nobody
/// administers it. Conservation: sum of free balances + locks + exiting + burned = tokens received - tokens withdrawn - tokens flushed to the sink.
/// Payments between parties are credits of free balance, so no module ever calls out to a payee.
interface IVault {
    error InsufficientFree(address owner, uint256 free, uint256 wanted);
    error LockNotFound(bytes32 id);
    error LockTooSmall(bytes32 id, uint256 locked, uint256 wanted);
    error NotTheOwner(bytes32 id, address owner, address caller);
    error NotAModule(address caller);
    error AmountZero();
    /// @notice Thrown when a vault would hold more than draws can count: deposit less.
    error VaultFull(uint256 amount, uint256 room);
    error FeeOnTransfer(uint256 received, uint256 wanted);
    error ExitTooEarly(uint256 now_, uint256 notBefore);
    error NothingExiting(address owner);

    event Deposited(address indexed owner, uint256 amount);
    event ExitRequested(address indexed owner, uint256 amount, uint64 notBefore);
    event Withdrawn(address indexed owner, uint256 amount);
    event Locked(bytes32 indexed id, address indexed owner, uint256 amount);
    event Released(bytes32 indexed id, address indexed owner, uint256 amount);
    event Seized(bytes32 indexed id, address indexed to, uint256 amount);
    event Burned(bytes32 indexed id, uint256 amount);
    event Flushed(uint256 amount);

    /// @notice Takes `amount` tokens from the caller into its free balance (stake).
    function deposit(uint256 amount) external;

    /// @notice Moves free balance out of reach of every lock; it can be withdrawn after the exit delay.
    /// @dev A further request adds to the amount and starts the delay again.
    function requestExit(uint256 amount) external;

    /// @notice Pays the caller everything that is exiting, strictly after the delay.
    function withdraw() external;

    /// @notice Sends what was burned so far to the sink without a key. Anyone may call.
    function flush() external;

    /// @notice Free balance of an owner, in wei.
    function free(address owner) external view returns (uint256);

    /// @notice What an owner has requested to withdraw, and the chain time after which it may.
    function exiting(address owner) external view returns (uint256 amount, uint64 notBefore);

    /// @notice Owner and amount of a lock; both zero when there is none.
    function lockOf(bytes32 id) external view returns (address owner, uint256 amount);

    /// @notice The sum of all free balances, of all locks, of all exits, and what is burned but not flushed, in wei.
    function totals() external view returns (uint256 free_, uint256 locked, uint256 leaving, uint256 burned);

    /// @notice Module: moves free balance into a new lock, or adds to a lock of the same owner.
    function lock(bytes32 id, address owner, uint256 amount) external;

    /// @notice Module: gives the rest of a lock back to its owner's free balance and closes it.
    function release(bytes32 id) external;

    /// @notice Module: moves part of a lock to another party's free balance. A lock that reaches zero is closed.
    function seize(bytes32 id, address to, uint256 amount) external;

    /// @notice Module: moves part of a lock to the sink without a key. A lock that reaches zero is closed.
    function burn(bytes32 id, uint256 amount) external;
}
