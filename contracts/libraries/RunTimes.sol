// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Clocks, RunChain, RunEconomics, RunTerms, RunTiming} from "../interfaces/RunTypes.sol";
import {GameBounds} from "./GameBounds.sol";

/// @title RunTimes: what the chain's delays, reorganizations and fees demand of a run (equal to assay/protocol/economics/run_times.py)
library RunTimes {
    uint256 internal constant PPM = 1e6;
    uint256 internal constant MARGIN = 600; // seconds: a loaded machine is never late
    /// @dev Seconds of every turn and stage beyond what the chain can delay.
    uint256 internal constant MIN_TURN = 60;
    /// @dev Seconds within which a block is built after its own time, and a beacon's round after that: a block of Ethereum and four rounds of drand.
    uint256 internal constant MIN_BEACON_DELAY = 24;
    uint256 internal constant MAX_WINDOW = 180 days; // beyond any use; a payee waits for sums of these
    uint256 internal constant MAX_DELAY = 30 days; // of the chain or of a clock
    uint256 internal constant MIN_STALL = 14 days;
    uint256 internal constant MAX_FEE_CAP = 1e15; // wei per gas: a million gwei, beyond which no side could ever defer
    uint256 internal constant REPLY_GAS = 350_000; // no reply of a defender needs more at any arity
    uint256 internal constant CHALLENGER_MOVE_GAS = 250_000;
    /// @dev Bytes of a move: 64 digests, or a leaf of 1 KiB and the way to it.
    uint256 internal constant MOVE_BYTES = 4096;
    uint256 internal constant REPEATS = 3; // how often an epoch can run
    uint256 internal constant EPOCHS_TO_SETTLE = 4; // the wait for a round's own, that one, and the two after it

    /// @notice Reverts by name where an honest party could be late, be undone, or pay for gas below the cap.
    function check(RunTerms memory terms) internal pure {
        (RunTiming memory t, RunChain memory c) = (terms.timing, terms.chain);
        if (c.feeCap == 0) revert IRunCharter.ValueZero("fee cap");
        if (c.feeCap > MAX_FEE_CAP) revert IRunCharter.AmountTooLarge("fee cap", c.feeCap, MAX_FEE_CAP);
        checkRange("reorg depth", c.reorgDepth, 0, MAX_DELAY);
        checkRange("inclusion delay", c.inclusionDelay, 0, MAX_DELAY);
        checkRange("least budget", c.leastBudget, 0, MAX_DELAY);
        _checkClocks(terms.clocks, c);
        _checkRounds(t, c, terms.clocks.replay, terms.training.seats);
        _checkEpochs(t, c, terms.economics.capacity);
        checkRange("audits from", t.auditsFrom, 0, terms.launch.openFrom);
        checkRange("longest dispute", t.longestDispute, MARGIN, MAX_WINDOW);
        uint256 verdict = lastVerdict(t, c.inclusionDelay);
        // Attack: shares that vest while the lock behind other work of the same seat can still fall.
        checkRange("vesting", t.vesting, verdict, 8 * MAX_WINDOW);
        // Attack: a wind-down that voids what is only slow.
        checkRange("stall", t.stall, Math.max(MIN_STALL, slowest(t, c.inclusionDelay)), 24 * MAX_WINDOW);
        // Attack: an exit without end, at which honest money is stuck.
        checkRange("exit", t.exit, 0, MAX_WINDOW);
        _checkGas(terms.economics, terms.clocks.arity, c);
    }

    /// @notice From an opening until nothing behind a generation can fall any more: its window and dispute, a rescue, the rescuer's window and dispute.
    function lastVerdict(RunTiming memory t, uint256 inclusionDelay) internal pure returns (uint256) {
        uint256 trial = uint256(t.challenge) + t.longestDispute + inclusionDelay;
        return 2 * trial + t.rescue;
    }

    /// @notice From one final generation to the next, and until all that follows from its round is settled, at the slowest.
    function slowest(RunTiming memory t, uint256 inclusionDelay) internal pure returns (uint256) {
        // The next round may wait until what U rounds before it earned is due.
        uint256 audits = EPOCHS_TO_SETTLE * (t.seedDelay + REPEATS * uint256(t.epoch));
        return audits + t.commit + inclusionDelay + untilFinal(t) + lastVerdict(t, inclusionDelay);
    }

    /// @notice U: rounds of C from a commitment until it is paid, if nobody is late: until its audits are over, or its base is final.
    function unsettledRounds(RunTiming memory t, uint256 inclusionDelay) internal pure returns (uint256) {
        uint256 audits = EPOCHS_TO_SETTLE * (uint256(t.epoch) + t.seedDelay);
        return 1 + Math.ceilDiv(inclusionDelay + Math.max(audits, untilFinal(t)), t.commit);
    }

    /// @notice Seconds from a round's last commitment until its generation is final, if nobody is late and nothing is disputed.
    function untilFinal(RunTiming memory t) internal pure returns (uint256) {
        return uint256(t.beaconDelay) + t.hold + t.groupMerge + t.merge + t.challenge;
    }

    /// @notice C: every reply is refunded C / 2R, which must pay for its gas and data at the cap; R most replies.
    function minChallengeBond(RunChain memory c, uint256 arity) internal pure returns (uint256) {
        return 2 * _mostReplies(arity) * (REPLY_GAS * c.gasPrice + MOVE_BYTES * uint256(c.dataPrice));
    }

    /// @notice What a first winner keeps after all advances must pay for its gas and data at the cap.
    function minKept(RunChain memory c, uint256 arity) internal pure returns (uint256) {
        return (_mostReplies(arity) + 1) * (CHALLENGER_MOVE_GAS * c.gasPrice + MOVE_BYTES * uint256(c.dataPrice));
    }

    function _checkClocks(Clocks memory k, RunChain memory c) private pure {
        // Attack: clocks so short that a second of silence, or a censorship that the chain admits, convicts.
        checkRange("budget", k.budget, Math.max(c.leastBudget, MARGIN), MAX_DELAY);
        checkRange("replay", k.replay, MIN_TURN, MAX_DELAY);
        checkRange("move", k.move, MIN_TURN, MAX_DELAY);
    }

    function _checkRounds(RunTiming memory t, RunChain memory c, uint256 replay, uint256 seats) private pure {
        uint256 f = c.inclusionDelay;
        checkRange("commit", t.commit, MARGIN, MAX_WINDOW / 4);
        // Attack: transactions kept out for the chain's inclusion delay F, of which every stage takes one, a merge two.
        checkRange("hold", t.hold, f + MIN_TURN, MAX_WINDOW);
        checkRange("grace", t.grace, 0, Math.min(f, t.hold));
        checkRange("group merge", t.groupMerge, seats > 64 ? 2 * (f + MIN_TURN) : 0, seats > 64 ? MAX_WINDOW : 0);
        checkRange("merge", t.merge, 2 * (f + MIN_TURN), MAX_WINDOW);
        // Attack: the last commitment, which closes the mask, held back until the committees that follow from it suit its maker.
        checkRange("beacon delay", t.beaconDelay, seats > 64 ? MIN_BEACON_DELAY : 0, MAX_DELAY);
        // A committed challenge takes two transactions, the second later than what can be undone.
        checkRange("challenge", t.challenge, 2 * f + c.reorgDepth + replay + MARGIN, MAX_WINDOW);
        // A rescuer may have to compute the merge first.
        checkRange("rescue", t.rescue, f + replay + MARGIN, MAX_WINDOW);
    }

    function _checkEpochs(RunTiming memory t, RunChain memory c, uint256 capacity) private pure {
        // A ticket replays c commitments of its epoch, one of which may have just closed, and opens.
        checkRange("epoch", t.epoch, (capacity + 1) * t.commit + 2 * uint256(c.inclusionDelay), MAX_WINDOW);
        // Attack: a seed that a reorganization shows early, while what it draws over can still be undone.
        checkRange("seed delay", t.seedDelay, uint256(c.reorgDepth) + 1, MAX_WINDOW);
        // Attack: chains and tickets chosen for a seed that is known; the second one after counts.
        uint256 season = 2 * (uint256(t.epoch) + t.seedDelay);
        checkRange("seasoning", t.seasoning, season, 4 * MAX_WINDOW);
    }

    function _checkGas(RunEconomics memory e, uint256 arity, RunChain memory c) private pure {
        uint256 minimum = minChallengeBond(c, arity);
        // Attack: a flood of bonded false challenges; every reply's gas is paid from the bond.
        if (e.challengeBond < minimum) revert IRunCharter.ChallengeBondTooSmall(e.challengeBond, minimum);
        uint256 kept = Math.min(e.seatLock, e.ticketBond) * e.thirdBountyPpm / (2 * PPM);
        minimum = minKept(c, arity);
        if (kept < minimum) revert IRunCharter.BountyTooSmall(kept, minimum);
    }

    function _mostReplies(uint256 arity) private pure returns (uint256) {
        return GameBounds.mostReplies(arity, Math.log2(arity));
    }

    function checkRange(bytes32 what, uint256 value, uint256 least, uint256 most) internal pure {
        if (value < least) revert IRunCharter.WindowTooShort(what, value, least);
        if (value > most) revert IRunCharter.ScheduleTooLong(what, value, most);
    }
}
