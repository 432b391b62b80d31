// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice What a payer holds at a gateway, in wei of one token. A sum of the balances and of what is owed to the owners is what the contract holds.
struct PayerDeposit {
    uint128 balance; // deposited, and neither redeemed nor withdrawn
    uint128 asked; // of the balance: what the payer has asked to have back
    uint192 redeemed; // by the gateway in all: the amount up to which vouchers are used up
    uint64 notBefore; // chain time from which what was asked for can be withdrawn
}

/// @notice A voucher as it is redeemed: gateway and token are those of the batch.
struct PayerVoucher {
    address payer;
    uint256 amount; // wei that the payer has paid the gateway in all
    bytes signature; // of the payer under the voucher's EIP-712 digest
}

/// @title Payment by voucher: deposits per payer, gateway and token, and signed amounts that only grow
/// @notice A gateway serves a voucher of amount A if A <= redeemed + balance - asked; it then has the refund delay to redeem it, whatever the payer does.
/// Nobody administers the contract. Conservation: balances + what is owed to the owners = tokens received - tokens paid out.
interface IVouchers {
    /// @notice The token is no revenue token of the run.
    /// @dev The owners' part is paid into the run's revenue, which takes no other.
    /// @custom:remedy Deposit a token that `assay run show` lists.
    /// @param token the token named
    error TokenNotListed(address token);

    /// @notice The amount is zero.
    /// @dev A move of nothing is a mistake of its caller.
    /// @custom:remedy Name an amount above zero.
    error AmountZero();

    /// @notice The deposit would have more than 128 bits.
    /// @custom:remedy Deposit less.
    /// @param amount amount of the deposit, in wei
    /// @param room most that can be added to it now, in wei
    error DepositTooLarge(uint256 amount, uint256 room);

    /// @notice The token keeps a part of what is transferred.
    /// @dev With such a token more would be owed than is held.
    /// @custom:remedy Pay in a token that moves exact amounts.
    /// @param received what arrived, in wei
    /// @param wanted what was to arrive, in wei
    error FeeOnTransfer(uint256 received, uint256 wanted);

    /// @notice The owners of the run's shares decided its sunset: no deposit is taken any more.
    /// @dev What was deposited can be redeemed and taken back as before.
    /// @custom:remedy None: use a gateway of another run.
    error FeesEnded();

    /// @notice The owners of the run's shares took the gateway off their list: no deposit for it is taken.
    /// @dev What was deposited can be redeemed and taken back as before.
    /// @custom:remedy Use another gateway.
    /// @param gateway its account
    error GatewayDelisted(address gateway);

    /// @notice Nobody can sign for this payer, or be paid as this gateway.
    /// @dev What is deposited there would be lost.
    /// @custom:remedy Name the account of a payer and of a gateway.
    /// @param account the zero address, or the contract itself
    error AccountUnusable(address account);

    /// @notice The owners cannot have more than all.
    /// @custom:remedy Deploy with a part of at most a million millionths.
    /// @param ppm the part, in parts per million
    /// @param maximum in parts per million
    error PartTooLarge(uint256 ppm, uint256 maximum);

    /// @notice The refund delay is too short for a gateway to redeem in, or too long for a payer to wait.
    /// @custom:remedy Deploy with a delay within the bounds.
    /// @param delay in seconds
    /// @param minimum in seconds
    /// @param maximum in seconds
    error DelayOutOfBounds(uint256 delay, uint256 minimum, uint256 maximum);

    /// @notice No voucher of the batch takes anything: used up, not signed by its payer, or of a payer without a deposit.
    /// @custom:remedy Look at the deposits (`assay gateway show`); what was redeemed already is paid.
    /// @param gateway whose vouchers they are
    /// @param token in which they pay
    error NothingToRedeem(address gateway, address token);

    /// @notice More is asked for than the deposit holds.
    /// @custom:remedy Ask for at most the balance.
    /// @param balance of the deposit, in wei
    /// @param wanted amount asked for, in wei
    error RefundTooLarge(uint256 balance, uint256 wanted);

    /// @notice The payer has asked for nothing of this deposit, or all of it was redeemed since.
    /// @custom:remedy Ask first (`assay gateway refund`), then wait for the delay.
    /// @param payer the account
    error NothingAsked(address payer);

