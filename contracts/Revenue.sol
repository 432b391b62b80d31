// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {IRevenue} from "./interfaces/IRevenue.sol";
import {RunModules} from "./interfaces/IRoundTerms.sol";
import {IRunCharter} from "./interfaces/IRunCharter.sol";
import {IVault} from "./interfaces/IVault.sol";

/// @title Revenue: deposits stream to the holders of shares
/// @notice A deposit joins the bucket of the next week and streams linearly over the four weeks that follow; a running stream never changes, so a
/// share held for an hour earns an hour's part. Every unit that streams reaches an accumulator per share, the remainder of the division included.
/// What streams while there is no share is parked and, when the first share is minted, streams anew: the first holder gains nothing by it.
contract Revenue is IRevenue, ReentrancyGuard {
    using SafeERC20 for IERC20;

    uint256 public constant WEEK = 7 days;
    uint256 public constant STREAM = 4 weeks;
    uint256 public constant MIN_DEPOSIT = 1_000_000; // wei: what is smaller than the seconds of a stream
    /// @notice Wei of one token that are ever taken in: 2^120. With it no sum below can overflow, so that no deposit can stop a transfer of shares.
    /// @dev An owner's balance is at most the supply, so the sum of its balance x growth, from the first settlement to the last, is at most
    /// MAX_TOTAL x SCALE = 2^248.
    uint256 public constant MAX_TOTAL = 1 << 120;
    uint256 private constant SCALE = 1 << 128;

    /// @dev The books of one token.
    struct Stream {
        uint256 perShare; // accumulated, times SCALE
        uint256 remainder; // of the last division, in units of 1 / SCALE wei
        uint256 parked; // streamed while there was no share
        uint64 updated; // chain time up to which the stream is booked
        uint64 lastWeek; // latest bucket with a deposit
    }

    IRunCharter public immutable charter;
    IERC20 private immutable _shares;
    IVault private immutable _vault;

    address[] private _tokens; // at most 4
    mapping(address token => bool) public isListed;
    mapping(address token => Stream) public streamOf;
    mapping(address token => mapping(uint256 week => uint256)) public bucketOf;
    mapping(address token => uint256) public depositedOf;
    mapping(address token => mapping(address owner => uint256)) private _paidPerShare;
    mapping(address token => mapping(address owner => uint256)) private _owed; // in units of 1 / SCALE wei

    constructor(IRunCharter charter_) {
        RunModules memory modules = charter_.roundModules();
        charter = charter_;
        (_shares, _vault) = (IERC20(modules.shares), IVault(modules.vault));
        _tokens = charter_.runTerms().revenueTokens;
        for (uint256 i = 0; i < _tokens.length; ++i) {
            isListed[_tokens[i]] = true;
        }
    }

    /// @inheritdoc IRevenue
    function deposit(address token, uint256 amount) external nonReentrant {
        if (!isListed[token]) revert TokenNotListed(token);
        if (amount < MIN_DEPOSIT) revert DepositTooSmall(amount, MIN_DEPOSIT);
        uint256 room = MAX_TOTAL - depositedOf[token];
        // Attack: a deposit so large that the arithmetic of every later transfer of shares overflows.
        if (amount > room) revert DepositTooLarge(amount, room);
        depositedOf[token] += amount;
        _book(token);
        uint256 before = IERC20(token).balanceOf(address(this));
        IERC20(token).safeTransferFrom(msg.sender, address(this), amount);
        uint256 received = IERC20(token).balanceOf(address(this)) - before;
        // Attack: a token that keeps a fee.
        if (received != amount) revert FeeOnTransfer(received, amount);
        emit Deposited(token, msg.sender, amount, _pour(token, amount));
    }

    /// @inheritdoc IRevenue
    function claim(address token) external returns (uint256) {
        return claimFor(token, msg.sender);
    }

    /// @inheritdoc IRevenue
    function claimFor(address token, address owner) public nonReentrant returns (uint256 amount) {
        if (!isListed[token]) revert TokenNotListed(token);
        address to = _vault.payeeOf(owner);
        // A contract that counts what it is sent is sent nothing that neither it nor its payee asked for.
        if (msg.sender != owner && msg.sender != to) revert IVault.NotThePayee(owner, to, msg.sender);
        _book(token);
        _settle(token, owner);
        uint256 owed = _owed[token][owner];
        amount = owed / SCALE;
        if (amount == 0) revert NothingToClaim(token, owner);
        _owed[token][owner] = owed % SCALE;
        // Attack: a thief of the owner's key takes what its shares have earned.
        IERC20(token).safeTransfer(to, amount);
        emit Claimed(token, owner, to, amount);
    }

    /// @inheritdoc IRevenue
    /// @dev No call leaves the run's own contracts here: a token that blocks, blocks only its own claims.
    function onTransfer(address from, address to) external {
        if (msg.sender != address(_shares)) revert NotShares(msg.sender);
        for (uint256 i = 0; i < _tokens.length; ++i) {
            _book(_tokens[i]);
            // Attack: vesting first, to take what was paid in before there was a share. From this mint on there is one.
            if (from == address(0)) _streamAnew(_tokens[i]);
            if (from != address(0)) _settle(_tokens[i], from);
            if (to != address(0)) _settle(_tokens[i], to);
        }
    }

    /// @inheritdoc IRevenue
    function claimable(address token, address owner) external view returns (uint256) {
        Stream memory s = _advanced(token);
        uint256 grown = s.perShare - _paidPerShare[token][owner];
        return (_owed[token][owner] + _shares.balanceOf(owner) * grown) / SCALE;
    }

    /// @notice The revenue tokens of the run.
    function tokens() external view returns (address[] memory) {
        return _tokens;
    }

    function _book(address token) private {
        streamOf[token] = _advanced(token);
    }

    /// @dev Adds to the bucket of the next week.
    function _pour(address token, uint256 amount) private returns (uint256 week) {
        week = block.timestamp / WEEK + 1;
        bucketOf[token][week] += amount;
        streamOf[token].lastWeek = uint64(week);
    }

    function _streamAnew(address token) private {
        uint256 amount = streamOf[token].parked;
        if (amount == 0) return;
        streamOf[token].parked = 0;
        emit StreamsAnew(token, amount, _pour(token, amount));
    }

    function _settle(address token, address owner) private {
        uint256 perShare = streamOf[token].perShare;
        uint256 grown = perShare - _paidPerShare[token][owner];
        if (grown == 0) return;
        _paidPerShare[token][owner] = perShare;
        // Attack: whole wei here, and whoever transfers no share to a holder every few seconds has all it earns rounded away.
        _owed[token][owner] += _shares.balanceOf(owner) * grown;
    }

    /// @dev The books at this moment. Between two bookings there is at most one bucket after `updated`, so at most five live ones: a bounded loop.
    function _advanced(address token) private view returns (Stream memory s) {
        s = streamOf[token];
        uint256 from = s.updated;
        if (from == block.timestamp) return s;
        s.updated = uint64(block.timestamp);
        uint256 amount = 0;
        uint256 last = s.lastWeek;
        for (uint256 week = last > 5 ? last - 5 : 0; week <= last; ++week) {
            amount += _streamed(token, week, block.timestamp) - _streamed(token, week, from);
        }
        uint256 supply = _shares.totalSupply();
        if (supply == 0) {
            s.parked += amount;
            return s;
        }
        if (amount == 0) return s;
        uint256 scaled = amount * SCALE + s.remainder;
        s.perShare += scaled / supply;
        s.remainder = scaled % supply;
    }

    /// @dev Of a week's bucket, what has streamed until `time`, rounded down.
    function _streamed(address token, uint256 week, uint256 time) private view returns (uint256) {
        uint256 start = week * WEEK;
        uint256 amount = bucketOf[token][week];
        if (amount == 0 || time <= start) return 0;
        return time >= start + STREAM ? amount : amount * (time - start) / STREAM;
    }
}
