// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {IRunCharter} from "./interfaces/IRunCharter.sol";
import {IVault} from "./interfaces/IVault.sol";
import {RunTerms} from "./interfaces/RunTypes.sol";

/// @title Vault: every token of a run
contract Vault is IVault, ReentrancyGuard {
    using SafeERC20 for IERC20;

    struct Lock {
        address owner;
        uint256 amount;
    }

    struct Exit {
        uint256 amount;
        uint64 notBefore;
    }

    /// @notice Wei that a vault ever holds at a time: below the 128 bits in which the contracts of a run keep amounts.
    uint256 public constant MAX_TOTAL = 1 << 127;

    /// @notice Where burned tokens go: an address whose key cannot be known.
    address public constant SINK = 0x000000000000000000000000000000000000dEaD;

    IRunCharter public immutable charter;
    IERC20 public immutable token;
    uint64 public immutable exitDelay;
    // The contracts that move locks; unused ones are zero, in whose name nobody calls.
    address private immutable _locker0;
    address private immutable _locker1;
    address private immutable _locker2;
    address private immutable _locker3;
    address private immutable _locker4;
    address private immutable _locker5;
    address private immutable _locker6;
    address private immutable _locker7;

    mapping(address owner => uint256) public free;
    mapping(address owner => address) private _payees; // zero: the owner itself
    mapping(address owner => Exit) private _exits;
    mapping(bytes32 id => Lock) private _locks;
    uint256 private _totalFree;
    uint256 private _totalLocked;
    uint256 private _totalExiting;
    uint256 private _burned;

    modifier onlyModule() {
        if (
            msg.sender != _locker0 && msg.sender != _locker1 && msg.sender != _locker2 && msg.sender != _locker3
                && msg.sender != _locker4 && msg.sender != _locker5 && msg.sender != _locker6 && msg.sender != _locker7
        ) revert NotAModule(msg.sender);
        _;
    }

    constructor(IRunCharter charter_) {
        RunTerms memory terms = charter_.runTerms();
        charter = charter_;
        token = IERC20(terms.token);
        exitDelay = terms.timing.exit;
        address[8] memory lockers = _padded(charter_.lockers());
        (_locker0, _locker1, _locker2, _locker3) = (lockers[0], lockers[1], lockers[2], lockers[3]);
        (_locker4, _locker5, _locker6, _locker7) = (lockers[4], lockers[5], lockers[6], lockers[7]);
    }

    /// @inheritdoc IVault
    function deposit(uint256 amount) external nonReentrant {
        if (amount == 0) revert AmountZero();
        uint256 room = MAX_TOTAL - (_totalFree + _totalLocked + _totalExiting + _burned);
        // Attack: a stake so large that draws overflow on it.
        if (amount > room) revert VaultFull(amount, room);
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(msg.sender, address(this), amount);
        uint256 received = token.balanceOf(address(this)) - before;
        // Attack: a token that keeps a fee; the vault would owe more than it holds.
        if (received != amount) revert FeeOnTransfer(received, amount);
        _credit(msg.sender, amount);
        emit Deposited(msg.sender, amount);
    }

    /// @inheritdoc IVault
    function setPayee(address owner, address payee) external {
        address current = payeeOf(owner);
        // Attack: a thief of the owner's key names itself.
        if (msg.sender != current) revert NotThePayee(owner, current, msg.sender);
        if (payee == address(0) || payee == address(this) || payee == address(token) || payee == SINK) {
            revert PayeeRefused(payee);
        }
        _payees[owner] = payee;
        emit PayeeSet(owner, payee);
    }

    /// @inheritdoc IVault
    function requestExit(uint256 amount) external {
        _requestExit(msg.sender, amount);
    }

    /// @inheritdoc IVault
    function requestExitFor(address owner, uint256 amount) external {
        address payee = payeeOf(owner);
        if (msg.sender != payee) revert NotThePayee(owner, payee, msg.sender);
        _requestExit(owner, amount);
    }

    /// @inheritdoc IVault
    function withdraw() external {
        withdrawFor(msg.sender);
    }

    /// @inheritdoc IVault
    function withdrawFor(address owner) public nonReentrant {
        Exit memory leaving = _exits[owner];
        if (leaving.amount == 0) revert NothingExiting(owner);
        // Attack: exit in the middle of a dispute.
        if (block.timestamp <= leaving.notBefore) revert ExitTooEarly(block.timestamp, leaving.notBefore + 1);
        // Attack: a token that calls back in a transfer finds nothing left to withdraw.
        delete _exits[owner];
        _totalExiting -= leaving.amount;
        address to = payeeOf(owner);
        token.safeTransfer(to, leaving.amount);
        emit Withdrawn(owner, to, leaving.amount);
    }

    /// @inheritdoc IVault
    function flush() external nonReentrant {
        uint256 amount = _burned;
        if (amount == 0) revert AmountZero();
        _burned = 0;
        token.safeTransfer(SINK, amount);
        emit Flushed(amount);
    }

    /// @inheritdoc IVault
    function lock(bytes32 id, address owner, uint256 amount) external onlyModule {
        if (amount == 0) revert AmountZero();
        Lock storage held = _locks[id];
        if (held.amount != 0 && held.owner != owner) revert NotTheOwner(id, held.owner, owner);
        _debit(owner, amount);
        held.owner = owner;
        held.amount += amount;
        _totalLocked += amount;
        emit Locked(id, owner, amount);
    }

    /// @inheritdoc IVault
    function release(bytes32 id) external onlyModule {
        Lock memory held = _locks[id];
        if (held.amount == 0) revert LockNotFound(id);
        _take(id, held.amount);
        _credit(held.owner, held.amount);
        emit Released(id, held.owner, held.amount);
    }

    /// @inheritdoc IVault
    function seize(bytes32 id, address to, uint256 amount) external onlyModule {
        _take(id, amount);
        _credit(to, amount);
        emit Seized(id, to, amount);
    }

    /// @inheritdoc IVault
    function burn(bytes32 id, uint256 amount) external onlyModule {
        _take(id, amount);
        _burned += amount;
        emit Burned(id, amount);
    }

    /// @inheritdoc IVault
    function payeeOf(address owner) public view returns (address) {
        address named = _payees[owner];
        return named == address(0) ? owner : named;
    }

    /// @inheritdoc IVault
    function exiting(address owner) external view returns (uint256 amount, uint64 notBefore) {
        Exit memory leaving = _exits[owner];
        return (leaving.amount, leaving.notBefore);
    }

    /// @inheritdoc IVault
    function lockOf(bytes32 id) external view returns (address owner, uint256 amount) {
        Lock memory held = _locks[id];
        return (held.owner, held.amount);
    }

    /// @inheritdoc IVault
    function totals() external view returns (uint256 free_, uint256 locked, uint256 leaving, uint256 burned) {
        return (_totalFree, _totalLocked, _totalExiting, _burned);
    }

    /// @dev The list with zeros after it; more than eight do not fit, and the constructor reverts.
    function _padded(address[] memory lockers) private pure returns (address[8] memory all) {
        for (uint256 i = 0; i < lockers.length; ++i) {
            all[i] = lockers[i];
        }
    }

    function _requestExit(address owner, uint256 amount) private {
        if (amount == 0) revert AmountZero();
        Exit storage leaving = _exits[owner];
        if (leaving.amount != 0) {
            address payee = payeeOf(owner);
            // Attack: a thief of the owner's key asks for a wei more, again and again, so that the delay never ends.
            if (msg.sender != payee) revert NotThePayee(owner, payee, msg.sender);
        }
        _debit(owner, amount);
        leaving.amount += amount;
        leaving.notBefore = uint64(block.timestamp) + exitDelay;
        _totalExiting += amount;
        emit ExitRequested(owner, amount, leaving.notBefore);
    }

    /// @dev Takes from a lock; a lock that reaches zero is closed, so that no id keeps an owner without money.
    function _take(bytes32 id, uint256 amount) private {
        Lock storage held = _locks[id];
        uint256 locked = held.amount;
        if (amount > locked) revert LockTooSmall(id, locked, amount);
        _totalLocked -= amount;
        if (amount == locked) delete _locks[id];
        else held.amount = locked - amount;
    }

    function _credit(address owner, uint256 amount) private {
        free[owner] += amount;
        _totalFree += amount;
    }

    function _debit(address owner, uint256 amount) private {
        uint256 available = free[owner];
        if (amount > available) revert InsufficientFree(owner, available, amount);
        free[owner] = available - amount;
        _totalFree -= amount;
    }
}
