// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ISeed} from "../interfaces/ISeed.sol";

/// @title FixedSeed: a seed that a test can know beforehand
contract FixedSeed is ISeed {
    function draw() external view returns (bytes32) {
        return keccak256(abi.encode("fixed seed", block.timestamp));
    }
}
