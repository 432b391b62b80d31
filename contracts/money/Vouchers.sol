// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IGovernance} from "../interfaces/IGovernance.sol";
import {IRevenue} from "../interfaces/IRevenue.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVouchers, PayerDeposit, PayerVoucher} from "../interfaces/IVouchers.sol";

/// @title Vouchers: users of a model pay its gateways by signed amounts that only grow; a part is the owners'
contract Vouchers is IVouchers, EIP712, ReentrancyGuard {
    using SafeERC20 for IERC20;

    bytes32 public constant VOUCHER_TYPE =
        keccak256("Voucher(address payer,address gateway,address token,uint256 amount)");
    uint256 public constant MAX_PPM = 1_000_000;
    uint256 public constant MIN_DELAY = 1 hours; // a gateway sees a request and redeems, also while blocks are full
    uint256 public constant MAX_DELAY = 90 days;
    uint256 public constant MAX_DEPOSIT = type(uint128).max;
    /// @notice Gas that a contract which is a payer may use to say whether it signed.
    uint256 public constant SIGNATURE_GAS = 500_000;

    IRunCharter public immutable charter;
    IRevenue public immutable revenue;
    IGovernance private immutable _governor; // zero: none
    /// @notice The owners' part of what is redeemed, in parts per million.
    uint256 public immutable ownersPpm;
    /// @notice Seconds between asking for a refund and taking it.
    uint256 public immutable refundDelay;

    mapping(address token => bool) public isListed;
    /// @inheritdoc IVouchers
    mapping(address token => uint256) public owedOf;
    mapping(address gateway => mapping(address token => mapping(address payer => PayerDeposit))) private _deposits;

    constructor(IRunCharter charter_, uint256 ownersPpm_, uint256 refundDelay_) EIP712("Assay vouchers", "1") {
        if (ownersPpm_ > MAX_PPM) revert PartTooLarge(ownersPpm_, MAX_PPM);
        if (refundDelay_ < MIN_DELAY || refundDelay_ > MAX_DELAY) {
            revert DelayOutOfBounds(refundDelay_, MIN_DELAY, MAX_DELAY);
        }
        (charter, ownersPpm, refundDelay) = (charter_, ownersPpm_, refundDelay_);
        revenue = IRevenue(charter_.roundModules().revenue);
        _governor = IGovernance(charter_.roundModules().governor);
        address[] memory tokens = charter_.runTerms().revenueTokens;
        for (uint256 i = 0; i < tokens.length; ++i) {
            isListed[tokens[i]] = true;
        }
    }

    /// @inheritdoc IVouchers
    function deposit(address payer, address gateway, address token, uint256 amount) external nonReentrant {
        if (!isListed[token]) revert TokenNotListed(token);
        if (amount == 0) revert AmountZero();
        _checkAccount(payer);
        _checkAccount(gateway);
        // What was deposited can be redeemed and taken back whatever is decided.
        if (address(_governor) != address(0)) _mustBeOpen(gateway);
        PayerDeposit storage held = _deposits[gateway][token][payer];
        uint256 room = MAX_DEPOSIT - held.balance;
        if (amount > room) revert DepositTooLarge(amount, room);
        // What was asked for, and its clock, stay as they are. Attack: a stranger's wei that holds a refund up.
        held.balance += uint128(amount);
        uint256 before = IERC20(token).balanceOf(address(this));
        IERC20(token).safeTransferFrom(msg.sender, address(this), amount);
        uint256 received = IERC20(token).balanceOf(address(this)) - before;
        // Attack: a token that keeps a fee; more would be owed than is held.
        if (received != amount) revert FeeOnTransfer(received, amount);
        emit VoucherDeposited(payer, gateway, token, msg.sender, amount);
    }

    /// @inheritdoc IVouchers
    function askRefund(address gateway, address token, uint256 amount) external {
        PayerDeposit storage held = _deposits[gateway][token][msg.sender];
        if (amount > held.balance) revert RefundTooLarge(held.balance, amount);
        held.asked = uint128(amount);
        // Attack: a small request kept ready, raised in front of a redemption. All of it waits anew.
        held.notBefore = uint64(block.timestamp + refundDelay);
        emit RefundAsked(msg.sender, gateway, token, amount, held.notBefore);
    }

    /// @inheritdoc IVouchers
    function withdraw(address gateway, address token) external nonReentrant returns (uint256 amount) {
        PayerDeposit storage held = _deposits[gateway][token][msg.sender];
        amount = held.asked;
        if (amount == 0) revert NothingAsked(msg.sender);
        // Attack: money taken back in front of the redemption of vouchers that were served.
        if (block.timestamp < held.notBefore) revert RefundTooEarly(block.timestamp, held.notBefore);
        // Attack: a token that calls back in a transfer finds nothing left to withdraw.
        (held.asked, held.balance) = (0, held.balance - uint128(amount));
        IERC20(token).safeTransfer(msg.sender, amount);
        emit DepositRefunded(msg.sender, gateway, token, amount);
    }

    /// @inheritdoc IVouchers
    function redeem(address gateway, address token, PayerVoucher[] calldata vouchers)
        external
        nonReentrant
        returns (uint256 total)
    {
        for (uint256 i = 0; i < vouchers.length; ++i) {
            total += _take(gateway, token, vouchers[i]);
        }
        if (total == 0) revert NothingToRedeem(gateway, token);
        // Rounded up, for the owners.
        uint256 toOwners = Math.ceilDiv(total * ownersPpm, MAX_PPM);
        owedOf[token] += toOwners;
        emit GatewayPaid(gateway, token, total - toOwners, toOwners);
        if (total != toOwners) IERC20(token).safeTransfer(gateway, total - toOwners);
    }

    /// @inheritdoc IVouchers
    function payOwners(address token, uint256 amount) external nonReentrant {
        uint256 owed = owedOf[token];
        if (amount > owed) revert OwedTooLittle(token, owed, amount);
        owedOf[token] = owed - amount;
        IERC20(token).forceApprove(address(revenue), amount);
        revenue.deposit(token, amount);
        emit OwnersPaid(token, amount);
    }

    /// @inheritdoc IVouchers
    function depositOf(address payer, address gateway, address token) external view returns (PayerDeposit memory) {
        return _deposits[gateway][token][payer];
    }

    /// @inheritdoc IVouchers
    function digestOf(address payer, address gateway, address token, uint256 amount) public view returns (bytes32) {
        // The domain names chain and contract. Attack: a voucher used at another gateway, in another token, on a fork,
        // or for another wallet of the same key.
        return _hashTypedDataV4(keccak256(abi.encode(VOUCHER_TYPE, payer, gateway, token, amount)));
    }

    /// @inheritdoc IVouchers
    function isSigned(address payer, bytes32 digest, bytes calldata signature) external view returns (bool) {
        return _isSignedByKey(payer, digest, signature)
            || SignatureChecker.isValidERC1271SignatureNowCalldata(payer, digest, signature);
    }

    /// @dev What a voucher takes out of its payer's deposit; zero for one that takes nothing.
    function _take(address gateway, address token, PayerVoucher calldata voucher) private returns (uint256 taken) {
        PayerDeposit storage held = _deposits[gateway][token][voucher.payer];
        (uint256 balance, uint256 redeemed) = (held.balance, held.redeemed);
        // Passed over. Attack: a batch stopped by one voucher of it that was redeemed in front of it.
        if (voucher.amount <= redeemed || balance == 0) return 0;
        bytes32 digest = digestOf(voucher.payer, gateway, token, voucher.amount);
        if (!_isSignedInBounds(voucher.payer, digest, voucher.signature)) return 0;
        taken = Math.min(voucher.amount - redeemed, balance);
        uint256 left = balance - taken;
        (held.balance, held.asked) = (uint128(left), uint128(Math.min(held.asked, left)));
        // Each step is below 2^128: 2^64 of them do not fit into the time of any chain.
        held.redeemed = uint192(redeemed + taken);
        emit VoucherRedeemed(voucher.payer, gateway, token, taken, redeemed + taken);
    }

    /// @dev Attack: a payer whose code burns all gas, or answers nonsense, stops the batch that it is in.
    function _isSignedInBounds(address payer, bytes32 digest, bytes calldata signature) private view returns (bool) {
        if (_isSignedByKey(payer, digest, signature)) return true;
        if (payer.code.length == 0) return false;
        try this.isSigned{gas: SIGNATURE_GAS}(payer, digest, signature) returns (bool signed) {
            return signed;
        } catch {
            return false;
        }
    }

    /// @dev Asked first. Attack: an account that signs by its key, is served, and takes on code that denies it (EIP-7702).
    function _isSignedByKey(address payer, bytes32 digest, bytes calldata signature) private pure returns (bool) {
        (address signer, ECDSA.RecoverError error,) = ECDSA.tryRecoverCalldata(digest, signature);
        return error == ECDSA.RecoverError.NoError && signer == payer;
    }

    function _mustBeOpen(address gateway) private view {
        if (_governor.isSunset()) revert FeesEnded();
        if (_governor.isDelisted(gateway)) revert GatewayDelisted(gateway);
    }

    function _checkAccount(address account) private view {
        if (account == address(0) || account == address(this)) revert AccountUnusable(account);
    }
}
