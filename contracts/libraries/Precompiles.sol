// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Precompiles: calls of the chain's built-in functions, with bounded gas
/// @notice A precompile that rejects its input burns all gas that it was given, so it is never given everything; and a
/// call that runs out of gas looks like a rejection from outside, so gas is counted before.
library Precompiles {
    /// @notice The transaction has too little gas to reach a verdict; nothing was decided.
    /// @dev A signature must not seem wrong because gas ran out.
    /// @custom:remedy Send it again with more gas.
    /// @param available gas left
    /// @param needed gas that the check takes
    error GasTooLow(uint256 available, uint256 needed);

    /// @notice The chain has not this curve operation, or prices it beyond what is forwarded.
    /// @dev A drand beacon needs EIP-196, EIP-197 and EIP-198.
    /// @custom:remedy Use a chain that has the precompile at this address.
    /// @param precompile its address
    error PrecompileFailed(address precompile);

    address internal constant MODEXP = address(0x05);

    /// @notice Calls a precompile; says whether it answered with the expected number of bytes.
    /// @dev Attack: sending just too little gas, so that a good signature looks bad. This reverts instead of answering.
    function tryCall(address precompile, uint256 gasLimit, bytes memory input, uint256 outputLength)
        internal
        view
        returns (bool ok, bytes memory output)
    {
        // The EVM keeps 1/64 of what is left back from every call (EIP-150); 10,000 covers the call and the copies.
        uint256 needed = gasLimit + gasLimit / 63 + 10_000;
        if (gasleft() < needed) revert GasTooLow(gasleft(), needed);
        (ok, output) = precompile.staticcall{gas: gasLimit}(input);
        // A call to an address without code succeeds and returns nothing.
        ok = ok && output.length == outputLength;
    }

    /// @notice Calls a precompile on input that it cannot reject.
    function must(address precompile, uint256 gasLimit, bytes memory input, uint256 outputLength)
        internal
        view
        returns (bytes memory output)
    {
        bool ok;
        (ok, output) = tryCall(precompile, gasLimit, input, outputLength);
        if (!ok) revert PrecompileFailed(precompile);
    }
}
