// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Modules, Terms} from "../interfaces/ICharter.sol";

/// @title StageCharter: what a vault asks of a charter, for contracts that no charter names yet
contract StageCharter {
    address private immutable _token;
    uint64 private immutable _exit;
    address[5] private _peers;

    constructor(address token, uint64 exit, address[5] memory peers) {
        (_token, _exit, _peers) = (token, exit, peers);
    }

    function terms() external view returns (Terms memory result) {
        result.token = _token;
        result.windows.exit = _exit;
    }

    function modules() external view returns (Modules memory result) {
        (result.rounds, result.outers, result.audit) = (_peers[0], _peers[1], _peers[2]);
        (result.settlement, result.game) = (_peers[3], _peers[4]);
    }
}
