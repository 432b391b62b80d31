// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Revenue of a model: deposits stream to the owners of its shares.
interface IRevenue {
    /// @notice Only the share token tells of a transfer.
    /// @dev Revenue is booked by the balances before each transfer; a false report would move what others earned.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotShares(address caller);

    /// @notice The token is no revenue token of the run.
    /// @dev Every listed token is booked at every transfer of shares, so the charter lists them once.
    /// @custom:remedy Pay in, or claim, a token that `assay run show` lists.
    /// @param token the token named
    error TokenNotListed(address token);

    /// @notice The deposit is too small to be streamed exactly.
    /// @dev A deposit streams by the second over four weeks and must have a wei for each.
    /// @custom:remedy Pay at least the minimum.
    /// @param amount amount of the deposit, in wei
    /// @param minimum least deposit, in wei
    error DepositTooSmall(uint256 amount, uint256 minimum);

    /// @notice The run would take more than 2^120 wei of this token in all.
    /// @dev Beyond it the sums of a transfer of shares could overflow, and no share could move any more.
    /// @custom:remedy Pay less, or in another listed token.
    /// @param amount amount of the deposit, in wei
    /// @param room most of this token that the run still takes, in wei
    error DepositTooLarge(uint256 amount, uint256 room);

    /// @notice The token keeps a part of what is transferred.
    /// @dev With such a token more would be owed to the owners than was paid in.
    /// @custom:remedy Pay in a token that moves exact amounts.
    /// @param received what arrived, in wei
    /// @param wanted what was to arrive, in wei
    error FeeOnTransfer(uint256 received, uint256 wanted);

    /// @notice No revenue in this token is due to the account now.
    /// @custom:remedy Claim later: revenue streams over four weeks.
    /// @param token the token named
    /// @param owner the account
    error NothingToClaim(address token, address owner);

    /// @notice Somebody paid revenue of the model in.
    /// @dev It streams to the owners of shares over the four weeks after the bucket begins.
    /// @param token in which it was paid
    /// @param from who paid
    /// @param amount in wei
    /// @param week the bucket: weeks of seven days since the start of Unix time
    event Deposited(address indexed token, address indexed from, uint256 amount, uint256 week);

    /// @notice Revenue that streamed while there was no share streams again.
    /// @dev Thus the first owner of a share does not take what was paid before.
    /// @param token in which it was paid
    /// @param amount in wei
    /// @param week the bucket: weeks of seven days since the start of Unix time
    event StreamsAnew(address indexed token, uint256 amount, uint256 week);

    /// @notice The revenue of an owner of shares was paid.
    /// @param token in which it was paid
    /// @param owner whose shares earned it
    /// @param to who was paid: the owner's payee in the vault
    /// @param amount in wei
    event Claimed(address indexed token, address indexed owner, address indexed to, uint256 amount);

    /// @notice Adds revenue: it joins the next weekly bucket and streams linearly over the four weeks after that bucket begins.
    /// @dev DepositTooLarge: of each token a run takes MAX_TOTAL wei in all; pay less, or in another listed token.
    function deposit(address token, uint256 amount) external;

    /// @notice Pays what the caller's shares have earned in a token to the caller's payee in the vault.
    function claim(address token) external returns (uint256 amount);

    /// @notice Pays what the shares of an owner have earned in a token to the owner's payee. The owner or its payee may call.
    /// @dev NotThePayee, as in the vault, for anybody else.
    function claimFor(address token, address owner) external returns (uint256 amount);

    /// @notice Shares only: settles both sides before balances change.
    function onTransfer(address from, address to) external;

    function claimable(address token, address owner) external view returns (uint256);
}
