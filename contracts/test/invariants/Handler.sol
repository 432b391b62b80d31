// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Test} from "../Test.sol";

/// @title Handler: what an invariant test lets the runner call, in any order with any arguments
/// @dev Arguments are folded into what could happen. Every call is predicted: it must go through exactly when the handler's own books say that it may,
/// so a handler never skips what a contract wrongly refuses, and never overlooks what it wrongly allows.
abstract contract Handler is Test {
    error NotAsPredicted(bytes4 selector, bool done, bool predicted, bytes answer);
    error NotDeployed(string artifact);

    address private immutable _test = msg.sender;

    /// @dev What the test calls at the end of a run and the runner must not.
    modifier onlyTest() {
        if (msg.sender == _test) _;
    }

    /// @dev Calls as `who` and checks that the call goes through exactly if `predicted`.
    function _call(address who, address target, bytes memory data, bool predicted) internal returns (bytes memory) {
        vm.prank(who);
        (bool done, bytes memory answer) = target.call(data);
        if (done != predicted) revert NotAsPredicted(bytes4(data), done, predicted, answer);
        return answer;
    }

    /// @dev Deploys a contract of the build at the place that `_place` names. Its code is read, not compiled into the handler.
    function _deploy(string memory artifact, bytes memory arguments) internal returns (address made) {
        bytes memory code = bytes.concat(vm.getCode(artifact), arguments);
        assembly {
            made := create2(0, add(code, 32), mload(code), 0)
        }
        if (made == address(0)) revert NotDeployed(artifact);
    }

    /// @dev Contracts of a run know each other's addresses before any of them exists.
    function _place(string memory artifact, bytes memory arguments) internal view returns (address) {
        bytes32 code = keccak256(bytes.concat(vm.getCode(artifact), arguments));
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), code)))));
    }
}

/// @title Invariants: base of the tests; the runner calls one handler and nothing else
abstract contract Invariants is Test {
    address internal _handler;

    /// @notice Read by the runner.
    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = _handler;
    }
}
