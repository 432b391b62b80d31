// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {ICalls} from "../interfaces/ICalls.sol";

/// @title CallsStage: epochs that a test begins, and a peer in whose name it calls
contract CallsStage is ICalls {
    using Checkpoints for Checkpoints.Trace208;

    mapping(uint32 shift => Checkpoints.Trace208) private _calls;
    uint24 private _epoch;
    uint48 private _start;

    function begin(uint24 epoch, uint48 start, uint32 shift) external {
        (_epoch, _start) = (epoch, start);
        _calls[shift].push(start, _calls[shift].latest() + 1);
    }

    function isStopped() external pure returns (bool) {
        return false;
    }

    function stoppedAt() external pure returns (uint48) {
        return 0;
    }

    function act(address target, bytes calldata call) external returns (bytes memory answer) {
        bool done;
        (done, answer) = target.call(call);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    function callsAt(uint32 shift, uint48 time) external view returns (uint32) {
        return uint32(_calls[shift].upperLookupRecent(time));
    }

    function overSince(uint24 epoch) external view returns (uint48) {
        return _epoch > uint256(epoch) + 2 ? _start : 0;
    }

    function overAfter(uint48) external pure returns (uint48) {
        return 0;
    }

    function newest() external view returns (uint24 epoch, uint48 start) {
        return (_epoch, _start);
    }
}
