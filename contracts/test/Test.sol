// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice The cheat codes our tests use, at the address the forge test runner answers on.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    // identity, time, balances
    function prank(address sender) external;
    function prank(address sender, address origin) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function deal(address who, uint256 amount) external;
    function etch(address who, bytes calldata code) external;
    function store(address who, bytes32 slot, bytes32 value) external;
    function load(address who, bytes32 slot) external view returns (bytes32);
    function warp(uint256 timestamp) external;
    function roll(uint256 blockNumber) external;
    function prevrandao(bytes32 value) external;
    function chainId(uint256 id) external;
    function fee(uint256 baseFee) external;
    function snapshotState() external returns (uint256);
    function revertToState(uint256 id) external returns (bool);
    function label(address who, string calldata name) external;

    // expectations
    function expectRevert() external;
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata data) external;
    function expectPartialRevert(bytes4 selector) external;
    function expectEmit() external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data) external;
    function assume(bool condition) external pure;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);

    // keys
    function addr(uint256 privateKey) external pure returns (address);
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);

    // files and JSON (read-only, tests/vectors)
    function projectRoot() external view returns (string memory);
    function readFile(string calldata path) external view returns (string memory);
    function readFileBinary(string calldata path) external view returns (bytes memory);
    function readLine(string calldata path) external view returns (string memory);
    function parseJson(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function parseJsonUintArray(string calldata json, string calldata key) external pure returns (uint256[] memory);
    function parseJsonInt(string calldata json, string calldata key) external pure returns (int256);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function keyExistsJson(string calldata json, string calldata key) external view returns (bool);
    function toString(uint256 value) external pure returns (string memory);
    function toString(int256 value) external pure returns (string memory);
    function toString(bytes32 value) external pure returns (string memory);
    function toString(bytes calldata value) external pure returns (string memory);

    // artifacts
    function getCode(string calldata artifact) external view returns (bytes memory creationCode);

    // gas
    function pauseGasMetering() external;
    function resumeGasMetering() external;
}

/// @notice Base of every forge test: assertions that say both values.
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    error NotTrue(string what);
    error NotEqualUint(uint256 got, uint256 want, string what);
    error NotEqualInt(int256 got, int256 want, string what);
    error NotEqualBytes32(bytes32 got, bytes32 want, string what);
    error NotEqualAddress(address got, address want, string what);
    error NotEqualBytes(bytes got, bytes want, string what);
    error NotLess(uint256 got, uint256 bound, string what);

    /// @dev The runner recognizes a test contract by this flag.
    function IS_TEST() external pure returns (bool) {
        return true;
    }

    function assertTrue(bool condition, string memory what) internal pure {
        if (!condition) revert NotTrue(what);
    }

    function assertTrue(bool condition) internal pure {
        assertTrue(condition, "");
    }

    function assertFalse(bool condition, string memory what) internal pure {
        if (condition) revert NotTrue(what);
    }

    function assertFalse(bool condition) internal pure {
        assertFalse(condition, "");
    }

    function assertEq(uint256 got, uint256 want, string memory what) internal pure {
        if (got != want) revert NotEqualUint(got, want, what);
    }

    function assertEq(uint256 got, uint256 want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(int256 got, int256 want, string memory what) internal pure {
        if (got != want) revert NotEqualInt(got, want, what);
    }

    function assertEq(int256 got, int256 want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(bytes32 got, bytes32 want, string memory what) internal pure {
        if (got != want) revert NotEqualBytes32(got, want, what);
    }

    function assertEq(bytes32 got, bytes32 want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(address got, address want, string memory what) internal pure {
        if (got != want) revert NotEqualAddress(got, want, what);
    }

    function assertEq(address got, address want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(bool got, bool want, string memory what) internal pure {
        if (got != want) revert NotTrue(what);
    }

    function assertEq(bool got, bool want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(bytes memory got, bytes memory want, string memory what) internal pure {
        if (keccak256(got) != keccak256(want)) revert NotEqualBytes(got, want, what);
    }

    function assertEq(bytes memory got, bytes memory want) internal pure {
        assertEq(got, want, "");
    }

    function assertEq(string memory got, string memory want) internal pure {
        assertEq(bytes(got), bytes(want), "");
    }

    function assertLt(uint256 got, uint256 limit, string memory what) internal pure {
        if (got >= limit) revert NotLess(got, limit, what);
    }

    function assertLe(uint256 got, uint256 limit, string memory what) internal pure {
        if (got > limit) revert NotLess(got, limit, what);
    }

    /// @notice Folds a fuzzed value into [low, high].
    function bound(uint256 x, uint256 low, uint256 high) internal pure returns (uint256) {
        if (low > high) revert NotLess(low, high, "bound");
        unchecked {
            uint256 span = high - low + 1;
            return span == 0 ? x : low + (x % span);
        }
    }
}