    /// @notice The refund delay is not over.
    /// @dev In it the gateway redeems what it accepted before it knew of the request.
    /// @custom:remedy Withdraw from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    error RefundTooEarly(uint256 now_, uint256 notBefore);

    /// @notice Less is owed to the owners in this token.
    /// @custom:remedy Name at most what is owed.
    /// @param token the token named
    /// @param owed in wei
    /// @param wanted amount named, in wei
    error OwedTooLittle(address token, uint256 owed, uint256 wanted);

    /// @notice A deposit was raised.
    /// @param payer whose deposit it is
    /// @param gateway for whose vouchers it stands
    /// @param token in which it pays
    /// @param from who gave the tokens
    /// @param amount in wei
    event VoucherDeposited(
        address indexed payer, address indexed gateway, address indexed token, address from, uint256 amount
    );

    /// @notice A payer asked for a part of its deposit back, in place of whatever it had asked for before; zero cancels.
    /// @param payer whose deposit it is
    /// @param gateway for whose vouchers it stands
    /// @param token in which it pays
    /// @param amount asked for, in wei
    /// @param notBefore chain time, in seconds, from which what is left of it can be withdrawn
    event RefundAsked(
        address indexed payer, address indexed gateway, address indexed token, uint256 amount, uint64 notBefore
    );

    /// @notice A payer took back what it had asked for, less what was redeemed since.
    /// @param payer whose deposit it was
    /// @param gateway for whose vouchers it stood
    /// @param token in which it was paid
    /// @param amount in wei
    event DepositRefunded(address indexed payer, address indexed gateway, address indexed token, uint256 amount);

    /// @notice A voucher was redeemed.
    /// @param payer who signed it
    /// @param gateway whom it pays
    /// @param token in which it pays
    /// @param taken out of the deposit by it, in wei
    /// @param redeemed of this payer by this gateway in all, in wei
    event VoucherRedeemed(
        address indexed payer, address indexed gateway, address indexed token, uint256 taken, uint256 redeemed
    );

    /// @notice A batch of vouchers was paid.
    /// @param gateway who was paid
    /// @param token in which
    /// @param paid to the gateway, in wei
    /// @param toOwners owed to the owners by it, in wei
    event GatewayPaid(address indexed gateway, address indexed token, uint256 paid, uint256 toOwners);

    /// @notice What was owed to the owners of the model went to its revenue.
    /// @param token in which
    /// @param amount in wei
    event OwnersPaid(address indexed token, uint256 amount);

    /// @notice Adds tokens of the caller to a payer's deposit at a gateway. It is the payer's from then on.
    function deposit(address payer, address gateway, address token, uint256 amount) external;

    /// @notice Asks for a part of the caller's deposit back, in place of whatever was asked for before; zero cancels.
    /// @dev The delay begins anew. Vouchers are redeemed out of what was not asked for first, then out of this.
    function askRefund(address gateway, address token, uint256 amount) external;

    /// @notice Pays the caller what it asked for and what was not redeemed since, after the delay.
    function withdraw(address gateway, address token) external returns (uint256 amount);

    /// @notice Redeems vouchers for a gateway; anyone may call. What takes nothing is passed over.
    /// @dev A voucher takes what its amount exceeds `redeemed` by, at most the balance.
    function redeem(address gateway, address token, PayerVoucher[] calldata vouchers) external returns (uint256 total);

    /// @notice Pays a part of what is owed to the owners into the run's revenue; anyone may call.
    /// @dev Reverts as `Revenue.deposit` does, which takes no small amounts and has a bound in all.
    function payOwners(address token, uint256 amount) external;

    /// @notice What a payer holds at a gateway.
    function depositOf(address payer, address gateway, address token) external view returns (PayerDeposit memory);

    /// @notice Owed to the owners and not paid into the run's revenue yet, in wei.
    function owedOf(address token) external view returns (uint256);

    /// @notice What a payer signs: the EIP-712 digest of a voucher.
    function digestOf(address payer, address gateway, address token, uint256 amount) external view returns (bytes32);

    /// @notice Whether a signature under a digest is the payer's: of its own key, or as its code says (EIP-1271).
    function isSigned(address payer, bytes32 digest, bytes calldata signature) external view returns (bool);
}
