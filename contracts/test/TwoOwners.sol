// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title TwoOwners: the least multisig; it executes what both its owners have asked for
contract TwoOwners {
    address public immutable first;
    address public immutable second;
    mapping(bytes32 asked => address by) public askedBy;

    error NotAnOwner(address who);
    error Failed(bytes why);

    constructor(address first_, address second_) {
        (first, second) = (first_, second_);
    }

    /// @notice Ask for a call; the second owner's asking executes it.
    function execute(address to, uint256 value, bytes calldata data) external {
        if (msg.sender != first && msg.sender != second) revert NotAnOwner(msg.sender);
        bytes32 asked = keccak256(abi.encode(to, value, data));
        address by = askedBy[asked];
        if (by == address(0) || by == msg.sender) {
            askedBy[asked] = msg.sender;
            return;
        }
        delete askedBy[asked];
        (bool worked, bytes memory why) = to.call{value: value}(data);
        if (!worked) revert Failed(why);
    }
}
