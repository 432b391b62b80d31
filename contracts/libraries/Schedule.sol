// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Windows} from "../interfaces/ICharter.sol";
import {Times} from "../interfaces/IRounds.sol";

/// @title Schedule: the deadlines of a round from its T0
library Schedule {
    /// @notice T7 begins one second after the last leaf may be revealed, so that inclusion is decided on everything revealed.
    function timesOf(Windows memory w, uint64 t0) internal pure returns (Times memory t) {
        t.t0 = t0;
        t.t1 = t0 + w.commit;
        t.receiptsUntil = t.t1 + w.receipt;
        t.t2 = t.receiptsUntil + w.seedDelay;
        t.t3 = t.t2 + w.attest;
        t.t4 = t.t3 + w.draw;
        t.t5 = t.t4 + w.whistle;
        t.leavesUntil = t.t5 + w.reveal;
        t.t7 = t.leavesUntil + w.reveal + 1;
        t.challengeUntil = t.t7 + w.challenge;
    }
}
