// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {ChainProfile, Clocks, Economics, ICharter, Windows} from "../interfaces/ICharter.sol";
import {EconomicsBounds} from "./Economics.sol";
import {GameBounds} from "./GameBounds.sol";

/// @title ChainBounds: what the chain's delays, reorganizations and fees demand of a run (equal to assay/protocol/economics/chain_profile.py)
library ChainBounds {
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant MARGIN = EconomicsBounds.MIN_WINDOW;
    /// @dev Seconds of every turn without the budget: no party is convicted for a busy machine in a single turn.
    uint256 internal constant MIN_TURN = 60;
    uint256 internal constant MAX_FEE_CAP = 1e15; // wei per gas: a million gwei, beyond which no side could ever defer
    /// @dev No reply of a defender needs more gas at any arity.
    uint256 internal constant REPLY_GAS = 350_000;
    /// @dev A challenger's whole game needs no more than this for every move that it can consist of.
    uint256 internal constant CHALLENGER_MOVE_GAS = 250_000;

    /// @notice C: every reply is refunded C / 2R, which must pay for its gas at the cap; R most replies.
    function minChallengeBond(ChainProfile memory p, uint256 arity) internal pure returns (uint256) {
        return 2 * _mostReplies(arity) * REPLY_GAS * p.gasPrice;
    }

    /// @notice The bounty that a first winner keeps after all advances, half of beta of a lock, must pay for its gas at the cap.
    function minKept(ChainProfile memory p, uint256 arity) internal pure returns (uint256) {
        return (_mostReplies(arity) + 1) * CHALLENGER_MOVE_GAS * p.gasPrice;
    }

    /// @notice Reverts by name where an honest party could be late, be undone, or pay for gas below the cap.
    function check(ChainProfile memory p, Windows memory w, Clocks memory c, Economics memory e) internal pure {
        if (p.feeCap == 0) revert ICharter.ValueZero("fee cap");
        if (p.feeCap > MAX_FEE_CAP) revert ICharter.AmountTooLarge("fee cap", p.feeCap, MAX_FEE_CAP);
        _checkAtMost("reorg depth", p.reorgDepth, EconomicsBounds.MAX_DELAY);
        _checkAtMost("budget", c.budget, EconomicsBounds.MAX_DELAY + MARGIN);
        _checkAtMost("replay", c.replay, EconomicsBounds.MAX_DELAY);
        _checkAtMost("move", c.move, EconomicsBounds.MAX_DELAY);
        // Attack: clocks so short that a second of silence convicts, or that transactions kept out for F once do.
        _checkLength("budget", c.budget, p.inclusionDelay + MARGIN);
        _checkLength("replay", c.replay, MIN_TURN);
        _checkLength("move", c.move, MIN_TURN);
        // Attack: transactions kept out for the chain's inclusion delay F.
        uint256 once = p.inclusionDelay + MARGIN;
        _checkLength("commit", w.commit, once);
        _checkLength("receipt", w.receipt, once);
        // Attack: a seed that a reorganization shows early, while what it draws over can still be undone.
        _checkLength("seed delay", w.seedDelay, uint256(p.reorgDepth) + 1);
        _checkLength("attest", w.attest, once + c.replay);
        _checkLength("draw", w.draw, Math.max(once, uint256(p.reorgDepth) + 1));
        _checkLength("whistle", w.whistle, once + c.replay);
        _checkLength("reveal", w.reveal, once);
        // A committed challenge takes two transactions, the second later than what can be undone.
        _checkLength("challenge", w.challenge, once + p.inclusionDelay + p.reorgDepth + c.replay);
        _checkLength("rescue", w.rescue, once + c.replay);
        uint256 minimum = minChallengeBond(p, c.arity);
        // Attack: a flood of bonded false challenges; every reply's gas is paid from the bond.
        if (e.challengeBond < minimum) revert ICharter.ChallengeBondTooSmall(e.challengeBond, minimum);
        // The smallest lock behind a claim: S of a commitment or W of an outer step; B is at least 2 W.
        uint256 kept = Math.min(e.claimLock, EconomicsBounds.price(e)) * e.bountyPpm / (2 * PPM);
        minimum = minKept(p, c.arity);
        if (kept < minimum) revert ICharter.BountyTooSmall(kept, minimum);
    }

    function _mostReplies(uint256 arity) private pure returns (uint256) {
        return GameBounds.mostReplies(arity, Math.log2(arity));
    }

    function _checkLength(bytes32 what, uint64 length, uint256 minimum) private pure {
        if (length < minimum) revert ICharter.WindowTooShort(what, length, minimum);
    }

    function _checkAtMost(bytes32 what, uint64 length, uint256 maximum) private pure {
        if (length > maximum) revert ICharter.ScheduleTooLong(what, length, maximum);
    }
}
