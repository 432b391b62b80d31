// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Every token of a run: free balances and locks, one exit path per lock.
/// @notice Amounts are in wei of the run's settlement token. Only the run's own contracts, fixed at deployment, may lock, release and seize; nobody
/// administers it. Conservation: sum of free balances + locks + exiting + burned = tokens received - tokens withdrawn - tokens flushed to the sink.
/// Payments between parties are credits of free balance, so no module ever calls out to a payee.
interface IVault {
    /// @notice The free stake does not cover the amount.
    /// @dev What is free can be locked or withdrawn; nothing is ever locked on credit.
    /// @custom:remedy Stake more (`assay ledger stake`), or name a smaller amount.
    /// @param owner whose stake it is
    /// @param free free stake, in wei
    /// @param wanted amount asked for, in wei
    error InsufficientFree(address owner, uint256 free, uint256 wanted);

    /// @notice There is no such lock.
    /// @dev A lock whose amount has reached zero is closed, so that no name keeps an owner without money.
    /// @custom:remedy None: the lock was released or taken already.
    /// @param id name of the lock
    error LockNotFound(bytes32 id);

    /// @notice The lock does not hold that much.
    /// @dev No module takes out of a lock what another lock holds.
    /// @custom:remedy Report it: in a run of this release it cannot happen.
    /// @param id name of the lock
    /// @param locked what the lock holds, in wei
    /// @param wanted amount asked for, in wei
    error LockTooSmall(bytes32 id, uint256 locked, uint256 wanted);

    /// @notice The lock belongs to another account.
    /// @dev A lock answers for one account; money of two owners in one lock could not be given back.
    /// @custom:remedy None: the module that named the lock is at fault; report it.
    /// @param id name of the lock
    /// @param owner who owns the lock
    /// @param caller for whom more was to be locked
    error NotTheOwner(bytes32 id, address owner, address caller);

    /// @notice Only the run's own contracts move locks.
    /// @dev A stranger that could lock, release or seize would own every stake.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotAModule(address caller);

    /// @notice The amount is zero.
    /// @dev A move of nothing is a mistake of its caller, and a lock of nothing would have an owner without money.
    /// @custom:remedy Name an amount above zero.
    error AmountZero();

    /// @notice The vault would hold more than its books can count: 2^127 wei at a time.
    /// @dev The contracts of a run keep amounts in 128 bits; a larger one would be cut off.
    /// @custom:remedy Deposit less.
    /// @param amount amount of the deposit, in wei
    /// @param room most that can be deposited now, in wei
    error VaultFull(uint256 amount, uint256 room);

    /// @notice The token keeps a part of what is transferred.
    /// @dev With such a token the vault would owe more than it holds.
    /// @custom:remedy Use a token that moves exact amounts.
    /// @param received what arrived, in wei
    /// @param wanted what was to arrive, in wei
    error FeeOnTransfer(uint256 received, uint256 wanted);

    /// @notice The exit delay is not over.
    /// @dev The delay is longer than anything that a stake can still be held to account for.
    /// @custom:remedy Withdraw from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error ExitTooEarly(uint256 now_, uint256 notBefore);

    /// @notice The account has asked for nothing to be withdrawn.
    /// @dev Money leaves the vault in two steps, a delay apart.
    /// @custom:remedy Ask first (`assay ledger unstake`), then wait for the exit delay.
    /// @param owner the account
    error NothingExiting(address owner);

    /// @notice Only the account's payee may do this.
    /// @dev The payee is the account itself until it named an address: from then on the key that works every day neither names another, nor makes an
    /// exit that waits begin anew.
    /// @custom:remedy Use the key of the payee (`assay ledger withdrawal-address` names it), or wait until what was asked for is paid.
    /// @param owner the account
    /// @param payee whom its exits are paid to
    /// @param caller who called
    error NotThePayee(address owner, address payee, address caller);

    /// @notice Nobody could ever move what is paid to this address.
    /// @dev Refused are zero, the vault, the token and the sink of burned tokens.
    /// @custom:remedy Name an address whose key you hold.
    /// @param payee the address named
    error PayeeRefused(address payee);

    /// @notice An account paid stake into the vault.
    /// @param owner whose stake it is
    /// @param amount in wei
    event Deposited(address indexed owner, uint256 amount);

    /// @notice Stake of an account was moved out of the reach of every lock, to be withdrawn later.
    /// @dev A further request adds to the amount and starts the delay again.
    /// @param owner whose stake it is
    /// @param amount of this request, in wei
    /// @param notBefore chain time, in seconds, after which all of it can be withdrawn
    event ExitRequested(address indexed owner, uint256 amount, uint64 notBefore);

    /// @notice Stake left the vault.
    /// @param owner whose stake it was
    /// @param to who was paid: the owner's payee
    /// @param amount in wei
    event Withdrawn(address indexed owner, address indexed to, uint256 amount);

    /// @notice Somebody else is paid from now on when stake of an account leaves, its vested shares and its revenue included.
    /// @param owner whose stake it is
    /// @param payee who is paid, and alone may name another
    event PayeeSet(address indexed owner, address indexed payee);

    /// @notice Free stake was put into a lock.
    /// @param id name of the lock
    /// @param owner whose stake it is
    /// @param amount added to the lock, in wei
    event Locked(bytes32 indexed id, address indexed owner, uint256 amount);

    /// @notice The rest of a lock went back to its owner's free stake.
    /// @param id name of the lock
    /// @param owner whose stake it is
    /// @param amount in wei
    event Released(bytes32 indexed id, address indexed owner, uint256 amount);

    /// @notice A part of a lock was paid to another account's free stake.
    /// @param id name of the lock
    /// @param to who was paid
    /// @param amount in wei
    event Seized(bytes32 indexed id, address indexed to, uint256 amount);

    /// @notice A part of a lock was burned.
    /// @dev Burned tokens lie in the vault until they are flushed.
    /// @param id name of the lock
    /// @param amount in wei
    event Burned(bytes32 indexed id, uint256 amount);

    /// @notice What was burned left the vault, for an address without a key.
    /// @param amount in wei
    event Flushed(uint256 amount);

    /// @notice Takes `amount` tokens from the caller into its free balance (stake).
    function deposit(uint256 amount) external;

    /// @notice Moves the caller's free balance out of reach of every lock; it can be withdrawn after the exit delay.
    /// @dev A further request adds to the amount and starts the delay again; while one waits, only the payee makes another.
    function requestExit(uint256 amount) external;

    /// @notice The same for an account whose payee calls: a key that is lost keeps no free stake.
    function requestExitFor(address owner, uint256 amount) external;

    /// @notice Pays everything of the caller that is exiting to its payee, strictly after the delay.
    function withdraw() external;

    /// @notice Pays what is exiting of an account to the account's payee. Anyone may call.
    function withdrawFor(address owner) external;

    /// @notice Names who is paid when stake of an account leaves: first by the account, from then on only by whoever is named.
    /// @dev Of a request that waits already, too: an exit pays who is payee when it is paid.
    function setPayee(address owner, address payee) external;

    /// @notice Sends what was burned so far to the sink without a key. Anyone may call.
    function flush() external;

    /// @notice Free balance of an owner, in wei.
    function free(address owner) external view returns (uint256);

    /// @notice Who is paid when stake of an account leaves: the account itself until it named an address.
    function payeeOf(address owner) external view returns (address);

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
